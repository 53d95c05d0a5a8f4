//! Drives of VMs: who may use which volume, new volumes, and how a drive is written once its volume is there.

use crate::answer::Refusal;
use crate::area::Call;
use crate::state::Cluster;
use crate::state::disk::{self, FILE, split};
use crate::state::property::Property;

use super::rights::need;

/// A volume to be made, as `STORAGE:SIZE`.
pub(super) fn to_make(file: &str) -> Option<(&str, f64)> {
    let (storage, size) = file.rsplit_once(':').unwrap_or(("", file));
    let plain = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (plain && !storage.contains('/')).then(|| Some((storage, size.parse().ok()?))).flatten()
}

/// Looks at a drive before anything is done: its storage has to exist and to be the caller's to use.
pub(super) fn check(cluster: &Cluster, call: &Call<'_>, vmid: u32, text: &str) -> Result<(), Refusal> {
    let drive = Property::read(text, &FILE);
    let file = drive.first.as_str();
    if matches!(file, "none" | "") {
        return Ok(());
    }
    if file == "cdrom" {
        return need(cluster, call, "/", &["Sys.Console"]);
    }
    if file.starts_with('/') {
        return Err(Refusal::failed("Only root can pass arbitrary filesystem paths."));
    }
    let made = to_make(file);
    if made.is_some_and(|(storage, _)| storage.is_empty()) {
        return Err(Refusal::failed("no storage ID specified (and no default storage)"));
    }
    let Some((storage, name)) = split(file) else {
        return Err(Refusal::failed(format!("unable to parse volume ID '{file}'")));
    };
    let Some(entry) = cluster.storages.get(storage) else {
        return Err(Refusal::failed(format!("storage '{storage}' does not exist")));
    };
    let place = format!("/storage/{storage}");
    if made.is_some() || name == "cloudinit" {
        need(cluster, call, &place, &["Datastore.AllocateSpace"])?;
        if !entry.text("content").split(',').any(|content| content == "images") {
            let error = format!("storage '{storage}' does not support vm images");
            return Err(Refusal::parameter("storage", error));
        }
        return Ok(());
    }
    if name.starts_with("iso/") {
        return need(cluster, call, &place, &["Datastore.AllocateSpace", "Datastore.Audit"]);
    }
    if owner(name) == Some(vmid) || call.may(cluster, &place, &["Datastore.Allocate"]) {
        return Ok(());
    }
    need(cluster, call, &place, &["Datastore.Allocate"])
}

/// The guest that a volume's name says it belongs to.
pub(super) fn owner(name: &str) -> Option<u32> {
    let last = name.rsplit('/').next()?;
    let rest = ["vm-", "base-", "subvol-", "basevol-"].into_iter().find_map(|prefix| last.strip_prefix(prefix))?;
    rest.split('-').next()?.parse().ok()
}

/// Makes or finds a drive's volume and writes the drive. Lines for the task's log are added to `log`.
pub(super) fn settle(
    cluster: &mut Cluster,
    vmid: u32,
    key: &str,
    text: &str,
    log: &mut Vec<String>,
) -> Result<String, String> {
    let mut drive = Property::read(text, &FILE);
    let file = drive.first.clone();
    if matches!(file.as_str(), "none" | "cdrom" | "") {
        return Ok(drive.write());
    }
    if let Some((storage, name)) = split(&file)
        && name == "cloudinit"
    {
        let format = if cluster.in_files(storage) { "qcow2" } else { "raw" };
        let stem = format!("{storage}:{vmid}/vm-{vmid}-cloudinit.{format}");
        drive.first = if cluster.in_files(storage) { stem } else { format!("{storage}:vm-{vmid}-cloudinit") };
        drive.set("media", "cdrom");
        drive.set("size", "4M");
        let created = drive.write();
        log.push(format!("{key}: successfully created disk '{created}'"));
        return Ok(created);
    }
    if let Some((storage, gib)) = to_make(&file) {
        let size = match (key, drive.remove("import-from")) {
            (_, Some(source)) => {
                cluster.volume_size(&source).ok_or_else(|| format!("volume '{source}' does not exist"))?
            }
            ("efidisk0", None) => 528 << 10,
            ("tpmstate0", None) => 4 << 20,
            _ => disk::read_size(&format!("{gib}G")).unwrap_or_default(),
        };
        let asked = drive.remove("format");
        let format = asked.as_deref().unwrap_or("raw");
        if format != "raw" && !cluster.in_files(storage) {
            return Err(format!("unsupported format '{format}'"));
        }
        let (volume, line) = cluster.allocate((storage, vmid), size, format, "vm")?;
        log.extend(line);
        drive.first = volume;
        drive.set("size", disk::size(size));
        let created = drive.write();
        log.push(format!("{key}: successfully created disk '{created}'"));
        return Ok(created);
    }
    let size = cluster.volume_size(&file).ok_or_else(|| format!("volume '{file}' does not exist"))?;
    drive.set("size", disk::size(size));
    Ok(drive.write())
}
