//! Firewall reads, the same for cluster, nodes, guests, VNets and security groups.

mod change;
mod macros;
mod verify;

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::answer::{Refusal, Reply};
use crate::state::firewall::{Firewall, IpSet};
use crate::state::guest::object;
use crate::state::{Cluster, digest};

pub(super) use change::write;

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let (scope, rest) = scope(call)?;
    if scope.starts_with("vnet/")
        && let Err(refusal) = super::sdn::vnet(cluster, call)
    {
        return Some(Err(refusal));
    }
    let none = Firewall::default();
    let firewall = cluster.firewalls.get(&scope).unwrap_or(&none);
    Some(match rest {
        "/options" => {
            let mut options = firewall.options.clone();
            options.insert("digest".to_owned(), json!(options_digest(firewall)));
            Ok(Value::Object(options).into())
        }
        "/rules" => Ok(Value::Array(rules(firewall)).into()),
        "/rules/{pos}" => rule(firewall, call),
        "/aliases" => Ok(Value::Array(
            firewall.aliases.iter().map(|(name, alias)| Value::Object(self::alias(firewall, name, alias))).collect(),
        )
        .into()),
        "/aliases/{name}" => {
            let name = call.text("name");
            let found = firewall.alias(name).and_then(|name| firewall.aliases.get_key_value(&name));
            let found = found.ok_or_else(|| Refusal::parameter("name", "no such alias"));
            found.map(|(name, found)| Value::Object(alias(firewall, name, found)).into())
        }
        "/ipset" => Ok(sets(firewall).into()),
        "/ipset/{name}" => {
            entries(firewall, call).map(|rows| Value::Array(rows.into_iter().map(Value::Object).collect()).into())
        }
        "/ipset/{name}/{cidr}" => entries(firewall, call).and_then(|rows| {
            let wanted = clean(call.text("cidr"));
            rows.into_iter()
                .find(|row| row.get("cidr").and_then(Value::as_str) == Some(&wanted))
                .map(|row| Value::Object(row).into())
                .ok_or_else(|| Refusal::parameter("cidr", "no such IP/Network"))
        }),
        "/refs" => Ok(Value::Array(refs(cluster, firewall, &scope, call.given("type"))).into()),
        "/log" => Ok(log(firewall, call)),
        "/groups" => Ok(Value::Array(groups(cluster)).into()),
        "/groups/{group}" => group(cluster, call).map(|group| Value::Array(rules(group)).into()),
        "/groups/{group}/{pos}" => group(cluster, call).and_then(|group| rule(group, call)),
        "/macros" => Ok(known_macros().into()),
        _ => return None,
    })
}

/// Whose firewall a path is about, and what of it.
fn scope<'a>(call: &'a Call<'_>) -> Option<(String, &'a str)> {
    let path = call.path();
    let (owner, rest) = path.split_once("/firewall/")?;
    let rest = path.get(path.len() - rest.len() - 1..)?;
    let scope = match owner {
        "/cluster" => "cluster".to_owned(),
        "/nodes/{node}" => format!("node/{}", call.text("node")),
        "/cluster/sdn/vnets/{vnet}" => format!("vnet/{}", call.text("vnet")),
        _ => format!("guest/{}", call.text("vmid")),
    };
    Some((scope, rest))
}

pub(super) fn options_digest(firewall: &Firewall) -> String {
    digest(&json!(firewall.options))
}

fn rules_digest(rules: &[Map<String, Value>]) -> String {
    digest(&json!(rules))
}

fn aliases_digest(firewall: &Firewall) -> String {
    digest(&json!(firewall.aliases))
}

fn set_digest(set: &IpSet) -> String {
    digest(&json!(set.entries))
}

fn sets_digest(firewall: &Firewall) -> String {
    digest(&json!(firewall.ipsets.iter().map(|(name, set)| (name, &set.comment)).collect::<Vec<_>>()))
}

fn groups_digest(cluster: &Cluster) -> String {
    let named = cluster.firewalls.iter().filter(|(scope, _)| scope.starts_with("group/"));
    digest(&json!(named.map(|(scope, group)| (scope, &group.comment)).collect::<Vec<_>>()))
}

/// An address without the mask that says nothing.
fn clean(cidr: &str) -> String {
    let host = if cidr.contains(':') { "/128" } else { "/32" };
    cidr.strip_suffix(host).unwrap_or(cidr).to_owned()
}

