//! Shutting down and rebooting: the system inside is asked, and may not listen.

use std::sync::Arc;
use std::time::Duration;

use super::{found, locked, noun, power, prefix, root_only};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::guest::Kind;
use crate::worker::{self, Done, End, Worker};

/// How long a system may take where nothing else is said.
const PATIENCE: u64 = 180;
/// How long one takes that listens.
const LISTENS: Duration = Duration::from_secs(2);

pub(super) fn shutdown(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let vmid = super::vmid(call);
    root_only(call, &["skiplock"])?;
    if let Some(managed) = power::through_ha(shared, call, kind, "shutdown") {
        return managed;
    }
    let guest = super::call_guest(shared, call, kind)?;
    let force = call.flag("forceStop");
    if guest.paused && !force {
        return Err(Refusal::failed("VM is paused - cannot shutdown"));
    }
    if kind == Kind::Lxc && !guest.running() {
        return Err(Refusal::failed(format!("CT {vmid} not running")));
    }
    let patience = patience(call);
    let task = format!("{}shutdown", prefix(kind));
    Ok(worker::start(shared, call, &task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        ask(&worker, kind, vmid, patience, force).await
    }))
}

fn patience(call: &Call<'_>) -> Duration {
    let seconds = call.number("timeout").and_then(|seconds| u64::try_from(seconds).ok());
    Duration::from_secs(seconds.unwrap_or(PATIENCE))
}

pub(super) async fn ask(worker: &Worker, kind: Kind, vmid: u32, patience: Duration, force: bool) -> End {
    let guest = worker.change(|cluster| found(cluster, vmid, kind).map(|guest| guest.clone()))?;
    locked(&guest)?;
    if !guest.running() {
        return Ok(Done::Fine);
    }
    if kind == Kind::Qemu && power::agent_enabled(&guest) && !guest.agent {
        worker
            .log(format!("QEMU Guest Agent is not running - VM {vmid} qga command 'guest-ping' failed - got timeout"));
    }
    if guest.inside.obeys {
        worker.step(LISTENS.min(patience)).await;
    } else {
        worker.wait(patience).await;
        let failed = if kind == Kind::Qemu { "VM quit/powerdown failed" } else { "container did not stop" };
        if !force {
            return Err(format!("{failed} - got timeout"));
        }
        worker.log(format!("{failed} - terminating now with SIGTERM"));
    }
    power::stop(worker, kind, vmid)
}

pub(super) fn reboot(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let vmid = super::vmid(call);
    let guest = super::call_guest(shared, call, kind)?;
    if !guest.running() {
        return Err(Refusal::failed(format!("{} {vmid} not running", noun(kind))));
    }
    let patience = patience(call);
    let task = format!("{}reboot", prefix(kind));
    Ok(worker::start(shared, call, &task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        ask(&worker, kind, vmid, patience, false).await?;
        power::begin(&worker, kind, vmid)
    }))
}
