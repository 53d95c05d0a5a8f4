//! Replication jobs.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::entry::done;
use super::super::section::digest_of;
use super::super::{Call, Outcome};
use crate::answer::Refusal;
use crate::clock;
use crate::gate::Shared;
use crate::state::Cluster;

const JOBS: &str = "/cluster/replication";

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    Some(match call.path() {
        JOBS | "/nodes/{node}/replication" => Ok(Value::Array(list(cluster, call)).into()),
        "/cluster/replication/{id}" | "/nodes/{node}/replication/{id}/status" => job(cluster, call),
        _ => return None,
    })
}

fn guest_of(id: &str) -> &str {
    id.split_once('-').map_or(id, |(guest, _)| guest)
}

fn row(id: &str, job: &Map<String, Value>) -> Map<String, Value> {
    let mut row = job.clone();
    row.insert("id".to_owned(), json!(id));
    row
}

fn list(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    cluster
        .sections
        .entries(JOBS)
        .into_iter()
        .flatten()
        .filter(|(id, _)| {
            let guest = guest_of(id);
            call.may(cluster, &format!("/vms/{guest}"), &["VM.Audit"])
                && call.given("guest").is_none_or(|wanted| wanted == guest)
        })
        .map(|(id, job)| Value::Object(row(id, job)))
        .collect()
}

fn permitted(cluster: &Cluster, call: &Call<'_>, privilege: &str) -> Result<(), Refusal> {
    let path = format!("/vms/{}", guest_of(call.text("id")));
    if call.may(cluster, &path, &[privilege]) {
        return Ok(());
    }
    Err(Refusal::forbidden(&format!("{path}, {privilege}")))
}

fn job(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let id = call.text("id");
    let job = cluster.sections.get(JOBS, id);
    let job = job.ok_or_else(|| Refusal::failed(format!("no such replication job '{id}'")))?;
    permitted(cluster, call, "VM.Audit")?;
    let mut row = row(id, job);
    if call.path().ends_with("/status") {
        row.insert("last_sync".to_owned(), json!(clock::now() - 400));
        row.insert("fail_count".to_owned(), json!(0));
    } else {
        row.insert("digest".to_owned(), json!(digest_of(cluster, JOBS)));
    }
    Ok(Value::Object(row).into())
}

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let change: fn(&mut Cluster, &Call<'_>) -> Result<(), Refusal> = match (call.operation.verb.as_str(), call.path()) {
        ("POST", JOBS) => create,
        ("PUT", "/cluster/replication/{id}") => update,
        ("DELETE", "/cluster/replication/{id}") => delete,
        ("POST", "/nodes/{node}/replication/{id}/schedule_now") => now,
        _ => return None,
    };
    Some(shared.change(|cluster| change(cluster, call)).and_then(|()| done()))
}

/// A node that stands alone has no members to replicate to.
fn create(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    permitted(cluster, call, "VM.Replicate")?;
    let (id, target) = (call.text("id"), call.text("target"));
    let member = cluster.nodes.len() > 1;
    let node = cluster.nodes.iter().find(|node| member && node.name == target);
    let node = node.ok_or_else(|| Refusal::failed(format!("Target '{target}' does not exist.")))?;
    if !node.online {
        return Err(Refusal::failed(format!("Target '{target}' is not online.")));
    }
    let guest = guest_of(id).parse().ok().and_then(|vmid: u32| cluster.guests.get(&vmid));
    let guest = guest.ok_or_else(|| Refusal::failed(format!("no such guest '{}'", guest_of(id))))?;
    if guest.node == target {
        return Err(Refusal::failed("Source and target need to be different."));
    }
    if cluster.sections.get(JOBS, id).is_some() {
        return Err(Refusal::failed(format!("replication job '{id}' already exists")));
    }
    let mut job = call.fields(&["id"]);
    let number: i64 = id.split_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or_default();
    job.insert("guest".to_owned(), json!(guest.vmid));
    job.insert("jobnum".to_owned(), json!(number));
    job.entry("source").or_insert_with(|| json!(guest.node));
    cluster.sections.put(JOBS, id, Value::Object(job));
    Ok(())
}

fn update(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    permitted(cluster, call, "VM.Replicate")?;
    call.unchanged(&digest_of(cluster, JOBS))?;
    let id = call.text("id");
    let job = cluster.sections.get_mut(JOBS, id).ok_or_else(|| Refusal::failed(format!("no such job '{id}'")))?;
    call.delete_from(job, &["target", "guest", "type"])?;
    job.extend(call.fields(&[]));
    Ok(())
}

/// The job is only marked; it goes when it has removed what it copied. With `force` it goes at once.
fn delete(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    permitted(cluster, call, "VM.Replicate")?;
    let id = call.text("id");
    let job = cluster.sections.get_mut(JOBS, id).ok_or_else(|| Refusal::failed(format!("no such job '{id}'")))?;
    if call.flag("force") {
        cluster.sections.remove(JOBS, id);
    } else {
        let how = if call.flag("keep") { "local" } else { "full" };
        job.insert("remove_job".to_owned(), json!(how));
    }
    Ok(())
}

fn now(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let id = call.text("id");
    let job = cluster.sections.get(JOBS, id).map(|_| ());
    job.ok_or_else(|| Refusal::failed(format!("no such replication job '{id}'")))?;
    permitted(cluster, call, "VM.Replicate")
}
