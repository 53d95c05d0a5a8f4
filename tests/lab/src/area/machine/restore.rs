//! A VM's configuration as a backup kept it, with new volumes for its disks.

use serde_json::{Map, Value, json};

use super::{create, net, rights};
use crate::state::Cluster;
use crate::state::config;
use crate::state::disk::{self, FILE, format_of, is_drive, split};
use crate::state::property::Property;

/// What is restored, and how.
#[derive(Clone)]
pub(super) struct Archive {
    pub(super) volume: String,
    /// Where the disks go; each where it was, if nothing is said.
    pub(super) storage: Option<String>,
    /// Whether addresses and ids are drawn anew.
    pub(super) unique: bool,
}

/// The configuration to restore: what the guest was when it was backed up. What is there under the same id goes first.
pub(super) fn config(
    cluster: &mut Cluster,
    vmid: u32,
    archive: &Archive,
    log: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    let source = &archive.volume;
    if !cluster.volumes.iter().any(|volume| volume.id() == *source) {
        return Err(format!("volume '{source}' does not exist"));
    }
    let mut whole = cluster.archives.get(source).cloned().unwrap_or_default();
    if let Some(old) = cluster.guests.remove(&vmid) {
        for volume in old.volumes() {
            cluster.free(&volume)?;
        }
    }
    whole.retain(|key, _| !key.starts_with("unused") && key != "template");
    log.push(format!("restore vma archive: {source}"));
    for (key, value) in &mut whole {
        let text = config::text(value);
        match rights::stem(key) {
            "net" if archive.unique => {
                let bare: Vec<&str> = text.split(',').collect();
                let model = bare.first().and_then(|first| first.split('=').next()).unwrap_or_default();
                let rest: Vec<&str> = std::iter::once(model).chain(bare.iter().skip(1).copied()).collect();
                *value = json!(net::qemu(&rest.join(",")));
            }
            "smbios1" if archive.unique => *value = json!(create::identity(&text)),
            "vmgenid" => *value = json!(super::uuid()),
            _ if is_drive(key) && !text.contains("media=cdrom") => {
                let mut drive = Property::read(&text, &FILE);
                let Some((storage, name)) = split(&drive.first) else { continue };
                let target = archive.storage.as_deref().unwrap_or(storage);
                let format = if cluster.in_files(target) { format_of(name) } else { "raw" };
                let (volume, line) = cluster.allocate((target, vmid), disk::sized(&drive), format, "vm")?;
                log.extend(line);
                log.push(format!("new volume ID is '{volume}'"));
                drive.first = volume;
                *value = json!(drive.write());
            }
            _ => {}
        }
    }
    Ok(whole)
}
