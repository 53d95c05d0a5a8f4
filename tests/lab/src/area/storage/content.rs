//! What is on a storage: images made, volumes removed, notes and protection of backups.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::entry::done;
use super::super::{Call, Outcome};
use super::{find, usable};
use crate::answer::Refusal;
use crate::clock;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::storage::{Storage, Volume};
use crate::worker::{self, Done};

/// The largest file that the file system of a directory holds.
const LARGEST_FILE: u64 = 16 << 40;

/// A size parameter in bytes; without a unit it is in KiB.
fn bytes(size: &str) -> Option<u64> {
    let (digits, shift) = match size.as_bytes().last()? {
        b'M' => (size.strip_suffix('M')?, 20),
        b'G' => (size.strip_suffix('G')?, 30),
        _ => (size, 10),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

pub(super) fn allocate(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    let (vmid, name) = (call.text("vmid"), call.text("filename"));
    let named = ["raw", "qcow2", "vmdk"].into_iter().find(|format| name.ends_with(&format!(".{format}")));
    if let (Some(named), Some(format)) = (named, call.given("format"))
        && named != format
    {
        let what = format!("different storage formats ({format} != {named})");
        return Err(Refusal::parameter("format", what));
    }
    let storage = usable(cluster, call)?.clone();
    let format = named.or(call.given("format")).unwrap_or("raw");
    let size = bytes(call.text("size")).ok_or_else(|| Refusal::failed("unable to create image: size is too large"))?;
    let id = call.text("storage").to_owned();
    let name = if cluster.in_files(&id) {
        if named.is_none() {
            return Err(Refusal::failed(format!("unable to parse volume filename '{name}'")));
        }
        format!("{vmid}/{name}")
    } else {
        let owned = name.starts_with(&format!("vm-{vmid}-")) || name.starts_with(&format!("base-{vmid}-"));
        if !owned {
            return Err(Refusal::failed(format!("illegal name '{name}' - should be 'vm-{vmid}-*'")));
        }
        name.to_owned()
    };
    let volume = format!("{id}:{name}");
    let path = super::path(&storage, &volume_of(&volume, "images", format));
    if find(cluster, &id, &volume).is_some() {
        return Err(Refusal::failed(format!("disk image '{path}' already exists")));
    }
    let fails = |why: &str| Err(Refusal::failed(format!("unable to create image: qemu-img: {path}: {why}")));
    if size > LARGEST_FILE {
        return fails(&format!("The image size is too large for file format '{format}'"));
    }
    if storage.text("preallocation") == "full" && size > super::free(cluster, &id, &storage) {
        return fails("Could not write zeros for preallocation: No space left on device");
    }
    let mut made = volume_of(&volume, "images", format);
    made.size = size;
    made.vmid = vmid.parse().ok();
    // A file of such a format begins with its tables.
    made.used = Some(if format == "raw" { 0 } else { 196_608 + size / 8192 });
    cluster.volumes.push(made);
    Ok(json!(volume).into())
}

/// A volume of an id, empty so far.
pub(super) fn volume_of(id: &str, content: &str, format: &str) -> Volume {
    let (storage, name) = id.split_once(':').unwrap_or_default();
    Volume {
        storage: storage.to_owned(),
        name: name.to_owned(),
        content: content.to_owned(),
        format: format.to_owned(),
        size: 0,
        used: None,
        vmid: None,
        subtype: None,
        ctime: clock::now(),
        notes: None,
        protected: false,
    }
}

/// What a name says of a volume: its content and whose it is. None where no volume is called so.
pub(super) fn named(storage: &Storage, name: &str) -> Option<(&'static str, Option<u32>)> {
    let number = |text: &str| text.parse::<u32>().ok();
    if let Some(file) = name.strip_prefix("backup/") {
        let mut parts = file.split('-');
        let owner = if file.starts_with("vzdump-") { parts.nth(2).and_then(number) } else { None };
        let pbs = file.split('/').nth(1).and_then(number);
        return Some(("backup", owner.or(pbs)));
    }
    for content in ["iso", "vztmpl", "snippets", "import"] {
        if name.strip_prefix(content).is_some_and(|rest| rest.starts_with('/')) {
            return Some((content, None));
        }
    }
    if super::plugin_has_files(storage) {
        let (owner, file) = name.rsplit_once('/')?;
        let owner = number(owner.rsplit('/').next()?)?;
        let fits = ["raw", "qcow2", "vmdk", "subvol"].iter().any(|format| file.ends_with(&format!(".{format}")));
        let content = if file.ends_with(".subvol") { "rootdir" } else { "images" };
        return fits.then_some((content, Some(owner)));
    }
    let last = name.rsplit('/').next()?;
    let rest = ["vm-", "base-", "subvol-", "basevol-"].iter().find_map(|prefix| last.strip_prefix(prefix))?;
    Some(("images", number(rest.split('-').next()?)))
}

/// The id of the volume of a path, and what its name says.
fn target(cluster: &Cluster, call: &Call<'_>) -> Result<(String, &'static str, Option<u32>), Refusal> {
    let storage = call.text("storage");
    let given = call.text("volume");
    let id = if given.contains(':') { given.to_owned() } else { format!("{storage}:{given}") };
    let (on, name) = id.split_once(':').unwrap_or_default();
    if on != storage {
        return Err(Refusal::failed(format!("storage '{on}' in volume ID does not match '{storage}'")));
    }
    let definition = cluster.storages.get(storage).ok_or_else(|| super::missing(storage))?;
    match named(definition, name) {
        Some((content, owner)) => Ok((id, content, owner)),
        None => Err(Refusal::failed(format!("unable to parse directory volume name '{name}'"))),
    }
}

/// Removing a backup takes the guest's right too, anything else the storage.
fn may_remove(cluster: &Cluster, call: &Call<'_>, content: &str, owner: Option<u32>) -> Result<(), Refusal> {
    let storage = format!("/storage/{}", call.text("storage"));
    if call.may(cluster, &storage, &["Datastore.Allocate"]) {
        return Ok(());
    }
    if content == "backup"
        && let Some(owner) = owner
    {
        if !call.may(cluster, &storage, &["Datastore.AllocateSpace"]) {
            return Err(Refusal::forbidden(&format!("{storage}, Datastore.AllocateSpace")));
        }
        let guest = format!("/vms/{owner}");
        return if call.may(cluster, &guest, &["VM.Backup"]) {
            Ok(())
        } else {
            Err(Refusal::forbidden(&format!("{guest}, VM.Backup")))
        };
    }
    Err(Refusal::forbidden(&format!("{storage}, Datastore.Allocate")))
}

/// Removes a volume as a task. With `delay` the request waits a little for its end, and what went well is not told.
pub(super) fn delete(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let (id, content, owner) = shared.look(|cluster| {
        let (id, content, owner) = target(cluster, call)?;
        may_remove(cluster, call, content, owner)?;
        Ok::<_, Refusal>((id, content, owner))
    })?;
    let storage = call.text("storage").to_owned();
    let what = owner.map_or_else(|| storage.clone(), |owner| format!("{owner}@{storage}"));
    let waits = call.given("delay").is_some();
    if waits {
        // The work is done before the answer; its task has ended like any other.
        let end = shared.change(|cluster| remove(cluster, &storage, &id, content));
        let failed = end.as_ref().err().cloned();
        worker::start(shared, call, "imgdel", &what, |worker| async move { tell(&worker, end) });
        return failed.map_or_else(done, |status| Err(Refusal::failed(status)));
    }
    Ok(worker::start(shared, call, "imgdel", &what, |worker| async move {
        worker.step(Duration::from_millis(200)).await;
        let end = worker.change(|cluster| remove(cluster, &storage, &id, content));
        tell(&worker, end)
    }))
}

fn tell(worker: &worker::Worker, end: Result<Vec<String>, String>) -> worker::End {
    for line in end? {
        worker.log(line);
    }
    Ok(Done::Fine)
}

/// Removes a volume; the lines to log. An image that is not there is no mistake, a file is.
fn remove(cluster: &mut Cluster, storage: &str, id: &str, content: &str) -> Result<Vec<String>, String> {
    let definition =
        cluster.storages.get(storage).cloned().ok_or_else(|| format!("storage '{storage}' does not exist"))?;
    if !definition.enabled() {
        return Err(format!("storage '{storage}' is disabled"));
    }
    let removed = format!("Removed volume '{id}'");
    let Some(volume) = find(cluster, storage, id) else {
        let path = super::path(&definition, &volume_of(id, content, "raw"));
        return if matches!(content, "images" | "rootdir") {
            Ok(vec![format!("disk image '{path}' does not exist"), removed])
        } else {
            Err(format!("unlink '{path}' failed - No such file or directory"))
        };
    };
    if volume.protected {
        return Err(format!("cannot remove protected volume '{}' on '{storage}'", volume.name));
    }
    cluster.free(id)?;
    Ok(vec![removed])
}

/// Notes and protection, which only backups have.
pub(super) fn change(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    let (id, content, owner) = target(cluster, call)?;
    usable(cluster, call)?;
    may_remove(cluster, call, content, owner)?;
    for attribute in ["notes", "protected"] {
        if call.params.contains_key(attribute) && content != "backup" {
            return Err(Refusal::failed(format!("only backups support attribute '{attribute}'")));
        }
    }
    let path =
        cluster.storages.get(call.text("storage")).map(|storage| super::path(storage, &volume_of(&id, content, "raw")));
    let found = cluster.volumes.iter_mut().find(|volume| volume.id() == id);
    let volume =
        found.ok_or_else(|| Refusal::failed(format!("backup '{}' does not exist", path.unwrap_or_default())))?;
    if call.params.contains_key("notes") {
        volume.notes = call.given("notes").map(str::to_owned);
    }
    if call.params.contains_key("protected") {
        volume.protected = call.flag("protected");
    }
    Ok(Value::Null.into())
}
