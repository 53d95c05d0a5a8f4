//! High availability: resources and rules as entries, and what the manager says of them.

mod group;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::entry::{done, split, within};
use super::section::digest_of;
use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::clock;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::guest::{Kind, object};

const RESOURCES: &str = "/cluster/ha/resources";
const RULES: &str = "/cluster/ha/rules";

type Changed = Result<Value, Refusal>;

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let data = match call.path() {
        "/cluster/ha/status/current" => status(cluster),
        "/cluster/ha/status/manager_status" => manager(cluster),
        "/cluster/ha/groups" if cluster.release.has_rules() => return Some(Err(migrated("index groups"))),
        "/cluster/ha/groups/{group}" if cluster.release.has_rules() => return Some(Err(migrated("read group"))),
        _ => return None,
    };
    Some(Ok(data.into()))
}

fn migrated(what: &str) -> Refusal {
    Refusal::failed(format!("cannot {what}: ha groups have been migrated to rules"))
}

/// Without daemons nobody takes a resource up: it stays queued.
fn status(cluster: &Cluster) -> Value {
    let now = clock::now();
    let local = &cluster.local;
    let mut rows = vec![
        json!({"id": "quorum", "type": "quorum", "node": local, "status": if cluster.quorate() { "OK" } else { "No quorum on node" }, "quorate": u8::from(cluster.quorate())}),
    ];
    if cluster.host.ha {
        rows.push(json!({"id": "master", "type": "master", "node": local, "status": format!("{local} (active)"), "timestamp": now}));
        rows.push(json!({"id": format!("lrm:{local}"), "type": "lrm", "node": local, "status": format!("{local} (active)"), "timestamp": now}));
    } else {
        rows.push(json!({"id": "fencing", "type": "fencing", "node": local, "status": "standby (CRM watchdog standby)", "armed-state": "standby"}));
    }
    for (sid, entry) in cluster.sections.entries(RESOURCES).into_iter().flatten() {
        let asked = entry.get("state").and_then(Value::as_str).unwrap_or("started");
        let state = if cluster.host.ha { asked } else { "queued" };
        let node = node_of(cluster, sid);
        let mut row = object(json!({
            "id": format!("service:{sid}"), "type": "service", "sid": sid, "node": node, "state": state,
            "request_state": asked, "status": format!("{sid} ({node}, {state})"),
            "max_restart": 1, "max_relocate": 1, "failback": 1,
        }));
        if cluster.host.ha {
            row.insert("crm_state".to_owned(), json!(state));
        }
        for key in ["max_restart", "max_relocate", "failback", "comment"] {
            if let Some(value) = entry.get(key) {
                row.insert(key.to_owned(), value.clone());
            }
        }
        rows.push(Value::Object(row));
    }
    Value::Array(rows)
}

fn node_of<'a>(cluster: &'a Cluster, sid: &str) -> &'a str {
    let vmid = sid.split_once(':').and_then(|(_, vmid)| vmid.parse().ok());
    vmid.and_then(|vmid: u32| cluster.guests.get(&vmid)).map_or(&cluster.local, |guest| &guest.node)
}

