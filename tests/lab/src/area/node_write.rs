//! What changes on a node: its settings, network, services and packages.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::guest::object;
use crate::worker::{self, Done};

const MOMENT: Duration = Duration::from_millis(200);

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let rest = call.path().strip_prefix("/nodes/{node}")?;
    let verb = call.operation.verb.as_str();
    let setting: Option<fn(&mut Cluster, &Call<'_>, &str) -> Outcome> = match (verb, rest) {
        ("PUT", "/config") => Some(config),
        ("PUT", "/dns") => Some(dns),
        ("PUT", "/time") => Some(time),
        ("POST", "/hosts") => Some(hosts),
        ("POST", "/network") => Some(add_interface),
        ("PUT", "/network/{iface}") => Some(change_interface),
        ("DELETE", "/network/{iface}") => Some(remove_interface),
        ("DELETE", "/network") => Some(revert_network),
        _ => None,
    };
    if let Some(setting) = setting {
        return Some(shared.change(|cluster| {
            let node = call.node(cluster)?.name.clone();
            setting(cluster, call, &node)
        }));
    }
    Some(match (verb, rest) {
        ("PUT", "/network") => Ok(worker::start(shared, call, "srvreload", "networking", |worker| async move {
            worker.step(MOMENT).await;
            worker.change(apply_network);
            Ok(Done::Fine)
        })),
        ("POST", "/apt/update") => Ok(worker::start(shared, call, "aptupdate", "", |worker| async move {
            worker.log("starting apt-get update");
            worker.step(MOMENT).await;
            for line in fetched(&super::system::repositories()) {
                worker.log(line);
            }
            Ok(Done::Fine)
        })),
        ("POST", "/wakeonlan") => shared.look(|cluster| {
            let node = &call.node(cluster)?.name;
            Err(Refusal::failed(format!("'{node}' is local node, cannot wake my self!")))
        }),
        ("POST", "/vncshell" | "/termproxy" | "/spiceshell") if !call.caller.token.is_empty() => {
            Err(Refusal::failed(format!("value '{}' does not look like a valid user name", call.caller.id())))
        }
        ("POST", _) if rest.starts_with("/services/{service}/") => {
            let verb = rest.rsplit('/').next().unwrap_or_default();
            Ok(worker::start(shared, call, &format!("srv{verb}"), call.text("service"), |worker| async move {
                worker.step(MOMENT).await;
                Ok(Done::Fine)
            }))
        }
        _ => return None,
    })
}

/// What `apt-get` says where no mirror can be reached, which the lab never can: a few tries for each repository, then why.
fn fetched(repositories: &Value) -> Vec<String> {
    let (mut tries, mut failures) = (Vec::new(), Vec::new());
    let of = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let enabled = |repository: &Value| repository.get("Enabled").and_then(Value::as_bool).unwrap_or_default();
    let all = of(repositories, "files").iter().flat_map(|file| of(file, "repositories")).collect::<Vec<_>>();
    for repository in all.iter().filter(|repository| enabled(repository)) {
        for (uri, suite) in of(repository, "URIs").iter().zip(of(repository, "Suites")) {
            let (uri, suite) = (uri.as_str().unwrap_or_default(), suite.as_str().unwrap_or_default());
            let host = uri.split('/').nth(2).unwrap_or_default();
            tries.extend(std::iter::repeat_n(format!("Ign:1 {uri} {suite} InRelease"), 3));
            tries.push(format!("Err:1 {uri} {suite} InRelease"));
            tries.push(format!("  Temporary failure resolving '{host}'"));
            failures.push(format!(
                "W: Failed to fetch {uri}/dists/{suite}/InRelease  Temporary failure resolving '{host}'"
            ));
        }
    }
    tries.push("Reading package lists...".to_owned());
    tries.append(&mut failures);
    tries.push("W: Some index files failed to download. They have been ignored, or old ones used instead.".to_owned());
    tries
}

fn done() -> Outcome {
    Ok(Value::Null.into())
}

fn config(cluster: &mut Cluster, call: &Call<'_>, node: &str) -> Outcome {
    let mut config = object(cluster.facts.get(&format!("{node}/config")).cloned().unwrap_or_default());
    for name in call.deletions() {
        config.remove(&name);
    }
    config.extend(call.fields(&[]));
    cluster.facts.insert(format!("{node}/config"), Value::Object(config));
    done()
}

