//! Storage definitions, their state on a node, and what is on them.

mod content;
mod define;
mod plugin;
pub(super) mod prune;
pub(crate) mod upload;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::guest::object;
use crate::state::storage::{Storage, Volume};
use crate::state::{Cluster, digest};

const SEE: &[&str] = &["Datastore.Audit", "Datastore.AllocateSpace"];

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    Some(match call.path() {
        "/storage" => Ok(Value::Array(definitions(cluster, call)).into()),
        "/storage/{storage}" => definition(cluster, call),
        "/nodes/{node}/storage" => of_node(cluster, call),
        "/nodes/{node}/storage/{storage}/status" => status(cluster, call),
        "/nodes/{node}/storage/{storage}/content" => list(cluster, call),
        "/nodes/{node}/storage/{storage}/content/{volume}" => volume(cluster, call),
        "/nodes/{node}/storage/{storage}/prunebackups" => prune::read(cluster, call),
        "/nodes/{node}/storage/{storage}/rrddata" => figures_over_time(cluster, call),
        // What is inside an image or a backup comes from the schema; who may look is decided here.
        "/nodes/{node}/storage/{storage}/import-metadata"
        | "/nodes/{node}/storage/{storage}/file-restore/list"
        | "/nodes/{node}/storage/{storage}/file-restore/download" => {
            let volume = find(cluster, call.text("storage"), call.text("volume"));
            return volume.and_then(|volume| may_look(cluster, call, &volume).err()).map(Err);
        }
        _ => return None,
    })
}

/// Whether a storage works on the node that listens.
pub(super) fn works(cluster: &Cluster, name: &str, storage: &Storage) -> bool {
    storage.broken.is_none() && plugin::activate(cluster, name, storage, false).is_none()
}

/// Whether a storage is meant for a node.
pub(super) fn on_node(storage: &Storage, node: &str) -> bool {
    let nodes = storage.text("nodes");
    nodes.is_empty() || nodes.split(',').any(|name| name == node)
}

fn missing(name: &str) -> Refusal {
    Refusal::failed(format!("storage '{name}' does not exist"))
}

/// The digest of the file of definitions. A storage with a `priority` is one that PVE adds without a file.
fn definitions_digest(cluster: &Cluster) -> String {
    let written = cluster.storages.iter().filter(|(_, storage)| !storage.config.contains_key("priority"));
    let all: Vec<_> = written.map(|(name, storage)| (name, &storage.config)).collect();
    digest(&json!(all))
}

fn entry(cluster: &Cluster, name: &str, storage: &Storage) -> Map<String, Value> {
    let mut row = storage.config.clone();
    row.insert("storage".to_owned(), json!(name));
    row.insert("digest".to_owned(), json!(definitions_digest(cluster)));
    row
}

fn definitions(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    cluster
        .storages
        .iter()
        .filter(|(name, storage)| {
            call.may(cluster, &format!("/storage/{name}"), SEE)
                && call.given("type").is_none_or(|kind| kind == storage.text("type"))
        })
        .map(|(name, storage)| Value::Object(entry(cluster, name, storage)))
        .collect()
}

fn definition(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let name = call.text("storage");
    let storage = cluster.storages.get(name).ok_or_else(|| missing(name))?;
    Ok(Value::Object(entry(cluster, name, storage)).into())
}

/// The storage of a path, if it can be used on the node of the path.
fn usable<'a>(cluster: &'a Cluster, call: &Call<'_>) -> Result<&'a Storage, Refusal> {
    let name = call.text("storage");
    let node = &call.node(cluster)?.name;
    let storage = cluster.storages.get(name).ok_or_else(|| missing(name))?;
    if !storage.enabled() {
        return Err(Refusal::failed(format!("storage '{name}' is disabled")));
    }
    if !on_node(storage, node) {
        return Err(Refusal::failed(format!("storage '{name}' is not available on node '{node}'")));
    }
    match storage.broken.clone().or_else(|| plugin::activate(cluster, name, storage, false)) {
        Some(why) => Err(Refusal::failed(why)),
        None => Ok(storage),
    }
}

/// Bytes in use: what is there on a file system of its own, a third of any other.
fn used(cluster: &Cluster, name: &str, storage: &Storage) -> u64 {
    if cluster.full.contains(name) {
        return storage.total;
    }
    if storage.total == plugin::room(cluster, storage) && cluster.host.mounts.contains_key(storage.text("path")) {
        return cluster
            .volumes
            .iter()
            .filter(|volume| volume.storage == name)
            .map(|volume| volume.used.unwrap_or(volume.size))
            .sum();
    }
    storage.total / 3
}

/// Bytes that still fit.
fn free(cluster: &Cluster, name: &str, storage: &Storage) -> u64 {
    storage.total.saturating_sub(used(cluster, name, storage))
}

