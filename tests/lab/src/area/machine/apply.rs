//! What is pending takes effect: all of it on a stopped VM, on a running one only what can be changed under it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rights::stem;
use crate::state::Cluster;
use crate::state::config;
use crate::state::disk::{FILE, is_drive, split};
use crate::state::guest::Guest;
use crate::state::property::Property;

/// What a call said about removals beyond the names.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Whose volumes go too.
    pub(super) forced: Vec<String>,
    /// Drives that never took effect.
    pub(super) orphans: Vec<String>,
}

/// Options that change under a running VM whatever its `hotplug` says.
const AT_ONCE: [&str; 15] = [
    "description",
    "hookscript",
    "lock",
    "migrate_downtime",
    "migrate_speed",
    "name",
    "onboot",
    "protection",
    "shares",
    "startup",
    "tags",
    "vmstatestorage",
    "cpulimit",
    "cpuunits",
    "boot",
];

/// Applies what can be. The errors are those of devices that do not come or go, by option.
pub(super) fn apply(
    cluster: &mut Cluster,
    guest: &mut Guest,
    asked: &Asked,
) -> Result<BTreeMap<String, String>, String> {
    let mut errors = BTreeMap::new();
    let running = guest.running();
    for text in &asked.orphans {
        unuse(guest, text);
    }
    for name in guest.leaving.clone() {
        if running {
            match plug(guest, &name, None) {
                Plug::Now => {}
                Plug::Later => continue,
                Plug::Refused(error) => {
                    errors.insert(name.clone(), format!("hotplug problem - {error}\n"));
                    continue;
                }
            }
        }
        remove(cluster, guest, &name, asked.forced.contains(&name))?;
    }
    for (key, value) in guest.pending.clone() {
        if running && plug(guest, &key, Some(&config::text(&value))) == Plug::Later {
            continue;
        }
        guest.pending.remove(&key);
        let old = guest.value(&key).unwrap_or_default();
        guest.config.insert(key.clone(), value.clone());
        if is_drive(&key) && volume(&old) != volume(&config::text(&value)) {
            unuse(guest, &old);
        }
        // A value that is set to what it was is not a change.
    }
    Ok(errors)
}

#[derive(Debug, PartialEq, Eq)]
enum Plug {
    Now,
    Later,
    Refused(String),
}

/// Whether an option changes under a running VM.
fn plug(guest: &Guest, key: &str, value: Option<&str>) -> Plug {
    let hotplug = guest.value("hotplug").unwrap_or_else(|| "network,disk,usb".to_owned());
    let can = |feature: &str| hotplug == "1" || hotplug.split([',', ';']).any(|part| part == feature);
    let disc = |text: &str| text.contains("media=cdrom");
    match stem(key) {
        "ipconfig" | "ciuser" | "cipassword" | "sshkeys" | "nameserver" | "searchdomain" => Plug::Later,
        "unused" => Plug::Now,
        _ if AT_ONCE.contains(&key) => Plug::Now,
        "net" if can("network") => Plug::Now,
        "usb" if can("usb") => Plug::Now,
        "balloon" => Plug::Now,
        "scsi" | "virtio" | "ide" | "sata" => {
            let old = guest.value(key);
            if old.as_deref().is_some_and(disc) && value.is_some_and(disc) {
                return Plug::Now;
            }
            if !can("disk") || !matches!(stem(key), "scsi" | "virtio") {
                return Plug::Later;
            }
            if value.is_none() && boot_disk(guest).as_deref() == Some(key) {
                return Plug::Refused(format!("can't unplug bootdisk '{key}'"));
            }
            Plug::Now
        }
        _ => {
            let same = value.is_some_and(|value| guest.value(key).as_deref() == Some(value));
            if same { Plug::Now } else { Plug::Later }
        }
    }
}

/// The first disk of the boot order.
pub(super) fn boot_disk(guest: &Guest) -> Option<String> {
    let boot = guest.value("boot")?;
    let order = boot.strip_prefix("order=")?;
    let device = order
        .split(';')
        .find(|device| is_drive(device) && guest.value(device).is_some_and(|text| !text.contains("media=cdrom")))?;
    Some(device.to_owned())
}

/// Takes an option out of the configuration; a disk stays behind unused unless its volume goes too.
pub(super) fn remove(cluster: &mut Cluster, guest: &mut Guest, name: &str, force: bool) -> Result<(), String> {
    guest.leaving.retain(|leaving| leaving != name);
    let Some(old) = guest.config.get(name).map(config::text) else { return Ok(()) };
    let gone = volume(&old).filter(|_| !old.contains("media=cdrom"));
    guest.config.remove(name);
    if let Some(gone) = gone {
        if name.starts_with("unused") || (force && is_drive(name)) {
            let named = guest.volumes().contains(&gone);
            if !named {
                cluster.free(&gone)?;
            }
        } else if is_drive(name) {
            unuse(guest, &old);
        }
    }
    if is_drive(name) || stem(name) == "net" {
        unboot(guest, name);
    }
    Ok(())
}

/// A device that is gone is not started from.
fn unboot(guest: &mut Guest, name: &str) {
    let Some(boot) = guest.value("boot") else { return };
    let Some(order) = boot.strip_prefix("order=") else { return };
    let left: Vec<&str> = order.split(';').filter(|device| *device != name).collect();
    if left.len() < order.split(';').count() {
        let boot = if left.is_empty() { " ".to_owned() } else { format!("order={}", left.join(";")) };
        guest.config.insert("boot".to_owned(), json!(boot));
    }
}

/// The volume of a drive that has one.
fn volume(text: &str) -> Option<String> {
    let drive = Property::read(text, &FILE);
    split(&drive.first).is_some().then_some(drive.first)
}

/// Keeps the volume of a drive at hand as an unused disk.
pub(super) fn unuse(guest: &mut Guest, text: &str) {
    if text.contains("media=cdrom") {
        return;
    }
    let Some(volume) = volume(text) else { return };
    if guest.config.values().any(|value| self::volume(&config::text(value)).as_deref() == Some(&volume)) {
        return;
    }
    let free = (0..256).map(|at| format!("unused{at}")).find(|key| !guest.config.contains_key(key));
    if let Some(key) = free {
        guest.config.insert(key, Value::from(volume));
    }
}
