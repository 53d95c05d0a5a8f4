//! Changing a container's configuration. What fails late fails after the file was written.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::apply::remove;
use super::{config as options, drive, locked, net, rights, unchanged};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::config;
use crate::state::disk::{self, FILE, is_mount, split};
use crate::state::guest::{Guest, Kind};
use crate::state::property::Property;

/// Options that change inside a running container.
const AT_ONCE: [&str; 12] = [
    "memory",
    "swap",
    "cores",
    "cpulimit",
    "cpuunits",
    "description",
    "onboot",
    "protection",
    "startup",
    "tags",
    "hookscript",
    "timezone",
];

pub(super) fn update(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let mut change = options::change(call)?;
    shared.change(|cluster| {
        let path = format!("/vms/{}", call.text("vmid"));
        let guest = call.guest(cluster, Kind::Lxc).cloned();
        let unprivileged = guest.as_ref().is_ok_and(|guest| guest.config.get("unprivileged") == Some(&json!(1)));
        for name in change.delete.iter().chain(&change.revert) {
            rights::lxc(cluster, call, &path, unprivileged, (name, None))?;
        }
        for (key, value) in &change.set {
            rights::lxc(cluster, call, &path, unprivileged, (key, Some(&config::text(value))))?;
        }
        let mut guest = guest?;
        unchanged(call, &guest)?;
        locked(&guest).map_err(Refusal::failed)?;
        if let Some((key, _)) = change.set.iter().find(|(key, value)| value.is_null() && *key != "description") {
            return Err(Refusal::failed(format!("unable to parse value of '{key}' - got undefined value")));
        }
        let mut log = Vec::new();
        normalise(cluster, guest.vmid, &mut change.set, &mut log).map_err(Refusal::failed)?;
        for name in &change.revert {
            guest.pending.remove(name);
            guest.leaving.retain(|leaving| leaving != name);
        }
        for name in &change.delete {
            delete(cluster, &mut guest, name).map_err(Refusal::failed)?;
        }
        for (key, value) in &change.set {
            set(&mut guest, key, value);
        }
        let late = bridges(cluster, &guest);
        cluster.guests.insert(guest.vmid, guest);
        late.map_err(Refusal::failed)?;
        Ok(Value::Null.into())
    })
}

/// Cards get addresses, new mount points volumes.
pub(super) fn normalise(
    cluster: &mut Cluster,
    vmid: u32,
    set: &mut Map<String, Value>,
    log: &mut Vec<String>,
) -> Result<(), String> {
    for (key, value) in set {
        let Some(text) = value.as_str().map(str::to_owned) else { continue };
        match rights::stem(key) {
            "net" => *value = json!(net::lxc(&text)),
            "tags" => *value = json!(options::tags(&text)),
            _ if is_mount(key) => *value = json!(mount(cluster, vmid, &text, log)?),
            _ => {}
        }
    }
    Ok(())
}

/// Makes or finds the volume of a mount point and writes it. A size of nothing is a plain folder.
fn mount(cluster: &mut Cluster, vmid: u32, text: &str, log: &mut Vec<String>) -> Result<String, String> {
    let mut mount = Property::read(text, &FILE);
    if mount.first.starts_with('/') {
        return Ok(mount.write());
    }
    if let Some((storage, gib)) = drive::to_make(&mount.first) {
        let (storage, folder) = (storage.to_owned(), gib == 0.0);
        let size = disk::read_size(&format!("{gib}G")).unwrap_or_default();
        let (format, stem) = if folder && cluster.in_files(&storage) { ("subvol", "subvol") } else { ("raw", "vm") };
        let (volume, line) = cluster.allocate((&storage, vmid), size, format, stem)?;
        log.extend(line);
        mount.first = volume;
        mount.set("size", if folder { "0T".to_owned() } else { disk::size(size) });
        return Ok(mount.write());
    }
    let (storage, _) = split(&mount.first).ok_or_else(|| format!("unable to parse volume ID '{}'", mount.first))?;
    if !cluster.storages.contains_key(storage) {
        return Err(format!("storage '{storage}' does not exist"));
    }
    let size = cluster.volume_size(&mount.first).ok_or_else(|| format!("no such volume '{}'", mount.first))?;
    if mount.get("size").is_none() {
        mount.set("size", if size == 0 { "0T".to_owned() } else { disk::size(size) });
    }
    Ok(mount.write())
}

fn delete(cluster: &mut Cluster, guest: &mut Guest, name: &str) -> Result<(), String> {
    guest.pending.remove(name);
    if matches!(name, "rootfs" | "unprivileged" | "memory" | "hostname") && guest.config.contains_key(name) {
        if name == "rootfs" {
            return Err("unable to delete required option 'rootfs'".to_owned());
        }
        if name == "unprivileged" {
            return Err("unable to delete read-only option: 'unprivileged'".to_owned());
        }
    }
    let protected = guest.config.get("protection") == Some(&json!(1));
    if protected && (is_mount(name) || name.starts_with("unused")) {
        return Err(format!("can't remove CT {} drive '{name}' - protection mode enabled", guest.vmid));
    }
    if guest.running() && !AT_ONCE.contains(&name) && !name.starts_with("unused") && !name.starts_with("net") {
        if guest.config.contains_key(name) && !guest.leaving.iter().any(|leaving| leaving == name) {
            guest.leaving.push(name.to_owned());
        }
        return Ok(());
    }
    let old = guest.text(name).map(str::to_owned);
    remove(cluster, guest, name, false)?;
    if let Some(old) = old
        && is_mount(name)
    {
        super::apply::unuse(guest, &old);
    }
    Ok(())
}

fn set(guest: &mut Guest, key: &str, value: &Value) {
    guest.leaving.retain(|leaving| leaving != key);
    if config::text(value).is_empty() {
        guest.config.remove(key);
    } else if guest.running() && !AT_ONCE.contains(&key) && !key.starts_with("net") && !is_mount(key) {
        guest.pending.insert(key.to_owned(), value.clone());
    } else {
        guest.config.insert(key.to_owned(), value.clone());
    }
}

/// The runtime's own files are written last, and cannot be where a bridge is not there.
fn bridges(cluster: &Cluster, guest: &Guest) -> Result<(), String> {
    for (key, value) in &guest.config {
        if key.starts_with("net")
            && let Some(bridge) = value.as_str().and_then(net::bridge)
            && !cluster.has_bridge(&bridge)
        {
            return Err(format!("bridge '{bridge}' does not exist"));
        }
    }
    Ok(())
}