fn dns(cluster: &mut Cluster, call: &Call<'_>, node: &str) -> Outcome {
    cluster.facts.insert(format!("{node}/dns"), Value::Object(call.fields(&[])));
    done()
}

fn time(cluster: &mut Cluster, call: &Call<'_>, node: &str) -> Outcome {
    const REGIONS: [&str; 11] = [
        "Africa",
        "America",
        "Antarctica",
        "Arctic",
        "Asia",
        "Atlantic",
        "Australia",
        "Etc",
        "Europe",
        "Indian",
        "Pacific",
    ];
    let zone = call.text("timezone");
    let known = zone == "UTC" || zone.split_once('/').is_some_and(|(region, _)| REGIONS.contains(&region));
    if !known {
        return Err(Refusal::parameter("timezone", "No such timezone"));
    }
    cluster.facts.insert(format!("{node}/timezone"), json!(zone));
    done()
}

fn hosts(cluster: &mut Cluster, call: &Call<'_>, node: &str) -> Outcome {
    let data = call.text("data").to_owned();
    cluster.facts.insert(format!("{node}/hosts"), json!(data));
    done()
}

/// The interfaces as they will be: changes wait in a file of their own.
fn interfaces(cluster: &Cluster, node: &str) -> Vec<Value> {
    let waiting = cluster.facts.get(&format!("{node}/network.new"));
    let present = waiting.cloned().or_else(|| super::node::present_interfaces(cluster, node));
    present.and_then(|rows| rows.as_array().cloned()).unwrap_or_default()
}

fn named<'a>(rows: &'a mut [Value], iface: &str) -> Option<&'a mut Value> {
    rows.iter_mut().find(|row| row.get("iface").and_then(Value::as_str) == Some(iface))
}

fn add_interface(cluster: &mut Cluster, call: &Call<'_>, node: &str) -> Outcome {
    let mut rows = interfaces(cluster, node);
    let iface = call.text("iface");
    if named(&mut rows, iface).is_some() {
        return Err(Refusal::parameter("iface", "interface already exists"));
    }
    let mut row = call.fields(&[]);
    row.insert("iface".to_owned(), json!(iface));
    rows.push(Value::Object(finished(row)));
    cluster.facts.insert(format!("{node}/network.new"), Value::Array(rows));
    done()
}

/// An interface with what follows from its settings.
fn finished(mut row: serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
    let cidr = row.get("cidr").and_then(Value::as_str).map(str::to_owned);
    row.insert("method".to_owned(), json!(if cidr.is_some() { "static" } else { "manual" }));
    row.insert("method6".to_owned(), json!(if row.contains_key("cidr6") { "static" } else { "manual" }));
    if let Some((address, mask)) = cidr.as_deref().and_then(|cidr| cidr.split_once('/')) {
        row.insert("address".to_owned(), json!(address));
        row.insert("netmask".to_owned(), json!(mask));
    }
    row.entry("families").or_insert(json!(["inet"]));
    row
}

fn change_interface(cluster: &mut Cluster, call: &Call<'_>, node: &str) -> Outcome {
    let mut rows = interfaces(cluster, node);
    let Some(row) = named(&mut rows, call.text("iface")) else {
        return Err(Refusal::parameter("iface", "interface does not exist"));
    };
    let mut changed = object(row.clone());
    for name in call.deletions() {
        changed.remove(&name);
    }
    changed.extend(call.fields(&[]));
    *row = Value::Object(finished(changed));
    cluster.facts.insert(format!("{node}/network.new"), Value::Array(rows));
    done()
}

fn remove_interface(cluster: &mut Cluster, call: &Call<'_>, node: &str) -> Outcome {
    let mut rows = interfaces(cluster, node);
    let iface = call.text("iface");
    if named(&mut rows, iface).is_none() {
        return Err(Refusal::parameter("iface", "interface does not exist"));
    }
    rows.retain(|row| row.get("iface").and_then(Value::as_str) != Some(iface));
    cluster.facts.insert(format!("{node}/network.new"), Value::Array(rows));
    done()
}

fn revert_network(cluster: &mut Cluster, _: &Call<'_>, node: &str) -> Outcome {
    cluster.facts.remove(&format!("{node}/network.new"));
    done()
}

fn apply_network(cluster: &mut Cluster) {
    let node = cluster.local.clone();
    if let Some(rows) = cluster.facts.remove(&format!("{node}/network.new")) {
        cluster.facts.insert(format!("{node}/network"), rows);
    }
}
