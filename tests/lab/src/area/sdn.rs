//! SDN beyond plain entries: VNets and subnets are guarded by their zone, fabrics and route maps have two ids.

mod change;
mod parts;
mod pending;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::state::section::Entries;
use crate::state::{Cluster, digest};

pub(super) use change::write;

const SEE: &[&str] = &["SDN.Audit", "SDN.Allocate"];
const ZONES: &str = "/cluster/sdn/zones";
const VNETS: &str = "/cluster/sdn/vnets";
const CONTROLLERS: &str = "/cluster/sdn/controllers";
const SUBNETS: &str = "/cluster/sdn/vnets/{vnet}/subnets";
const FABRIC_NODES: &str = "/cluster/sdn/fabrics/node";
const ROUTE_MAPS: &str = "/cluster/sdn/route-maps/entries";

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    if call.path().starts_with("/nodes/{node}/sdn/vnets/{vnet}") {
        // What is below comes from the schema; only who may see it is decided here.
        return vnet(cluster, call).err().map(Err);
    }
    if call.flag("pending") || call.flag("running") {
        return view(cluster, call);
    }
    let data = match call.path() {
        "/cluster/sdn" => {
            ["vnets", "zones", "controllers", "ipams", "dns", "fabrics"].map(|name| json!({"id": name})).to_vec().into()
        }
        "/cluster/sdn/fabrics" => ["fabric", "node", "all"].map(|name| json!({"subdir": name})).to_vec().into(),
        VNETS => Value::Array(vnets(cluster, call)),
        "/cluster/sdn/vnets/{vnet}" => return Some(vnet(cluster, call).map(|row| Value::Object(row).into())),
        SUBNETS => return Some(vnet(cluster, call).map(|_| Value::Array(subnets(cluster, call.text("vnet"))).into())),
        "/cluster/sdn/vnets/{vnet}/subnets/{subnet}" => return Some(subnet(cluster, call)),
        "/cluster/sdn/fabrics/all" => {
            json!({"fabrics": fabrics(cluster, call), "nodes": fabric_nodes(cluster, call, None)})
        }
        FABRIC_NODES => fabric_nodes(cluster, call, None),
        "/cluster/sdn/fabrics/node/{fabric_id}" => fabric_nodes(cluster, call, Some(call.text("fabric_id"))),
        "/cluster/sdn/fabrics/node/{fabric_id}/{node_id}" => {
            let id = format!("{}_{}", call.text("fabric_id"), call.text("node_id"));
            return Some(single(cluster, FABRIC_NODES, &id));
        }
        "/cluster/sdn/route-maps" => route_maps(cluster, call),
        ROUTE_MAPS => route_map_entries(cluster, call, None),
        "/cluster/sdn/route-maps/entries/{route-map-id}" => {
            route_map_entries(cluster, call, Some(call.text("route-map-id")))
        }
        "/cluster/sdn/route-maps/entries/{route-map-id}/entry/{order}" => {
            let id = format!("{}/{}", call.text("route-map-id"), call.text("order"));
            return Some(single(cluster, ROUTE_MAPS, &id));
        }
        "/cluster/sdn/prefix-lists/{id}/entries" | "/cluster/sdn/prefix-lists/{id}/entries/{url_seq}" => {
            return Some(parts::prefixes(cluster, call));
        }
        "/cluster/sdn/ipams/{ipam}/status" => Value::Array(addresses(cluster, call)),
        "/nodes/{node}/sdn/zones" => {
            let zones = cluster.sdn.running.as_ref().and_then(|running| running.entries(ZONES));
            Value::Array(
                zones.into_iter().flatten().map(|(zone, _)| json!({"zone": zone, "status": "available"})).collect(),
            )
        }
        _ => return None,
    };
    Some(Ok(data.into()))
}

/// Lists and single entries as they are in force, or with what waits to be applied.
fn view(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let path = call.path();
    let (list, column) = [(SUBNETS, "subnet"), (VNETS, "vnet"), (ZONES, "zone"), (CONTROLLERS, "controller")]
        .into_iter()
        .find(|(list, column)| path == *list || path.strip_prefix(list) == Some(&format!("/{{{column}}}")))?;
    let entries: Entries =
        if call.flag("pending") { pending::waiting(cluster, list) } else { pending::running(cluster, list) };
    let seen = |id: &str, entry: &Map<String, Value>| {
        let zoned = || {
            let pending = entry.get("pending").and_then(|pending| pending.get("zone")).and_then(Value::as_str);
            pending.unwrap_or_else(|| zone(entry)).to_owned()
        };
        let path = match column {
            "zone" => format!("/sdn/zones/{id}"),
            "controller" => format!("/sdn/controllers/{id}"),
            "vnet" => format!("/sdn/zones/{}/{id}", zoned()),
            _ => format!("/sdn/zones/{}/{}", zoned(), call.text("vnet")),
        };
        let inside = column != "subnet" || entry.get("vnet").and_then(Value::as_str) == Some(call.text("vnet"));
        inside && call.may(cluster, &path, SEE)
    };
    let row = |(id, entry): (String, Map<String, Value>)| {
        let mut row = entry;
        row.insert(column.to_owned(), json!(id));
        row.insert("digest".to_owned(), Value::Null);
        Value::Object(row)
    };
    let mut rows = entries.into_iter().filter(|(id, entry)| seen(id, entry));
    Some(if path == list {
        Ok(Value::Array(rows.map(row).collect()).into())
    } else {
        let id = call.text(column);
        let found = rows.find(|(other, _)| other == id).map(row);
        found.map(Into::into).ok_or_else(|| Refusal::failed(format!("sdn '{id}' does not exist")))
    })
}

fn zone(entry: &Map<String, Value>) -> &str {
    entry.get("zone").and_then(Value::as_str).unwrap_or_default()
}

