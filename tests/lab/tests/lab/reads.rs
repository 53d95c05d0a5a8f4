//! Every read of the schema has an answer, and secrets stand where the lab says they do.

use std::collections::BTreeSet;

use lab::{Fault, Options};
use serde_json::Value;

use crate::client::{Bench, quick, url};

/// Reads that no token passes, and those that PVE itself refuses since HA groups became rules.
const REFUSED: [(&str, u16); 5] = [
    ("GET /cluster/acme/account/{name}", 403),
    ("GET /cluster/backup-info", 403),
    ("GET /cluster/sdn/vnets/{vnet}/firewall", 403),
    ("GET /cluster/ha/groups", 500),
    ("GET /cluster/ha/groups/{group}", 500),
];

#[tokio::test]
async fn every_read_of_the_schema_answers() {
    let bench = Bench::quick().await;
    let samples = bench.lab.sample_reads();
    assert_eq!(samples.len(), 340);
    let mut wrong = Vec::new();
    for sample in &samples {
        let expected = REFUSED.iter().find(|(name, _)| *name == sample.operation).map_or(200, |(_, status)| *status);
        let seen = bench.sample(sample).await;
        let routed = bench.lab.journal().pop().and_then(|entry| entry.operation);
        if seen.status != expected || routed.as_ref() != Some(&sample.operation) {
            wrong.push(format!("{} -> {} {} ({routed:?}) {}", url(sample), seen.status, seen.reason, seen.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn answers_have_the_shape_that_the_schema_describes() {
    let bench = Bench::quick().await;
    let apidoc: Value = serde_json::from_str(include_str!("../../../../schema/pve-9.2/apidoc.json")).unwrap();
    let mut returns = Vec::new();
    collect(&apidoc, &mut returns);
    let mut wrong = Vec::new();
    for sample in bench.lab.sample_reads() {
        let seen = bench.sample(&sample).await;
        if seen.status != 200 {
            continue;
        }
        let path = sample.operation.trim_start_matches("GET ");
        let Some((_, schema)) = returns.iter().find(|(found, _)| found == path) else { continue };
        let fits = match schema["type"].as_str() {
            Some("array") => seen.data().is_array(),
            Some("object") => seen.data().is_object(),
            _ => true,
        };
        if !fits {
            wrong.push(format!("{path}: {}", seen.text));
        }
        for row in seen.data().as_array().into_iter().flatten() {
            for (name, property) in schema["items"]["properties"].as_object().into_iter().flatten() {
                // A property with variants is required only where each of them is; none is.
                let required = property.get("optional").is_none() && property.get("oneOf").is_none();
                if required && row.get(name).is_none() {
                    wrong.push(format!("{path}: a row lacks `{name}`: {row}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn collect(node: &Value, found: &mut Vec<(String, Value)>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| collect(node, found)),
        Value::Object(_) => {
            if let Some(get) = node["info"].get("GET") {
                found.push((node["path"].as_str().unwrap().to_owned(), get["returns"].clone()));
            }
            collect(&node["children"], found);
        }
        _ => {}
    }
}

#[tokio::test]
async fn guests_are_of_both_kinds_and_in_every_state() {
    let bench = Bench::quick().await;
    bench.lab.set_fault(Fault::DeadNode("pve3".to_owned())).await;
    let rows = bench.get("/cluster/resources?type=vm").await.rows();
    let distinct =
        |key: &str| rows.iter().filter_map(|row| row[key].as_str().map(str::to_owned)).collect::<BTreeSet<_>>();
    assert_eq!(distinct("type").len(), 2);
    assert_eq!(distinct("status").into_iter().collect::<Vec<_>>(), ["running", "stopped", "unknown"]);
    assert!(distinct("tags").len() >= 5);
    assert_eq!(distinct("pool").len(), 3);
    assert!(rows.iter().any(|row| row["template"] == 1));
    let on = async |node: &str| {
        let qemu = bench.get(&format!("/nodes/{node}/qemu")).await.rows().len();
        qemu + bench.get(&format!("/nodes/{node}/lxc")).await.rows().len()
    };
    assert_eq!((on("pve1").await, on("pve2").await), (20, 10));
}

#[tokio::test]
async fn pending_changes_count_as_applied_unless_the_current_state_is_asked_for() {
    let bench = Bench::quick().await;
    let config = "/nodes/pve1/qemu/101/config";
    assert_eq!(bench.get(config).await.data()["memory"], "8192");
    assert_eq!(bench.get(&format!("{config}?current=1")).await.data()["memory"], "2048");
    let rows = bench.get("/nodes/pve1/qemu/101/pending").await.rows();
    let memory = rows.iter().find(|row| row["key"] == "memory").unwrap();
    assert_eq!((&memory["value"], &memory["pending"]), (&"2048".into(), &"8192".into()));
    let leaving = rows.iter().find(|row| row["key"] == "onboot").unwrap();
    assert_eq!(leaving["delete"], 1);
}

#[tokio::test]
async fn ten_thousand_guests_are_possible() {
    let bench = Bench::start(Options { guests: 10_000, ..quick() }).await;
    assert_eq!(bench.get("/cluster/resources?type=vm").await.rows().len(), 10_000);
}

/// The reads whose answers are known to hold secrets.
const SECRET_READS: [&str; 40] = [
    "GET /access/domains/{realm}",
    "GET /access/users",
    "GET /access/users/{userid}",
    "GET /cluster/acme/plugins",
    "GET /cluster/acme/plugins/{id}",
    "GET /cluster/config/join",
    "GET /cluster/log",
    "GET /cluster/metrics/server",
    "GET /cluster/metrics/server/{id}",
    "GET /cluster/notifications/endpoints/gotify",
    "GET /cluster/notifications/endpoints/gotify/{name}",
    "GET /cluster/notifications/endpoints/webhook",
    "GET /cluster/notifications/endpoints/webhook/{name}",
    "GET /cluster/options",
    "GET /cluster/sdn/dns",
    "GET /cluster/sdn/dns/{dns}",
    "GET /cluster/sdn/ipams",
    "GET /cluster/sdn/ipams/{ipam}",
    "GET /cluster/tasks",
    "GET /nodes/{node}/journal",
    "GET /nodes/{node}/lxc/{vmid}/config",
    "GET /nodes/{node}/lxc/{vmid}/pending",
    "GET /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config",
    "GET /nodes/{node}/qemu/{vmid}/agent/exec-status",
    "GET /nodes/{node}/qemu/{vmid}/agent/file-read",
    "GET /nodes/{node}/qemu/{vmid}/cloudinit",
    "GET /nodes/{node}/qemu/{vmid}/cloudinit/dump",
    "GET /nodes/{node}/qemu/{vmid}/config",
    "GET /nodes/{node}/qemu/{vmid}/pending",
    "GET /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config",
    "GET /nodes/{node}/report",
    "GET /nodes/{node}/storage/{storage}/content",
    "GET /nodes/{node}/subscription",
    "GET /nodes/{node}/syslog",
    "GET /nodes/{node}/tasks",
    "GET /nodes/{node}/tasks/{upid}/log",
    "GET /nodes/{node}/tasks/{upid}/status",
    "GET /nodes/{node}/vzdump/extractconfig",
    "GET /storage",
    "GET /storage/{storage}",
];

#[tokio::test]
async fn a_canary_is_put_into_every_secret_field() {
    let canary = "CANARY-f00d";
    let bench = Bench::start(Options { canary: Some(canary.to_owned()), ..quick() }).await;
    let fields = bench.lab.canary_fields();
    let operations: BTreeSet<&str> = fields.iter().filter_map(|field| Some(field.split_once(": ")?.0)).collect();
    let missing: Vec<_> = SECRET_READS.iter().filter(|name| !operations.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for field in [
        "GET /nodes/{node}/qemu/{vmid}/config: data.args",
        "GET /nodes/{node}/qemu/{vmid}/config: data.cipassword",
        "GET /nodes/{node}/qemu/{vmid}/config: data.smbios1",
        "GET /nodes/{node}/lxc/{vmid}/config: data.env",
        "GET /nodes/{node}/lxc/{vmid}/config: data.lxc[][]",
        "GET /nodes/{node}/storage/{storage}/content: message",
        "GET /cluster/options: data.http_proxy",
        "GET /nodes/{node}/tasks/{upid}/log: data[].t",
    ] {
        assert!(fields.iter().any(|found| found == field), "{field} is not among {fields:#?}");
    }
    // What is listed is what is sent: no other answer holds the canary, and each of these does.
    for sample in bench.lab.sample_reads() {
        let seen = bench.sample(&sample).await;
        if seen.text.contains(canary) {
            assert!(operations.contains(sample.operation.as_str()), "{}", sample.operation);
        }
    }
}
