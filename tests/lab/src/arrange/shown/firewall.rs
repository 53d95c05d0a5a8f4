//! Firewalls so that their reads show given data.

use serde_json::{Map, Value};

use super::{rows, text};
use crate::state::Cluster;
use crate::state::firewall::{Firewall, IpSet};
use crate::state::guest::object;

/// Whose firewall a path is about, and the steps behind `firewall`.
fn scope<'a>(steps: &'a [&'a str]) -> (String, &'a [&'a str]) {
    let at = steps.iter().position(|step| *step == "firewall").unwrap_or_default();
    let (owner, rest) = steps.split_at_checked(at).unwrap_or_default();
    let scope = match owner {
        ["nodes", node] => format!("node/{node}"),
        ["nodes", _, _, vmid] => format!("guest/{vmid}"),
        ["cluster", "sdn", "vnets", vnet] => format!("vnet/{vnet}"),
        _ => "cluster".to_owned(),
    };
    (scope, rest.get(1..).unwrap_or_default())
}

fn plain(row: &Map<String, Value>) -> Map<String, Value> {
    let mut row = row.clone();
    row.remove("digest");
    row.remove("pos");
    row
}

pub(super) fn apply(cluster: &mut Cluster, steps: &[&str], data: Value) {
    let (scope, rest) = scope(steps);
    if let ["groups", below @ ..] = rest {
        return groups(cluster, below, &data);
    }
    let firewall = cluster.firewalls.entry(scope).or_default();
    match rest {
        ["options"] => firewall.options = plain(&object(data)),
        ["rules"] => firewall.rules = rows(&data).map(plain).collect(),
        ["rules", pos] => rule(firewall, pos, &data),
        ["aliases"] => {
            firewall.aliases = rows(&data).map(alias).collect();
        }
        ["aliases", _] => {
            if let Value::Object(row) = &data {
                let (name, alias) = alias(row);
                firewall.aliases.insert(name, alias);
            }
        }
        ["ipset"] => {
            let known = std::mem::take(&mut firewall.ipsets);
            for row in rows(&data) {
                let name = text(row, "name");
                let entries = known.get(name).map(|set| set.entries.clone()).unwrap_or_default();
                firewall.ipsets.insert(name.to_owned(), IpSet { comment: text(row, "comment").to_owned(), entries });
            }
        }
        ["ipset", name] => {
            let set = firewall.ipsets.entry((*name).to_owned()).or_default();
            set.entries = rows(&data).map(plain).collect();
        }
        ["ipset", name, ..] => {
            if let Value::Object(row) = &data {
                firewall.ipsets.entry((*name).to_owned()).or_default().entries = vec![plain(row)];
            }
        }
        _ => {}
    }
}

fn alias(row: &Map<String, Value>) -> (String, (String, String)) {
    (text(row, "name").to_owned(), (text(row, "cidr").to_owned(), text(row, "comment").to_owned()))
}

/// A rule at a position has others in front of it.
fn rule(firewall: &mut Firewall, pos: &str, data: &Value) {
    let (Ok(at), Value::Object(row)) = (pos.parse::<usize>(), data) else { return };
    while firewall.rules.len() <= at {
        firewall.rules.push(plain(row));
    }
    if let Some(place) = firewall.rules.get_mut(at) {
        *place = plain(row);
    }
}

fn groups(cluster: &mut Cluster, below: &[&str], data: &Value) {
    match below {
        [] => {
            let known = cluster.firewalls.clone();
            cluster.firewalls.retain(|scope, _| !scope.starts_with("group/"));
            for row in rows(data) {
                let scope = format!("group/{}", text(row, "group"));
                let mut group = known.get(&scope).cloned().unwrap_or_default();
                text(row, "comment").clone_into(&mut group.comment);
                cluster.firewalls.insert(scope, group);
            }
        }
        [name] => cluster.firewalls.entry(format!("group/{name}")).or_default().rules = rows(data).map(plain).collect(),
        [name, pos, ..] => rule(cluster.firewalls.entry(format!("group/{name}")).or_default(), pos, data),
    }
}

pub(super) fn remove(cluster: &mut Cluster, steps: &[&str]) {
    let (scope, rest) = scope(steps);
    if let ["groups", name] = rest {
        cluster.firewalls.remove(&format!("group/{name}"));
        return;
    }
    let Some(firewall) = cluster.firewalls.get_mut(&scope) else { return };
    match rest {
        ["rules"] => firewall.rules.clear(),
        ["aliases", name] => {
            firewall.aliases.remove(*name);
        }
        ["ipset", name] => {
            firewall.ipsets.remove(*name);
        }
        ["ipset", name, cidr @ ..] => {
            let cidr = cidr.join("/");
            if let Some(set) = firewall.ipsets.get_mut(*name) {
                set.entries.retain(|entry| text(entry, "cidr") != cidr);
            }
        }
        _ => {}
    }
}
