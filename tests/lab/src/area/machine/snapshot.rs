//! Snapshots: made, described, gone back to, deleted, each as a task that finds out only then what is wrong.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{found, locked, power, prefix};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::clock;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::disk::{format_of, split};
use crate::state::guest::{Guest, Kind, Snapshot};
use crate::worker::{self, Done, End, Worker};

const MOMENT: Duration = Duration::from_millis(300);

pub(super) fn create(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let vmid = super::vmid(call);
    let name = call.text("snapname").to_owned();
    if name == "current" || (kind == Kind::Lxc && name == "vzdump") {
        return Err(Refusal::failed(format!("unable to use snapshot name '{name}' (reserved name)")));
    }
    if name == "pending" {
        return Err(Refusal::failed("unable to use snapshot name 'pending' (reserved name)"));
    }
    let snapshot = Snapshot {
        name: name.clone(),
        parent: None,
        description: call.text("description").to_owned(),
        time: 0,
        with_memory: call.flag("vmstate"),
        state: None,
        config: serde_json::Map::new(),
    };
    let task = format!("{}snapshot", prefix(kind));
    Ok(worker::start(shared, call, &task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        let stuck = worker.change(|cluster| prepare(cluster, kind, vmid, snapshot))?;
        if stuck {
            worker.log("skipping guest filesystem freeze - disabled in VM options");
            worker
                .log(format!("VM {vmid} qmp command 'savevm-end' failed - The command savevm-end has not been found"));
            return Err(format!(
                "VM {vmid} qmp command 'query-savevm' failed - The command query-savevm has not been found"
            ));
        }
        worker.step(MOMENT).await;
        let lines = worker.change(|cluster| commit(cluster, kind, vmid, &name))?;
        for line in lines {
            worker.log(line);
        }
        Ok(Done::Fine)
    }))
}

/// Enters the snapshot and locks the guest; whether it gets stuck there, because QEMU lacks what it takes.
fn prepare(cluster: &mut Cluster, kind: Kind, vmid: u32, mut snapshot: Snapshot) -> Result<bool, String> {
    let own_qemu = cluster.host.own_qemu;
    let guest = found(cluster, vmid, kind)?.clone();
    locked(&guest)?;
    if guest.template() {
        return Err("you can't take a snapshot if it's a template".to_owned());
    }
    if guest.snapshots.iter().any(|other| other.name == snapshot.name) {
        return Err(format!("snapshot name '{}' already used", snapshot.name));
    }
    if !able(cluster, &guest) {
        return Err("snapshot feature is not available".to_owned());
    }
    let running = guest.running();
    snapshot.with_memory = snapshot.with_memory && running && kind == Kind::Qemu;
    snapshot.time = clock::now();
    snapshot.parent.clone_from(&guest.parent);
    snapshot.config.clone_from(&guest.config);
    snapshot.config.remove("description");
    snapshot.config.retain(|key, _| !key.starts_with("unused"));
    snapshot.state = Some("prepare".to_owned());
    let guest = found(cluster, vmid, kind)?;
    guest.snapshots.push(snapshot);
    guest.lock = Some("snapshot".to_owned());
    Ok(running && kind == Kind::Qemu && !own_qemu)
}

/// Whether every disk of a guest is where snapshots can be made.
pub(in crate::area) fn able(cluster: &Cluster, guest: &Guest) -> bool {
    guest.disks().all(|(_, volume, _)| {
        let Some((storage, name)) = split(volume) else { return false };
        match cluster.storages.get(storage).map(|entry| entry.text("type")) {
            Some("dir" | "nfs" | "cifs" | "cephfs") => format_of(name) == "qcow2",
            Some("lvm" | "iscsi" | "iscsidirect") | None => false,
            Some(_) => true,
        }
    })
}

fn commit(cluster: &mut Cluster, kind: Kind, vmid: u32, name: &str) -> Result<Vec<String>, String> {
    let guest = found(cluster, vmid, kind)?;
    guest.lock = None;
    guest.parent = Some(name.to_owned());
    if let Some(snapshot) = guest.snapshots.iter_mut().find(|snapshot| snapshot.name == name) {
        snapshot.state = None;
    }
    let drive = if kind == Kind::Qemu { "drive-" } else { "" };
    if kind == Kind::Lxc {
        return Ok(Vec::new());
    }
    Ok(guest.disks().map(|(key, volume, _)| format!("snapshotting '{drive}{key}' ({volume})")).collect())
}

