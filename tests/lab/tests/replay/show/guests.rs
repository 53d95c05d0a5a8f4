//! A guest as its configuration, its state or a list shows it.

use lab::Arrange;
use serde_json::{Map, Value, json};

use crate::arrange::config;
use crate::stage::Stage;

/// What a read below the guest shows; false where that is nothing about its state.
pub fn one(stage: &Stage<'_>, kind: &str, vmid: u32, rest: &[&str], data: &Value, seq: u64) -> bool {
    let known = config::nearest(stage.known, kind, vmid, seq);
    let place = |config: Value| stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    match rest {
        ["config"] => place(data.clone()),
        ["snapshot"] => {
            let rows = data.as_array().cloned().unwrap_or_default();
            let running = rows.iter().any(|row| row["running"] == 1);
            stage.lab.arrange(Arrange::Running { vmid, running });
            stage.lab.arrange(Arrange::Snapshots { vmid, rows });
        }
        ["status", "current"] => {
            let mut config = known;
            fit(&mut config, kind, vmid, data);
            place(config);
            stage.lab.arrange(Arrange::Running { vmid, running: data["status"] == "running" });
            stage.lab.arrange(Arrange::Paused { vmid, paused: data["qmpstatus"] == "paused" });
            if let Some(lock) = data["lock"].as_str() {
                stage.lab.arrange(Arrange::Lock { vmid, lock: Some(lock.to_owned()) });
            }
        }
        ["pending"] => {
            let rows = data.as_array().cloned().unwrap_or_default();
            let key = |row: &Value| row["key"].as_str().unwrap_or_default().to_owned();
            let of = |name: &str| -> Map<String, Value> {
                rows.iter()
                    .filter(|row| row["key"] != "digest")
                    .filter_map(|row| Some((key(row), row.get(name)?.clone())))
                    .collect()
            };
            place(Value::Object(of("value")));
            let (set, delete) = (of("pending"), rows.iter().filter(|row| row.get("delete").is_some()).map(key));
            let delete: Vec<String> = delete.collect();
            stage.lab.arrange(Arrange::Running { vmid, running: !set.is_empty() || !delete.is_empty() });
            stage.lab.arrange(Arrange::Pending { vmid, set: Value::Object(set), delete });
        }
        _ => return false,
    }
    true
}

/// A snapshot with the configuration that it keeps.
pub fn snapshot(stage: &Stage<'_>, vmid: u32, name: &str, data: &Value) {
    let mut row = data.clone();
    row["name"] = json!(name);
    row["config"] = data.clone();
    stage.lab.arrange(Arrange::Snapshots { vmid, rows: vec![row] });
}

/// Exactly the guests of a list.
pub fn list(stage: &Stage<'_>, kind: &str, data: &Value, seq: u64) {
    for vmid in config::known(stage.known, kind) {
        stage.lab.arrange(Arrange::NoGuest(vmid));
    }
    for row in data.as_array().into_iter().flatten() {
        let Some(vmid) = row["vmid"].as_u64().and_then(|vmid| u32::try_from(vmid).ok()) else { continue };
        let mut config = config::nearest(stage.known, kind, vmid, seq);
        fit(&mut config, kind, vmid, row);
        stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
        stage.lab.arrange(Arrange::Running { vmid, running: row["status"] == "running" });
    }
}

/// Makes a configuration of one that a list or a status shows.
fn fit(config: &mut Value, kind: &str, vmid: u32, row: &Value) {
    let name = row["name"].as_str().unwrap_or_default();
    let name_key = if kind == "lxc" { "hostname" } else { "name" };
    if name == format!("VM {vmid}") {
        config.as_object_mut().and_then(|config| config.remove(name_key));
    } else if !name.is_empty() {
        config[name_key] = json!(name);
    }
    let mebibytes = row["maxmem"].as_u64().unwrap_or_default() >> 20;
    if mebibytes > 0 {
        config["memory"] = if kind == "lxc" { json!(mebibytes) } else { json!(mebibytes.to_string()) };
    }
    if kind == "lxc" {
        config["swap"] = json!(row["maxswap"].as_u64().unwrap_or_default() >> 20);
        return;
    }
    config["cores"] = row["cpus"].clone();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(fields) = config.as_object_mut() {
            match value {
                Some(value) => drop(fields.insert(key.to_owned(), value)),
                None => drop(fields.remove(key)),
            }
        }
    };
    put("serial0", (row["serial"] == 1).then(|| json!("socket")));
    put("vga", row.get("clipboard").map(|_| json!("none")));
    put("template", (row["template"] == 1).then(|| json!(1)));
    if row.get("qmpstatus").is_some() && row.get("ha").is_some() {
        put("agent", (row["agent"] == 1).then(|| json!("1")));
        for index in 0..4 {
            let there = row["nics"].get(format!("tap{vmid}i{index}")).is_some();
            if row["status"] == "running" {
                put(&format!("net{index}"), there.then(|| json!("virtio=BC:24:11:00:00:01,bridge=vmbr0")));
            }
        }
    }
    match row["maxdisk"].as_u64() {
        Some(0) => put("boot", Some(json!(" "))),
        Some(size) => {
            put("scsi0", Some(json!(format!("local:{vmid}/vm-{vmid}-disk-0.qcow2,size={}K", size >> 10))));
            put("boot", Some(json!("order=scsi0")));
        }
        None => {}
    }
}
