//! The one way on which anything is changed. A low call is a change of one step that policy approves: authorized,
//! recorded, looked at once more, put on record as about to be sent, sent once, followed, read back, and its outcome
//! recorded.
//!
//! From the moment that it is authorized it runs in a task of the server's own. A client that hangs up stops its own
//! waiting and nothing else. What a server that died left behind is found out by [`recover`], which sends nothing.

mod fingerprint;
mod follow;
mod perform;
mod recover;
mod refusal;
mod settle;
mod target;
mod told;
mod work;

use std::sync::Arc;
use std::time::Duration;

use pvegate_generated::model::{Operation, Place, Verb};
use pvegate_generated::terms::Role;
use serde_json::{Map, Value as Json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::authorize::{self, Authorized};
use crate::connection::Connection;
use crate::mcp::{Answer, Refusal};
use crate::server::State;
use crate::store::ChangeId;
use crate::tokens::Principal;
use crate::values::Upid;

pub use refusal::of_store;
pub use told::told;
pub use work::Work;

/// When a call answers, whatever goes on: clients begin to give up after half a minute.
const ANSWER_BY: Duration = Duration::from_secs(23);

/// Longest key and reason of a caller, in characters.
const LONGEST: usize = 128;
const LONGEST_REASON: usize = 500;

/// What a caller wants to be done at once.
#[derive(Debug)]
pub struct Wish {
    /// On which cluster.
    pub connection: Authorized<Arc<Connection>>,
    /// What.
    pub operation: &'static Operation,
    /// With what.
    pub arguments: Map<String, Json>,
    /// The caller's name for it.
    pub idempotency_key: Option<String>,
    /// Why, in the caller's words.
    pub reason: Option<String>,
}

/// Does it, and answers when it has ended or time is up.
pub async fn run(state: Arc<State>, principal: Arc<Principal>, mut wish: Wish) -> Result<Answer, Refusal> {
    let by = Instant::now() + ANSWER_BY;
    let current = crate::audit::current();
    if let Some(current) = &current {
        current.runs(wish.operation);
    }
    check(&wish)?;
    name_the_node(&mut wish);
    state.audit().healthy()?;
    if state.work().is_stopping() {
        return Err(refusal::stopping());
    }
    let connection = Arc::clone(wish.connection.get());
    let fingerprint = fingerprint::fingerprint(connection.name(), wish.operation, &wish.arguments);
    // Before anything is looked at: what was done for this key may be in the way of doing it again.
    if let Some(key) = &wish.idempotency_key
        && let Some(known) =
            state.store().keyed(&principal.name, key).await.map_err(|error| refusal::of_store(&error))?
    {
        return if known.new.request_fingerprint == fingerprint {
            Ok(answer(&told(&state, &known, false)))
        } else {
            Err(refusal::other_arguments(&known.id))
        };
    }
    if let Some(freeze) = state.store().frozen().await.map_err(|error| refusal::of_store(&error))? {
        return Err(refusal::of_store(&crate::store::StoreError::Frozen(freeze)));
    }
    let Wish { connection: granted, operation, arguments, idempotency_key, reason } = wish;
    let authorized =
        timeout_at(by, authorize::low(&state, &principal, granted, operation, &arguments)).await.map_err(|_| {
            Refusal::new(
                "timeout",
                format!(
                    "cluster {} took too long to answer what has to be known first; nothing was sent",
                    connection.name()
                ),
                "Call again later; list_clusters shows which clusters answer.",
            )
        })??;
    let job = perform::Job {
        state: Arc::clone(&state),
        principal,
        cluster: connection.name().to_owned(),
        operation,
        arguments,
        idempotency_key,
        reason,
        fingerprint,
        current: current.clone(),
    };
    let (tell, begun) = oneshot::channel();
    let work = state.work().spawn(job.run(authorized, tell));
    let change = match timeout_at(by, begun).await {
        Ok(Ok(Ok(change))) => change,
        Ok(Ok(Err(refusal))) => return Err(refusal),
        Ok(Err(_)) => return Err(refusal::broken()),
        Err(_) => return Err(refusal::slow_store()),
    };
    let ended = timeout_at(by, work).await;
    let result = match ended {
        Ok(Ok(Some(Ok(object)))) => Ok(object),
        Ok(Ok(Some(Err(refusal)))) => Err(refusal),
        // The same key was begun by another call, or this one goes on.
        Ok(Ok(None)) | Err(_) => present(&state, &change).await,
        Ok(Err(_)) => Err(refusal::broken()),
    };
    if let Some(current) = current {
        let upid = result.as_ref().ok().and_then(|object| object.get("upid")).and_then(Json::as_str);
        current.change(change.as_str(), upid);
    }
    result.map(|object| answer(&object))
}

/// How a change stands now.
async fn present(state: &State, change: &ChangeId) -> Result<Map<String, Json>, Refusal> {
    match state.store().change(change).await {
        Ok(Some(change)) => Ok(told(state, &change, false)),
        Ok(None) => Err(refusal::broken()),
        Err(error) => Err(refusal::of_store(&error)),
    }
}

fn answer(object: &Map<String, Json>) -> Answer {
    Answer::from(object)
}

/// What can be told from the call alone.
fn check(wish: &Wish) -> Result<(), Refusal> {
    let wrong = |message: &str, next: &str| Err(Refusal::new("invalid_arguments", message, next));
    if let Some(key) = &wish.idempotency_key
        && (key.is_empty() || key.chars().count() > LONGEST || key.chars().any(char::is_control))
    {
        return wrong(
            "`idempotency_key` is empty, too long, or has control characters in it",
            "Give 1 to 128 characters.",
        );
    }
    if wish.reason.as_ref().is_some_and(|reason| reason.chars().count() > LONGEST_REASON) {
        return wrong("`reason` is too long", "Give at most 500 characters.");
    }
    // PVE refuses some of these and takes others for a change of nothing.
    let changes = |name: &String| wish.operation.parameter(name).is_none_or(|parameter| parameter.place != Place::Path);
    if wish.operation.verb == Verb::Put && !wish.operation.low_args.is_empty() && !wish.arguments.keys().any(changes) {
        let message = format!("nothing is given that {} could change", wish.operation.name);
        return wrong(&message, &format!("Give at least one of {}.", wish.operation.low_args.join(", ")));
    }
    Ok(())
}

/// The id of a task holds its node, so callers need not say it again.
fn name_the_node(wish: &mut Wish) {
    let of_task = wish.operation.params.iter().find(|parameter| parameter.role == Role::Task);
    let upid = of_task.and_then(|parameter| wish.arguments.get(parameter.name)?.as_str());
    if let Some(upid) = upid.and_then(|text| Upid::parse(text).ok()) {
        wish.arguments.entry("node").or_insert_with(|| Json::from(upid.node().as_str()));
    }
}

/// Sees to what a server that died left behind, now and from time to time, until the server stops.
pub fn watch(live: crate::server::Live) {
    let work = Arc::clone(live.load().work());
    let stopping = work.stopping();
    tokio::spawn(async move {
        loop {
            recover::all(&live.load_full()).await;
            if stopping.run_until_cancelled(tokio::time::sleep(recover::EVERY)).await.is_none() {
                break;
            }
        }
    });
}
