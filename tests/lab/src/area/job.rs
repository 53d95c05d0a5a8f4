//! Jobs that run by a calendar: backups, realm synchronization, replication. They are kept; nothing here runs them.

mod replicate;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::entry::{done, properties, split, within};
use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::calendar::Calendar;
use crate::clock;
use crate::gate::Shared;
use crate::state::guest::{Guest, Kind};
use crate::state::{Cluster, digest};

const BACKUPS: &str = "/cluster/backup";
const SYNCS: &str = "/cluster/jobs/realm-sync";
/// Which guests a job is about: of these only one kind at a time.
const SELECTION: [&str; 4] = ["vmid", "all", "pool", "exclude"];

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    Some(match call.path() {
        "/cluster/jobs" => Ok(json!([{"subdir": "schedule-analyze"}, {"subdir": "realm-sync"}]).into()),
        "/cluster/backup/{id}/included_volumes" => included(cluster, call),
        "/cluster/backup-info/not-backed-up" => Ok(Value::Array(uncovered(cluster)).into()),
        _ => return replicate::read(cluster, call),
    })
}

/// When a job of a list is due next.
pub(super) fn next_run(list: &str, job: &Map<String, Value>) -> Option<i64> {
    if !matches!(list, BACKUPS | SYNCS) {
        return None;
    }
    Calendar::parse(job.get("schedule")?.as_str()?)?.next(clock::now())
}

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let change: fn(&mut Cluster, &Call<'_>) -> Result<(), Refusal> = match (call.operation.verb.as_str(), call.path()) {
        ("POST", BACKUPS) => create_backup,
        ("PUT", "/cluster/backup/{id}") => update_backup,
        ("DELETE", "/cluster/backup/{id}") => |cluster, call| remove(cluster, call, BACKUPS),
        ("POST", "/cluster/jobs/realm-sync/{id}") => create_sync,
        ("PUT", "/cluster/jobs/realm-sync/{id}") => update_sync,
        ("DELETE", "/cluster/jobs/realm-sync/{id}") => |cluster, call| remove(cluster, call, SYNCS),
        _ => return replicate::write(shared, call),
    };
    if call.path().starts_with(BACKUPS)
        && let Err(refusal) = for_root_alone(call)
    {
        return Some(Err(refusal));
    }
    // Whatever is refused behind the lock of the file arrives as text.
    Some(shared.change(|cluster| change(cluster, call)).map_err(|refusal| within("", refusal)).and_then(|()| done()))
}

/// What may run commands or write anywhere is for `root@pam` itself, which no token is.
pub(super) fn for_root_alone(call: &Call<'_>) -> Result<(), Refusal> {
    match ["tmpdir", "dumpdir", "script", "job-id"].iter().find(|name| call.params.contains_key(**name)) {
        Some(name) => Err(Refusal::parameter(name, "Only root may set this option.")),
        None => Ok(()),
    }
}

fn remove(cluster: &mut Cluster, call: &Call<'_>, list: &str) -> Result<(), Refusal> {
    let id = call.text("id");
    if cluster.sections.remove(list, id) {
        Ok(())
    } else {
        Err(Refusal::parameter("id", format!("No such job '{id}'")))
    }
}

/// Whether the selection of guests is one. A new job needs one.
pub(super) fn selected(call: &Call<'_>, needed: bool) -> Result<(), Refusal> {
    let vmids = call.given("vmid").is_some();
    for name in ["all", "exclude", "pool"] {
        let given = if name == "all" { call.flag("all") } else { call.given(name).is_some() };
        if vmids && given {
            return Err(Refusal::parameter(name, "option conflicts with option 'vmid'"));
        }
    }
    let any = vmids
        || call.flag("all")
        || call.flag("stop")
        || ["pool", "exclude"].iter().any(|name| call.given(name).is_some());
    if needed && !any {
        return Err(Refusal::parameter("vmid", "property is missing"));
    }
    Ok(())
}

/// The given fields as a job keeps them.
fn fields(call: &Call<'_>) -> Map<String, Value> {
    let mut job = call.fields(&["id", "starttime", "dow"]);
    if let Some(start) = call.given("starttime") {
        let days = call.given("dow").unwrap_or_default();
        job.insert("schedule".to_owned(), json!(format!("{days} {start}").trim()));
    }
    for name in ["prune-backups", "fleecing", "performance"] {
        if let Some(Value::String(text)) = job.get(name) {
            let parts = Value::Object(properties(text));
            job.insert(name.to_owned(), parts);
        }
    }
    if call.given("exclude").is_some() && call.given("pool").is_none() {
        job.insert("all".to_owned(), json!(1));
    }
    job
}