pub(super) fn describe(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let name = call.text("snapname").to_owned();
    let description = call.given("description").map(str::to_owned);
    shared.change(|cluster| {
        let vmid = call.guest(cluster, kind)?.vmid;
        let guest = found(cluster, vmid, kind).map_err(Refusal::failed)?;
        locked(guest).map_err(Refusal::failed)?;
        let snapshot = guest
            .snapshots
            .iter_mut()
            .find(|snapshot| snapshot.name == name)
            .ok_or_else(|| Refusal::failed(format!("snapshot '{name}' does not exist")))?;
        if let Some(description) = description {
            snapshot.description = description;
        }
        Ok(Value::Null.into())
    })
}

pub(super) fn delete(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let vmid = super::vmid(call);
    let (name, force) = (call.text("snapname").to_owned(), call.flag("force"));
    let task = format!("{}delsnapshot", prefix(kind));
    Ok(worker::start(shared, call, &task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        worker.change(|cluster| {
            let guest = found(cluster, vmid, kind)?;
            if !force {
                locked(guest)?;
            }
            mark(guest, &name)
        })?;
        worker.step(MOMENT).await;
        worker.change(|cluster| {
            let guest = found(cluster, vmid, kind)?;
            forget(guest, &name);
            Ok(Done::Fine)
        })
    }))
}

fn mark(guest: &mut Guest, name: &str) -> Result<(), String> {
    let snapshot = guest.snapshots.iter_mut().find(|snapshot| snapshot.name == name);
    let snapshot = snapshot.ok_or_else(|| format!("snapshot '{name}' does not exist"))?;
    snapshot.state = Some("delete".to_owned());
    guest.lock = Some("snapshot-delete".to_owned());
    Ok(())
}

/// Takes a snapshot out; what came after it then comes after what it came after.
fn forget(guest: &mut Guest, name: &str) {
    let above = guest.snapshots.iter().find(|snapshot| snapshot.name == name).and_then(|gone| gone.parent.clone());
    guest.snapshots.retain(|snapshot| snapshot.name != name);
    for snapshot in &mut guest.snapshots {
        if snapshot.parent.as_deref() == Some(name) {
            snapshot.parent.clone_from(&above);
        }
    }
    if guest.parent.as_deref() == Some(name) {
        guest.parent = above;
    }
    guest.lock = None;
}

pub(super) fn rollback(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let vmid = super::vmid(call);
    let (name, start) = (call.text("snapname").to_owned(), call.flag("start"));
    let task = format!("{}rollback", prefix(kind));
    Ok(worker::start(shared, call, &task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        let back = worker.change(|cluster| go_back(cluster, kind, vmid, &name))?;
        worker.step(MOMENT).await;
        resume(&worker, kind, vmid, start || back)
    }))
}

/// The guest becomes what it was. Whether it ran then, with its memory kept.
fn go_back(cluster: &mut Cluster, kind: Kind, vmid: u32, name: &str) -> Result<bool, String> {
    let guest = found(cluster, vmid, kind)?;
    let snapshot = guest.snapshots.iter().find(|snapshot| snapshot.name == name).cloned();
    let snapshot = snapshot.ok_or_else(|| format!("snapshot '{name}' does not exist"))?;
    locked(guest)?;
    if let Some(state) = &snapshot.state {
        return Err(format!("unable to rollback to incomplete snapshot (snapstate = {state})"));
    }
    power::turn_off(guest);
    let notes = guest.config.get("description").cloned();
    guest.config = snapshot.config;
    if let Some(notes) = notes.or_else(|| (!snapshot.description.is_empty()).then(|| json!(snapshot.description))) {
        guest.config.insert("description".to_owned(), notes);
    }
    if kind == Kind::Qemu && guest.config.contains_key("vmgenid") {
        guest.config.insert("vmgenid".to_owned(), json!(super::uuid()));
    }
    guest.pending.clear();
    guest.leaving.clear();
    guest.parent = Some(name.to_owned());
    Ok(snapshot.with_memory)
}

fn resume(worker: &Worker, kind: Kind, vmid: u32, run: bool) -> End {
    if run { power::begin(worker, kind, vmid) } else { Ok(Done::Fine) }
}