fn state(cluster: &Cluster, name: &str, storage: &Storage) -> Map<String, Value> {
    let broken = || storage.broken.is_some() || plugin::activate(cluster, name, storage, false).is_some();
    let active = storage.enabled() && !broken();
    let (total, used) = if active { (storage.total, used(cluster, name, storage)) } else { (0, 0) };
    object(json!({
        "type": storage.text("type"),
        "content": storage.text("content"),
        "active": u8::from(active),
        "enabled": u8::from(storage.enabled()),
        "shared": u8::from(storage.shared()),
        "total": total,
        "used": used,
        "avail": total.saturating_sub(used),
    }))
}

fn of_node(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let node = &call.node(cluster)?.name;
    let rows = cluster.storages.iter().filter(|(name, storage)| {
        let content = storage.text("content");
        on_node(storage, node)
            && call.may(cluster, &format!("/storage/{name}"), SEE)
            && call.given("storage").is_none_or(|wanted| wanted == name.as_str())
            && call
                .given("content")
                .is_none_or(|wanted| wanted.split(',').any(|wanted| content.split(',').any(|held| held == wanted)))
            && (!call.flag("enabled") || storage.enabled())
    });
    let rows = rows.map(|(name, storage)| {
        let mut row = state(cluster, name, storage);
        row.insert("storage".to_owned(), json!(name));
        if row.get("total").and_then(Value::as_u64).is_some_and(|total| total > 0) {
            let fraction = if cluster.full.contains(name) { 1.0 } else { 1.0 / 3.0 };
            row.insert("used_fraction".to_owned(), json!(fraction));
        }
        Value::Object(row)
    });
    Ok(Value::Array(rows.collect()).into())
}

fn status(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let name = call.text("storage");
    let storage = cluster.storages.get(name).ok_or_else(|| Refusal::parameter("storage", "No such storage."))?;
    Ok(Value::Object(state(cluster, name, storage)).into())
}

fn volumes(cluster: &Cluster, storage: &str) -> Vec<Volume> {
    cluster.volumes.iter().filter(|volume| volume.storage == storage).cloned().collect()
}

/// Whether a storage keeps files in a directory.
fn plugin_has_files(storage: &Storage) -> bool {
    matches!(storage.text("type"), "dir" | "btrfs" | "nfs" | "cifs" | "cephfs")
}

/// The folder of a kind of content.
fn folder(storage: &Storage, content: &str) -> String {
    let below = match content {
        "iso" => "template/iso",
        "vztmpl" => "template/cache",
        "backup" => "dump",
        "images" | "rootdir" => "images",
        other => other,
    };
    format!("{}/{below}", storage.text("path"))
}

/// Where a volume is on its node.
fn path(storage: &Storage, volume: &Volume) -> String {
    if !plugin_has_files(storage) {
        let group = storage.text("vgname");
        return if group.is_empty() { volume.id() } else { format!("/dev/{group}/{}", volume.name) };
    }
    let name = volume.name.strip_prefix(&format!("{}/", volume.content)).unwrap_or(&volume.name);
    format!("{}/{name}", folder(storage, &volume.content))
}

fn row(cluster: &Cluster, volume: &Volume) -> Value {
    let mut row = object(json!({
        "volid": volume.id(),
        "content": volume.content,
        "format": volume.format,
        "size": volume.size,
        "ctime": volume.ctime,
    }));
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            row.insert(key.to_owned(), value);
        }
    };
    let image = matches!(volume.content.as_str(), "images" | "rootdir");
    add("parent", (image && cluster.in_files(&volume.storage)).then_some(Value::Null));
    add("used", volume.used.map(|used| json!(used)));
    add("vmid", volume.vmid.map(|vmid| json!(vmid)));
    add("subtype", volume.subtype.as_ref().map(|kind| json!(kind)));
    add("notes", volume.notes.as_ref().map(|notes| json!(notes)));
    add("protected", volume.protected.then(|| json!(1)));
    Value::Object(row)
}

/// Backups of a guest are shown to those who may back it up or see it; other volumes to all who see the storage.
fn list(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let local = !usable(cluster, call)?.shared();
    let node = &call.node(cluster)?.name;
    let found = volumes(cluster, call.text("storage"));
    // Each node has its own disks of guests on a storage that is not shared.
    let elsewhere = |volume: &Volume| {
        let guest = volume.vmid.and_then(|vmid| cluster.guests.get(&vmid));
        local && volume.content != "backup" && guest.is_some_and(|guest| guest.node != *node)
    };
    let rows = found.iter().filter(|volume| !elsewhere(volume)).filter(|volume| {
        let seen = volume.vmid.is_none_or(|vmid| {
            call.may(cluster, &format!("/vms/{vmid}"), &["VM.Audit", "VM.Backup"])
                || call.may(cluster, &format!("/storage/{}", volume.storage), &["Datastore.Allocate"])
        });
        seen && call.given("content").is_none_or(|wanted| wanted == volume.content)
            && call.given("vmid").is_none_or(|wanted| volume.vmid.is_some_and(|vmid| vmid.to_string() == wanted))
    });
    Ok(Value::Array(rows.map(|volume| row(cluster, volume)).collect()).into())
}

