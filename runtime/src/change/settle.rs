//! Decides what came of a write whose answer was lost, from what the cluster shows. What cannot be told stays open, for
//! a person; nothing is ever sent.

use std::collections::BTreeSet;
use std::time::Duration;

use pvegate_generated::internal;
use pvegate_generated::terms::{Role, Settle};
use serde_json::Value as Json;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::pve::PveError;
use crate::redact::Redactor;
use crate::server::State;
use crate::values::Upid;
use crate::write::Call;

/// When a node is looked at again, counted from the loss.
const LOOKS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(8),
    Duration::from_secs(20),
    QUIET,
];

/// After this nothing that a node had taken in can begin any more: its proxy gives up after half of it.
pub const QUIET: Duration = Duration::from_mins(1);

/// How long a cluster that cannot be asked is asked again.
const PATIENCE: Duration = Duration::from_hours(1);

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It began this task.
    Task(Upid),
    /// It was done.
    Done(String),
    /// It was not done, and will not be.
    NotDone(String),
    /// Nobody can tell.
    Open(String),
    /// The cluster cannot be asked now.
    Unreadable(String),
}

/// What was there before the write.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Tasks of the server's own API token.
    pub tasks: BTreeSet<Upid>,
    /// PVE's lock on what was to be changed, where it was sent along.
    pub digest: Option<String>,
}

impl Before {
    /// Looks at what is there, where that will tell later what came of a write.
    pub async fn read(connection: &Connection, call: &Call, digest: Option<String>) -> Result<Self, PveError> {
        let takes_lock = call.operation().params.iter().any(|parameter| parameter.role == Role::Digest);
        let tasks = match call.operation().settle {
            Some(Settle::Task) => connection.own_tasks(call).await?,
            _ => BTreeSet::new(),
        };
        Ok(Self { tasks, digest: digest.filter(|_| takes_lock) })
    }

    /// For the record.
    pub fn told(&self) -> Json {
        serde_json::json!({"tasks": self.tasks.iter().map(Upid::as_str).collect::<Vec<_>>(), "digest": self.digest})
    }

    /// From the record.
    pub fn stored(told: &Json) -> Self {
        let texts = told.get("tasks").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        Self {
            tasks: texts.filter_map(|text| Upid::parse(text).ok()).collect(),
            digest: told.get("digest").and_then(Json::as_str).map(str::to_owned),
        }
    }
}

/// Looks until it is known, or cannot be any more. `ago` is how long ago the write was sent at the latest.
pub async fn settle(state: &State, connection: &Connection, call: &Call, before: &Before, ago: Duration) -> Found {
    let began = Instant::now();
    if matches!(call.operation().settle, Some(Settle::Person) | None) {
        return Found::Open("no read shows whether it was done".to_owned());
    }
    // What is long ago has been quiet for long enough already.
    for at in LOOKS.into_iter().filter(|at| *at >= ago.min(QUIET)) {
        tokio::time::sleep_until(began + at.saturating_sub(ago)).await;
        let found = look(state, connection, call, before, at >= QUIET).await;
        if !matches!(found, Found::Open(_) | Found::Unreadable(_)) {
            return found;
        }
    }
    loop {
        let found = look(state, connection, call, before, true).await;
        if !matches!(found, Found::Unreadable(_)) || began.elapsed() > PATIENCE {
            return found;
        }
        // Whoever hung up may have been the whole cluster, which comes back.
        tokio::time::sleep(QUIET).await;
    }
}

async fn look(state: &State, connection: &Connection, call: &Call, before: &Before, quiet: bool) -> Found {
    match call.operation().settle {
        Some(Settle::Task) => by_task(state, connection, call, before, quiet).await,
        Some(Settle::ReadBack) if call.with_role(Role::Task).is_some() => by_other_task(state, connection, call).await,
        Some(Settle::ReadBack) => by_reading(state, connection, call, before, quiet).await,
        Some(Settle::Person) | None => Found::Open("no read shows whether it was done".to_owned()),
    }
}

async fn by_task(state: &State, connection: &Connection, call: &Call, before: &Before, quiet: bool) -> Found {
    let tasks = match connection.own_tasks(call).await {
        Ok(tasks) => tasks,
        Err(error) => return Found::Unreadable(unreadable(&error, state.redactor())),
    };
    let mut ours = Vec::new();
    for upid in tasks.difference(&before.tasks) {
        // What another change of ours began is that one's.
        match state.store().started_by(upid.as_str()).await {
            Ok(None) => ours.push(upid.clone()),
            Ok(Some(_)) => {}
            Err(error) => return Found::Open(error.to_string()),
        }
    }
    match ours.as_slice() {
        [only] => Found::Task(only.clone()),
        [] if quiet => Found::NotDone("no task of it began, so it did not reach PVE".to_owned()),
        [] => Found::Open("no task of it is there".to_owned()),
        several => Found::Open(format!("{} new tasks fit, so it cannot be told which is the one", several.len())),
    }
}

/// For what stops a task: that has ended, or goes on.
async fn by_other_task(state: &State, connection: &Connection, call: &Call) -> Found {
    let path = ["node", "upid"].into_iter().filter_map(|name| Some((name, Json::from(call.get(name)?))));
    match connection.ask(internal::TASK_STATUS, path).await {
        Ok(reply) if reply.data.get("status").and_then(Json::as_str) == Some("stopped") => {
            Found::Done("the task has ended".to_owned())
        }
        Ok(_) => Found::Open("the task goes on".to_owned()),
        Err(error) => Found::Unreadable(unreadable(&error, state.redactor())),
    }
}

async fn by_reading(state: &State, connection: &Connection, call: &Call, before: &Before, quiet: bool) -> Found {
    let shown = match connection.read_back(call).await {
        Ok(Some(shown)) => shown,
        Ok(None) => return Found::Open("no read shows whether it was done".to_owned()),
        Err(error) => return Found::Unreadable(unreadable(&error, state.redactor())),
    };
    let differs = differing(call, &shown);
    if call.wanted().next().is_none() {
        return Found::Open("no read shows whether it was done".to_owned());
    }
    if differs.is_empty() {
        return Found::Done("what is read back is what was wanted".to_owned());
    }
    let untouched = before.digest.is_some() && shown.get("digest").and_then(Json::as_str) == before.digest.as_deref();
    if untouched && quiet {
        return Found::NotDone("the configuration is as it was before".to_owned());
    }
    Found::Open(format!("{} is not as wanted", differs.join(", ")))
}

/// The arguments whose values are not what is shown.
pub fn differing(call: &Call, shown: &Json) -> Vec<String> {
    let same = |name: &str, wanted: &str| {
        let now = match shown.get(name) {
            Some(Json::String(text)) => text.clone(),
            Some(Json::Bool(flag)) => u8::from(*flag).to_string(),
            Some(Json::Number(number)) => number.to_string(),
            Some(_) | None => return false,
        };
        // PVE ends notes with a line break, and keeps tags in its own order and case.
        let (now, wanted) = (now.trim_end(), wanted.trim_end());
        let is_tags = call.operation().parameter(name).is_some_and(|parameter| parameter.role == Role::Tags);
        now == wanted || is_tags && parts(now) == parts(wanted)
    };
    call.wanted().filter(|(name, wanted)| !same(name, wanted)).map(|(name, _)| name.to_owned()).collect()
}

fn parts(text: &str) -> BTreeSet<String> {
    text.split([';', ',']).map(|part| part.trim().to_lowercase()).collect()
}

fn unreadable(error: &PveError, redactor: &Redactor) -> String {
    format!("the cluster could not be asked: {}", redactor.text(error.message()))
}
