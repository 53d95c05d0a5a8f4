//! New containers, from a template or a backup.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{clone, config as options, lxc_config, power, rights};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::config;
use crate::state::disk::split;
use crate::state::guest::{Guest, Kind};
use crate::worker::{self, Done, Worker};

/// Parameters that are no options of the container.
const CONTROLS: [&str; 8] =
    ["ostemplate", "password", "restore", "bwlimit", "ssh-public-keys", "ignore-unpack-errors", "force", "unique"];

pub(super) fn create(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let vmid = super::vmid(call);
    let mut set = options::options(call);
    for control in CONTROLS {
        set.remove(control);
    }
    let pool = call.given("pool").map(str::to_owned);
    let restore = call.flag("restore");
    let source = call.text("ostemplate").to_owned();
    shared.look(|cluster| {
        rights::make(cluster, call, vmid)?;
        let place = rights::place(vmid, pool.as_deref(), cluster, call);
        let unprivileged = call.given("unprivileged").is_none_or(|flag| flag == "1");
        for (key, value) in &set {
            rights::lxc(cluster, call, &place, unprivileged, (key, Some(&config::text(value))))?;
        }
        let (storage, _) =
            split(&source).ok_or_else(|| Refusal::failed(format!("unable to parse volume ID '{source}'")))?;
        if !cluster.storages.contains_key(storage) {
            return Err(Refusal::failed(format!("storage '{storage}' does not exist")));
        }
        let own_backup = restore && source.contains(&format!("-{vmid}-"));
        if !own_backup {
            let wanted = ["Datastore.AllocateSpace", "Datastore.Audit"];
            rights::need(cluster, call, &format!("/storage/{storage}"), &wanted)?;
        }
        let target = call.given("storage").unwrap_or("local");
        if call.given("rootfs").is_none() {
            if !cluster.storages.contains_key(target) {
                return Err(Refusal::failed(format!("storage '{target}' does not exist")));
            }
            rights::need(cluster, call, &format!("/storage/{target}"), &["Datastore.AllocateSpace"])?;
        }
        match cluster.guests.get(&vmid) {
            Some(old) if restore && call.flag("force") && old.kind == Kind::Lxc => {
                if old.running() {
                    Err(Refusal::failed(format!("CT {vmid} is running")))
                } else {
                    Ok(())
                }
            }
            Some(_) => Err(Refusal::failed(clone::exists(cluster, vmid))),
            None => Ok(()),
        }
    })?;
    if !set.contains_key("rootfs") {
        let storage = call.given("storage").unwrap_or("local");
        set.insert("rootfs".to_owned(), json!(format!("{storage}:4")));
    }
    let node = shared.look(|cluster| call.node(cluster).map(|node| node.name.clone()))?;
    let plan = Plan { vmid, node, pool, set, source, restore, unique: call.flag("unique"), start: call.flag("start") };
    let task = if restore { "vzrestore" } else { "vzcreate" };
    Ok(worker::start(shared, call, task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        work(&worker, &plan).await.map_err(|error| {
            let verb = if plan.restore { "restore" } else { "create" };
            format!("unable to {verb} CT {vmid} - {error}")
        })
    }))
}

struct Plan {
    vmid: u32,
    node: String,
    pool: Option<String>,
    set: Map<String, Value>,
    source: String,
    restore: bool,
    unique: bool,
    start: bool,
}

/// How long an archive takes to be unpacked, in milliseconds.
const EXTRACTING: u64 = 300;
/// What `tar` reads and writes at once.
const RECORD: u64 = 10_240;

/// The bytes that `tar` reads of an archive: twice as many as it has where it is packed, in whole records.
fn unpacked(cluster: &Cluster, source: &str) -> u64 {
    let volume = cluster.volumes.iter().find(|volume| volume.id() == source);
    let (size, packed) = volume.map_or((0, false), |volume| (volume.size, volume.format != "tar"));
    (if packed { size.saturating_mul(2) } else { size }).div_ceil(RECORD).saturating_mul(RECORD)
}

/// A size as `tar` says it: one decimal below ten.
fn size(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes.saturating_mul(10), 0);
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    while value >= 10_240 && unit + 1 < units.len() {
        value = value.div_ceil(1024);
        unit += 1;
    }
    let unit = units.get(unit).copied().unwrap_or_default();
    if value < 100 { format!("{}.{}{unit}", value / 10, value % 10) } else { format!("{}{unit}", value.div_ceil(10)) }
}

