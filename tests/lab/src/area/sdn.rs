//! SDN beyond plain entries: VNets and subnets are guarded by their zone, fabrics and route maps have two ids.

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::state::{Cluster, digest};

const SEE: &[&str] = &["SDN.Audit", "SDN.Allocate"];
const VNETS: &str = "/cluster/sdn/vnets";
const SUBNETS: &str = "/cluster/sdn/vnets/{vnet}/subnets";
const FABRIC_NODES: &str = "/cluster/sdn/fabrics/node";
const ROUTE_MAPS: &str = "/cluster/sdn/route-maps/entries";

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let data = match call.path() {
        VNETS => Value::Array(vnets(cluster, call)),
        "/cluster/sdn/vnets/{vnet}" => return Some(vnet(cluster, call).map(|row| Value::Object(row).into())),
        SUBNETS => return Some(vnet(cluster, call).map(|_| Value::Array(subnets(cluster, call.text("vnet"))).into())),
        "/cluster/sdn/vnets/{vnet}/subnets/{subnet}" => return Some(subnet(cluster, call)),
        "/cluster/sdn/fabrics/all" => json!({"fabrics": fabrics(cluster, call), "nodes": fabric_nodes(cluster, None)}),
        FABRIC_NODES => fabric_nodes(cluster, None),
        "/cluster/sdn/fabrics/node/{fabric_id}" => fabric_nodes(cluster, Some(call.text("fabric_id"))),
        "/cluster/sdn/fabrics/node/{fabric_id}/{node_id}" => {
            let id = format!("{}_{}", call.text("fabric_id"), call.text("node_id"));
            return Some(single(cluster, FABRIC_NODES, &id));
        }
        "/cluster/sdn/route-maps" => route_maps(cluster),
        ROUTE_MAPS => route_map_entries(cluster, None),
        "/cluster/sdn/route-maps/entries/{route-map-id}" => route_map_entries(cluster, Some(call.text("route-map-id"))),
        "/cluster/sdn/route-maps/entries/{route-map-id}/entry/{order}" => {
            let id = format!("{}/{}", call.text("route-map-id"), call.text("order"));
            return Some(single(cluster, ROUTE_MAPS, &id));
        }
        "/cluster/sdn/ipams/{ipam}/status" => {
            json!([{"zone": "zone1", "vnet": "vnet1", "subnet": "198.51.100.0/24", "ip": "198.51.100.10", "mac": "BC:24:11:00:64:00", "vmid": "100"}])
        }
        "/nodes/{node}/sdn/zones" => {
            let zones = cluster.sections.entries("/cluster/sdn/zones");
            Value::Array(
                zones.into_iter().flatten().map(|(zone, _)| json!({"zone": zone, "status": "available"})).collect(),
            )
        }
        _ => return None,
    };
    Some(Ok(data.into()))
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

fn vnet(cluster: &Cluster, call: &Call<'_>) -> Result<Map<String, Value>, Refusal> {
    let id = call.text("vnet");
    let entry =
        cluster.sections.get(VNETS, id).ok_or_else(|| Refusal::failed(format!("sdn vnet '{id}' does not exist")))?;
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
        .ok_or_else(|| Refusal::failed(format!("sdn subnet '{id}' does not exist")))
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

fn fabric_nodes(cluster: &Cluster, fabric: Option<&str>) -> Value {
    let entries = cluster.sections.entries(FABRIC_NODES).into_iter().flatten();
    let wanted = entries.filter(|(_, entry)| {
        fabric.is_none_or(|fabric| entry.get("fabric_id").and_then(Value::as_str) == Some(fabric))
    });
    Value::Array(wanted.map(|(_, entry)| Value::Object(entry.clone())).collect())
}

fn route_maps(cluster: &Cluster) -> Value {
    let entries = cluster.sections.entries(ROUTE_MAPS).into_iter().flatten();
    let ids: std::collections::BTreeSet<&str> =
        entries.filter_map(|(_, entry)| entry.get("route-map-id").and_then(Value::as_str)).collect();
    Value::Array(ids.into_iter().map(|id| json!({"id": id})).collect())
}

fn route_map_entries(cluster: &Cluster, id: Option<&str>) -> Value {
    let entries = cluster.sections.entries(ROUTE_MAPS).into_iter().flatten();
    let wanted =
        entries.filter(|(_, entry)| id.is_none_or(|id| entry.get("route-map-id").and_then(Value::as_str) == Some(id)));
    Value::Array(wanted.map(|(_, entry)| Value::Object(entry.clone())).collect())
}
