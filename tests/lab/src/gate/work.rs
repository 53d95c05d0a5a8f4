//! What a node does about a call that has reached it: a worker, the checks of parameters, the locks, the handler.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use crate::access::Caller;
use crate::answer::{Answer, Refusal};
use crate::area::{self, Call};
use crate::check;
use crate::fault::Fault;
use crate::params::{Params, text};
use crate::schema::Operation;

/// How long the proxy waits for a daemon whose answer could not be written.
const PIPE_BROKEN_AFTER: Duration = Duration::from_secs(5);
/// How long an agent is given that does not answer.
const AGENT_GIVEN: Duration = Duration::from_secs(3);
const AGENT_SILENT: &str = "QEMU guest agent is not running";

/// Does what is asked, at a node, as a caller who may ask for it.
pub(super) async fn done(
    shared: Arc<Shared>,
    at: String,
    operation: &'static Operation,
    given: Params,
    caller: Caller,
) -> Answer {
    let stop = shared.stop.clone();
    tokio::select! {
        () = stop.cancelled() => Answer::bare(596, "Broken pipe"),
        answer = answered(&shared, &at, operation, given, &caller) => answer,
    }
}

async fn answered(
    shared: &Arc<Shared>,
    at: &str,
    operation: &'static Operation,
    mut given: Params,
    caller: &Caller,
) -> Answer {
    let worker = if operation.protected { shared.daemons.worker(at).await } else { None };
    if let Some(node) = given.get_mut("node").filter(|node| *node == "localhost") {
        *node = at.into();
    }
    if let Err(refusal) = check::check(operation, &mut given) {
        return Answer::of(Err(refusal));
    }
    struck(shared, operation, &given).await;
    if needs_quorum(operation) && !shared.look(crate::state::Cluster::quorate) {
        return Answer::of(Err(Refusal::failed("cluster not ready - no quorum?")));
    }
    let call = Call { operation, params: &given, caller, here: at };
    if let Some(vmid) = area::writes_file_of(&call)
        && let Err(error) = shared.unlocked(vmid).await
    {
        return Answer::of(Err(Refusal::failed(error)));
    }
    let outcome = area::answer(shared, &call);
    let silent = outcome.as_ref().is_err_and(|refusal| refusal.message == AGENT_SILENT);
    if silent && shared.latency {
        tokio::time::sleep(AGENT_GIVEN).await;
    }
    drop(worker);
    let answer = Answer::of(outcome);
    if answer.unspeakable() && shared.latency {
        tokio::time::sleep(PIPE_BROKEN_AFTER).await;
    }
    answer
}

/// Everything that writes needs a majority of nodes, but for logins and for what is asked of a guest itself.
fn needs_quorum(operation: &Operation) -> bool {
    let asks_guest = operation.path.contains("/agent") || operation.path.ends_with("/monitor");
    operation.verb != "GET" && !asks_guest && !operation.path.starts_with("/access/ticket")
}

/// What goes wrong on purpose before the handler.
async fn struck(shared: &Shared, operation: &Operation, given: &Params) {
    let name = Some(operation.name.as_str());
    let time = |set: &Fault| match set {
        Fault::Slow(time) if operation.verb == "GET" => Some(*time),
        Fault::SlowAgent(time) if operation.path.contains("/agent") => Some(*time),
        _ => None,
    };
    if let Some(time) = shared.struck(name, time) {
        tokio::time::sleep(time).await;
    }
    let Some(vmid) = text(given, "vmid").and_then(|vmid| vmid.parse().ok()) else { return };
    if operation.path.contains("/{vmid}") && shared.hit(name, &Fault::MovedGuest(vmid)) {
        shared.change(|cluster| {
            let Some(guest) = cluster.guests.get_mut(&vmid) else { return };
            let other = cluster.nodes.iter().find(|node| node.online && node.name != guest.node);
            if let Some(other) = other {
                guest.node.clone_from(&other.name);
            }
        });
    }
}
