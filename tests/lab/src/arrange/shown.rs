//! The inverse of reads: what the cluster has to hold so that a read shows given data.

mod firewall;
mod storage;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::state::guest::{Kind, object};
use crate::state::sdn::PENDING;
use crate::state::section::Entries;
use crate::state::{Cluster, Pool};

/// Lists of entries and the column that holds their ids.
const LISTS: &[(&str, &str)] = &[
    ("/cluster/backup", "id"),
    ("/cluster/jobs/realm-sync", "id"),
    ("/cluster/replication", "id"),
    ("/cluster/ha/resources", "sid"),
    ("/cluster/ha/rules", "rule"),
    ("/cluster/sdn/zones", "zone"),
    ("/cluster/sdn/vnets", "vnet"),
    ("/cluster/sdn/controllers", "controller"),
    ("/cluster/sdn/dns", "dns"),
    ("/cluster/sdn/ipams", "ipam"),
    ("/cluster/sdn/fabrics/fabric", "id"),
    ("/cluster/sdn/prefix-lists", "id"),
    ("/cluster/notifications/endpoints/gotify", "name"),
    ("/cluster/notifications/endpoints/sendmail", "name"),
    ("/cluster/notifications/endpoints/smtp", "name"),
    ("/cluster/notifications/endpoints/webhook", "name"),
    ("/cluster/notifications/matchers", "name"),
];
const SUBNETS: &str = "/cluster/sdn/vnets/{vnet}/subnets";

/// A path in its steps, and its query.
pub(super) struct Read<'a> {
    steps: Vec<&'a str>,
    query: Vec<(String, String)>,
}

impl<'a> Read<'a> {
    fn new(read: &'a str) -> Self {
        let (path, query) = read.split_once('?').unwrap_or((read, ""));
        let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        Self {
            steps: path.split('/').filter(|step| !step.is_empty()).collect(),
            query: query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        }
    }

    fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

fn rows(data: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    data.as_array().into_iter().flatten().filter_map(Value::as_object)
}

fn text<'a>(row: &'a Map<String, Value>, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn apply(cluster: &mut Cluster, read: &str, data: Value) {
    let read = Read::new(read);
    match read.steps.as_slice() {
        ["storage", ..] | ["nodes", _, "storage", ..] => storage::apply(cluster, &read, &data),
        ["nodes", _, "vzdump", "extractconfig"] => storage::archived(cluster, &read, &data),
        ["pools"] => match (read.asked("poolid"), data.as_array().and_then(|all| all.first())) {
            (Some(name), Some(pool)) => pool_of(cluster, name, pool),
            (Some(_), None) => {}
            (None, _) => pools(cluster, &data),
        },
        ["pools", name @ ..] => pool_of(cluster, &name.join("/"), &data),
        ["cluster", "ha", "status", "current"] => managed(cluster, &data),
        ["cluster", "notifications", "targets"] => targets(cluster, &data),
        ["cluster", "backup", id, "included_volumes"] => job_about(cluster, id, &data),
        ["cluster", "backup-info", "not-backed-up"] => uncovered(cluster, &data),
        ["cluster", "sdn", "vnets", vnet, "subnets", rest @ ..] => {
            subnets(cluster, vnet, rest.first().copied(), &data);
        }
        steps if steps.contains(&"firewall") => firewall::apply(cluster, steps, data),
        _ => entries(cluster, &read, &data),
    }
}

/// An entry as it is kept: without what a read adds.
fn kept(row: &Map<String, Value>, column: &str) -> Value {
    let mut entry = row.clone();
    for added in [column, "digest", "next-run", "pending"] {
        entry.remove(added);
    }
    if let Some(pending) = row.get("pending").and_then(Value::as_object) {
        entry.remove("state");
        entry.extend(pending.clone());
    }
    Value::Object(entry)
}

fn entries(cluster: &mut Cluster, read: &Read<'_>, data: &Value) {
    let path = format!("/{}", read.steps.join("/"));
    for (list, column) in LISTS {
        if path == *list {
            let all: Entries =
                rows(data).map(|row| (text(row, column).to_owned(), object(kept(row, column)))).collect();
            if read.asked("running") == Some("1") {
                let mut running = cluster.sdn.running.take().unwrap_or_default();
                running.set(list, all);
                cluster.sdn.running = Some(running);
                return;
            }
            let waits = read.asked("pending") == Some("1") && PENDING.contains(list);
            if waits && rows(data).all(|row| text(row, "state") == "new") {
                cluster.sdn.running = None;
            }
            cluster.sections.set(list, all);
        } else if let Some(id) =
            path.strip_prefix(list).and_then(|rest| rest.strip_prefix('/')).filter(|id| !id.contains('/'))
            && let Value::Object(row) = data
        {
            cluster.sections.put(list, id, kept(row, column));
        }
    }
}

fn subnets(cluster: &mut Cluster, vnet: &str, one: Option<&str>, data: &Value) {
    let single = data.as_object().cloned();
    let all: Vec<Map<String, Value>> =
        if one.is_some() { single.into_iter().collect() } else { rows(data).cloned().collect() };
    if one.is_none() {
        let others = cluster.sections.entries(SUBNETS).cloned().unwrap_or_default();
        let others = others.into_iter().filter(|(_, entry)| text(entry, "vnet") != vnet);
        let others: Entries = others.collect();
        cluster.sections.set(SUBNETS, others);
    }
    for row in all {
        let zone = text(&row, "zone").to_owned();
        if cluster.sections.get("/cluster/sdn/zones", &zone).is_none() {
            cluster.sections.put("/cluster/sdn/zones", &zone, json!({"type": "simple"}));
        }
        if cluster.sections.get("/cluster/sdn/vnets", vnet).is_none() {
            cluster.sections.put("/cluster/sdn/vnets", vnet, json!({"type": "vnet", "zone": zone}));
        }
        let id = text(&row, "subnet").to_owned();
        cluster.sections.put(SUBNETS, &id, kept(&row, "subnet"));
    }
}

fn managed(cluster: &mut Cluster, data: &Value) {
    let services = rows(data).filter(|row| text(row, "type") == "service");
    let all: Entries = services
        .map(|row| {
            let sid = text(row, "sid");
            let mut entry = object(json!({"type": sid.split(':').next(), "state": row.get("request_state")}));
            for key in ["comment", "max_restart", "max_relocate", "failback"] {
                if let Some(value) = row.get(key) {
                    entry.insert(key.to_owned(), value.clone());
                }
            }
            (sid.to_owned(), entry)
        })
        .collect();
    cluster.sections.set("/cluster/ha/resources", all);
}

/// Endpoints that are there stay as they are.
fn targets(cluster: &mut Cluster, data: &Value) {
    for (list, _) in LISTS.iter().filter(|(list, _)| list.contains("/endpoints/")) {
        let kind = list.rsplit('/').next().unwrap_or_default();
        let known = cluster.sections.entries(list).cloned().unwrap_or_default();
        let wanted = rows(data).filter(|row| text(row, "type") == kind).map(|row| {
            let name = text(row, "name");
            let entry = known.get(name).cloned().unwrap_or_else(|| {
                let mut entry = object(kept(row, "name"));
                entry.remove("type");
                entry
            });
            (name.to_owned(), entry)
        });
        let wanted: Entries = wanted.collect();
        cluster.sections.set(list, wanted);
    }
}

fn job_about(cluster: &mut Cluster, id: &str, data: &Value) {
    let guests: Vec<String> = rows(data.get("children").unwrap_or(&Value::Null))
        .filter_map(|row| row.get("id").map(Value::to_string))
        .collect();
    let job = json!({"type": "vzdump", "enabled": 1, "schedule": "daily", "vmid": guests.join(",")});
    cluster.sections.put("/cluster/backup", id, job);
}

fn uncovered(cluster: &mut Cluster, data: &Value) {
    let free: Vec<String> = rows(data).filter_map(|row| row.get("vmid").map(Value::to_string)).collect();
    let job = json!({"type": "vzdump", "enabled": 1, "schedule": "daily", "all": 1, "exclude": free.join(",")});
    cluster.sections.set("/cluster/backup", [("all".to_owned(), object(job))].into());
}

fn pools(cluster: &mut Cluster, data: &Value) {
    let known = std::mem::take(&mut cluster.pools);
    for row in rows(data) {
        let name = text(row, "poolid");
        let mut pool = known.get(name).cloned().unwrap_or_default();
        text(row, "comment").clone_into(&mut pool.comment);
        cluster.pools.insert(name.to_owned(), pool);
    }
}

fn pool_of(cluster: &mut Cluster, name: &str, data: &Value) {
    let Value::Object(data) = data else { return };
    let members = data.get("members").cloned().unwrap_or_default();
    let mut pool = Pool { comment: text(data, "comment").to_owned(), ..Pool::default() };
    let ids: Vec<&str> = rows(&members).map(|row| text(row, "id")).collect();
    for row in rows(&members).filter(|row| text(row, "type") == "storage") {
        pool.storages.insert(text(row, "storage").to_owned());
    }
    cluster.pools.insert(name.to_owned(), pool);
    for guest in cluster.guests.values_mut() {
        let kind = if guest.kind == Kind::Qemu { "qemu" } else { "lxc" };
        let member = ids.contains(&format!("{kind}/{}", guest.vmid).as_str());
        if member {
            guest.pool = Some(name.to_owned());
        } else if guest.pool.as_deref() == Some(name) {
            guest.pool = None;
        }
    }
}

/// Takes away what a path names, if it is there, and what is below it.
pub(super) fn remove(cluster: &mut Cluster, path: &str) {
    let read = Read::new(path);
    match read.steps.as_slice() {
        ["storage", name] => {
            cluster.storages.remove(*name);
        }
        ["nodes", _, "storage", _, "content", ..] => storage::remove(cluster, &read),
        ["pools", name @ ..] => {
            let name = name.join("/");
            let below = format!("{name}/");
            let goes = |pool: &str| pool == name || pool.starts_with(&below);
            cluster.pools.retain(|pool, _| !goes(pool));
            for guest in cluster.guests.values_mut() {
                if guest.pool.as_deref().is_some_and(goes) {
                    guest.pool = None;
                }
            }
        }
        ["cluster", "sdn", "vnets", _, "subnets", id] => {
            cluster.sections.remove(SUBNETS, id);
        }
        steps if steps.contains(&"firewall") => firewall::remove(cluster, steps),
        _ => {
            for (list, _) in LISTS {
                if let Some(id) = path.strip_prefix(list).and_then(|rest| rest.strip_prefix('/')) {
                    cluster.sections.remove(list, id);
                }
            }
        }
    }
}
