//! A node's settings and what is found on it, and the datacenter's options.

use lab::Arrange;
use serde_json::{Value, json};

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

/// The options of the datacenter, property strings as they are set.
pub fn options(stage: &Stage<'_>, data: &Value) {
    let mut options = data.clone();
    for value in options.as_object_mut().into_iter().flat_map(|options| options.values_mut()) {
        if let Value::Object(parts) = value {
            let parts: Vec<String> =
                parts.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
            *value = json!(parts.join(","));
        }
    }
    stage.lab.arrange(Arrange::DatacenterOptions(options));
}

/// What is found at a path below the node.
pub fn found(stage: &Stage<'_>, rest: &[&str], data: &Value) -> bool {
    let Some(first) = rest.first() else { return false };
    let path = format!("/{}", rest.join("/"));
    let data = match *first {
        "syslog" => json!(data.as_array().into_iter().flatten().map(|row| row["t"].clone()).collect::<Vec<_>>()),
        "hosts" => data["data"].clone(),
        "time" => {
            stage.lab.arrange(Arrange::Host { path: "/timezone".to_owned(), data: data["timezone"].clone() });
            return true;
        }
        "network" if rest.len() == 1 => data.clone(),
        "services" if rest.len() == 3 => {
            stage.lab.arrange(Arrange::Host { path: "/services".to_owned(), data: json!([data]) });
            return true;
        }
        "config" => {
            let mut data = data.clone();
            if let Some(fields) = data.as_object_mut() {
                fields.remove("digest");
            }
            data
        }
        first if FOUND.contains(&first) => data.clone(),
        _ => return false,
    };
    stage.lab.arrange(Arrange::Host { path, data });
    true
}
