//! Writes of the software-defined network: entries that wait until they are applied, the lock, applying and going back.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::entry::{done, properties, within};
use super::super::section::digest_of;
use super::super::{Call, Outcome};
use super::{SUBNETS, VNETS, ZONES};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::sdn::PENDING;
use crate::state::{Cluster, digest};
use crate::worker::{self, Done};

/// A kind of entry: where it is listed, the parameter with its id, and what PVE calls it.
struct Thing {
    list: &'static str,
    id: &'static str,
    noun: &'static str,
}

const THINGS: &[Thing] = &[
    Thing { list: SUBNETS, id: "subnet", noun: "subnet" },
    Thing { list: VNETS, id: "vnet", noun: "vnet" },
    Thing { list: ZONES, id: "zone", noun: "zone" },
    Thing { list: "/cluster/sdn/controllers", id: "controller", noun: "controller" },
    Thing { list: "/cluster/sdn/dns", id: "dns", noun: "dns" },
    Thing { list: "/cluster/sdn/ipams", id: "ipam", noun: "ipam" },
    Thing { list: "/cluster/sdn/fabrics/fabric", id: "id", noun: "fabric" },
    Thing { list: "/cluster/sdn/prefix-lists", id: "id", noun: "prefix list" },
];

type Change = fn(&mut Cluster, &Call<'_>, &Thing) -> Result<(), Refusal>;

pub(in crate::area) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let verb = call.operation.verb.as_str();
    match (verb, call.path()) {
        ("PUT", "/cluster/sdn") => return Some(apply(shared, call)),
        ("POST", "/cluster/sdn/rollback") => return Some(shared.change(|cluster| roll_back(cluster, call))),
        ("POST", "/cluster/sdn/lock") => return Some(shared.change(|cluster| lock(cluster, call))),
        ("DELETE", "/cluster/sdn/lock") => return Some(shared.change(|cluster| unlock(cluster, call))),
        _ => {}
    }
    if let Some(outcome) = super::parts::write(shared, call) {
        return Some(outcome);
    }
    let path = call.path();
    let thing = THINGS
        .iter()
        .find(|thing| path == thing.list || path.strip_prefix(thing.list) == Some(&format!("/{{{}}}", thing.id)))?;
    let (what, change): (&str, Change) = match verb {
        "POST" => ("create", create),
        "PUT" => ("update", update),
        "DELETE" => ("delete", delete),
        _ => return None,
    };
    if let Err(refusal) = before(shared, call, thing) {
        return Some(Err(refusal));
    }
    let changed = shared.change(|cluster| unlocked(cluster, call).and_then(|()| change(cluster, call, thing)));
    let failed = format!("{what} sdn {} object failed", thing.noun);
    Some(changed.map_err(|refusal| within(&failed, refusal)).and_then(|()| done()))
}

/// What is looked at before the lock of the configuration: rights on a VNet, and what a type needs.
fn before(shared: &Arc<Shared>, call: &Call<'_>, thing: &Thing) -> Result<(), Refusal> {
    let named = call.operation.in_path("vnet");
    if named {
        shared.look(|cluster| {
            let row = super::vnet(cluster, call)?;
            let path = format!("/sdn/zones/{}/{}", super::zone(&row), call.text("vnet"));
            if call.may(cluster, &path, &["SDN.Allocate"]) {
                return Ok(());
            }
            Err(Refusal::forbidden(&format!("{path}, SDN.Allocate")))
        })?;
    }
    if thing.list != ZONES || call.operation.verb != "POST" {
        return Ok(());
    }
    let required: &[&str] = match call.text("type") {
        "vlan" => &["bridge"],
        "qinq" => &["bridge", "tag"],
        "evpn" => &["controller", "vrf-vxlan"],
        _ => &[],
    };
    match required.iter().find(|name| call.given(name).is_none()) {
        Some(missing) => Err(Refusal::failed(format!("missing value for required option '{missing}'"))),
        None => Ok(()),
    }
}

