//! Moving guests to other nodes.

use std::sync::Arc;
use std::time::Duration;

use super::{found, locked, noun};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::clock;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::disk::split;
use crate::state::guest::{Guest, Kind};
use crate::state::storage::Storage;
use crate::worker::{self, Done, End, Worker};

pub(super) fn migrate(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let vmid = super::vmid(call);
    let target = call.text("target").to_owned();
    let guest = shared.look(|cluster| {
        let local = call.node(cluster)?.name.clone();
        if target == local {
            return Err(Refusal::parameter("target", "target is local node."));
        }
        if cluster.node(&target).is_none() || target == "localhost" {
            return Err(Refusal::failed(format!("no such cluster node '{target}'")));
        }
        call.guest(cluster, kind).cloned()
    })?;
    locked(&guest).map_err(Refusal::failed)?;
    let online = call.flag("online") || call.flag("restart");
    if guest.running() && !online {
        let what = if kind == Kind::Qemu { "VM" } else { "container" };
        return Err(Refusal::failed(format!("can't migrate running {what} without --online")));
    }
    let sid = format!("{}:{vmid}", if kind == Kind::Qemu { "vm" } else { "ct" });
    if shared.look(|cluster| cluster.sections.get("/cluster/ha/resources", &sid).is_some()) {
        return Ok(worker::start(shared, call, "hamigrate", &vmid.to_string(), |worker| async move {
            worker.log(format!("Requesting HA migration for {} {vmid} to node {target}", noun(kind)));
            worker.change(|cluster| {
                if cluster.host.ha
                    && let Some(guest) = cluster.guests.get_mut(&vmid)
                {
                    guest.node = target;
                }
            });
            Ok(Done::Fine)
        }));
    }
    let with_disks = call.flag("with-local-disks");
    let task = if kind == Kind::Qemu { "qmigrate" } else { "vzmigrate" };
    Ok(worker::start(shared, call, task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        move_away(&worker, kind, vmid, &target, with_disks).await
    }))
}

pub(super) async fn move_away(worker: &Worker, kind: Kind, vmid: u32, target: &str, with_disks: bool) -> End {
    let begun = clock::now();
    let what = if kind == Kind::Qemu { "VM" } else { "CT" };
    let address = worker.look(|cluster| cluster.node(target).map(|node| (node.ip.clone(), node.online)));
    let (address, online) = address.unwrap_or_default();
    let stamp = "migration";
    let fail = |error: String| {
        let took = clock::now() - begun;
        worker.log(format!("ERROR: {stamp} aborted (duration 00:00:{took:02}): {error}"));
        Err("migration aborted".to_owned())
    };
    worker.log(format!("starting migration of {what} {vmid} to node '{target}' ({address})"));
    if !online {
        return fail("Can't connect to destination address using public key".to_owned());
    }
    let guest = worker.change(|cluster| found(cluster, vmid, kind).map(|guest| guest.clone()))?;
    if let Err(error) = worker.look(|cluster| local_disks(cluster, &guest, with_disks)) {
        return fail(error);
    }
    worker.change(|cluster| found(cluster, vmid, kind).map(|guest| guest.lock = Some("migrate".to_owned())))?;
    for (key, volume, size) in guest.disks() {
        worker.log(format!("found local disk '{volume}' ({key})"));
        super::clone::transfer(worker, size).await;
    }
    worker.step(Duration::from_millis(500)).await;
    worker.change(|cluster| {
        let guest = found(cluster, vmid, kind)?;
        guest.lock = None;
        target.clone_into(&mut guest.node);
        Ok::<_, String>(())
    })?;
    let took = clock::now() - begun;
    worker.log(format!("migration finished successfully (duration 00:00:{took:02})"));
    Ok(Done::Fine)
}

/// Whether a guest's local disks may travel: those of a running VM only when asked for.
fn local_disks(cluster: &Cluster, guest: &Guest, with_disks: bool) -> Result<(), String> {
    if !guest.running() || with_disks || guest.kind == Kind::Lxc {
        return Ok(());
    }
    for (_, volume, _) in guest.disks() {
        let storage = split(volume).map(|(storage, _)| storage).unwrap_or_default();
        if !cluster.storages.get(storage).is_some_and(Storage::shared) {
            return Err(format!(
                "can't migrate VM - can't live migrate attached local disks without with-local-disks option: {volume}"
            ));
        }
    }
    Ok(())
}
