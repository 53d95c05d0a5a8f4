//! Whether a rule makes sense: its action, protocol and ports, and that the sets and aliases it names are there.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::change::elements;
use super::macros::MACROS;
use crate::answer::Refusal;
use crate::state::Cluster;

const WITH_PORTS: [&str; 7] = ["tcp", "6", "udp", "17", "udplite", "sctp", "dccp"];

/// Checks a rule, and notes the IP version that its addresses are of.
pub(super) fn rule(cluster: &Cluster, scope: &str, rule: &mut Map<String, Value>) -> Result<(), Refusal> {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let refuse = |name: &str, what: String| Err(Refusal::parameter(name, what));
    let action = text("action").unwrap_or_default();
    match text("type") {
        Some("group") if scope.starts_with("group/") => {
            return refuse("type", "security groups not allowed".to_owned());
        }
        Some("group") | None => {}
        Some("forward") if !matches!(scope.split('/').next(), Some("cluster" | "node" | "group" | "vnet")) => {
            return refuse("type", "rule type 'forward' not allowed".to_owned());
        }
        Some(_) if !matches!(action, "ACCEPT" | "DROP" | "REJECT") => {
            return refuse("action", format!("unknown action '{action}'"));
        }
        Some(_) => {}
    }
    if let Some(interface) = text("iface")
        && scope.starts_with("guest/")
    {
        let number = interface.strip_prefix("net");
        if !number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())) {
            return refuse("iface", "value does not match the regex pattern 'net\\d+'".to_owned());
        }
    }
    let mut spelled = None;
    if let Some(name) = text("macro") {
        spelled = MACROS.iter().find(|known| known.eq_ignore_ascii_case(name));
        if spelled.is_none() {
            return refuse("macro", format!("unknown macro '{name}'"));
        }
    }
    let proto = text("proto");
    for name in ["dport", "icmp-type", "sport"] {
        if text(name).is_none() {
            continue;
        }
        let Some(proto) = proto else {
            return refuse("proto", format!("missing property - '{name}' requires this property"));
        };
        let fits = if name == "icmp-type" {
            matches!(proto, "icmp" | "icmpv6" | "ipv6-icmp" | "1" | "58")
        } else {
            WITH_PORTS.contains(&proto)
        };
        if !fits {
            let what = if name == "icmp-type" { "icmp types" } else { "ports" };
            return refuse(name, format!("protocol '{proto}' does not support {what}"));
        }
    }
    let mut version = match proto {
        Some("icmp") => Some(4),
        Some("icmpv6" | "ipv6-icmp") => Some(6),
        _ => None,
    };
    for name in ["source", "dest"] {
        let Some(value) = text(name) else { continue };
        let found = address(cluster, scope, value).map_err(|what| Refusal::parameter(name, what))?;
        if let (Some(one), Some(other)) = (version, found)
            && one != other
        {
            return refuse(name, "detected mixed ipv4/ipv6 addresses in rule".to_owned());
        }
        version = version.or(found);
    }
    if let Some(spelled) = spelled {
        rule.insert("macro".to_owned(), json!(spelled));
    }
    match version {
        Some(version) => rule.insert("ipversion".to_owned(), json!(version)),
        None => rule.remove("ipversion"),
    };
    Ok(())
}

/// The IP version of an address list, a set or an alias, as far as it tells.
fn address(cluster: &Cluster, scope: &str, value: &str) -> Result<Option<u8>, String> {
    if let Some(set) = value.strip_prefix('+') {
        let name = set.rsplit('/').next().unwrap_or(set);
        let known = firewalls(cluster, scope, set).any(|firewall| firewall.ipsets.contains_key(name));
        return if known || set.starts_with("sdn/") { Ok(None) } else { Err(format!("no such ipset '{name}'")) };
    }
    let mut version = None;
    for part in elements(value) {
        let first = part.split(['/', '-']).next().unwrap_or(part);
        let found = match first.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 4,
            Ok(IpAddr::V6(_)) => 6,
            Err(_) => {
                if !has_alias(cluster, scope, part) {
                    return Err(format!("no such alias '{part}'"));
                }
                continue;
            }
        };
        if version.is_some_and(|version| version != found) {
            return Err("detected mixed ipv4/ipv6 addresses in address list".to_owned());
        }
        version = Some(found);
    }
    Ok(version)
}

/// Whether an alias can be named in a scope: its own, or the cluster's.
pub(super) fn has_alias(cluster: &Cluster, scope: &str, alias: &str) -> bool {
    let name = alias.rsplit('/').next().unwrap_or(alias);
    firewalls(cluster, scope, alias).any(|firewall| firewall.alias(name).is_some())
}

/// Where a name may be defined: `dc/` and `guest/` say which of the two.
fn firewalls<'a>(
    cluster: &'a Cluster,
    scope: &'a str,
    name: &'a str,
) -> impl Iterator<Item = &'a crate::state::firewall::Firewall> {
    let own = (!name.starts_with("dc/")).then(|| cluster.firewalls.get(scope)).flatten();
    let shared = (!name.starts_with("guest/")).then(|| cluster.firewalls.get("cluster")).flatten();
    own.into_iter().chain(shared)
}
