//! Storage definitions, their state on a node, and what is on them.

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
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
        "/nodes/{node}/storage/{storage}/content" => content(cluster, call),
        "/nodes/{node}/storage/{storage}/content/{volume}" => volume(cluster, call),
        "/nodes/{node}/storage/{storage}/prunebackups" => prune(cluster, call),
        "/nodes/{node}/storage/{storage}/rrddata" => figures_over_time(cluster, call),
        "/nodes/{node}/vzdump/extractconfig" => extract(cluster, call),
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

/// Whether a storage is meant for a node.
pub(super) fn on_node(storage: &Storage, node: &str) -> bool {
    let nodes = storage.text("nodes");
    nodes.is_empty() || nodes.split(',').any(|name| name == node)
}

fn missing(name: &str) -> Refusal {
    Refusal::failed(format!("storage '{name}' does not exist"))
}

fn entry(cluster: &Cluster, name: &str, storage: &Storage) -> Map<String, Value> {
    let all: Vec<&Map<String, Value>> = cluster.storages.values().map(|storage| &storage.config).collect();
    let mut row = storage.config.clone();
    row.insert("storage".to_owned(), json!(name));
    row.insert("digest".to_owned(), json!(digest(&json!(all))));
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
    match &storage.broken {
        Some(why) => Err(Refusal::failed(why.clone())),
        None => Ok(storage),
    }
}

fn state(storage: &Storage) -> Map<String, Value> {
    let active = storage.enabled() && storage.broken.is_none();
    let (total, used) = if active { (storage.total, storage.total / 3) } else { (0, 0) };
    object(json!({
        "type": storage.text("type"),
        "content": storage.text("content"),
        "active": u8::from(active),
        "enabled": u8::from(storage.enabled()),
        "shared": u8::from(storage.shared()),
        "total": total,
        "used": used,
        "avail": total - used,
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
        let mut row = state(storage);
        row.insert("storage".to_owned(), json!(name));
        if row.get("total").and_then(Value::as_u64).is_some_and(|total| total > 0) {
            row.insert("used_fraction".to_owned(), json!(1.0 / 3.0));
        }
        Value::Object(row)
    });
    Ok(Value::Array(rows.collect()).into())
}

fn status(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let name = call.text("storage");
    let storage = cluster.storages.get(name).ok_or_else(|| Refusal::parameter("storage", "No such storage."))?;
    Ok(Value::Object(state(storage)).into())
}

/// Files, and the disks that guests' configurations name.
fn volumes(cluster: &Cluster, storage: &str) -> Vec<Volume> {
    let mut all: Vec<Volume> = cluster.volumes.iter().filter(|volume| volume.storage == storage).cloned().collect();
    for guest in cluster.guests.values() {
        for (_, id, size) in guest.disks() {
            let Some((held, name)) = id.split_once(':') else { continue };
            if held == storage {
                all.push(Volume {
                    storage: storage.to_owned(),
                    name: name.to_owned(),
                    content: if guest.kind == crate::state::guest::Kind::Qemu { "images" } else { "rootdir" }
                        .to_owned(),
                    format: "raw".to_owned(),
                    size,
                    used: None,
                    vmid: Some(guest.vmid),
                    subtype: None,
                    ctime: cluster.booted,
                    notes: None,
                    protected: false,
                });
            }
        }
    }
    all
}

fn row(volume: &Volume) -> Value {
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
    add("used", volume.used.map(|used| json!(used)));
    add("vmid", volume.vmid.map(|vmid| json!(vmid)));
    add("subtype", volume.subtype.as_ref().map(|kind| json!(kind)));
    add("notes", volume.notes.as_ref().map(|notes| json!(notes)));
    add("protected", volume.protected.then(|| json!(1)));
    Value::Object(row)
}

/// Backups of a guest are shown to those who may back it up or see it; other volumes to all who see the storage.
fn content(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    usable(cluster, call)?;
    let found = volumes(cluster, call.text("storage"));
    let rows = found.iter().filter(|volume| {
        let seen = volume.vmid.is_none_or(|vmid| {
            call.may(cluster, &format!("/vms/{vmid}"), &["VM.Audit", "VM.Backup"])
                || call.may(cluster, &format!("/storage/{}", volume.storage), &["Datastore.Allocate"])
        });
        seen && call.given("content").is_none_or(|wanted| wanted == volume.content)
            && call.given("vmid").is_none_or(|wanted| volume.vmid.is_some_and(|vmid| vmid.to_string() == wanted))
    });
    Ok(Value::Array(rows.map(row).collect()).into())
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
    usable(cluster, call)?;
    let name = call.text("volume");
    let volume = find(cluster, call.text("storage"), name)
        .ok_or_else(|| Refusal::failed(format!("volume_size_info on '{name}' failed - no format")))?;
    may_look(cluster, call, &volume)?;
    let mut data = object(json!({
        "path": format!("/mnt/{}/{}", volume.storage, volume.name),
        "format": volume.format,
        "size": volume.size,
        "used": volume.used.unwrap_or(volume.size / 2),
    }));
    if let Some(notes) = volume.notes {
        data.insert("notes".to_owned(), json!(notes));
    }
    if volume.protected {
        data.insert("protected".to_owned(), json!(1));
    }
    Ok(Value::Object(data).into())
}

fn prune(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    usable(cluster, call)?;
    let backups = volumes(cluster, call.text("storage"));
    let rows = backups.iter().filter(|volume| volume.content == "backup").map(|volume| {
        json!({"volid": volume.id(), "vmid": volume.vmid, "type": volume.subtype, "ctime": volume.ctime, "mark": if volume.protected { "protected" } else { "keep" }})
    });
    Ok(Value::Array(rows.collect()).into())
}

fn figures_over_time(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let storage = cluster.storages.get(call.text("storage")).ok_or_else(|| missing(call.text("storage")))?;
    let (points, step) = super::guest::frame(call.text("timeframe"));
    let end = crate::clock::now() / step * step;
    let rows = (0..points)
        .map(|point| json!({"time": end - (points - point) * step, "total": storage.total, "used": storage.total / 3}));
    Ok(Value::Array(rows.collect()).into())
}

/// The configuration inside a backup: the guest's own, in the form of its file.
fn extract(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let id = call.text("volume");
    let storage = id.split(':').next().unwrap_or_default();
    let backup = find(cluster, storage, id).filter(|volume| volume.content == "backup");
    let guest = backup
        .and_then(|backup| cluster.guests.get(&backup.vmid?))
        .ok_or_else(|| Refusal::failed(format!("volume '{id}' does not exist")))?;
    let path = format!("/vms/{}", guest.vmid);
    if !call.may(cluster, &path, &["VM.Backup"]) {
        return Err(Refusal::forbidden(&format!("{path}, VM.Backup")));
    }
    let text: String = guest
        .config
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}: {}\n", text.replace('\n', "%0A")),
            other => format!("{key}: {other}\n"),
        })
        .collect();
    Ok(json!(text).into())
}

pub(super) fn write(_: &std::sync::Arc<crate::gate::Shared>, _: &Call<'_>) -> Option<Outcome> {
    None
}
