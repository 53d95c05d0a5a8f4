//! New VMs.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::restore::{self, Archive};
use super::{clone, config as options, drive, power, rights};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::clock;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::config;
use crate::state::disk::is_drive;
use crate::state::guest::{Guest, Kind};
use crate::worker::{self, Done};

pub(super) fn create(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let vmid = super::vmid(call);
    let mut set = options::options(call);
    for control in ["archive", "bwlimit", "live-restore"] {
        set.remove(control);
    }
    options::normalise(&mut set);
    let pool = call.given("pool").map(str::to_owned);
    let restores = call.given("archive").is_some();
    shared.look(|cluster| {
        rights::make(cluster, call, vmid)?;
        let place = rights::place(vmid, pool.as_deref(), cluster, call);
        if let Some(storage) = call.given("storage") {
            rights::need(cluster, call, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
        }
        for (key, value) in &set {
            if is_drive(key) {
                drive::check(cluster, call, vmid, &config::text(value))?;
            }
        }
        for (key, value) in &set {
            rights::qemu(cluster, call, &place, None, (key, Some(&config::text(value))))?;
        }
        if cluster.guests.contains_key(&vmid) && !(restores && call.flag("force")) {
            let verb = if restores { "restore" } else { "create" };
            return Err(Refusal::failed(format!("unable to {verb} VM {vmid} - {}", clone::exists(cluster, vmid))));
        }
        if restores && cluster.guests.get(&vmid).is_some_and(Guest::running) {
            return Err(Refusal::failed(format!("unable to restore VM {vmid} - vm is running")));
        }
        Ok(())
    })?;
    let archive = call.given("archive").map(|archive| Archive {
        volume: archive.to_owned(),
        storage: call.given("storage").map(str::to_owned),
        unique: call.flag("unique"),
    });
    let node = shared.look(|cluster| call.node(cluster).map(|node| node.name.clone()))?;
    let start = call.flag("start");
    let task = if restores { "qmrestore" } else { "qmcreate" };
    Ok(worker::start(shared, call, task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        let mut log = Vec::new();
        let made = worker.change(|cluster| {
            let mut whole = match &archive {
                Some(archive) => restore::config(cluster, vmid, archive, &mut log)?,
                None => Map::new(),
            };
            whole.extend(set);
            make(cluster, vmid, &node, pool, whole, &mut log)
        });
        for line in log {
            worker.log(line);
        }
        let verb = if restores { "restore" } else { "create" };
        made.map_err(|error| format!("unable to {verb} VM {vmid} - {error}"))?;
        if start {
            worker.log("Execute autostart");
            power::autostart(&worker, Kind::Qemu, vmid, &node);
        }
        Ok(Done::Fine)
    }))
}

fn make(
    cluster: &mut Cluster,
    vmid: u32,
    node: &str,
    pool: Option<String>,
    set: Map<String, Value>,
    log: &mut Vec<String>,
) -> Result<(), String> {
    let mut stored = Map::new();
    for (key, value) in set {
        if is_drive(&key) {
            match drive::settle(cluster, vmid, &key, &config::text(&value), log) {
                Ok(text) => stored.insert(key, json!(text)),
                Err(error) => {
                    // What was made for a VM that does not come to be goes again.
                    cluster.volumes.retain(|volume| volume.vmid != Some(vmid) || volume.content != "images");
                    return Err(error);
                }
            };
        } else if !config::text(&value).is_empty() {
            stored.insert(key, value);
        }
    }
    let smbios = stored.get("smbios1").map(config::text).unwrap_or_default();
    if !smbios.contains("uuid=") {
        stored.insert("smbios1".to_owned(), json!(identity(&smbios)));
    }
    stored.entry("vmgenid").or_insert_with(|| json!(super::uuid()));
    if !stored.contains_key("boot") {
        stored.insert("boot".to_owned(), json!(boot(&stored)));
    }
    let version = if cluster.host.own_qemu { "10.1.2" } else { "10.0.13" };
    stored.insert("meta".to_owned(), json!(format!("creation-qemu={version},ctime={}", clock::now())));
    let mut guest = Guest::new(vmid, Kind::Qemu, node, stored);
    guest.pool = pool;
    guest.inside.obeys = cluster.host.own_qemu;
    cluster.guests.insert(vmid, guest);
    Ok(())
}

/// The identity of a machine with a new UUID.
pub(super) fn identity(text: &str) -> String {
    let others = text.split(',').filter(|part| !part.is_empty() && !part.starts_with("uuid="));
    let all: Vec<String> =
        std::iter::once(format!("uuid={}", super::uuid())).chain(others.map(str::to_owned)).collect();
    all.join(",")
}

/// What a VM is started from unless something else is said: the first disk, the first disc, the first card.
fn boot(config: &Map<String, Value>) -> String {
    let stems = ["ide", "scsi", "virtio", "sata"];
    let first = |disc: bool| {
        stems.iter().find_map(|stem| {
            (0..31)
                .map(|at| format!("{stem}{at}"))
                .find(|key| config.get(key).is_some_and(|value| config::text(value).contains("media=cdrom") == disc))
        })
    };
    let card = (0..32).map(|at| format!("net{at}")).find(|key| config.contains_key(key));
    let devices: Vec<String> = [first(false), first(true), card].into_iter().flatten().collect();
    if devices.is_empty() { " ".to_owned() } else { format!("order={}", devices.join(";")) }
}
