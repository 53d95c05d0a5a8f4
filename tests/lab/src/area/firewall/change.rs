//! Firewall writes, the same for cluster, nodes, guests, VNets and security groups.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::entry::{done, split};
use super::super::{Call, Outcome};
use super::{options_digest, rules_digest, scope, set_digest, sets_digest, verify};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::firewall::{Firewall, IpSet};

type Changed = Result<(), Refusal>;

pub(in crate::area) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let (scope, rest) = scope(call)?;
    let change: fn(&mut Cluster, &Call<'_>, &str) -> Changed = match (call.operation.verb.as_str(), rest) {
        ("PUT", "/options") => options,
        ("POST", "/rules" | "/groups/{group}") => add_rule,
        ("PUT", "/rules/{pos}" | "/groups/{group}/{pos}") => change_rule,
        ("DELETE", "/rules/{pos}" | "/groups/{group}/{pos}") => delete_rule,
        ("POST", "/aliases") => add_alias,
        ("PUT", "/aliases/{name}") => change_alias,
        ("DELETE", "/aliases/{name}") => delete_alias,
        ("POST", "/ipset") => add_set,
        ("DELETE", "/ipset/{name}") => delete_set,
        ("POST", "/ipset/{name}") => add_entry,
        ("PUT", "/ipset/{name}/{cidr}") => change_entry,
        ("DELETE", "/ipset/{name}/{cidr}") => delete_entry,
        ("POST", "/groups") => add_group,
        ("DELETE", "/groups/{group}") => delete_group,
        _ => return None,
    };
    let scope = match call.given("group") {
        Some(group) if rest.starts_with("/groups/{group}") => format!("group/{group}"),
        _ => scope,
    };
    if scope.starts_with("vnet/")
        && let Err(refusal) = shared.look(|cluster| super::super::sdn::vnet(cluster, call).map(|_| ()))
    {
        return Some(Err(refusal));
    }
    Some(shared.change(|cluster| change(cluster, call, &scope)).and_then(|()| done()))
}

fn firewall<'a>(cluster: &'a mut Cluster, scope: &str) -> &'a mut Firewall {
    cluster.firewalls.entry(scope.to_owned()).or_default()
}

/// A group has to be made before it has rules; every other firewall is there.
fn with_rules<'a>(cluster: &'a mut Cluster, scope: &str) -> Result<&'a mut Firewall, Refusal> {
    match scope.strip_prefix("group/") {
        Some(group) if !cluster.firewalls.contains_key(scope) => {
            Err(Refusal::failed(format!("no such security group '{group}'")))
        }
        _ => Ok(firewall(cluster, scope)),
    }
}

fn options(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let firewall = firewall(cluster, scope);
    call.unchanged(&options_digest(firewall))?;
    for name in call.deletions() {
        if !call.operation.parameters.contains_key(&name) {
            return Err(Refusal::parameter("delete", format!("no such option '{name}'")));
        }
        firewall.options.remove(&name);
    }
    let mut given = call.fields(&[]);
    if scope == "cluster" && given.get("enable").and_then(Value::as_i64).is_some_and(|since| since > 1) {
        given.insert("enable".to_owned(), json!(crate::clock::now()));
    }
    firewall.options.extend(given);
    Ok(())
}

/// A new rule is the first one, whatever position was asked for, and off unless it is said to be on.
fn add_rule(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let mut rule = call.fields(&["pos", "group", "moveto"]);
    rule.retain(|_, value| value.as_str() != Some(""));
    with_rules(cluster, scope)?;
    verify::rule(cluster, scope, &mut rule)?;
    rule.entry("enable").or_insert_with(|| json!(0));
    with_rules(cluster, scope)?.rules.insert(0, rule);
    Ok(())
}

fn position(call: &Call<'_>, rules: &[Map<String, Value>]) -> Result<usize, Refusal> {
    let pos = call.text("pos");
    let at = pos.parse().ok().filter(|at: &usize| *at < rules.len());
    at.ok_or_else(|| Refusal::failed(format!("no rule at position {pos}")))
}