async fn work(worker: &Worker, plan: &Plan) -> worker::End {
    let source = plan.source.as_str();
    let mut config = Map::new();
    if plan.restore {
        worker.log(format!("recovering backed-up configuration from '{source}'"));
        config = worker.look(|cluster| kept(cluster, source)).unwrap_or_default();
    }
    let mut set = plan.set.clone();
    let mut log = Vec::new();
    let made = worker.change(|cluster| lxc_config::normalise(cluster, plan.vmid, &mut set, &mut log));
    for line in log {
        worker.log(line);
    }
    made?;
    if let Err(error) = worker.look(|cluster| {
        let there = cluster.volumes.iter().any(|volume| volume.id() == source);
        if there { Ok(()) } else { Err(format!("volume '{source}' does not exist")) }
    }) {
        worker.change(|cluster| cluster.volumes.retain(|volume| !fresh(&set, &volume.id())));
        return Err(error);
    }
    let archive = worker.look(|cluster| archive(cluster, source));
    if plan.restore {
        worker.log(format!("restoring '{source}' now.."));
    }
    worker.log(format!("extracting archive '{archive}'"));
    worker.step(Duration::from_millis(EXTRACTING)).await;
    let read = worker.look(|cluster| unpacked(cluster, source));
    let (whole, rate) = (size(read), size(read.saturating_mul(1000) / EXTRACTING));
    worker.log(format!("Total bytes read: {read} ({whole}, {rate}/s)"));
    if plan.restore {
        worker.log("merging backed-up and given configuration..");
    } else {
        worker.log("Detected container architecture: amd64");
    }
    worker.change(|cluster| {
        if let Some(old) = cluster.guests.remove(&plan.vmid) {
            let keep: Vec<String> = set.values().map(config::text).collect();
            for volume in old.volumes().iter().filter(|volume| !keep.iter().any(|text| text.starts_with(*volume))) {
                cluster.free(volume)?;
            }
        }
        let mut stored = defaults(plan, &config);
        stored.extend(set);
        stored.retain(|_, value| !config::text(value).is_empty());
        if plan.unique {
            for (key, value) in &mut stored {
                if key.starts_with("net")
                    && let Some(text) = value.as_str()
                {
                    let bare: Vec<&str> = text.split(',').filter(|part| !part.starts_with("hwaddr=")).collect();
                    *value = json!(super::net::lxc(&bare.join(",")));
                }
            }
        }
        let mut guest = Guest::new(plan.vmid, Kind::Lxc, &plan.node, stored);
        guest.pool.clone_from(&plan.pool);
        cluster.guests.insert(plan.vmid, guest);
        Ok::<_, String>(())
    })?;
    if plan.start {
        power::autostart(worker, Kind::Lxc, plan.vmid, &plan.node);
    }
    Ok(Done::Fine)
}

/// Whether a volume is one of those that a set of options names.
fn fresh(set: &Map<String, Value>, id: &str) -> bool {
    set.values().any(|value| config::text(value).split(',').next() == Some(id))
}

/// The configuration that a backup kept.
fn kept(cluster: &Cluster, source: &str) -> Option<Map<String, Value>> {
    let mut config = cluster.archives.get(source)?.clone();
    config.retain(|key, _| !key.starts_with("unused") && !key.starts_with("mp"));
    Some(config)
}

/// What a container has that was given nothing else.
fn defaults(plan: &Plan, backed_up: &Map<String, Value>) -> Map<String, Value> {
    let systems = ["alpine", "debian", "ubuntu", "fedora", "centos", "archlinux", "gentoo", "nixos", "opensuse"];
    let system = systems.iter().find(|name| plan.source.contains(**name)).copied().unwrap_or("unmanaged");
    let mut config = match json!({
        "arch": "amd64",
        "hostname": format!("CT{}", plan.vmid),
        "memory": 512,
        "swap": 512,
        "ostype": system,
        "unprivileged": 1,
    }) {
        Value::Object(config) => config,
        _ => Map::new(),
    };
    config.extend(backed_up.clone());
    config
}

/// Where a template or backup is, as the log shows it.
fn archive(cluster: &Cluster, source: &str) -> String {
    let (storage, name) = split(source).unwrap_or_default();
    let path = cluster.storages.get(storage).map(|entry| entry.text("path")).unwrap_or_default();
    let root = if path.is_empty() { format!("/mnt/pve/{storage}") } else { path.to_owned() };
    match name.split_once('/') {
        Some(("vztmpl", file)) => format!("{root}/template/cache/{file}"),
        Some(("backup", file)) => format!("{root}/dump/{file}"),
        _ => format!("{root}/{name}"),
    }
}
