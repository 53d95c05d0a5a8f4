//! Disks of guests: grown, moved to another storage or guest, taken off.

use std::sync::Arc;

use serde_json::{Value, json};

use super::apply::{self, Asked};
use super::{found, locked, rights, root_only, unchanged};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::disk::{self, FILE, format_of, split};
use crate::state::guest::{Guest, Kind};
use crate::state::property::Property;
use crate::worker::{self, Done, Worker};

pub(super) fn resize(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let vmid = super::vmid(call);
    root_only(call, &["skiplock"])?;
    let (disk, size) = (call.text("disk").to_owned(), call.text("size").to_owned());
    let digest = call.given("digest").map(str::to_owned);
    if kind == Kind::Lxc {
        // A container is looked at before the task begins.
        let guest = super::call_guest(shared, call, kind)?;
        unchanged(call, &guest)?;
        shared.look(|cluster| grown(cluster, &guest, &disk, &size)).map_err(Refusal::failed)?;
    }
    Ok(worker::start(shared, call, "resize", &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        let done = worker.change(|cluster| {
            let guest = found(cluster, vmid, kind)?.clone();
            if digest.is_some_and(|digest| digest != guest.digest()) {
                return Err("checksum mismatch (file change by other user?)".to_owned());
            }
            locked(&guest)?;
            let Some((volume, bytes)) = grown(cluster, &guest, &disk, &size)? else { return Ok(None) };
            let guest = found(cluster, vmid, kind)?;
            let mut drive = Property::read(guest.text(&disk).unwrap_or_default(), &FILE);
            drive.set("size", disk::size(bytes));
            guest.config.insert(disk.clone(), json!(drive.write()));
            let running = guest.running();
            for known in cluster.volumes.iter_mut().filter(|known| known.id() == volume) {
                known.size = bytes;
            }
            let (storage, _) = split(&volume).unwrap_or_default();
            Ok((!running && cluster.in_files(storage)).then_some(()))
        })?;
        if done.is_some() {
            worker.log("Image resized.");
        }
        Ok(Done::Fine)
    }))
}

/// The volume and the size that it gets; none where it has that size.
fn grown(cluster: &Cluster, guest: &Guest, disk: &str, size: &str) -> Result<Option<(String, u64)>, String> {
    let text = guest.text(disk).ok_or_else(|| format!("disk '{disk}' does not exist"))?;
    if text.contains("media=cdrom") {
        return Err("you can't resize a cdrom".to_owned());
    }
    let drive = Property::read(text, &FILE);
    let old = cluster.volume_size(&drive.first).unwrap_or_else(|| disk::sized(&drive));
    let wanted = match size.strip_prefix('+') {
        Some(more) => old + disk::read_size(more).unwrap_or_default(),
        None => disk::read_size(size).unwrap_or_default(),
    };
    if wanted < old {
        let error =
            if guest.kind == Kind::Qemu { "shrinking disks is not supported" } else { "unable to shrink disk size" };
        return Err(error.to_owned());
    }
    let (storage, _) = split(&drive.first).unwrap_or_default();
    if cluster.storages.get(storage).is_some_and(|entry| wanted > entry.total)
        || (wanted > old && cluster.full.contains(storage))
    {
        return Err(format!("storage '{storage}' is full"));
    }
    Ok((wanted > old).then_some((drive.first, wanted)))
}

/// Moves a disk to another storage or format, or to another guest.
pub(super) fn relocate(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let vmid = super::vmid(call);
    let key = call.text(if kind == Kind::Qemu { "disk" } else { "volume" }).to_owned();
    let task = if kind == Kind::Qemu { "qmmove" } else { "move_volume" };
    let guest = super::call_guest(shared, call, kind)?;
    if let Some(target) = call.given("target-vmid") {
        return reassign(shared, call, &guest, &key, target);
    }
    let Some(storage) = call.given("storage").map(str::to_owned) else {
        return Err(Refusal::failed("either storage or target-vmid needs to be specified"));
    };
    shared.look(|cluster| {
        rights::need(cluster, call, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
        unchanged(call, &guest)?;
        locked(&guest).map_err(Refusal::failed)?;
        movable(cluster, call, &guest, &key, &storage).map_err(Refusal::failed)
    })?;
    let (format, delete) = (call.given("format").map(str::to_owned), call.flag("delete"));
    Ok(worker::start(shared, call, task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        copy(&worker, (kind, vmid), &key, &storage, format.as_deref(), delete).await
    }))
}

fn movable(cluster: &Cluster, call: &Call<'_>, guest: &Guest, key: &str, storage: &str) -> Result<(), String> {
    let text = guest.text(key).ok_or_else(|| match guest.kind {
        Kind::Qemu => format!("disk '{key}' does not exist"),
        Kind::Lxc => format!("volume '{key}' does not exist"),
    })?;
    if text.contains("media=cdrom") {
        return Err("you can't move a cdrom".to_owned());
    }
    if !cluster.storages.contains_key(storage) {
        return Err(format!("storage '{storage}' does not exist"));
    }
    let drive = Property::read(text, &FILE);
    let (from, name) = split(&drive.first).ok_or_else(|| format!("disk '{key}' has no associated volume"))?;
    let same_format = call.given("format").is_none_or(|format| format == format_of(name));
    if from == storage && same_format {
        return Err(match guest.kind {
            Kind::Qemu => "you can't move to the same storage with same format".to_owned(),
            Kind::Lxc => format!("you can't move a volume to the same storage '{storage}'"),
        });
    }
    if guest.kind == Kind::Lxc && guest.running() {
        return Err("cannot move volumes of a running container".to_owned());
    }
    Ok(())
}

