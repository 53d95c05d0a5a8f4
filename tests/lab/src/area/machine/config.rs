//! Changing a VM's configuration: what is set, deleted and reverted, checked in PVE's order.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::apply::{self, Asked};
use super::{drive, net, rights, root_only, unchanged};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::check::declared;
use crate::gate::Shared;
use crate::params::text;
use crate::state::Cluster;
use crate::state::config;
use crate::state::disk::is_drive;
use crate::state::guest::{Guest, Kind};
use crate::worker::{self, Done};

/// Parameters of the call that are no options of the guest.
const CONTROLS: [&str; 14] = [
    "node",
    "vmid",
    "digest",
    "delete",
    "revert",
    "force",
    "skiplock",
    "background_delay",
    "import-working-storage",
    "pool",
    "storage",
    "start",
    "unique",
    "ha-managed",
];

/// What a call asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    pub(super) set: Map<String, Value>,
    pub(super) delete: Vec<String>,
    pub(super) revert: Vec<String>,
    pub(super) force: bool,
}

/// The options among a call's parameters, each as it is stored: counts and flags as numbers, everything else as text.
pub(super) fn options(call: &Call<'_>) -> Map<String, Value> {
    let mut set = Map::new();
    for (name, value) in call.params {
        if CONTROLS.contains(&name.as_str()) {
            continue;
        }
        let key = if name == "cdrom" { "ide2" } else { name };
        set.insert(key.to_owned(), typed(call, name, value));
    }
    set
}

fn typed(call: &Call<'_>, name: &str, value: &Value) -> Value {
    let Some(text) = value.as_str() else { return value.clone() };
    let kind = declared(&call.operation.parameters, name).and_then(|schema| schema.get("type")?.as_str());
    match kind {
        Some("integer" | "boolean") => text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number)),
        _ => json!(text),
    }
}

/// The elements of a list parameter.
pub(super) fn list(call: &Call<'_>, name: &str) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        text.split([',', ';', '\0', ' ', '\t', '\n']).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    text(call.params, name).map(split).unwrap_or_default()
}

/// Reads what is to change, and refuses what contradicts itself.
pub(super) fn change(call: &Call<'_>) -> Result<Change, Refusal> {
    let set = options(call);
    let known = |name: &str| {
        declared(&call.operation.parameters, name).is_some() && !CONTROLS.contains(&name)
            || matches!(name, "vmstate" | "parent")
    };
    let mut revert = Vec::new();
    for name in list(call, "revert") {
        if !known(&name) {
            return Err(Refusal::parameter("revert", format!("unknown option '{name}'")));
        }
        if set.contains_key(&name) {
            let error = format!("you can't use '-{name}' and '-revert {name}' at the same time");
            return Err(Refusal::parameter("revert", error));
        }
        revert.push(name);
    }
    let mut delete = Vec::new();
    for name in list(call, "delete") {
        let name = if name == "cdrom" { "ide2".to_owned() } else { name };
        if set.contains_key(&name) {
            let error = format!("you can't use '-{name}' and -delete {name}' at the same time");
            return Err(Refusal::parameter("delete", error));
        }
        if revert.contains(&name) {
            let error = format!("you can't use '-delete {name}' and '-revert {name}' at the same time");
            return Err(Refusal::parameter("delete", error));
        }
        if !known(&name) {
            return Err(Refusal::parameter("delete", format!("unknown option '{name}'")));
        }
        delete.push(name);
    }
    if set.is_empty() && delete.is_empty() && revert.is_empty() {
        return Err(Refusal::failed("no options specified"));
    }
    Ok(Change { set, delete, revert, force: call.flag("force") })
}

