//! Guests in lists: per node, and all resources of the cluster.

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind, object};
use crate::state::node::Node;
use crate::state::storage::Storage;

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let data = match call.path() {
        "/cluster/resources" => resources(cluster, call, call.given("type")),
        "/nodes/{node}/qemu" => on_node(cluster, call, Kind::Qemu),
        "/nodes/{node}/lxc" => on_node(cluster, call, Kind::Lxc),
        "/nodes" => cluster.nodes.iter().map(|node| node_row(cluster, call, node)).collect(),
        "/pools" => pools(cluster, call),
        "/pools/{poolid}" => return Some(pool(cluster, call)),
        _ => return None,
    };
    Some(Ok(Value::Array(data).into()))
}

fn visible(cluster: &Cluster, call: &Call<'_>, guest: &Guest) -> bool {
    call.may(cluster, &format!("/vms/{}", guest.vmid), &["VM.Audit"])
}

fn on_node(cluster: &Cluster, call: &Call<'_>, kind: Kind) -> Vec<Value> {
    let Some(node) = cluster.node(call.text("node")) else { return Vec::new() };
    cluster
        .guests_on(&node.name)
        .filter(|guest| guest.kind == kind && visible(cluster, call, guest))
        .map(|guest| {
            let mut row = figures(cluster, guest);
            if kind == Kind::Qemu && call.flag("full") {
                row.insert("qmpstatus".to_owned(), json!(guest.status()));
            }
            Value::Object(row)
        })
        .collect()
}

/// All rows of `/cluster/resources`, or those of one kind.
fn resources(cluster: &Cluster, call: &Call<'_>, kind: Option<&str>) -> Vec<Value> {
    let wants = |name: &str| kind.is_none_or(|kind| kind == name);
    let mut rows = Vec::new();
    if kind.is_none() {
        for name in cluster.pools.keys() {
            if call.may(cluster, &format!("/pool/{name}"), &["Pool.Audit"]) {
                rows.push(json!({"id": format!("/pool/{name}"), "pool": name, "type": "pool"}));
            }
        }
    }
    if wants("vm") {
        let seen = cluster.guests.values().filter(|guest| visible(cluster, call, guest));
        rows.extend(seen.map(|guest| Value::Object(guest_row(cluster, call, guest))));
    }
    if wants("node") {
        rows.extend(cluster.nodes.iter().map(|node| node_row(cluster, call, node)));
    }
    if wants("storage") {
        for node in &cluster.nodes {
            for (name, storage) in &cluster.storages {
                if super::storage::on_node(storage, &node.name)
                    && call.may(cluster, &format!("/storage/{name}"), &["Datastore.Audit"])
                {
                    rows.push(storage_row(cluster, node, name, storage));
                }
            }
        }
    }
    // Zones are rows of kind `network`, so that asking for `sdn` finds none of them.
    if kind.is_none() {
        for node in &cluster.nodes {
            let configured = cluster.sections.entries("/cluster/sdn/zones");
            let zones = configured.into_iter().flat_map(|zones| zones.keys().map(String::as_str));
            for zone in zones.chain(["localnetwork"]) {
                if call.may(cluster, &format!("/sdn/zones/{zone}"), &["SDN.Audit"]) {
                    rows.push(json!({
                        "id": format!("network/{}/zone/{zone}", node.name),
                        "network": zone,
                        "network-type": "zone",
                        "node": node.name,
                        "status": if node.online { "ok" } else { "unknown" },
                        "type": "network",
                    }));
                }
            }
        }
    }
    rows
}

/// A guest on a node that does not report is known by its id alone.
pub(super) fn guest_row(cluster: &Cluster, call: &Call<'_>, guest: &Guest) -> Map<String, Value> {
    let id = format!("{}/{}", guest.kind.as_str(), guest.vmid);
    let place = json!({"id": id.clone(), "node": guest.node, "type": guest.kind.as_str(), "vmid": guest.vmid});
    let mut row = object(place);
    if cluster.node(&guest.node).is_some_and(|node| node.online) && !cluster.unseen.contains(&id) {
        let mut figures = figures(cluster, guest);
        for counted in ["diskread", "diskwrite"] {
            figures.entry(counted).or_insert_with(|| json!(0));
        }
        for unlisted in ["pid", "swap", "maxswap", "type"] {
            figures.remove(unlisted);
        }
        if let Some(cores) = figures.remove("cpus") {
            figures.insert("maxcpu".to_owned(), cores);
        }
        figures.entry("template").or_insert_with(|| json!(0));
        row.append(&mut figures);
        if let Some(state) = ha_state(cluster, guest) {
            row.insert("hastate".to_owned(), json!(state));
        }
    } else {
        row.insert("status".to_owned(), json!("unknown"));
        if let Some(tags) = guest.text("tags") {
            row.insert("tags".to_owned(), json!(tags));
        }
    }
    if let Some(pool) = &guest.pool
        && call.may(cluster, &format!("/pool/{pool}"), &["Pool.Audit"])
    {
        row.insert("pool".to_owned(), json!(pool));
    }
    row
}

/// The figures of a guest, as far as its host knows them.
pub(super) fn figures(cluster: &Cluster, guest: &Guest) -> Map<String, Value> {
    let mut row = guest.figures();
    if guest.kind == Kind::Qemu && !cluster.host.own_qemu {
        row.remove("diskread");
        row.remove("diskwrite");
    }
    if guest.kind == Kind::Lxc
        && !guest.config.contains_key("cores")
        && let Some(node) = cluster.node(&guest.node)
    {
        row.insert("cpus".to_owned(), json!(node.cpus));
    }
    row
}