/// Where someone holds the lock, its token is needed.
pub(super) fn unlocked(cluster: &Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    match &cluster.sdn.lock {
        Some(token) if call.given("lock-token") != Some(token) => {
            Err(Refusal::failed("invalid lock token provided! at /usr/share/perl5/PVE/Network/SDN.pm line 291."))
        }
        _ => Ok(()),
    }
}

/// The id of an entry. That of a subnet is made of its zone and its address.
fn id(cluster: &Cluster, call: &Call<'_>, thing: &Thing) -> String {
    let given = call.text(thing.id);
    match (thing.list, given.split_once('/')) {
        (SUBNETS, Some((address, mask))) => {
            let zone = cluster.sections.get(VNETS, call.text("vnet")).map(super::zone).unwrap_or_default();
            format!("{zone}-{address}-{mask}")
        }
        _ => given.to_owned(),
    }
}

fn create(cluster: &mut Cluster, call: &Call<'_>, thing: &Thing) -> Result<(), Refusal> {
    let id = id(cluster, call, thing);
    if cluster.sections.get(thing.list, &id).is_some() {
        return Err(Refusal::failed(format!("sdn {} object ID '{id}' already defined", thing.noun)));
    }
    let mut entry = call.fields(&[thing.id]);
    match thing.list {
        VNETS => {
            entry.insert("type".to_owned(), json!("vnet"));
        }
        SUBNETS => subnet(cluster, call, &id, &mut entry),
        _ => {}
    }
    sound(cluster, thing, &entry)?;
    cluster.sections.put(thing.list, &id, Value::Object(entry));
    Ok(())
}

/// What PVE works out about a subnet.
fn subnet(cluster: &Cluster, call: &Call<'_>, id: &str, entry: &mut Map<String, Value>) {
    if let Some(Value::Array(ranges)) = entry.get_mut("dhcp-range") {
        for range in ranges {
            let parts = Value::Object(properties(range.as_str().unwrap_or_default()));
            *range = parts;
        }
    }
    let vnet = call.text("vnet");
    let zone = cluster.sections.get(VNETS, vnet).map(super::zone).unwrap_or_default();
    let (network, mask) = call.text("subnet").split_once('/').unwrap_or_default();
    for (name, value) in [
        ("type", "subnet"),
        ("vnet", vnet),
        ("zone", zone),
        ("id", id),
        ("cidr", call.text("subnet")),
        ("network", network),
        ("mask", mask),
    ] {
        entry.insert(name.to_owned(), json!(value));
    }
}