/// `PUT` answers when it is done; `POST` does the same as a task.
pub(super) fn update(shared: &Arc<Shared>, call: &Call<'_>, as_task: bool) -> Outcome {
    let vmid = super::vmid(call);
    root_only(call, &["skiplock"])?;
    let mut change = change(call)?;
    normalise(&mut change.set);
    shared.look(|cluster| {
        for (key, value) in &change.set {
            if is_drive(key) {
                drive::check(cluster, call, vmid, &config::text(value))?;
            }
        }
        let path = format!("/vms/{vmid}");
        let guest = cluster.guests.get(&vmid);
        for name in &change.delete {
            rights::qemu(cluster, call, &path, guest, (name, None))?;
        }
        for (key, value) in &change.set {
            rights::qemu(cluster, call, &path, guest, (key, Some(&config::text(value))))?;
        }
        let guest = call.guest(cluster, Kind::Qemu)?;
        unchanged(call, guest)?;
        super::locked(guest).map_err(Refusal::failed)
    })?;
    if !as_task {
        let mut log = Vec::new();
        shared.change(|cluster| perform(cluster, vmid, &change, &mut log))?;
        return Ok(Value::Null.into());
    }
    let line = format!("update VM {vmid}: {}", shown(call));
    Ok(worker::start(shared, call, "qmconfig", &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        worker.log(line);
        let mut log = Vec::new();
        let done = worker.change(|cluster| perform(cluster, vmid, &change, &mut log));
        for line in log {
            worker.log(line);
        }
        done.map(|()| Done::Fine).map_err(|refusal| as_error(&refusal))
    }))
}

/// A refusal as the exit status of a task tells it: parameter errors on lines of their own, of which the first is shown.
fn as_error(refusal: &Refusal) -> String {
    let errors: Vec<String> = refusal.errors.iter().map(|(name, error)| format!("{name}: {error}")).collect();
    if errors.is_empty() {
        return refusal.message.clone();
    }
    format!("Parameter verification failed. {}", errors.join(" ")).trim_end().to_owned()
}

/// Parameters as the log of the task repeats them.
fn shown(call: &Call<'_>) -> String {
    let parts: Vec<String> = call
        .params
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "node" | "vmid" | "digest"))
        .map(|(name, value)| {
            let value = config::text(value);
            let secret = matches!(name.as_str(), "cipassword");
            format!("-{name} {}", if secret { "<hidden>" } else { &value })
        })
        .collect();
    parts.join(" ")
}

/// Network cards get an address, tags an order, a generation id a value.
pub(super) fn normalise(set: &mut Map<String, Value>) {
    for (key, value) in set {
        let Some(text) = value.as_str() else { continue };
        match rights::stem(key) {
            "net" => *value = json!(net::qemu(text)),
            "tags" => *value = json!(tags(text)),
            "vmgenid" if text == "1" => *value = json!(super::uuid()),
            _ => {}
        }
    }
}

/// Tags as they are stored: lower case, each once, in order.
pub(super) fn tags(text: &str) -> String {
    let mut tags: Vec<String> =
        text.split([',', ';', ' ', '\0']).filter(|tag| !tag.is_empty()).map(str::to_ascii_lowercase).collect();
    tags.sort();
    tags.dedup();
    tags.join(";")
}

