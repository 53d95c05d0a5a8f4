//! Backups of guests: what is asked for, who may, and the defaults.

mod archive;
mod run;

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::entry::split;
use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::worker;

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    match call.path() {
        "/nodes/{node}/vzdump/defaults" => Some(Ok(defaults(cluster, call).into())),
        "/nodes/{node}/vzdump/extractconfig" => Some(archive::extract(cluster, call)),
        _ => None,
    }
}

fn defaults(cluster: &Cluster, call: &Call<'_>) -> Value {
    let name = call.given("storage").unwrap_or("local");
    let storage = cluster.storages.get(name);
    let keep =
        storage.map(|storage| storage.text("prune-backups")).filter(|keep| !keep.is_empty()).unwrap_or("keep-all=1");
    let path = storage.map(|storage| storage.text("path")).filter(|path| !path.is_empty()).unwrap_or("/var/lib/vz");
    json!({
        "all": 0, "bwlimit": 0, "compress": "0", "dumpdir": format!("{path}/dump"), "fleecing": {"enabled": 0},
        "ionice": 7, "lockwait": 180, "mailnotification": "always", "mode": "snapshot", "notification-mode": "auto",
        "performance": {"max-workers": 16, "pbs-entries-max": 1_048_576}, "pigz": 0, "prune-backups": keep,
        "quiet": 0, "remove": 1, "stdexcludes": 1, "stop": 0, "stopwait": 10, "storage": name, "zstd": 1,
    })
}

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    (call.operation.name == "POST /nodes/{node}/vzdump").then(|| begin(shared, call))
}

/// What one run of backups is to do.
#[derive(Clone)]
struct Order {
    vmids: Vec<u32>,
    node: String,
    storage: String,
    mode: String,
    /// What the name of an archive ends with after its kind, such as `.zst`.
    ending: &'static str,
    notes: Option<String>,
    protected: bool,
    /// The schedule by which older backups go; none where they stay.
    prune: Option<String>,
    command: String,
}

fn begin(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    super::job::for_root_alone(call)?;
    super::job::selected(call, true)?;
    let order = shared.look(|cluster| order(cluster, call))?;
    if order.vmids.is_empty() {
        return Ok(json!("OK").into());
    }
    let id = match order.vmids.as_slice() {
        [one] => one.to_string(),
        _ => String::new(),
    };
    Ok(worker::start(shared, call, "vzdump", &id, |worker| run::all(worker, order)))
}

/// Guests that are named have to be permitted; of all, those that are not are left out.
fn order(cluster: &Cluster, call: &Call<'_>) -> Result<Order, Refusal> {
    let node = call.node(cluster)?.name.clone();
    let may = |vmid: u32| call.may(cluster, &format!("/vms/{vmid}"), &["VM.Backup"]);
    let here = |vmid: &u32| cluster.guests.get(vmid).is_none_or(|guest| guest.node == node);
    let named: Vec<u32> = split(call.text("vmid")).filter_map(|vmid| vmid.parse().ok()).collect();
    if let Some(refused) = named.iter().find(|vmid| !may(**vmid)) {
        return Err(Refusal::forbidden(&format!("/vms/{refused}, VM.Backup")));
    }
    let vmids: Vec<u32> = if named.is_empty() {
        let excluded: Vec<&str> = split(call.text("exclude")).collect();
        let pool = call.given("pool");
        let wanted = cluster.guests.values().filter(|guest| {
            pool.is_none_or(|pool| guest.pool.as_deref() == Some(pool))
                && !excluded.contains(&guest.vmid.to_string().as_str())
                && may(guest.vmid)
        });
        wanted.map(|guest| guest.vmid).filter(here).collect()
    } else {
        named.into_iter().filter(here).collect()
    };
    let storage = call.given("storage").unwrap_or("local").to_owned();
    let path = format!("/storage/{storage}");
    if call.given("storage").is_some() && !call.may(cluster, &path, &["Datastore.AllocateSpace"]) {
        return Err(Refusal::forbidden(&format!("{path}, Datastore.AllocateSpace")));
    }
    let own = cluster.storages.get(&storage).map(|storage| storage.text("prune-backups").to_owned());
    let prune = call.given("prune-backups").map(str::to_owned).or(own);
    let prune = prune.filter(|keep| !keep.is_empty() && !keep.contains("keep-all=1") && call.text("remove") != "0");
    Ok(Order {
        command: command(call, &vmids),
        vmids,
        node,
        storage,
        mode: call.given("mode").unwrap_or("snapshot").to_owned(),
        ending: match call.text("compress") {
            "zstd" => ".zst",
            "gzip" => ".gz",
            "1" | "lzo" => ".lzo",
            _ => "",
        },
        notes: call.given("notes-template").map(str::to_owned),
        protected: call.flag("protected"),
        prune,
    })
}

/// The command line that the log of a run begins with.
fn command(call: &Call<'_>, vmids: &[u32]) -> String {
    let mut line = "vzdump".to_owned();
    if call.given("vmid").is_some() {
        for vmid in vmids {
            let _written = write!(line, " {vmid}");
        }
    }
    for (name, value) in call.params.iter().filter(|(name, _)| *name != "vmid") {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_!%+,-./:@^".contains(c));
        let quote = if plain { "" } else { "'" };
        let _written = write!(line, " --{name} {quote}{text}{quote}");
    }
    line
}
