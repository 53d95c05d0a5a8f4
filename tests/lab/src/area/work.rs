//! What changes the cluster: power of guests as real tasks, and a task that is always under way.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::clock;
use crate::gate::Shared;
use crate::state::guest::Kind;

/// Answers a call that is not a read. It has passed the schema; what is not simulated says so.
pub(super) fn answer(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    if let Some((kind, rest)) = super::guest::split(call.path())
        && call.operation.verb == "POST"
        && let Some(verb @ ("start" | "stop" | "shutdown")) = rest.strip_prefix("/status/")
    {
        return power(shared, call, kind, verb);
    }
    Err(Refusal::failed("the lab does not simulate this yet"))
}

/// Starts or stops a guest as a task. Reasons to fail that show only in the task stand in its exit status.
fn power(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind, verb: &str) -> Outcome {
    let prefix = if kind == Kind::Qemu { "qm" } else { "vz" };
    let owner = (call.caller.user.as_str(), Some(call.caller.token.as_str()));
    let (upid, vmid) = shared.change(|cluster| {
        let guest = call.guest(cluster, kind)?;
        let (vmid, node) = (guest.vmid, guest.node.clone());
        let upid = cluster.tasks.begin(&node, &format!("{prefix}{verb}"), &vmid.to_string(), owner, clock::now());
        Ok::<_, Refusal>((upid, vmid))
    })?;
    let verb = verb.to_owned();
    let (shared_task, upid_task) = (Arc::clone(shared), upid.clone());
    spawn(shared, async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        shared_task.change(|cluster| {
            let outcome = match cluster.guests.get_mut(&vmid) {
                None => Err(format!("Configuration file for {vmid} does not exist")),
                Some(guest) => match (&guest.lock, verb.as_str()) {
                    (Some(lock), _) => Err(format!("VM is locked ({lock})")),
                    (None, "start") if guest.template() => Err("you can't start a vm if it's a template".to_owned()),
                    (None, "start") if guest.running() => {
                        Err(format!("{} {vmid} already running", if guest.kind == Kind::Qemu { "VM" } else { "CT" }))
                    }
                    (None, "start") => {
                        guest.started = Some(clock::now());
                        let pending = std::mem::take(&mut guest.pending);
                        guest.config.extend(pending);
                        let leaving = std::mem::take(&mut guest.leaving);
                        guest.config.retain(|key, _| !leaving.contains(key));
                        Ok(())
                    }
                    (None, _) => {
                        guest.started = None;
                        Ok(())
                    }
                },
            };
            let status = outcome.err().unwrap_or_else(|| "OK".to_owned());
            cluster.tasks.end(&upid_task, clock::now(), &status);
        });
    });
    Ok(json!(upid).into())
}

/// Keeps a backup under way for as long as the lab runs: each finishes after a hundred steps, and the next begins.
pub(crate) fn background(shared: &Arc<Shared>, tick: Duration) {
    let work = Arc::clone(shared);
    spawn(shared, async move {
        loop {
            let upid = work.change(|cluster| {
                let upid = cluster.tasks.begin("pve1", "vzdump", "101", ("root@pam", None), clock::now());
                cluster.tasks.log(&upid, "INFO: starting new backup job: vzdump 101 --storage pbs --mode snapshot");
                cluster.tasks.log(&upid, "INFO: Starting Backup of VM 101 (qemu)");
                upid
            });
            for percent in 0..=100 {
                tokio::time::sleep(tick).await;
                work.change(|cluster| {
                    let line = format!(
                        "INFO: {percent:3}% ({percent}.0 GiB of 100.0 GiB), read: 100.0 MiB/s, write: 80.0 MiB/s"
                    );
                    cluster.tasks.log(&upid, line);
                });
            }
            work.change(|cluster| cluster.tasks.end(&upid, clock::now(), "OK"));
        }
    });
}

/// Runs a piece of work until it is done or the lab stops.
fn spawn(shared: &Arc<Shared>, work: impl Future<Output = ()> + Send + 'static) {
    let stop = shared.stop.clone();
    shared.running.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    });
}