/// Does what is asked, under the lock.
fn perform(cluster: &mut Cluster, vmid: u32, change: &Change, log: &mut Vec<String>) -> Result<(), Refusal> {
    let mut guest = super::found(cluster, vmid, Kind::Qemu).map(|guest| guest.clone()).map_err(Refusal::failed)?;
    super::locked(&guest).map_err(Refusal::failed)?;
    if let Some((key, _)) = change.set.iter().find(|(key, value)| value.is_null() && *key != "description") {
        return Err(Refusal::failed(format!("unable to parse value of '{key}' - got undefined value")));
    }
    memory(&guest, change)?;
    for name in &change.revert {
        guest.pending.remove(name);
        guest.leaving.retain(|leaving| leaving != name);
    }
    let mut asked = Asked::default();
    for name in &change.delete {
        delete(&mut guest, name, change.force, &mut asked).map_err(Refusal::failed)?;
    }
    for (key, value) in &change.set {
        if value.is_null() {
            continue;
        }
        let text = config::text(value);
        if text.is_empty() {
            delete(&mut guest, key, false, &mut asked).map_err(Refusal::failed)?;
            continue;
        }
        let mut stored = value.clone();
        if is_drive(key) {
            stored = json!(drive::settle(cluster, vmid, key, &text, log).map_err(Refusal::failed)?);
            boot_from_new_cdrom(&mut guest, key, &text);
        }
        if key == "boot" {
            boot_order(&guest, change, &text)?;
        }
        guest.leaving.retain(|leaving| leaving != key);
        guest.pending.insert(key.clone(), stored);
    }
    let errors = apply::apply(cluster, &mut guest, &asked).map_err(Refusal::failed)?;
    cluster.guests.insert(vmid, guest);
    if errors.is_empty() { Ok(()) } else { Err(Refusal::parameters(errors)) }
}

fn memory(guest: &Guest, change: &Change) -> Result<(), Refusal> {
    let new = |key: &str| {
        let set = change.set.get(key).map(config::text);
        let text = set.or_else(|| guest.value(key))?;
        text.trim_start_matches("current=").parse::<u64>().ok()
    };
    let touched = change.set.contains_key("memory") || change.set.contains_key("balloon");
    if touched && new("balloon").is_some_and(|balloon| balloon > new("memory").unwrap_or(512)) {
        return Err(Refusal::failed("balloon value too large (must be smaller than assigned memory)"));
    }
    Ok(())
}

/// Marks an option for removal. One that is not set is no error.
fn delete(guest: &mut Guest, name: &str, force: bool, asked: &mut Asked) -> Result<(), String> {
    let was_pending = guest.pending.remove(name);
    if !guest.config.contains_key(name) {
        if let Some(Value::String(text)) = was_pending
            && is_drive(name)
        {
            asked.orphans.push(text);
        }
        return Ok(());
    }
    if guest.config.get("protection").and_then(Value::as_i64) == Some(1)
        && (is_drive(name) || name.starts_with("unused"))
    {
        let what = match guest.value(name) {
            Some(text) if name.starts_with("unused") => {
                format!("unused disk '{}'", text.split(',').next().unwrap_or_default())
            }
            _ => format!("drive '{name}'"),
        };
        return Err(format!("can't remove {what} - protection mode enabled"));
    }
    if force {
        asked.forced.push(name.to_owned());
    }
    if !guest.leaving.iter().any(|leaving| leaving == name) {
        guest.leaving.push(name.to_owned());
    }
    Ok(())
}

/// A drive for discs that was not there before can be started from, as it always could.
fn boot_from_new_cdrom(guest: &mut Guest, key: &str, text: &str) {
    let disc = |text: &str| text.contains("media=cdrom");
    let before = guest.value(key).is_some_and(|old| disc(&old));
    if !disc(text) || before {
        return;
    }
    let boot = guest.pending.get("boot").map(config::text).or_else(|| guest.value("boot"));
    if let Some(order) = boot.as_deref().and_then(|boot| boot.strip_prefix("order="))
        && !order.split(';').any(|device| device == key)
    {
        guest.pending.insert("boot".to_owned(), json!(format!("order={order};{key}")));
    }
}

fn boot_order(guest: &Guest, change: &Change, text: &str) -> Result<(), Refusal> {
    let Some(order) = text.strip_prefix("order=") else { return Ok(()) };
    for device in order.split(';').filter(|device| !device.is_empty()) {
        let there = change.set.contains_key(device)
            || guest.pending.contains_key(device)
            || (guest.config.contains_key(device) && !change.delete.iter().any(|name| name == device));
        if !there {
            return Err(Refusal::failed(format!("invalid bootorder: device '{device}' does not exist'")));
        }
    }
    Ok(())
}