fn manager(cluster: &Cluster) -> Value {
    let quorum = json!({"node": cluster.local, "quorate": u8::from(cluster.quorate()).to_string()});
    if !cluster.host.ha {
        return json!({"manager_status": {"node_status": {}}, "quorum": quorum});
    }
    let nodes: Map<String, Value> = cluster
        .nodes
        .iter()
        .map(|node| (node.name.clone(), json!(if node.online { "online" } else { "unknown" })))
        .collect();
    json!({"manager_status": {"master_node": cluster.local, "node_status": nodes, "timestamp": clock::now()}, "quorum": quorum})
}

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    if let Some(change) = group::change(call)
        && !shared.look(|cluster| cluster.release.has_rules())
    {
        return Some(shared.change(|cluster| change(cluster, call)).map(Into::into));
    }
    let (what, change): (&str, fn(&mut Cluster, &Call<'_>) -> Changed) =
        match (call.operation.verb.as_str(), call.path()) {
            ("POST", RESOURCES) => ("", create),
            ("PUT", "/cluster/ha/resources/{sid}") => ("update resource failed", update),
            ("DELETE", "/cluster/ha/resources/{sid}") => ("", delete),
            ("POST", "/cluster/ha/resources/{sid}/migrate" | "/cluster/ha/resources/{sid}/relocate") => ("", send),
            ("POST", RULES) => ("create ha rule failed", create_rule),
            ("PUT", "/cluster/ha/rules/{rule}") => ("update ha rule failed", update_rule),
            ("DELETE", "/cluster/ha/rules/{rule}") => ("delete ha rule failed", delete_rule),
            ("POST", "/cluster/ha/groups") => ("", |_, _| Err(migrated("create group"))),
            ("PUT", "/cluster/ha/groups/{group}") => ("", |_, _| Err(migrated("update group"))),
            ("DELETE", "/cluster/ha/groups/{group}") => ("", |_, _| Err(migrated("delete group"))),
            ("POST", "/cluster/ha/status/arm-ha" | "/cluster/ha/status/disarm-ha") => return Some(done()),
            _ => return None,
        };
    let outcome = shared.change(|cluster| change(cluster, call));
    Some(match outcome {
        Ok(data) => Ok(data.into()),
        Err(refusal) if what.is_empty() => Err(refusal),
        Err(refusal) => Err(within(what, refusal)),
    })
}

/// The full id of a resource, of which a vmid alone is enough.
fn sid(cluster: &Cluster, text: &str) -> Result<String, Refusal> {
    if text.contains(':') {
        return Ok(text.to_owned());
    }
    let guest = text.parse().ok().and_then(|vmid: u32| cluster.guests.get(&vmid));
    let guest = guest.ok_or_else(|| {
        Refusal::failed(format!("unable do get resource type, either VM/CT with VMID '{text}' doesn't exist"))
    })?;
    Ok(format!("{}:{}", if guest.kind == Kind::Qemu { "vm" } else { "ct" }, guest.vmid))
}

fn create(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    let sid = sid(cluster, call.text("sid"))?;
    let (kind, id) = sid.split_once(':').unwrap_or_default();
    if call.given("type").is_some_and(|wanted| wanted != kind) {
        return Err(Refusal::failed("types does not match"));
    }
    let found = id.parse().ok().and_then(|vmid: u32| cluster.guests.get(&vmid));
    let fits = found.is_some_and(|guest| (kind == "vm") == (guest.kind == Kind::Qemu));
    if !fits {
        return Err(Refusal::failed(format!("resource '{sid}' does not exist in cluster")));
    }
    if cluster.sections.get(RESOURCES, &sid).is_some() {
        let refusal = Refusal::failed(format!("resource ID '{sid}' already defined"));
        return Err(within("create resource failed", refusal));
    }
    let mut entry = call.fields(&["sid"]);
    entry.insert("type".to_owned(), json!(kind));
    cluster.sections.put(RESOURCES, &sid, Value::Object(entry));
    Ok(Value::Null)
}

fn update(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    call.unchanged(&digest_of(cluster, RESOURCES))?;
    let sid = sid(cluster, call.text("sid"))?;
    let entry = cluster.sections.get_mut(RESOURCES, &sid);
    let entry = entry.ok_or_else(|| Refusal::failed(format!("no such resource '{sid}'")))?;
    call.delete_from(entry, &["type"])?;
    entry.extend(call.fields(&["sid"]));
    Ok(Value::Null)
}

/// With a resource its place in rules goes too.
fn delete(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    let sid = sid(cluster, call.text("sid"))?;
    if !cluster.sections.remove(RESOURCES, &sid) {
        return Err(Refusal::failed(format!("cannot delete service '{sid}', not HA managed!")));
    }
    if call.text("purge") == "0" {
        return Ok(Value::Null);
    }
    let rules: Vec<(String, Vec<String>)> = cluster
        .sections
        .entries(RULES)
        .into_iter()
        .flatten()
        .map(|(id, rule)| {
            let kept = resources(rule).into_iter().filter(|other| *other != sid).map(str::to_owned).collect();
            (id.clone(), kept)
        })
        .collect();
    for (id, kept) in rules {
        if kept.is_empty() {
            cluster.sections.remove(RULES, &id);
        } else if let Some(rule) = cluster.sections.get_mut(RULES, &id) {
            rule.insert("resources".to_owned(), json!(kept.join(",")));
        }
    }
    Ok(Value::Null)
}

fn resources(rule: &Map<String, Value>) -> Vec<&str> {
    split(rule.get("resources").and_then(Value::as_str).unwrap_or_default()).collect()
}

/// Moving is only asked for here; the manager does it, or does not.
fn send(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    let sid = sid(cluster, call.text("sid"))?;
    if cluster.sections.get(RESOURCES, &sid).is_none() {
        return Err(Refusal::failed(format!("resource '{sid}' is not HA managed")));
    }
    Ok(json!({"sid": sid, "requested-node": call.text("node")}))
}

fn create_rule(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    let id = call.text("rule");
    if cluster.sections.get(RULES, id).is_some() {
        return Err(Refusal::failed(format!("HA rule '{id}' already defined")));
    }
    let mut rule = call.fields(&["rule"]);
    sound(id, &rule)?;
    let last = cluster.sections.entries(RULES).into_iter().flatten();
    let last = last.filter_map(|(_, rule)| rule.get("order")?.as_i64()).max().unwrap_or_default();
    rule.insert("order".to_owned(), json!(last + 1));
    cluster.sections.put(RULES, id, Value::Object(rule));
    Ok(Value::Null)
}

/// A rule has to be able to have an effect.
fn sound(id: &str, rule: &Map<String, Value>) -> Result<(), Refusal> {
    let kind = rule.get("type").and_then(Value::as_str).unwrap_or_default();
    let required = if kind == "node-affinity" { "nodes" } else { "affinity" };
    if !rule.contains_key(required) {
        return Err(Refusal::failed(format!("missing value for required option '{required}'")));
    }
    if kind == "resource-affinity" && resources(rule).len() < 2 {
        let why = "rule is ineffective as there are less than two resources".to_owned();
        return Err(Refusal {
            status: 400,
            message: format!("Rule '{id}' is invalid."),
            errors: [("resources".to_owned(), why)].into(),
        });
    }
    Ok(())
}

fn update_rule(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    call.unchanged(&digest_of(cluster, RULES))?;
    let id = call.text("rule");
    let present = cluster.sections.get(RULES, id);
    let mut rule = present.cloned().ok_or_else(|| Refusal::failed(format!("HA rule '{id}' does not exist")))?;
    call.delete_from(&mut rule, &["type", "resources"])?;
    rule.extend(call.fields(&["rule"]));
    sound(id, &rule)?;
    cluster.sections.put(RULES, id, Value::Object(rule));
    Ok(Value::Null)
}

fn delete_rule(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    cluster.sections.remove(RULES, call.text("rule"));
    Ok(Value::Null)
}