/// What is known about HA's care of a guest.
pub(super) fn ha(cluster: &Cluster, guest: &Guest) -> Value {
    let kind = if guest.kind == Kind::Qemu { "vm" } else { "ct" };
    let managed = cluster.sections.get("/cluster/ha/resources", &format!("{kind}:{}", guest.vmid)).is_some();
    match (managed, ha_state(cluster, guest).filter(|_| cluster.host.ha)) {
        (true, state) => json!({"managed": 1, "state": state}),
        (false, _) => json!({"managed": 0}),
    }
}

/// What HA is told to keep a guest at, if it manages it.
pub(super) fn ha_state<'a>(cluster: &'a Cluster, guest: &Guest) -> Option<&'a str> {
    let kind = if guest.kind == Kind::Qemu { "vm" } else { "ct" };
    cluster.sections.get("/cluster/ha/resources", &format!("{kind}:{}", guest.vmid))?.get("state")?.as_str()
}

fn node_row(cluster: &Cluster, call: &Call<'_>, node: &Node) -> Value {
    let id = format!("node/{}", node.name);
    if cluster.unseen.contains(&id) {
        return json!({"id": id, "node": node.name, "type": "node", "status": "unknown"});
    }
    let mut row = object(json!({
        "id": format!("node/{}", node.name),
        "node": node.name,
        "type": "node",
        "status": if node.online { "online" } else { "offline" },
        "level": "",
    }));
    let listing = call.path() == "/nodes";
    if listing {
        row.insert("ssl_fingerprint".to_owned(), json!(node.fingerprint));
    } else if node.online {
        let mode = cluster.facts.get(&format!("{}/cgroup-mode", node.name));
        row.insert("cgroup-mode".to_owned(), mode.cloned().unwrap_or_else(|| json!(2)));
    }
    if node.online && call.may(cluster, &format!("/nodes/{}", node.name), &["Sys.Audit"]) {
        row.append(&mut object(json!({
            "cpu": 0.042,
            "maxcpu": node.cpus,
            "mem": super::node::memory_used(cluster, node),
            "maxmem": node.memory,
            "disk": node.disk / 5,
            "maxdisk": node.disk,
            "uptime": crate::clock::now() - cluster.booted,
        })));
    }
    Value::Object(row)
}

/// Of a storage that cannot be used nothing but its definition is known.
fn storage_row(cluster: &Cluster, node: &Node, name: &str, storage: &Storage) -> Value {
    let usable = node.online && storage.enabled() && super::storage::works(cluster, name, storage);
    let mut row = object(json!({
        "id": format!("storage/{}/{name}", node.name),
        "storage": name,
        "node": node.name,
        "type": "storage",
        "plugintype": storage.text("type"),
        "content": storage.text("content"),
        "shared": u8::from(storage.shared()),
        "status": if usable { "available" } else { "unknown" },
    }));
    if usable {
        let full = cluster.full.contains(name);
        row.insert("disk".to_owned(), json!(if full { storage.total } else { storage.total / 3 }));
        row.insert("maxdisk".to_owned(), json!(storage.total));
    }
    Value::Object(row)
}

fn pools(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    let wanted = call.given("poolid");
    cluster
        .pools
        .iter()
        .filter(|(name, _)| match wanted {
            Some(wanted) => *name == wanted,
            None => call.may(cluster, &format!("/pool/{name}"), &["Pool.Audit"]),
        })
        .map(|(name, pool)| {
            let mut row = object(json!({"poolid": name}));
            if !pool.comment.is_empty() {
                row.insert("comment".to_owned(), json!(pool.comment));
            }
            if wanted.is_some() {
                row.insert("members".to_owned(), Value::Array(members(cluster, call, name)));
            }
            Value::Object(row)
        })
        .collect()
}

fn pool(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let name = call.text("poolid");
    let pool = cluster
        .pools
        .get(name)
        .ok_or_else(|| crate::answer::Refusal::failed(format!("pool '{name}' does not exist")))?;
    let mut data = object(json!({"poolid": name, "members": members(cluster, call, name)}));
    if !pool.comment.is_empty() {
        data.insert("comment".to_owned(), json!(pool.comment));
    }
    Ok(Value::Object(data).into())
}

fn members(cluster: &Cluster, call: &Call<'_>, name: &str) -> Vec<Value> {
    let kind = call.given("type");
    let mut rows = Vec::new();
    if kind.is_none_or(|kind| kind != "storage") {
        let guests = cluster
            .guests
            .values()
            .filter(|guest| guest.pool.as_deref() == Some(name) && kind.is_none_or(|kind| kind == guest.kind.as_str()));
        rows.extend(guests.map(|guest| {
            let mut row = guest_row(cluster, call, guest);
            row.remove("pool");
            Value::Object(row)
        }));
    }
    if kind.is_none_or(|kind| kind == "storage")
        && let (Some(pool), Some(node)) = (cluster.pools.get(name), cluster.node(&cluster.local))
    {
        let storages = pool.storages.iter().filter_map(|name| Some((name, cluster.storages.get(name)?)));
        rows.extend(storages.map(|(name, storage)| storage_row(cluster, node, name, storage)));
    }
    rows
}