fn find(cluster: &Cluster, storage: &str, volume: &str) -> Option<Volume> {
    let wanted = if volume.contains(':') { volume.to_owned() } else { format!("{storage}:{volume}") };
    volumes(cluster, storage).into_iter().find(|volume| volume.id() == wanted)
}

/// Images and templates take seeing the storage; what belongs to a guest takes rights on the guest, unless the storage
/// is the caller's to administer.
fn may_look(cluster: &Cluster, call: &Call<'_>, volume: &Volume) -> Result<(), Refusal> {
    let path = format!("/storage/{}", volume.storage);
    let refuse = |path: &str, wanted: &[&str]| Err(Refusal::forbidden(&format!("{path}, {}", wanted.join("|"))));
    if call.may(cluster, &path, &["Datastore.Allocate"]) {
        return Ok(());
    }
    let Some(vmid) = volume.vmid else {
        return if call.may(cluster, &path, SEE) { Ok(()) } else { refuse(&path, SEE) };
    };
    let guest = format!("/vms/{vmid}");
    let wanted = if volume.content == "backup" { "VM.Backup" } else { "VM.Config.Disk" };
    if !call.may(cluster, &path, &["Datastore.AllocateSpace"]) {
        return refuse(&path, &["Datastore.AllocateSpace"]);
    }
    if call.may(cluster, &guest, &[wanted]) { Ok(()) } else { refuse(&guest, &[wanted]) }
}

fn volume(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let storage = usable(cluster, call)?;
    let name = call.text("volume");
    let volume = find(cluster, call.text("storage"), name)
        .ok_or_else(|| Refusal::failed(format!("volume_size_info on '{name}' failed - no format")))?;
    may_look(cluster, call, &volume)?;
    // What is no image is a file like any other here: looked at as a disk, it has whole sectors, in whole blocks.
    let image = matches!(volume.content.as_str(), "images" | "rootdir");
    let whole = |unit: u64| if image { volume.size } else { volume.size.next_multiple_of(unit) };
    let mut data = object(json!({
        "path": path(storage, &volume),
        "format": if image { &volume.format } else { "raw" },
        "size": whole(512),
        "used": volume.used.unwrap_or_else(|| whole(4096)),
    }));
    if let Some(notes) = volume.notes {
        data.insert("notes".to_owned(), json!(notes));
    }
    if volume.protected {
        data.insert("protected".to_owned(), json!(1));
    }
    Ok(Value::Object(data).into())
}

fn figures_over_time(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let storage = cluster.storages.get(call.text("storage")).ok_or_else(|| missing(call.text("storage")))?;
    let (points, step) = super::guest::frame(call.text("timeframe"));
    let end = crate::clock::now() / step * step;
    let rows = (0..points).map(|point| {
        let time = end - (points - point) * step;
        // Nothing was counted before the node was started.
        if time < cluster.booted {
            return json!({"time": time});
        }
        json!({"time": time, "total": storage.total, "used": storage.total / 3})
    });
    Ok(Value::Array(rows.collect()).into())
}

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let change: fn(&mut Cluster, &Call<'_>) -> Outcome = match (call.operation.verb.as_str(), call.path()) {
        ("POST", "/storage") => define::create,
        ("PUT", "/storage/{storage}") => define::update,
        ("DELETE", "/storage/{storage}") => define::delete,
        ("POST", "/nodes/{node}/storage/{storage}/content") => content::allocate,
        ("PUT", "/nodes/{node}/storage/{storage}/content/{volume}") => content::change,
        ("DELETE", "/nodes/{node}/storage/{storage}/content/{volume}") => return Some(content::delete(shared, call)),
        ("DELETE", "/nodes/{node}/storage/{storage}/prunebackups") => return Some(prune::delete(shared, call)),
        ("POST", "/nodes/{node}/storage/{storage}/upload") => return Some(upload::receive(shared, call)),
        ("POST", "/nodes/{node}/storage/{storage}/download-url") => return Some(upload::fetch(shared, call)),
        ("POST", "/nodes/{node}/aplinfo") => return Some(upload::template(shared, call)),
        ("POST", "/nodes/{node}/storage/{storage}/oci-registry-pull") => return Some(upload::pull(shared, call)),
        _ => return None,
    };
    Some(shared.change(|cluster| change(cluster, call)))
}