/// Whether an entry fits its type and what it names.
fn sound(cluster: &Cluster, thing: &Thing, entry: &Map<String, Value>) -> Result<(), Refusal> {
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
    match thing.list {
        ZONES if kind == "vxlan" && entry.contains_key("peers") == entry.contains_key("fabric") => {
            let why = "must have exactly one of peers / fabric defined";
            Err(Refusal::failed(format!("400 Parameter verification failed.\npeers: {why}\nfabric: {why}")))
        }
        VNETS => {
            let zone = cluster.sections.get(ZONES, super::zone(entry)).ok_or_else(|| {
                Refusal::failed(
                    "cannot lookup undefined type! at /usr/share/perl5/PVE/API2/Network/SDN/Vnets.pm line 326.",
                )
            })?;
            let tagged = entry.contains_key("tag");
            match zone.get("type").and_then(Value::as_str).unwrap_or_default() {
                "simple" if tagged => Err(Refusal::parameter("tag", "vlan tag is not allowed on simple zone")),
                "vlan" | "qinq" if !tagged => Err(Refusal::parameter("tag", "missing vlan tag")),
                "vxlan" | "evpn" if !tagged => Err(Refusal::parameter("tag", "missing vxlan tag")),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn missing(id: &str) -> Refusal {
    Refusal::failed(format!("sdn '{id}' does not exist"))
}

fn update(cluster: &mut Cluster, call: &Call<'_>, thing: &Thing) -> Result<(), Refusal> {
    call.unchanged(&digest_of(cluster, thing.list))?;
    let id = id(cluster, call, thing);
    let mut entry = cluster.sections.get(thing.list, &id).cloned().ok_or_else(|| missing(&id))?;
    call.delete_from(&mut entry, &["type", "zone"])?;
    let mut given = call.fields(&[thing.id]);
    if let Some(Value::Array(ranges)) = given.get_mut("dhcp-range") {
        for range in ranges {
            *range = Value::Object(properties(range.as_str().unwrap_or_default()));
        }
    }
    entry.extend(given);
    sound(cluster, thing, &entry)?;
    cluster.sections.put(thing.list, &id, Value::Object(entry));
    Ok(())
}

/// What others stand on stays.
fn delete(cluster: &mut Cluster, call: &Call<'_>, thing: &Thing) -> Result<(), Refusal> {
    let id = id(cluster, call, thing);
    if cluster.sections.get(thing.list, &id).is_none() {
        return Err(missing(&id));
    }
    let names = |list: &str, key: &str| {
        cluster
            .sections
            .entries(list)
            .into_iter()
            .flatten()
            .find(|(_, entry)| entry.get(key).and_then(Value::as_str) == Some(&id))
            .map(|(name, _)| name.clone())
    };
    match thing.list {
        ZONES => {
            if let Some(vnet) = names(VNETS, "zone") {
                return Err(Refusal::failed(format!(
                    "zone {id} is used by vnet {vnet} at /usr/share/perl5/PVE/Network/SDN/Zones/Plugin.pm line 149."
                )));
            }
        }
        VNETS if names(SUBNETS, "vnet").is_some() => {
            return Err(Refusal::parameter("vnet", "Can't delete vnet if subnets exists"));
        }
        _ => {}
    }
    cluster.sections.remove(thing.list, &id);
    Ok(())
}

/// Makes the entries the ones in force; the nodes reload their networks in the background.
fn apply(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let nodes = shared.change(|cluster| {
        unlocked(cluster, call).map_err(|refusal| within("could not commit SDN config", refusal))?;
        let present = cluster.sections.clone();
        cluster.sdn.apply(&present);
        if call.text("release-lock") != "0" {
            cluster.sdn.lock = None;
        }
        let online = cluster.nodes.iter().filter(|node| node.online);
        Ok::<_, Refusal>(online.map(|node| node.name.clone()).collect::<Vec<_>>())
    })?;
    Ok(worker::start(shared, call, "reloadnetworkall", "", |worker| async move {
        for node in nodes {
            worker.log(format!("{node}: reloading network config"));
            worker.step(std::time::Duration::from_secs(1)).await;
        }
        Ok(Done::Fine)
    }))
}

fn roll_back(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    unlocked(cluster, call).map_err(|refusal| within("could not rollback SDN configuration", refusal))?;
    for list in PENDING {
        let running = cluster.sdn.running.as_ref().and_then(|running| running.entries(list));
        let running = running.cloned().unwrap_or_default();
        cluster.sections.set(list, running);
    }
    if call.text("release-lock") != "0" {
        cluster.sdn.lock = None;
    }
    done()
}

fn lock(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    if cluster.sdn.lock.is_some() {
        return Err(Refusal::failed("configuration is already locked"));
    }
    if !call.flag("allow-pending") && super::pending::any(cluster) {
        return Err(Refusal::failed("configuration has pending changes"));
    }
    let seed = digest(&json!([crate::clock::now(), cluster.tasks.all.len(), "sdn-lock"]));
    let part = |from: usize, to: usize| seed.get(from..to).unwrap_or_default();
    let token = format!("{}-{}-7{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30));
    cluster.sdn.lock = Some(token.clone());
    Ok(json!(token).into())
}

fn unlock(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    if !call.flag("force") {
        unlocked(cluster, call).map_err(|refusal| within("could not release lock", refusal))?;
    }
    cluster.sdn.lock = None;
    done()
}
