//! A node's settings and what is found on it, names of peers, and the datacenter's options.

use lab::Arrange;
use serde_json::{Value, json};

use crate::recording::Recording;
use crate::stage::Stage;

/// What is found on the host, which no rule can tell.
const FOUND: [&str; 14] = [
    "aplinfo",
    "apt",
    "capabilities",
    "certificates",
    "config",
    "disks",
    "dns",
    "hardware",
    "netstat",
    "report",
    "scan",
    "services",
    "subscription",
    "rrddata",
];

pub async fn before(stage: &mut Stage<'_>, recording: &Recording) {
    let steps = recording.steps();
    if matches!(recording.status(), 595 | 596)
        && let ["nodes", name, ..] = steps.as_slice()
        && *name != "pve1"
    {
        let reason = recording.response["reason"].as_str().unwrap_or_default().to_owned();
        let status = u16::try_from(recording.status()).unwrap_or_default();
        stage.lab.arrange(Arrange::Peer { name: (*name).to_owned(), status, reason });
    }
    match (steps.as_slice(), recording.method(), recording.status()) {
        (["nodes", _, rest @ ..], "GET", 200) => found(stage, rest, recording.data()),
        (["nodes", _, "network"], "POST", 400) if recording.message().contains("verification") => {
            let already = recording.response["json"]["errors"]["iface"] == "interface already exists";
            if already {
                let form: Value = recording.request["form"].clone();
                stage.call("POST", recording.path(), &form).await;
            }
        }
        (["nodes", _, "network", iface], _, 200) => {
            let form = json!({"iface": iface, "type": "bridge"});
            stage.call("POST", "/nodes/pve1/network", &form).await;
        }
        (["cluster", "options"], "GET", 200) => {
            let mut options = recording.data().clone();
            for value in options.as_object_mut().into_iter().flat_map(|options| options.values_mut()) {
                if let Value::Object(parts) = value {
                    let parts: Vec<String> = parts
                        .iter()
                        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                        .collect();
                    *value = json!(parts.join(","));
                }
            }
            stage.lab.arrange(Arrange::DatacenterOptions(options));
        }
        (["cluster", "mapping", kind, id], _, 200) => {
            let map = recording.data()["map"].clone();
            let map = if map.is_null() { json!(["node=pve1,path=/srv/lab1"]) } else { map };
            stage.call("POST", &format!("/cluster/mapping/{kind}"), &json!({"id": id, "map": map})).await;
        }
        (["cluster", "metrics", "server", id], "GET" | "DELETE" | "PUT", 200) => {
            let mut form = recording.data().clone();
            if form.is_null() {
                form = json!({"type": "influxdb", "server": "127.0.0.1", "port": "9"});
            }
            stage.call("POST", &format!("/cluster/metrics/server/{id}"), &form).await;
        }
        _ => {}
    }
    // Whether the node reached its own API shows in the log of what the recording began.
    let all = stage.all;
    let log = all.iter().find(|other| other.of_task() == Some(&recording.name) && other.name.ends_with("__task_log"));
    if let Some(log) = log {
        let unreachable = log.data().to_string().contains("Can't connect to localhost:8006");
        stage.lab.arrange(Arrange::ReachesItself(!unreachable));
    }
}

fn found(stage: &Stage<'_>, rest: &[&str], data: &Value) {
    let Some(first) = rest.first() else { return };
    let path = format!("/{}", rest.join("/"));
    let data = match *first {
        "syslog" => json!(data.as_array().into_iter().flatten().map(|row| row["t"].clone()).collect::<Vec<_>>()),
        "hosts" => data["data"].clone(),
        "time" => {
            return stage.lab.arrange(Arrange::Host { path: "/timezone".to_owned(), data: data["timezone"].clone() });
        }
        "network" if rest.len() == 1 => data.clone(),
        "services" if rest.len() == 3 => {
            return stage.lab.arrange(Arrange::Host { path: "/services".to_owned(), data: json!([data]) });
        }
        "config" => {
            let mut data = data.clone();
            if let Some(fields) = data.as_object_mut() {
                fields.remove("digest");
            }
            data
        }
        first if FOUND.contains(&first) => data.clone(),
        _ => return,
    };
    stage.lab.arrange(Arrange::Host { path, data });
}
