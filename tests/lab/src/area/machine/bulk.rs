//! Many guests at once: the actions of the cluster and of one node.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{locked, migrate, noun, power, shutdown};
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind};
use crate::worker::{self, Done, End, Worker};

/// Answers a call for many guests, if it is one.
pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    if let Some(verb) = call.operation.name.strip_prefix("POST /cluster/bulk-action/guest/") {
        return Some(bulk(shared, call, verb, &format!("bulk-{verb}")));
    }
    match call.operation.name.as_str() {
        "POST /nodes/{node}/startall" => Some(bulk(shared, call, "start", "startall")),
        "POST /nodes/{node}/stopall" => Some(bulk(shared, call, "shutdown", "stopall")),
        "POST /nodes/{node}/suspendall" => Some(bulk(shared, call, "suspend", "suspendall")),
        "POST /nodes/{node}/migrateall" => Some(bulk(shared, call, "migrate", "migrateall")),
        _ => None,
    }
}

/// What is done to each guest.
#[derive(Clone)]
struct Plan {
    verb: String,
    timeout: u64,
    force: bool,
    target: String,
    /// A node's own actions say nothing before they begin.
    of_node: bool,
}

fn bulk(shared: &Arc<Shared>, call: &Call<'_>, verb: &str, task: &str) -> Outcome {
    let named: Vec<u32> = match call.params.get("vms") {
        Some(Value::Array(items)) => items.iter().filter_map(|item| item.as_str()?.parse().ok()).collect(),
        Some(Value::String(list)) => list.split([',', ';', ' ']).filter_map(|item| item.parse().ok()).collect(),
        _ => Vec::new(),
    };
    let of_node = !call.path().starts_with("/cluster");
    let node = call.given("node").map(str::to_owned);
    let chosen = shared.look(|cluster| {
        if !named.is_empty() && !of_node {
            return named.clone();
        }
        let listed = |guest: &&Guest| named.is_empty() || named.contains(&guest.vmid);
        let here = |guest: &&Guest| node.as_ref().is_none_or(|node| guest.node == *node);
        let wanted = |guest: &&Guest| match verb {
            "start" => !guest.running() && (!of_node || call.flag("force") || onboot(guest)),
            "shutdown" | "suspend" => guest.running(),
            _ => true,
        };
        let mine = |guest: &&Guest| call.may(cluster, &format!("/vms/{}", guest.vmid), &["VM.PowerMgmt", "VM.Migrate"]);
        cluster
            .guests
            .values()
            .filter(listed)
            .filter(here)
            .filter(wanted)
            .filter(mine)
            .map(|guest| guest.vmid)
            .collect()
    });
    let plan = Plan {
        verb: verb.to_owned(),
        timeout: call.number("timeout").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(180),
        force: call.given("force-stop").is_none_or(|flag| flag == "1") && of_node,
        target: call.given("target").or_else(|| call.given("target-node")).unwrap_or_default().to_owned(),
        of_node,
    };
    Ok(worker::start(shared, call, task, "", |worker| async move { run(&worker, &plan, &chosen).await }))
}

fn onboot(guest: &Guest) -> bool {
    guest.config.get("onboot").and_then(Value::as_i64) == Some(1)
}

async fn run(worker: &Worker, plan: &Plan, chosen: &[u32]) -> End {
    let list = |vmids: &[u32]| vmids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let doing = match plan.verb.as_str() {
        "start" => "Starting",
        "shutdown" => "Shutting down",
        "suspend" => "Suspending",
        _ => "Migrating",
    };
    if !plan.of_node {
        worker.log(format!("{doing} guests: {}", list(chosen)));
    }
    let mut warnings = 0;
    let mut failed = Vec::new();
    for &vmid in chosen {
        let Some((kind, running)) = worker.look(|cluster| known(cluster, vmid)) else { continue };
        let noun = noun(kind);
        // Whether a guest runs is asked of the node's own API too.
        let blind = !plan.of_node && !worker.look(|cluster| cluster.host.reaches_itself);
        let idle = match plan.verb.as_str() {
            _ if blind => None,
            "start" if running => Some("already running"),
            "shutdown" | "suspend" if !running => Some("not running"),
            _ => None,
        };
        if let Some(idle) = idle {
            worker.log(format!("WARN: Skipping {noun} {vmid}, {idle}."));
            warnings += 1;
            continue;
        }
        let within =
            if plan.verb == "shutdown" { format!(" (Timeout = {} seconds)", plan.timeout) } else { String::new() };
        worker.log(format!("{doing} {noun} {vmid}{within}"));
        if !plan.of_node && !worker.look(|cluster| cluster.host.reaches_itself) {
            worker.log("WARN: 500 Can't connect to localhost:8006 (Connection refused)");
            failed.push(vmid);
            continue;
        }
        if let Err(error) = one(worker, plan, kind, vmid).await {
            let what = if plan.verb == "shutdown" { "Stopping" } else { doing };
            worker.log(format!("WARN: {what} {noun} {vmid} failed: {error}"));
            failed.push(vmid);
        }
    }
    if !failed.is_empty() {
        let verb = if plan.verb == "start" { "start:" } else { &plan.verb };
        return Err(format!("Some guests failed to {verb} {}", list(&failed)));
    }
    Ok(if warnings > 0 { Done::Warnings(warnings) } else { Done::Fine })
}

fn known(cluster: &Cluster, vmid: u32) -> Option<(Kind, bool)> {
    let guest = cluster.guests.get(&vmid)?;
    Some((guest.kind, guest.running()))
}

async fn one(worker: &Worker, plan: &Plan, kind: Kind, vmid: u32) -> End {
    match plan.verb.as_str() {
        "start" => power::begin(worker, kind, vmid),
        "shutdown" => shutdown::ask(worker, kind, vmid, Duration::from_secs(plan.timeout), plan.force).await,
        "suspend" => worker.change(|cluster| {
            let guest = super::found(cluster, vmid, kind)?;
            locked(guest)?;
            guest.paused = true;
            Ok(Done::Fine)
        }),
        _ => migrate::move_away(worker, kind, vmid, &plan.target, true).await,
    }
}