fn row(id: &str, column: &str, entry: &Map<String, Value>, digest: &str) -> Map<String, Value> {
    let mut row = entry.clone();
    row.insert(column.to_owned(), json!(id));
    row.insert("digest".to_owned(), json!(digest));
    row
}

fn vnets(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    let entries = cluster.sections.entries(VNETS);
    let digest = digest(&json!(entries));
    entries
        .into_iter()
        .flatten()
        .filter(|(id, entry)| call.may(cluster, &format!("/sdn/zones/{}/{id}", zone(entry)), SEE))
        .map(|(id, entry)| Value::Object(row(id, "vnet", entry, &digest)))
        .collect()
}

/// The VNet of a path, if the caller may see it in its zone.
pub(super) fn vnet(cluster: &Cluster, call: &Call<'_>) -> Result<Map<String, Value>, Refusal> {
    let id = call.text("vnet");
    let entry = cluster.sections.get(VNETS, id).ok_or_else(|| Refusal::failed(format!("sdn '{id}' does not exist")))?;
    let path = format!("/sdn/zones/{}/{id}", zone(entry));
    if !call.may(cluster, &path, SEE) {
        return Err(Refusal::forbidden(&format!("{path}, {}", SEE.join("|"))));
    }
    Ok(row(id, "vnet", entry, &digest(&json!(cluster.sections.entries(VNETS)))))
}

fn subnets(cluster: &Cluster, vnet: &str) -> Vec<Value> {
    let entries = cluster.sections.entries(SUBNETS);
    let digest = digest(&json!(entries));
    entries
        .into_iter()
        .flatten()
        .filter(|(_, entry)| entry.get("vnet").and_then(Value::as_str) == Some(vnet))
        .map(|(id, entry)| Value::Object(row(id, "subnet", entry, &digest)))
        .collect()
}

fn subnet(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    vnet(cluster, call)?;
    let id = call.text("subnet");
    subnets(cluster, call.text("vnet"))
        .into_iter()
        .find(|row| row.get("subnet").and_then(Value::as_str) == Some(id))
        .map(Into::into)
        .ok_or_else(|| Refusal::failed(format!("sdn '{id}' does not exist")))
}

fn single(cluster: &Cluster, list: &str, id: &str) -> Outcome {
    cluster
        .sections
        .get(list, id)
        .map(|entry| Value::Object(entry.clone()).into())
        .ok_or_else(|| Refusal::new(404, format!("'{id}' does not exist")))
}

fn fabrics(cluster: &Cluster, call: &Call<'_>) -> Value {
    let entries = cluster.sections.entries("/cluster/sdn/fabrics/fabric");
    let digest = digest(&json!(entries));
    let seen = entries.into_iter().flatten().filter(|(id, _)| call.may(cluster, &format!("/sdn/fabrics/{id}"), SEE));
    Value::Array(seen.map(|(id, entry)| Value::Object(row(id, "id", entry, &digest))).collect())
}

/// A node of a fabric is shown to those who see the fabric and the node.
fn fabric_nodes(cluster: &Cluster, call: &Call<'_>, fabric: Option<&str>) -> Value {
    let entries = cluster.sections.entries(FABRIC_NODES).into_iter().flatten();
    let wanted = entries.filter(|(_, entry)| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let (of, node) = (text("fabric_id"), text("node_id"));
        fabric.is_none_or(|fabric| fabric == of)
            && call.may(cluster, &format!("/sdn/fabrics/{of}"), SEE)
            && call.may(cluster, &format!("/nodes/{node}"), &["Sys.Audit", "Sys.Modify"])
    });
    Value::Array(wanted.map(|(_, entry)| Value::Object(entry.clone())).collect())
}

/// Addresses in VNets the caller sees: every guest of pool `ci` has one in the first VNet, others were given by hand.
fn addresses(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    let mut found = Vec::new();
    for (nth, (vnet, entry)) in cluster.sections.entries(VNETS).into_iter().flatten().enumerate() {
        if !call.may(cluster, &format!("/sdn/zones/{}/{vnet}", zone(entry)), SEE) {
            continue;
        }
        let held = cluster.guests.values().filter(|guest| nth == 0 && guest.pool.as_deref() == Some("ci"));
        found.extend(held.map(|guest| {
            json!({
                "zone": zone(entry),
                "vnet": vnet,
                "subnet": "198.51.100.0/24",
                "ip": super::agent::address(guest),
                "mac": super::agent::mac(guest),
                "vmid": guest.vmid.to_string(),
                "hostname": guest.name(),
            })
        }));
        found.extend(parts::addresses(cluster, vnet));
    }
    found
}

fn route_maps(cluster: &Cluster, call: &Call<'_>) -> Value {
    let entries = cluster.sections.entries(ROUTE_MAPS).into_iter().flatten();
    let ids: BTreeSet<&str> =
        entries.filter_map(|(_, entry)| entry.get("route-map-id").and_then(Value::as_str)).collect();
    let seen = ids.into_iter().filter(|id| call.may(cluster, &format!("/sdn/route-maps/{id}"), SEE));
    Value::Array(seen.map(|id| json!({"id": id})).collect())
}

fn route_map_entries(cluster: &Cluster, call: &Call<'_>, id: Option<&str>) -> Value {
    let entries = cluster.sections.entries(ROUTE_MAPS).into_iter().flatten();
    let wanted = entries.filter(|(_, entry)| {
        let of = entry.get("route-map-id").and_then(Value::as_str).unwrap_or_default();
        id.is_none_or(|id| id == of) && call.may(cluster, &format!("/sdn/route-maps/{of}"), SEE)
    });
    Value::Array(wanted.map(|(_, entry)| Value::Object(entry.clone())).collect())
}
