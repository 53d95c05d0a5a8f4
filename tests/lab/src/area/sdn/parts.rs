//! Entries of SDN below others: nodes of fabrics, entries of route maps and of prefix lists, addresses in VNets.
//!
//! Each has an id of two parts: what it is below, and its own.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::entry::{done, properties, within};
use super::super::section::digest_of;
use super::super::{Call, Outcome};
use super::{FABRIC_NODES, ROUTE_MAPS, VNETS, change};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;

const FABRICS: &str = "/cluster/sdn/fabrics/fabric";
pub(super) const PREFIX_LISTS: &str = "/cluster/sdn/prefix-lists";
/// Addresses that were given by hand, by VNet and address.
pub(super) const ADDRESSES: &str = "/cluster/sdn/vnets/{vnet}/ips";

type Change = fn(&mut Cluster, &Call<'_>) -> Result<(), Refusal>;

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let (what, change): (&str, Change) = match (call.operation.verb.as_str(), call.path()) {
        ("POST", "/cluster/sdn/fabrics/node/{fabric_id}") => ("add node", add_node),
        ("PUT", "/cluster/sdn/fabrics/node/{fabric_id}/{node_id}") => {
            ("update node", |cluster, call| alter(cluster, call, FABRIC_NODES, &node_id(call), &["protocol"]))
        }
        ("DELETE", "/cluster/sdn/fabrics/node/{fabric_id}/{node_id}") => {
            ("delete node", |cluster, call| remove(cluster, FABRIC_NODES, &node_id(call)))
        }
        ("POST", ROUTE_MAPS) => ("add route map entry", add_map_entry),
        ("PUT", "/cluster/sdn/route-maps/entries/{route-map-id}/entry/{order}") => {
            ("update route map entry", |cluster, call| alter(cluster, call, ROUTE_MAPS, &map_id(call), &["action"]))
        }
        ("DELETE", "/cluster/sdn/route-maps/entries/{route-map-id}/entry/{order}") => {
            ("delete route map entry", |cluster, call| remove(cluster, ROUTE_MAPS, &map_id(call)))
        }
        ("POST", "/cluster/sdn/prefix-lists/{id}/entries") => ("add prefix list entry", add_prefix),
        ("PUT", "/cluster/sdn/prefix-lists/{id}/entries/{url_seq}") => ("update prefix list entry", alter_prefix),
        ("DELETE", "/cluster/sdn/prefix-lists/{id}/entries/{url_seq}") => ("delete prefix list entry", remove_prefix),
        ("POST", ADDRESSES) => ("create ip", |cluster, call| address(cluster, call, false)),
        ("PUT", ADDRESSES) => ("update ip", |cluster, call| address(cluster, call, true)),
        ("DELETE", ADDRESSES) => ("delete ip", |cluster, call| {
            let id = address_id(cluster, call)?;
            remove(cluster, ADDRESSES, &id)
        }),
        _ => return None,
    };
    let changed = shared.change(|cluster| change::unlocked(cluster, call).and_then(|()| change(cluster, call)));
    Some(changed.map_err(|refusal| within(&format!("{what} failed"), refusal)).and_then(|()| done()))
}

/// What is read below a prefix list: its entries, in their order, or one of them.
pub(super) fn prefixes(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let rows = entries_of(cluster, call.text("id"))?;
    if !call.operation.in_path("url_seq") {
        return Ok(Value::Array(rows.into_iter().map(Value::Object).collect()).into());
    }
    let wanted = call.text("url_seq");
    let found = rows.into_iter().find(|row| seq(row) == wanted);
    found.map(|row| Value::Object(row).into()).ok_or_else(|| missing(wanted))
}

/// Addresses that were given by hand in a VNet.
pub(super) fn addresses<'a>(cluster: &'a Cluster, vnet: &'a str) -> impl Iterator<Item = Value> {
    let all = cluster.sections.entries(ADDRESSES).into_iter().flatten();
    all.filter(move |(_, entry)| entry.get("vnet").and_then(Value::as_str) == Some(vnet))
        .map(|(_, entry)| Value::Object(entry.clone()))
}

fn missing(id: &str) -> Refusal {
    Refusal::new(404, format!("'{id}' does not exist"))
}

fn node_id(call: &Call<'_>) -> String {
    format!("{}_{}", call.text("fabric_id"), call.text("node_id"))
}

fn map_id(call: &Call<'_>) -> String {
    format!("{}/{}", call.text("route-map-id"), call.text("order"))
}

fn new(cluster: &mut Cluster, list: &'static str, id: &str, entry: Map<String, Value>) -> Result<(), Refusal> {
    if cluster.sections.get(list, id).is_some() {
        return Err(Refusal::failed(format!("'{id}' already exists")));
    }
    cluster.sections.put(list, id, Value::Object(entry));
    Ok(())
}

fn alter(
    cluster: &mut Cluster,
    call: &Call<'_>,
    list: &'static str,
    id: &str,
    required: &[&str],
) -> Result<(), Refusal> {
    call.unchanged(&digest_of(cluster, list))?;
    let mut entry = cluster.sections.get(list, id).cloned().ok_or_else(|| missing(id))?;
    call.delete_from(&mut entry, required)?;
    entry.extend(call.fields(&[]));
    cluster.sections.put(list, id, Value::Object(entry));
    Ok(())
}