fn change_rule(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let firewall = with_rules(cluster, scope)?;
    if !firewall.rules.is_empty() {
        call.unchanged(&rules_digest(&firewall.rules))?;
    }
    let at = position(call, &firewall.rules)?;
    if let Some(to) = call.count("moveto").filter(|to| *to != at) {
        let rule = firewall.rules.remove(at);
        // The place was counted before the rule was taken out.
        let to = if to > at { to - 1 } else { to };
        firewall.rules.insert(to.min(firewall.rules.len()), rule);
        return Ok(());
    }
    let mut rule = firewall.rules.get(at).cloned().unwrap_or_default();
    for (name, value) in call.fields(&["pos", "group", "moveto"]) {
        // An empty text takes a property away.
        if value.as_str() == Some("") {
            rule.remove(&name)
        } else {
            rule.insert(name, value)
        };
    }
    for name in call.deletions() {
        if matches!(name.as_str(), "type" | "action") || !call.operation.parameters.contains_key(&name) {
            return Err(Refusal::parameter("delete", format!("no such property '{name}'")));
        }
        rule.remove(&name);
    }
    verify::rule(cluster, scope, &mut rule)?;
    if let Some(place) = with_rules(cluster, scope)?.rules.get_mut(at) {
        *place = rule;
    }
    Ok(())
}

fn delete_rule(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let firewall = with_rules(cluster, scope)?;
    if !firewall.rules.is_empty() {
        call.unchanged(&rules_digest(&firewall.rules))?;
    }
    let at = position(call, &firewall.rules)?;
    firewall.rules.remove(at);
    Ok(())
}

fn add_alias(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let name = call.text("name").to_owned();
    let firewall = firewall(cluster, scope);
    if firewall.alias(&name).is_some() {
        return Err(Refusal::parameter("name", format!("alias '{name}' already exists")));
    }
    firewall.aliases.insert(name, (call.text("cidr").to_owned(), call.text("comment").to_owned()));
    Ok(())
}

fn change_alias(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let firewall = firewall(cluster, scope);
    if !firewall.aliases.is_empty() {
        call.unchanged(&super::aliases_digest(firewall))?;
    }
    let name = firewall.alias(call.text("name")).ok_or_else(|| Refusal::parameter("name", "no such alias"))?;
    let to = call.given("rename").unwrap_or(&name).to_owned();
    if !to.eq_ignore_ascii_case(&name) && firewall.alias(&to).is_some() {
        return Err(Refusal::parameter("name", format!("alias '{to}' already exists")));
    }
    firewall.aliases.remove(&name);
    firewall.aliases.insert(to, (call.text("cidr").to_owned(), call.text("comment").to_owned()));
    Ok(())
}

fn delete_alias(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let firewall = firewall(cluster, scope);
    if !firewall.aliases.is_empty() {
        call.unchanged(&super::aliases_digest(firewall))?;
    }
    if let Some(name) = firewall.alias(call.text("name")) {
        firewall.aliases.remove(&name);
    }
    Ok(())
}

fn add_set(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let name = call.text("name").to_owned();
    let firewall = firewall(cluster, scope);
    let Some(from) = call.given("rename") else {
        if firewall.ipsets.contains_key(&name) {
            return Err(Refusal::parameter("name", format!("IPSet '{name}' already exists")));
        }
        firewall.ipsets.insert(name, IpSet { comment: call.text("comment").to_owned(), entries: Vec::new() });
        return Ok(());
    };
    call.unchanged(&sets_digest(firewall))?;
    if from != name && firewall.ipsets.contains_key(&name) {
        return Err(Refusal::parameter("name", format!("IPSet '{name}' does already exist")));
    }
    let mut set = firewall
        .ipsets
        .remove(from)
        .ok_or_else(|| Refusal::parameter("name", format!("IPSet '{from}' does not exist")))?;
    if call.params.contains_key("comment") {
        call.text("comment").clone_into(&mut set.comment);
    }
    firewall.ipsets.insert(name, set);
    Ok(())
}

fn set<'a>(cluster: &'a mut Cluster, call: &Call<'_>, scope: &str) -> Result<&'a mut IpSet, Refusal> {
    let name = call.text("name");
    let set = firewall(cluster, scope).ipsets.get_mut(name);
    set.ok_or_else(|| Refusal::failed(format!("no such IPSet '{name}'")))
}