fn sets(firewall: &Firewall) -> Value {
    let digest = sets_digest(firewall);
    let rows = firewall.ipsets.iter().map(|(name, set)| {
        let mut row = object(json!({"name": name, "digest": digest}));
        if !set.comment.is_empty() {
            row.insert("comment".to_owned(), json!(set.comment));
        }
        Value::Object(row)
    });
    Value::Array(rows.collect())
}

fn known_macros() -> Value {
    let rows = macros::MACROS.iter().map(|name| json!({"macro": name, "descr": format!("Traffic of {name}")}));
    Value::Array(rows.collect())
}

fn rules(firewall: &Firewall) -> Vec<Value> {
    let digest = rules_digest(&firewall.rules);
    let numbered = firewall.rules.iter().enumerate().map(|(pos, rule)| {
        let mut row = rule.clone();
        row.insert("pos".to_owned(), json!(pos));
        row.insert("digest".to_owned(), json!(digest));
        Value::Object(row)
    });
    numbered.collect()
}

/// A single rule has its position as text.
fn rule(firewall: &Firewall, call: &Call<'_>) -> Outcome {
    let pos = call.text("pos");
    let found = pos.parse().ok().and_then(|pos: usize| firewall.rules.get(pos));
    let mut row = found.cloned().ok_or_else(|| Refusal::failed(format!("no rule at position {pos}")))?;
    row.insert("pos".to_owned(), json!(pos));
    row.insert("digest".to_owned(), json!(rules_digest(&firewall.rules)));
    Ok(Value::Object(row).into())
}

fn alias(firewall: &Firewall, name: &str, (address, comment): &(String, String)) -> Map<String, Value> {
    let mut row = object(
        json!({"name": name, "cidr": address, "ipversion": if address.contains(':') { 6 } else { 4 }, "digest": aliases_digest(firewall)}),
    );
    if !comment.is_empty() {
        row.insert("comment".to_owned(), json!(comment));
    }
    row
}

fn entries(firewall: &Firewall, call: &Call<'_>) -> Result<Vec<Map<String, Value>>, Refusal> {
    let name = call.text("name");
    let set = firewall.ipsets.get(name).ok_or_else(|| Refusal::failed(format!("no such IPSet '{name}'")))?;
    let digest = set_digest(set);
    let rows = set.entries.iter().cloned().map(|mut row| {
        row.insert("digest".to_owned(), json!(digest));
        row
    });
    Ok(rows.collect())
}

/// What rules of this scope may refer to: its own aliases and sets, and the cluster's.
fn refs(cluster: &Cluster, firewall: &Firewall, scope: &str, kind: Option<&str>) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut add =
        |firewall: &Firewall, scope: &str| {
            if kind.is_none_or(|kind| kind == "alias") {
                rows.extend(firewall.aliases.keys().map(
                    |name| json!({"type": "alias", "name": name, "ref": format!("{scope}/{name}"), "scope": scope}),
                ));
            }
            if kind.is_none_or(|kind| kind == "ipset") {
                rows.extend(firewall.ipsets.keys().map(
                    |name| json!({"type": "ipset", "name": name, "ref": format!("+{scope}/{name}"), "scope": scope}),
                ));
            }
        };
    if scope != "cluster" {
        add(firewall, "guest");
    }
    if let Some(cluster) = cluster.firewalls.get("cluster") {
        add(cluster, "dc");
    }
    rows
}

fn log(firewall: &Firewall, call: &Call<'_>) -> Reply {
    if firewall.log.is_empty() {
        return Reply::lines(&["unable to open file - No such file or directory".to_owned()], 0, 0);
    }
    Reply::lines(&firewall.log, call.count("start").unwrap_or(0), call.count("limit").unwrap_or(50))
}

fn groups(cluster: &Cluster) -> Vec<Value> {
    let digest = groups_digest(cluster);
    cluster
        .firewalls
        .iter()
        .filter_map(|(scope, group)| Some((scope.strip_prefix("group/")?, group)))
        .map(|(name, group)| {
            let mut row = object(json!({"group": name, "digest": digest}));
            if !group.comment.is_empty() {
                row.insert("comment".to_owned(), json!(group.comment));
            }
            Value::Object(row)
        })
        .collect()
}

fn group<'a>(cluster: &'a Cluster, call: &Call<'_>) -> Result<&'a Firewall, Refusal> {
    let name = call.text("group");
    cluster
        .firewalls
        .get(&format!("group/{name}"))
        .ok_or_else(|| Refusal::failed(format!("no such security group '{name}'")))
}
