//! Storages and what is on them, so that their reads show given data.

use serde_json::{Map, Value, json};

use super::{Read, rows, text};
use crate::state::Cluster;
use crate::state::guest::object;
use crate::state::storage::{Storage, Volume};

pub(super) fn apply(cluster: &mut Cluster, read: &Read<'_>, data: &Value) {
    match read.steps.as_slice() {
        ["storage"] => {
            cluster.storages.clear();
            for row in rows(data) {
                define(cluster, row);
            }
            let total = cluster.node(&cluster.local).map_or(0, |node| node.disk);
            cluster.storages.entry("local".to_owned()).or_insert_with(|| Storage::unwritten(total));
        }
        ["storage", _] => {
            if let Value::Object(row) = data {
                define(cluster, row);
            }
        }
        ["nodes", _, "storage"] => {
            if read.query.is_empty() {
                let named: Vec<&str> = rows(data).map(|row| text(row, "storage")).collect();
                cluster.storages.retain(|name, _| named.contains(&name.as_str()));
            }
            for row in rows(data) {
                used(cluster, text(row, "storage"), row);
            }
        }
        ["nodes", _, "storage", name, "status"] => {
            if let Value::Object(row) = data {
                used(cluster, name, row);
            }
        }
        ["nodes", _, "storage", name, "content"] => {
            let wanted = |volume: &Volume| {
                read.asked("content").is_none_or(|content| content == volume.content)
                    && read.asked("vmid").is_none_or(|vmid| volume.vmid.is_some_and(|own| own.to_string() == vmid))
            };
            cluster.volumes.retain(|volume| volume.storage != **name || !wanted(volume));
            for row in rows(data) {
                put(cluster, text(row, "volid"), row);
            }
        }
        ["nodes", _, "storage", name, "content", volume @ ..] => {
            if let Value::Object(row) = data {
                put(cluster, &id(name, volume), row);
            }
        }
        ["nodes", _, "storage", name, "prunebackups"] => {
            cluster.volumes.retain(|volume| volume.storage != **name || volume.content != "backup");
            for row in rows(data) {
                let mut row = row.clone();
                let kept = text(&row, "mark") == "protected";
                row.insert("protected".to_owned(), json!(u8::from(kept)));
                let subtype = row.get("type").cloned().unwrap_or_default();
                row.insert("subtype".to_owned(), subtype);
                put(cluster, text(&row.clone(), "volid"), &row);
            }
        }
        _ => {}
    }
}

pub(super) fn remove(cluster: &mut Cluster, read: &Read<'_>) {
    if let ["nodes", _, "storage", name, "content", volume @ ..] = read.steps.as_slice() {
        let id = id(name, volume);
        cluster.volumes.retain(|volume| volume.id() != id);
    }
}

fn id(storage: &str, steps: &[&str]) -> String {
    let name = steps.join("/");
    let name = percent_encoding::percent_decode_str(&name).decode_utf8_lossy().into_owned();
    if name.contains(':') { name } else { format!("{storage}:{name}") }
}

fn define(cluster: &mut Cluster, row: &Map<String, Value>) {
    let mut config = row.clone();
    config.remove("storage");
    config.remove("digest");
    let total = cluster.node(&cluster.local).map_or(0, |node| node.disk);
    cluster.storages.insert(text(row, "storage").to_owned(), Storage { config, total, broken: None });
}

/// One that is on and not active is a directory whose file system is not mounted.
fn used(cluster: &mut Cluster, name: &str, row: &Map<String, Value>) {
    let number = |key: &str| row.get(key).and_then(Value::as_u64).unwrap_or_default();
    if !cluster.storages.contains_key(name) {
        let config = object(json!({"type": row.get("type"), "path": format!("/srv/{name}")}));
        cluster.storages.insert(name.to_owned(), Storage { config, total: number("total"), broken: None });
    }
    let mounted = cluster.host.mounts.iter().find(|(_, size)| number("active") == 1 && **size == number("total"));
    let mounted = mounted.map(|(path, _)| path.clone());
    let Some(storage) = cluster.storages.get_mut(name) else { return };
    if let Some(content) = row.get("content") {
        storage.config.insert("content".to_owned(), content.clone());
    }
    if let Some(path) = mounted {
        storage.config.insert("path".to_owned(), json!(path));
        storage.total = number("total");
    }
    storage.config.remove("disable");
    if number("enabled") == 0 {
        storage.config.insert("disable".to_owned(), json!(1));
    } else if number("active") == 0 {
        storage.config.insert("is_mountpoint".to_owned(), json!(1));
    }
}

/// A volume with what a row says of it; what it does not say is as its name tells.
fn put(cluster: &mut Cluster, id: &str, row: &Map<String, Value>) {
    let number = |key: &str| row.get(key).and_then(Value::as_u64);
    let known = cluster.volumes.iter().position(|volume| volume.id() == id);
    if known.is_none() {
        super::super::volume(cluster, id, number("vmid").and_then(|vmid| u32::try_from(vmid).ok()));
    }
    let Some(volume) = cluster.volumes.iter_mut().find(|volume| volume.id() == id) else { return };
    if let Some(content) = row.get("content").and_then(Value::as_str) {
        content.clone_into(&mut volume.content);
        text(row, "format").clone_into(&mut volume.format);
        volume.used = number("used");
    }
    if let Some(size) = number("size") {
        volume.size = size;
    }
    if let Some(kind) = row.get("subtype").and_then(Value::as_str) {
        volume.subtype = Some(kind.to_owned());
    }
    if let Some(time) = row.get("ctime").and_then(Value::as_i64) {
        volume.ctime = time;
    }
    volume.notes = row.get("notes").and_then(Value::as_str).map(str::to_owned);
    volume.protected = number("protected") == Some(1);
}

/// A backup of a guest that had this configuration.
pub(super) fn archived(cluster: &mut Cluster, read: &Read<'_>, data: &Value) {
    let (Some(id), Some(config)) = (read.asked("volume"), data.as_str()) else { return };
    let id = id.to_owned();
    put(cluster, &id, &Map::new());
    let lines = config.lines().filter_map(|line| line.split_once(": "));
    let config: Map<String, Value> = lines
        .map(|(key, value)| {
            (key.to_owned(), value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number)))
        })
        .collect();
    cluster.archives.insert(id, config);
}