fn delete_set(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let name = call.text("name").to_owned();
    if !set(cluster, call, scope)?.entries.is_empty() && !call.flag("force") {
        return Err(Refusal::failed(format!("IPSet '{name}' is not empty")));
    }
    firewall(cluster, scope).ipsets.remove(&name);
    Ok(())
}

fn add_entry(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let cidr = super::clean(call.text("cidr"));
    let named = cidr.starts_with(|c: char| c.is_ascii_alphabetic()) && !cidr.contains(':');
    set(cluster, call, scope)?;
    if named && !verify::has_alias(cluster, scope, &cidr) {
        return Err(Refusal::failed(format!("no such alias '{cidr}'")));
    }
    let set = set(cluster, call, scope)?;
    if set.entries.iter().any(|entry| entry.get("cidr").and_then(Value::as_str) == Some(&cidr)) {
        return Err(Refusal::parameter("cidr", format!("address '{cidr}' already exists")));
    }
    if cidr.ends_with("/0") {
        return Err(Refusal::parameter("cidr", "a zero prefix is not allowed in ipset entries"));
    }
    let mut entry = call.fields(&["name"]);
    entry.insert("cidr".to_owned(), json!(cidr));
    entry.retain(|_, value| !matches!(value.as_str(), Some("")) && value.as_i64() != Some(0));
    set.entries.insert(0, entry);
    Ok(())
}

fn change_entry(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let cidr = super::clean(call.text("cidr"));
    let set = set(cluster, call, scope)?;
    if !set.entries.is_empty() {
        call.unchanged(&set_digest(set))?;
    }
    let found = set.entries.iter_mut().find(|entry| entry.get("cidr").and_then(Value::as_str) == Some(&cidr));
    let entry = found.ok_or_else(|| Refusal::parameter("cidr", "no such IP/Network"))?;
    // What is not given is taken away.
    *entry = call.fields(&["name"]);
    entry.insert("cidr".to_owned(), json!(cidr));
    entry.retain(|_, value| !matches!(value.as_str(), Some("")) && value.as_i64() != Some(0));
    Ok(())
}

/// Taking away what is not there is no mistake.
fn delete_entry(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let cidr = super::clean(call.text("cidr"));
    let set = set(cluster, call, scope)?;
    if !set.entries.is_empty() {
        call.unchanged(&set_digest(set))?;
    }
    set.entries.retain(|entry| entry.get("cidr").and_then(Value::as_str) != Some(&cidr));
    Ok(())
}

fn add_group(cluster: &mut Cluster, call: &Call<'_>, _: &str) -> Changed {
    let name = call.text("group");
    let to = format!("group/{name}");
    let Some(from) = call.given("rename") else {
        if cluster.firewalls.contains_key(&to) {
            return Err(Refusal::parameter("group", format!("Security group '{name}' already exists")));
        }
        cluster.firewalls.insert(to, Firewall { comment: call.text("comment").to_owned(), ..Firewall::default() });
        return Ok(());
    };
    call.unchanged(&super::groups_digest(cluster))?;
    if from != name && cluster.firewalls.contains_key(&to) {
        return Err(Refusal::parameter("group", format!("Security group '{name}' does already exist")));
    }
    let mut group = cluster
        .firewalls
        .remove(&format!("group/{from}"))
        .ok_or_else(|| Refusal::parameter("group", format!("Security group '{from}' does not exist")))?;
    if call.params.contains_key("comment") {
        call.text("comment").clone_into(&mut group.comment);
    }
    cluster.firewalls.insert(to, group);
    Ok(())
}

fn delete_group(cluster: &mut Cluster, call: &Call<'_>, scope: &str) -> Changed {
    let empty = cluster.firewalls.get(scope).is_none_or(|group| group.rules.is_empty());
    if !empty {
        return Err(Refusal::failed(format!("Security group '{}' is not empty", call.text("group"))));
    }
    cluster.firewalls.remove(scope);
    Ok(())
}

/// The elements of an address list.
pub(super) fn elements(list: &str) -> Vec<&str> {
    split(list).collect()
}