fn remove(cluster: &mut Cluster, list: &str, id: &str) -> Result<(), Refusal> {
    if cluster.sections.remove(list, id) { Ok(()) } else { Err(missing(id)) }
}

fn add_node(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let fabric = call.text("fabric_id");
    if cluster.sections.get(FABRICS, fabric).is_none() {
        return Err(Refusal::new(404, format!("fabric '{fabric}' does not exist")));
    }
    let mut entry = call.fields(&[]);
    entry.insert("fabric_id".to_owned(), json!(fabric));
    new(cluster, FABRIC_NODES, &node_id(call), entry)
}

fn add_map_entry(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    new(cluster, ROUTE_MAPS, &map_id(call), call.fields(&[]))
}

/// The entries of a prefix list, by their places.
fn entries_of(cluster: &Cluster, list: &str) -> Result<Vec<Map<String, Value>>, Refusal> {
    let found = cluster.sections.get(PREFIX_LISTS, list);
    let found = found.ok_or_else(|| Refusal::new(404, format!("prefix list '{list}' does not exist")))?;
    let texts = found.get("entries").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut rows: Vec<Map<String, Value>> = texts.map(properties).map(numbered).collect();
    rows.sort_by_key(|row| row.get("seq").and_then(Value::as_i64));
    Ok(rows)
}

/// Places and lengths are numbers.
fn numbered(mut row: Map<String, Value>) -> Map<String, Value> {
    for key in ["seq", "ge", "le"] {
        if let Some(number) = row.get(key).and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok()) {
            row.insert(key.to_owned(), json!(number));
        }
    }
    row
}

fn seq(row: &Map<String, Value>) -> String {
    row.get("seq").map(Value::to_string).unwrap_or_default()
}

/// Puts the entries back as the list keeps them.
fn store(cluster: &mut Cluster, list: &str, rows: &[Map<String, Value>]) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |row: &Map<String, Value>| {
        row.iter().map(|(key, value)| format!("{key}={}", text(value))).collect::<Vec<_>>().join(",")
    };
    if let Some(entry) = cluster.sections.get_mut(PREFIX_LISTS, list) {
        entry.insert("entries".to_owned(), rows.iter().map(line).collect());
    }
}

/// Without a place it goes to the end, in steps of five.
fn add_prefix(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let list = call.text("id");
    let mut rows = entries_of(cluster, list)?;
    let mut row = call.fields(&[]);
    let highest = rows.last().and_then(|row| row.get("seq")).and_then(Value::as_i64).unwrap_or_default();
    row.entry("seq").or_insert_with(|| json!(highest / 5 * 5 + 5));
    if rows.iter().any(|other| seq(other) == seq(&row)) {
        return Err(Refusal::failed(format!("'{}' already exists", seq(&row))));
    }
    rows.push(row);
    store(cluster, list, &rows);
    Ok(())
}

fn alter_prefix(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    call.unchanged(&digest_of(cluster, PREFIX_LISTS))?;
    let (list, wanted) = (call.text("id"), call.text("url_seq"));
    let mut rows = entries_of(cluster, list)?;
    let row = rows.iter_mut().find(|row| seq(row) == wanted).ok_or_else(|| missing(wanted))?;
    call.delete_from(row, &["action", "prefix"])?;
    row.extend(call.fields(&[]));
    store(cluster, list, &rows);
    Ok(())
}

fn remove_prefix(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let (list, wanted) = (call.text("id"), call.text("url_seq"));
    let mut rows = entries_of(cluster, list)?;
    let before = rows.len();
    rows.retain(|row| seq(row) != wanted);
    if rows.len() == before {
        return Err(missing(wanted));
    }
    store(cluster, list, &rows);
    Ok(())
}

/// Where an address is kept, if its VNet is in the zone that is named.
fn address_id(cluster: &Cluster, call: &Call<'_>) -> Result<String, Refusal> {
    let (vnet, zone) = (call.text("vnet"), call.text("zone"));
    match cluster.sections.get(VNETS, vnet) {
        Some(entry) if super::zone(entry) == zone => Ok(format!("{vnet}/{}", call.text("ip"))),
        Some(_) => Err(Refusal::parameter("zone", format!("vnet '{vnet}' is not in zone '{zone}'"))),
        None => Err(Refusal::failed(format!("sdn '{vnet}' does not exist"))),
    }
}

/// An address is held once; a change takes over what was held.
fn address(cluster: &mut Cluster, call: &Call<'_>, held: bool) -> Result<(), Refusal> {
    let id = address_id(cluster, call)?;
    let mut entry = cluster.sections.get(ADDRESSES, &id).cloned().unwrap_or_default();
    if entry.is_empty() == held {
        let why = if held { "does not exist" } else { "is held already" };
        return Err(Refusal::failed(format!("address '{}' {why}", call.text("ip"))));
    }
    entry.extend(call.fields(&["vmid"]));
    entry.insert("vnet".to_owned(), json!(call.text("vnet")));
    if let Some(vmid) = call.given("vmid") {
        entry.insert("vmid".to_owned(), json!(vmid));
    }
    cluster.sections.put(ADDRESSES, &id, Value::Object(entry));
    Ok(())
}
