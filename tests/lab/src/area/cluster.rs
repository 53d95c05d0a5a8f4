//! The cluster itself: membership, options, log, HA's view, replication, and what hangs on them.

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::clock;
use crate::state::Cluster;
use crate::state::guest::object;
use crate::state::secrets::Secrets;

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    if !cluster.host.clustered
        && let Some(outcome) = standalone(call)
    {
        return Some(outcome);
    }
    if call.path().starts_with("/cluster/ceph/") && cluster.host.missing.contains("ceph") {
        return Some(Err(Refusal::failed("binary not installed: /usr/bin/ceph-mon")));
    }
    let data = match call.path() {
        "/version" => cluster.release.version(),
        "/cluster/status" => status(cluster, call.here),
        "/cluster/options" => options(cluster, call),
        "/cluster/nextid" => return Some(next_id(cluster, call)),
        "/cluster/log" => log(cluster, call),
        "/cluster/config/nodes" => config_nodes(cluster),
        "/cluster/config/join" => join(cluster, call.here),
        "/cluster/config/totem" => {
            json!({"cluster_name": cluster.name, "config_version": "2", "interface": {"0": {"linknumber": "0"}}, "ip_version": "ipv4-6", "link_mode": "passive", "secauth": "on", "version": "2"})
        }
        "/cluster/config/apiversion" => json!(1),
        "/cluster/config/qdevice" => json!({}),
        "/cluster/metrics/export" => metrics(cluster),
        "/cluster/jobs/schedule-analyze" => {
            let now = clock::now();
            let count = call.number("iterations").unwrap_or(10);
            Value::Array(
                (1..=count).map(|nth| json!({"timestamp": now + nth * 3600, "utc": format!("in {nth} h")})).collect(),
            )
        }
        "/cluster/acme/tos" => json!("https://acme.lab.test/tos"),
        _ => return None,
    };
    Some(Ok(data.into()))
}

/// What is told of a cluster where there is none.
fn standalone(call: &Call<'_>) -> Option<Outcome> {
    Some(match call.path() {
        "/cluster/config/nodes" => Ok(json!([]).into()),
        "/cluster/config/totem" => Ok(Value::Null.into()),
        "/cluster/config/join" => Err(Refusal::new(424, "node is not in a cluster, no join info available!")),
        _ => return None,
    })
}

fn status(cluster: &Cluster, here: &str) -> Value {
    let mut rows = vec![json!({
        "type": "cluster",
        "id": "cluster",
        "name": cluster.name,
        "nodes": cluster.nodes.len(),
        "quorate": u8::from(cluster.quorate()),
        "version": 2,
    })];
    if !cluster.host.clustered {
        rows.clear();
    }
    rows.extend(cluster.nodes.iter().map(|node| {
        json!({
            "type": "node",
            "id": format!("node/{}", node.name),
            "name": node.name,
            "nodeid": if cluster.host.clustered { node.number } else { 0 },
            "ip": node.ip,
            "level": "",
            "local": u8::from(node.name == here),
            "online": u8::from(node.online),
        })
    }));
    Value::Array(rows)
}

/// Without `Sys.Audit` only the fields that every user interface needs.
fn options(cluster: &Cluster, call: &Call<'_>) -> Value {
    let secrets = &cluster.secrets;
    let mut all = if cluster.host.clustered { seeded_options(secrets) } else { Map::new() };
    all.extend(
        object(super::cluster_write::shown_options(cluster))
            .into_iter()
            .filter(|(name, _)| !cluster.host.clustered || cluster.options.contains_key(name)),
    );
    if !call.may(cluster, "/", &["Sys.Audit"]) {
        all.retain(|key, _| matches!(key.as_str(), "console" | "tag-style" | "allowed-tags"));
    }
    Value::Object(all)
}

/// The options of a cluster that is in use.
fn seeded_options(secrets: &Secrets) -> Map<String, Value> {
    object(json!({
        "keyboard": "en-us",
        "mac_prefix": "BC:24:11",
        "console": "html5",
        "migration": {"type": "secure"},
        "crs": {"ha": "basic"},
        "allowed-tags": ["ci", "prod"],
        "tag-style": {"color-map": "prod:d32f2f"},
        "registered-tags": ["pii"],
        "http_proxy": format!("http://proxy:{}@proxy.lab.test:3128", secrets.of("http-proxy")),
        "u2f": format!("appid={}", secrets.url("u2f-appid", "pve.lab.test")),
        "webauthn": format!("id=pve.lab.test,origin={},rp=lab", secrets.url("webauthn-origin", "pve.lab.test")),
        "description": "The lab's datacenter notes",
    }))
}

fn next_id(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let taken = |vmid: u32| cluster.guests.contains_key(&vmid);
    if let Some(vmid) = call.given("vmid").and_then(|vmid| vmid.parse().ok()) {
        if taken(vmid) {
            return Err(Refusal::parameter("vmid", format!("VM {vmid} already exists")));
        }
        return Ok(json!(vmid.to_string()).into());
    }
    let free = (100..1_000_000).find(|vmid| !taken(*vmid));
    free.map(|vmid| json!(vmid.to_string()).into())
        .ok_or_else(|| Refusal::failed("unable to get any free VMID in range [100, 1000000]"))
}