fn create_backup(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let made_up = || {
        let seed = digest(&json!([clock::now(), cluster.sections.entries(BACKUPS)]));
        let part = |from: usize, to: usize| seed.get(from..to).unwrap_or_default().to_owned();
        format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    };
    let id = call.given("id").map_or_else(made_up, str::to_owned);
    if cluster.sections.get(BACKUPS, &id).is_some() {
        return Err(Refusal::failed(format!("Job '{id}' already exists")));
    }
    selected(call, true)?;
    let mut job = fields(call);
    if !job.contains_key("schedule") {
        return Err(Refusal::parameter("schedule", "property is missing"));
    }
    job.insert("type".to_owned(), json!("vzdump"));
    job.entry("enabled").or_insert_with(|| json!(1));
    cluster.sections.put(BACKUPS, &id, Value::Object(job));
    Ok(())
}

fn update_backup(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let id = call.text("id");
    let job = cluster.sections.get_mut(BACKUPS, id).ok_or_else(|| Refusal::failed("no such vzdump job"))?;
    selected(call, false)?;
    let mut changed = job.clone();
    let given = fields(call);
    call.delete_from(&mut changed, &["schedule"])?;
    if SELECTION.iter().any(|name| given.contains_key(*name)) {
        changed
            .retain(|name, _| !SELECTION.contains(&name.as_str()) || (name == "exclude" && given.contains_key("all")));
    }
    changed.extend(given);
    *job = changed;
    Ok(())
}

fn create_sync(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let id = call.text("id");
    if cluster.sections.get(SYNCS, id).is_some() {
        return Err(Refusal::failed(format!("Job '{id}' already exists")));
    }
    let realm = call.text("realm");
    if cluster.sections.get("/access/domains", realm).is_none() {
        return Err(Refusal::failed(format!("realm '{realm}' does not exist")));
    }
    let mut job = call.fields(&["id"]);
    job.insert("type".to_owned(), json!("realm-sync"));
    job.entry("enabled").or_insert_with(|| json!(1));
    cluster.sections.put(SYNCS, id, Value::Object(job));
    Ok(())
}

fn update_sync(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let job = cluster.sections.get_mut(SYNCS, call.text("id"));
    let job = job.ok_or_else(|| Refusal::failed("no such realm-sync job"))?;
    let mut changed = job.clone();
    call.delete_from(&mut changed, &["schedule", "realm"])?;
    changed.extend(call.fields(&["id"]));
    *job = changed;
    Ok(())
}

/// Whether a job is about a guest.
fn covers(job: &Map<String, Value>, guest: &Guest) -> bool {
    let listed = |name: &str| {
        let text = job.get(name).and_then(Value::as_str).unwrap_or_default();
        split(text).any(|vmid| vmid == guest.vmid.to_string())
    };
    if listed("exclude") {
        return false;
    }
    let all = job.get("all").and_then(Value::as_i64) == Some(1);
    let pooled = job.get("pool").and_then(Value::as_str);
    all || listed("vmid") || pooled.is_some_and(|pool| guest.pool.as_deref() == Some(pool))
}

fn included(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let id = call.text("id");
    let job = cluster.sections.get(BACKUPS, id);
    let job = job.ok_or_else(|| Refusal::parameter("id", format!("No such job '{id}'")))?;
    let covered = cluster
        .guests
        .values()
        .filter(|guest| covers(job, guest) && call.may(cluster, &format!("/vms/{}", guest.vmid), &["VM.Audit"]));
    let rows = covered.map(|guest| {
        json!({"id": guest.vmid, "name": guest.name(), "type": guest.kind.as_str(), "leaf": 0, "children": volumes(guest)})
    });
    Ok(json!({"children": rows.collect::<Vec<_>>()}).into())
}

/// The volumes of a guest, and whether a backup holds them.
fn volumes(guest: &Guest) -> Vec<Value> {
    let config = &guest.config;
    let disks = guest.disks().map(|(key, volume, _)| {
        let option = |wanted: &str| {
            let text = config.get(key).and_then(Value::as_str).unwrap_or_default();
            text.split(',').any(|part| part == wanted)
        };
        let (included, reason) = match guest.kind {
            Kind::Qemu if option("backup=0") => (0, "backup=no"),
            Kind::Qemu => (1, "backup=yes"),
            Kind::Lxc if key == "rootfs" => (1, "rootfs is always included"),
            Kind::Lxc if option("backup=1") => (1, "backup=yes"),
            Kind::Lxc => (0, "backup=no"),
        };
        json!({"id": format!("{}:{key}", guest.vmid), "name": volume, "included": included, "reason": reason, "leaf": 1})
    });
    disks.collect()
}

/// Guests that no job which is on is about.
fn uncovered(cluster: &Cluster) -> Vec<Value> {
    let jobs: Vec<_> = cluster
        .sections
        .entries(BACKUPS)
        .into_iter()
        .flatten()
        .filter(|(_, job)| job.get("enabled").and_then(Value::as_i64) != Some(0))
        .map(|(_, job)| job)
        .collect();
    let free = cluster.guests.values().filter(|guest| !jobs.iter().any(|job| covers(job, guest)));
    free.map(|guest| json!({"vmid": guest.vmid, "name": guest.name(), "type": guest.kind.as_str()})).collect()
}
