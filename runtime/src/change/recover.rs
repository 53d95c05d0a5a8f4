//! Decides what came of changes that nobody works on any more, because a server died or gave up: from the record and
//! from what the cluster shows. Nothing is ever sent here.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pvegate_generated::catalog;

use super::follow;
use super::perform::{self, LEASE, Recording, find_out};
use super::settle::Before;
use crate::server::State as Server;
use crate::store::{Change, Event, State, StepOutcome, StoreError};
use crate::write::Call;

/// How often it is looked for such changes.
pub const EVERY: Duration = Duration::from_secs(20);

/// How long a change may be without a claim before it counts as left behind.
const YOUNG: Duration = Duration::from_mins(1);

/// Sees to all of them, each in work of its own.
pub async fn all(server: &Arc<Server>) {
    let open = match server.store().open().await {
        Ok(open) => open,
        // Who only reads the store has nothing to recover.
        Err(StoreError::Held { .. } | StoreError::ReadOnly(_)) => return,
        Err(error) => return tracing::error!(%error, "changes that were left behind cannot be looked for"),
    };
    for change in open {
        let age = SystemTime::now().duration_since(change.created_at).unwrap_or_default();
        let is_beginning = change.state == State::Approved && age < YOUNG;
        if !is_beginning && !server.work().is_stopping() {
            server.work().spawn(one(Arc::clone(server), change));
        }
    }
}

async fn one(server: Arc<Server>, change: Change) {
    let store = server.store();
    let claim = match store.claim(&change.id, server.work().holder(), LEASE).await {
        Ok(claim) => claim,
        // Somebody works on it: this server, most of the time.
        Err(StoreError::Claimed { .. } | StoreError::Conflict(_)) => return,
        Err(error) => {
            return tracing::warn!(%error, change = %change.id, "a change that was left behind is not taken up");
        }
    };
    // What was read before the claim may have gone on.
    let change = match store.change(&change.id).await {
        Ok(Some(change)) => change,
        Ok(None) => return,
        Err(error) => {
            return tracing::warn!(%error, change = %change.id, "a change that was left behind cannot be read");
        }
    };
    let mut recording = Recording::new(Arc::clone(store), claim, change.new.clone());
    match change.state {
        State::Claimed => {
            let reason = "the server ended before anything of it was sent".to_owned();
            recording.append(Event::Void { reason }).await;
        }
        State::Answered { outcome, .. } if outcome != StepOutcome::Unknown => {
            recording.close(outcome, String::new()).await;
        }
        State::Intended { .. } | State::Sent { .. } | State::Answered { .. } => {
            tracing::info!(change = %change.id, "finds out what came of a change that was left behind");
            settle(&server, &change, &mut recording).await;
        }
        _ => {}
    }
}

async fn settle(server: &Server, change: &Change, recording: &mut Recording) {
    let Some(connection) = server.connections().find(|connection| connection.name() == change.new.cluster) else {
        return tracing::warn!(change = %change.id, cluster = change.new.cluster, "its cluster is not configured");
    };
    let intent = change.events.iter().rev().find_map(|happened| match &happened.event {
        Event::Intent { request, .. } => Some((happened.at, request)),
        _ => None,
    });
    let step = change.new.steps.first();
    let operation = step.and_then(|step| catalog::operation(&step.operation));
    let (Some((at, intent)), Some(step), Some(operation)) = (intent, step, operation) else {
        let message = "this version of the server does not know its operation".to_owned();
        return recording.append(Event::Indeterminate { message }).await;
    };
    let mut arguments = step.arguments.clone();
    if let (Some(node), Some(arguments)) = (&intent.node, arguments.as_object_mut()) {
        // The guest may have moved between the record and the intent.
        arguments.insert("node".to_owned(), node.as_str().into());
    }
    let call = Call::stored(operation, &arguments);
    let end = if let Some(upid) = perform::task_of(change) {
        follow::task(server, connection, &call, upid, recording).await
    } else {
        let before = Before::stored(intent.decided.get("before").unwrap_or_default());
        let ago = SystemTime::now().duration_since(at).unwrap_or_default();
        find_out(server, connection, &call, &before, ago, recording).await
    };
    recording.end(&end).await;
}