/// The cluster log names tasks as they start and end, with whatever their error texts hold.
fn log(cluster: &Cluster, call: &Call<'_>) -> Value {
    let all = call.may(cluster, "/", &["Sys.Syslog"]);
    let mut rows = Vec::new();
    for (at, task) in cluster.tasks.all.iter().enumerate().rev() {
        if !all && !task.belongs_to(call.caller) {
            continue;
        }
        let owner = task.token.as_ref().map_or_else(|| task.user.clone(), |token| format!("{}!{token}", task.user));
        let mut add = |half: usize, time: i64, message: String| {
            let uid = at * 2 + half;
            rows.push(json!({"uid": uid.to_string(), "id": format!("{uid}:{}", task.node), "node": task.node, "tag": "pvedaemon", "pid": task.pid, "pri": 6, "time": time, "user": owner, "msg": message}));
        };
        if let Some((end, status)) = &task.ended {
            add(1, *end, format!("end task {} {status}", task.upid));
        }
        add(0, task.started, format!("starting task {}", task.upid));
    }
    rows.truncate(call.count("max").unwrap_or(50));
    Value::Array(rows)
}

fn config_nodes(cluster: &Cluster) -> Value {
    let rows = cluster.nodes.iter().map(|node| {
        json!({"node": node.name, "name": node.name, "nodeid": node.number.to_string(), "quorum_votes": "1", "ring0_addr": node.ip})
    });
    Value::Array(rows.collect())
}

fn join(cluster: &Cluster, here: &str) -> Value {
    let nodes: Vec<Value> = cluster
        .nodes
        .iter()
        .map(|node| json!({"name": node.name, "nodeid": node.number.to_string(), "pve_addr": node.ip, "pve_fp": node.fingerprint, "quorum_votes": "1", "ring0_addr": node.ip}))
        .collect();
    json!({
        "config_digest": crate::state::digest(&json!(nodes)),
        "nodelist": nodes,
        "preferred_node": here,
        "totem": {"cluster_name": cluster.name, "secauth": "on", "authkey": cluster.secrets.of("join-authkey")},
    })
}

/// Figures for monitoring: of the nodes, the guests, and the storages.
fn metrics(cluster: &Cluster) -> Value {
    let now = clock::now();
    let mut rows = Vec::new();
    let mut add = |id: &str, metric: &str, value: Value| {
        let kind = if matches!(metric, "net_in" | "net_out" | "disk_read" | "disk_write") { "derive" } else { "gauge" };
        rows.push(json!({"id": id, "metric": metric, "type": kind, "timestamp": now, "value": value}));
    };
    for node in cluster.nodes.iter().filter(|node| node.online) {
        let id = format!("node/{}", node.name);
        // Figures of the moment, where they are known.
        let known = cluster.facts.get(&format!("{}/figures", node.name));
        let figure = |name: &str, usual: Value| known.and_then(|known| known.get(name)).cloned().unwrap_or(usual);
        for (metric, usual) in [
            ("uptime", json!(now - cluster.booted)),
            ("net_in", json!(0)),
            ("net_out", json!(0)),
            ("cpu_avg1", json!(0.42)),
            ("cpu_avg5", json!(0.38)),
            ("cpu_avg15", json!(0.31)),
            ("cpu_current", json!(0.042)),
            ("cpu_iowait", json!(0.001)),
            ("mem_used", json!(super::node::memory_used(cluster, node))),
            ("swap_total", json!(0)),
            ("swap_used", json!(0)),
            ("disk_used", json!(node.disk / 5)),
        ] {
            add(&id, metric, figure(metric, usual));
        }
        add(&id, "cpu_max", json!(node.cpus));
        add(&id, "mem_total", json!(node.memory));
        add(&id, "disk_total", json!(node.disk));
        for (name, storage) in &cluster.storages {
            if super::storage::on_node(storage, &node.name) && storage.broken.is_none() {
                let id = format!("storage/{}/{name}", node.name);
                add(&id, "disk_total", json!(storage.total));
                add(&id, "disk_used", figure("disk_used", json!(storage.total / 5)));
            }
        }
    }
    for guest in cluster.guests.values() {
        let id = format!("{}/{}", guest.kind.as_str(), guest.vmid);
        add(&id, "uptime", json!(guest.uptime()));
        add(&id, "cpu_max", json!(guest.cores()));
        add(&id, "mem_total", json!(guest.memory()));
        add(&id, "disk_total", json!(guest.disk_size()));
        if guest.running() {
            let figures = guest.figures();
            for (metric, name) in [
                ("cpu_current", "cpu"),
                ("mem_used", "mem"),
                ("net_in", "netin"),
                ("net_out", "netout"),
                ("disk_read", "diskread"),
                ("disk_write", "diskwrite"),
            ] {
                add(&id, metric, figures.get(name).cloned().unwrap_or_default());
            }
        }
    }
    json!({"data": rows})
}
