//! Lists of everything in the cluster: exactly the guests and storages that they show.

use std::collections::BTreeMap;

use lab::Arrange;
use serde_json::{Value, json};

use crate::stage::Stage;

pub async fn all(stage: &Stage<'_>, data: &Value) {
    let rows: Vec<&Value> = data.as_array().into_iter().flatten().collect();
    let of = |kind: &str| rows.iter().copied().filter(|row| row["type"] == kind).collect::<Vec<_>>();
    let guests: Vec<&Value> = of("qemu").into_iter().chain(of("lxc")).collect();
    if !guests.is_empty() {
        for vmid in [100, 200, 220, 300] {
            stage.lab.arrange(Arrange::NoGuest(vmid));
        }
    }
    for row in guests {
        guest(stage, row);
    }
    for row in of("node").into_iter().filter(|row| row["status"] == "unknown") {
        stage.lab.arrange(Arrange::Unseen(text(row, "id").to_owned()));
    }
    let storages = of("storage");
    let names: Vec<String> = storages.iter().map(|row| text(row, "storage").to_owned()).collect();
    for row in storages {
        // One that does not work has a folder that nothing is mounted to.
        let (name, content) = (text(row, "storage"), text(row, "content"));
        let mut form = json!({"storage": name, "type": "dir", "path": format!("/srv/{name}"), "content": content});
        let broken = row["status"] == "unknown";
        if broken {
            form["is_mountpoint"] = json!("1");
            form["disable"] = json!("1");
        }
        stage.call("POST", "/storage", &form).await;
        if broken {
            // Only what is disabled can be made where nothing is mounted.
            stage.call("PUT", &format!("/storage/{name}"), &json!({"delete": "disable"})).await;
        }
    }
    if !names.is_empty() {
        stage.lab.arrange(Arrange::OnlyStorages(names));
    }
}

/// Figures of the node are put as they were; guests have what their figures tell.
pub fn metrics(stage: &Stage<'_>, data: &Value) {
    let mut of: BTreeMap<&str, serde_json::Map<String, Value>> = BTreeMap::new();
    for row in data["data"].as_array().into_iter().flatten() {
        of.entry(text(row, "id")).or_default().insert(text(row, "metric").to_owned(), row["value"].clone());
    }
    for vmid in [100, 200, 220, 300] {
        stage.lab.arrange(Arrange::NoGuest(vmid));
    }
    for (id, figures) in of {
        let (kind, rest) = id.split_once('/').unwrap_or((id, ""));
        match kind {
            "node" => stage.lab.arrange(Arrange::Host { path: "/figures".to_owned(), data: Value::Object(figures) }),
            "qemu" | "lxc" => {
                let figure = |name: &str| figures.get(name).cloned().unwrap_or_default();
                let row = json!({
                    "vmid": rest.parse::<u64>().unwrap_or_default(), "type": kind, "name": "seen", "maxcpu": figure("cpu_max"),
                    "maxmem": figure("mem_total"), "maxdisk": figure("disk_total"),
                    "status": if figure("uptime") == 0 { "stopped" } else { "running" },
                });
                guest(stage, &row);
            }
            _ => {}
        }
    }
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

/// A guest of which a row tells: its name, memory, processors, and the size of its disk.
fn guest(stage: &Stage<'_>, row: &Value) {
    let Some(vmid) = row["vmid"].as_u64().and_then(|vmid| u32::try_from(vmid).ok()) else { return };
    let kind = text(row, "type");
    let number = |key: &str| row[key].as_u64().unwrap_or_default();
    let mut config = json!({"cores": number("maxcpu")});
    let size = number("maxdisk") >> 20;
    if kind == "qemu" {
        config["memory"] = json!((number("maxmem") >> 20).to_string());
        config["name"] = row["name"].clone();
        if size > 0 {
            config["scsi0"] = json!(format!("local:{vmid}/vm-{vmid}-disk-0.qcow2,size={size}M"));
        }
    } else {
        config["memory"] = json!(number("maxmem") >> 20);
        config["hostname"] = row["name"].clone();
        config["rootfs"] = json!(format!("local:{vmid}/subvol-{vmid}-disk-0.subvol,size={size}M"));
    }
    stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    stage.lab.arrange(Arrange::Running { vmid, running: row["status"] == "running" });
    if row["status"] == "unknown" {
        stage.lab.arrange(Arrange::Unseen(text(row, "id").to_owned()));
    }
}