async fn copy(
    worker: &Worker,
    (kind, vmid): (Kind, u32),
    key: &str,
    storage: &str,
    format: Option<&str>,
    delete: bool,
) -> worker::End {
    let guest = worker.change(|cluster| found(cluster, vmid, kind).map(|guest| guest.clone()))?;
    locked(&guest)?;
    let mut drive = Property::read(guest.text(key).unwrap_or_default(), &FILE);
    let old = drive.first.clone();
    let (_, name) = split(&old).unwrap_or_default();
    let what = if kind == Kind::Qemu { "drive" } else { "mountpoint" };
    worker.log(format!("create full clone of {what} {key} ({old})"));
    let files = worker.look(|cluster| cluster.in_files(storage));
    let same = format_of(name);
    let format = format.unwrap_or(if files || same == "subvol" { same } else { "raw" });
    let stem = if format == "subvol" { "subvol" } else { "vm" };
    let size = worker.look(|cluster| cluster.volume_size(&old)).unwrap_or_else(|| disk::sized(&drive));
    let (made, line) = worker
        .change(|cluster| cluster.allocate((storage, vmid), size, format, stem))
        .map_err(|error| format!("storage migration failed: {error}"))?;
    if let Some(line) = line {
        worker.log(line);
    }
    super::clone::transfer(worker, size).await;
    drive.first = made;
    worker.change(|cluster| {
        let mut guest = found(cluster, vmid, kind)?.clone();
        guest.config.insert(key.to_owned(), json!(drive.write()));
        let kept = guest.snapshots.iter().any(|snapshot| {
            snapshot.config.values().any(|value| value.as_str().is_some_and(|text| text.starts_with(&old)))
        });
        if !delete || kept {
            apply::unuse(&mut guest, &old);
        } else {
            cluster.free(&old)?;
        }
        cluster.guests.insert(vmid, guest);
        Ok(Done::Fine)
    })
}

/// Hands a disk to another guest.
fn reassign(shared: &Arc<Shared>, call: &Call<'_>, guest: &Guest, key: &str, target: &str) -> Outcome {
    let (kind, vmid) = (guest.kind, guest.vmid);
    let target: u32 = target.parse().unwrap_or_default();
    let slot = call.given("target-disk").or_else(|| call.given("target-volume")).unwrap_or(key).to_owned();
    shared.look(|cluster| {
        rights::need(cluster, call, &format!("/vms/{target}"), &["VM.Config.Disk"])?;
        unchanged(call, guest)?;
        let other = cluster.guests.get(&target).filter(|other| other.kind == kind);
        let failed = |text: String| Err(Refusal::failed(text));
        let Some(other) = other else {
            return failed(format!(
                "Configuration file 'nodes/{}/{}/{target}.conf' does not exist",
                guest.node,
                kind.folder()
            ));
        };
        if target == vmid {
            return failed("source and target VMs are the same".to_owned());
        }
        let Some(text) = guest.text(key) else { return failed(format!("Disk '{key}' for VM {vmid} does not exist")) };
        if text.contains("media=cdrom") {
            return failed(format!("Cannot move a CD-ROM drive ('{key}')"));
        }
        if other.config.contains_key(&slot) {
            return failed(format!("Target disk key '{slot}' is already in use for target VM {target}"));
        }
        if !guest.snapshots.is_empty() {
            return failed("Can't move disk to another VM while it is part of a snapshot".to_owned());
        }
        Ok(())
    })?;
    let key = key.to_owned();
    let task = if kind == Kind::Qemu { "qmmove" } else { "move_volume" };
    Ok(worker::start(shared, call, task, &format!("{vmid}-{target}"), |worker| async move {
        worker.lock(vmid).await?;
        worker.lock(target).await?;
        worker.log(format!("moving disk '{key}' from VM '{vmid}' to '{target}'"));
        worker.change(|cluster| {
            let text = found(cluster, vmid, kind)?.text(&key).unwrap_or_default().to_owned();
            let mut drive = Property::read(&text, &FILE);
            let old = drive.first.clone();
            let (storage, name) = split(&old).unwrap_or_default();
            let size = cluster.volume_size(&old).unwrap_or_else(|| disk::sized(&drive));
            let (made, _) = cluster.allocate((storage, target), size, format_of(name), "vm")?;
            cluster.volumes.retain(|volume| volume.id() != old);
            let mut guest = found(cluster, vmid, kind)?.clone();
            guest.config.remove(&key);
            apply::remove(cluster, &mut guest, &key, false)?;
            cluster.guests.insert(vmid, guest);
            drive.first = made;
            found(cluster, target, kind)?.config.insert(slot, json!(drive.write()));
            Ok(Done::Fine)
        })
    }))
}

/// Takes disks off a VM; with `force` their volumes go too.
pub(super) fn unlink(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let names = super::config::list(call, "idlist");
    let force = call.flag("force");
    shared.change(|cluster| {
        let mut guest = call.guest(cluster, Kind::Qemu)?.clone();
        locked(&guest).map_err(Refusal::failed)?;
        let mut asked = Asked::default();
        for name in names {
            guest.pending.remove(&name);
            if guest.config.contains_key(&name) && !guest.leaving.contains(&name) {
                guest.leaving.push(name.clone());
            }
            if force {
                asked.forced.push(name);
            }
        }
        let errors = apply::apply(cluster, &mut guest, &asked).map_err(Refusal::failed)?;
        cluster.guests.insert(guest.vmid, guest);
        if errors.is_empty() { Ok(Value::Null.into()) } else { Err(Refusal::parameters(errors)) }
    })
}
