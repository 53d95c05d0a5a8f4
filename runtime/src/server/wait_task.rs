//! The tool that follows a task to its end, in calls that are short enough for every client.

use std::time::Duration;

use pvegate_generated::internal;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use tokio::time::Instant;

use super::State;
use crate::authorize;
use crate::mcp::{Answer, Progress, Refusal};
use crate::tasks::{Outcome, Report, Task, Watcher};
use crate::tokens::Principal;
use crate::values::{PbsUpid, Upid};

/// Its name.
pub const NAME: &str = "wait_task";

/// How long a call waits at most, and by when it answers: clients begin to give up after half a minute.
const LONGEST: Duration = Duration::from_secs(20);
const ANSWER_BY: Duration = Duration::from_secs(24);

/// What it is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    cluster: Option<String>,
    upid: String,
    timeout: Option<f64>,
}

/// Follows a task.
pub async fn answer(
    state: &State,
    principal: &Principal,
    asked: Asked,
    progress: Option<Progress>,
) -> Result<Answer, Refusal> {
    let begun = Instant::now();
    let wait = wait(asked.timeout)?;
    let upid = upid(&asked.upid)?;
    let cluster = authorize::cluster(principal, state, asked.cluster.as_deref())?;
    let name = cluster.get().name().to_owned();
    let asked = authorize::read(state, principal, cluster, internal::TASK_STATUS)?;
    let given = [("node", upid.node().as_str()), ("upid", upid.as_str())];
    let given = given.into_iter().map(|(name, value)| (name.to_owned(), Json::from(value))).collect();
    let read = authorize::reach(state, &asked, &given, &[]).await.map_err(|not| not.into_refusal(state))?;
    let mut task = Task::of_read(read, upid, state.redactor().clone());
    let mut listener = Listener { progress, told: None };
    let report = task
        .follow(begun + wait, begun + ANSWER_BY, &mut listener)
        .await
        .map_err(|error| authorize::failed(&principal.grant, &name, Some(task.upid()), error).into_refusal(state))?;
    if report.is_final() {
        // What it made, moved or removed is looked at next, and the list of guests may be older than its end.
        asked.get().connection.snapshot().expire();
    }
    Ok(Answer::from(&told(&name, task.upid(), &report)))
}

/// Nothing given waits as long as possible, and more than that as well; 0 asks for the state as it is.
fn wait(timeout: Option<f64>) -> Result<Duration, Refusal> {
    match timeout {
        None => Ok(LONGEST),
        Some(seconds) if seconds >= 0.0 => Ok(Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST)),
        Some(_) => Err(Refusal::new(
            "invalid_arguments",
            "`timeout` is below 0",
            "Give seconds to wait, at most 20, or 0 for the state as it is now.",
        )),
    }
}

fn upid(text: &str) -> Result<Upid, Refusal> {
    let next = "Give the id as starting the task answered it, or as list_tasks shows it, whole.";
    if PbsUpid::parse(text).is_ok() {
        return Err(Refusal::new(
            "invalid_arguments",
            "`upid` names a task of a Proxmox Backup Server, and this server follows tasks of Proxmox VE",
            "Look at it on the backup server; list_tasks shows what the nodes here do.",
        ));
    }
    Upid::parse(text).map_err(|error| Refusal::new("invalid_arguments", format!("`upid` {error}"), next))
}

/// Passes on what is new to a client that wants to know.
struct Listener {
    progress: Option<Progress>,
    told: Option<(Option<f64>, String)>,
}

impl Watcher for Listener {
    fn watches(&self) -> bool {
        self.progress.is_some()
    }

    async fn saw(&mut self, report: &Report) {
        let Some(progress) = &mut self.progress else { return };
        let line = report.says.as_ref().or(report.log_tail.last());
        let now = (report.percent, line.map_or("no log yet", String::as_str).to_owned());
        if self.told.as_ref() != Some(&now) {
            progress.tell(now.0, &now.1).await;
            self.told = Some(now);
        }
    }
}

/// What is known, as callers read it.
fn told(cluster: &str, upid: &Upid, report: &Report) -> Map<String, Json> {
    let (user, token) = upid.user().split_once('!').map_or((upid.user(), None), |(user, token)| (user, Some(token)));
    let mut object = Map::new();
    let mut put = |key: &str, value: Json| {
        let nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !nothing {
            object.insert(key.to_owned(), value);
        }
    };
    put("cluster", Json::from(cluster));
    put("upid", Json::from(upid.as_str()));
    put("outcome", Json::from(report.outcome.as_str()));
    put("exitstatus", Json::from(report.exit_status.clone()));
    put("says", Json::from(report.says.clone()));
    put("type", Json::from(upid.worker()));
    put("id", Json::from(upid.subject()));
    put("node", Json::from(upid.node().as_str()));
    put("user", Json::from(user));
    put("tokenid", Json::from(token));
    put("started", Json::from(upid.started()));
    put("ended", Json::from(report.ended));
    put("percent", Json::from(report.percent));
    put("warnings", json!(report.warnings));
    put("failures", json!(report.failures));
    if let Some(guest) = &report.guest {
        let state = json!({"vmid": guest.vmid.get(), "node": guest.node, "status": guest.status, "hastate": guest.ha});
        put("guest", state);
    }
    put("next", Json::from(next(report)));
    if !report.missing.is_empty() {
        put("partial", Json::from(true));
        put("missing", json!(report.missing));
    }
    // Always there, so that nobody has to ask whether there was a log.
    object.insert("log_tail".to_owned(), json!(report.log_tail));
    let foreign = ["exitstatus", "failures", "log_tail", "warnings"];
    let untrusted: Vec<&str> = foreign.into_iter().filter(|key| object.contains_key(*key)).collect();
    object.insert("untrusted".to_owned(), json!(untrusted));
    object
}

/// How to go on, where the answer is not the end.
fn next(report: &Report) -> Option<&'static str> {
    match report.outcome {
        Outcome::Running => Some("Call wait_task again with this upid. Do not repeat what started it."),
        Outcome::Unknown if !report.is_final() => {
            Some("Call wait_task again with this upid. Until it is known how it ended, do not repeat what started it.")
        }
        Outcome::Unknown | Outcome::NotAchieved => {
            Some("Look at what it worked on, with get_guest or list_tasks, before anything is repeated.")
        }
        Outcome::Ok | Outcome::OkWithWarnings | Outcome::Failed => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn no_call_waits_for_ever() {
        for (asked, waits) in [
            (None, LONGEST),
            (Some(0.0), Duration::ZERO),
            (Some(0.5), Duration::from_millis(500)),
            (Some(3600.0), LONGEST),
            (Some(1e300), LONGEST),
            (Some(f64::INFINITY), LONGEST),
        ] {
            assert_eq!(wait(asked).unwrap(), waits, "{asked:?}");
        }
        for wrong in [-1.0, -0.001, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(wait(Some(wrong)).unwrap_err().code, "invalid_arguments", "{wrong}");
        }
        assert!(LONGEST < ANSWER_BY && ANSWER_BY < Duration::from_secs(25), "there is time for a last look");
    }
}
