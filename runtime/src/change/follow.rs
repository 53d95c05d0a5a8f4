//! Decides when a task of a change has ended and what is read back then: the state that the guest is really in, what
//! waits for a restart, what was made.

use std::sync::Arc;
use std::time::Duration;

use pvegate_generated::internal;
use pvegate_generated::terms::{Guard, Role};
use serde_json::{Map, Value as Json, json};
use tokio::time::Instant;

use super::perform::Recording;
use crate::connection::Connection;
use crate::redact::Redactor;
use crate::server::State;
use crate::snapshot::GuestKind;
use crate::store::StepOutcome;
use crate::tasks::{GuestState, Outcome, Report, Task};
use crate::values::{Upid, Vmid};
use crate::write::Call;

/// How long a task is followed before the claim is renewed, and the answer of the last look waited for.
const SLICE: Duration = Duration::from_secs(15);
const LAST_LOOK: Duration = Duration::from_secs(5);

/// How long nobody may be able to tell how a task stands before a person has to look.
const PATIENCE: Duration = Duration::from_hours(1);

/// What came of a step.
#[derive(Clone, Debug)]
pub struct End {
    /// In one word.
    pub outcome: StepOutcome,
    /// In a sentence.
    pub message: String,
    /// What was read back, masked.
    pub shown: Map<String, Json>,
}

impl End {
    /// Without anything read back.
    pub fn new(outcome: StepOutcome, message: impl Into<String>) -> Self {
        Self { outcome, message: message.into(), shown: Map::new() }
    }
}

/// Follows a task to its end.
pub async fn task(
    state: &State,
    connection: &Arc<Connection>,
    call: &Call,
    upid: Upid,
    recording: &mut Recording,
) -> End {
    let mut task = Task::of_change(connection, upid, state.redactor().clone());
    let mut silent = None;
    let report = loop {
        let until = Instant::now() + SLICE;
        let report = task.follow(until, until + LAST_LOOK, &mut ()).await;
        recording.renew().await;
        match report {
            Ok(report) if report.is_final() => break report,
            Ok(report) if report.outcome == Outcome::Running => silent = None,
            Ok(_) | Err(_) => {
                if silent.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                    return End::new(StepOutcome::Unknown, "for an hour nobody could tell how its task stands");
                }
                // A failure may come at once.
                tokio::time::sleep(LAST_LOOK).await;
            }
        }
    };
    connection.snapshot().expire();
    let mut end = of_report(call, &report);
    if end.shown.get("guest").is_none() {
        read_back(state, connection, call, &mut end).await;
    }
    end
}

fn of_report(call: &Call, report: &Report) -> End {
    let outcome = match report.outcome {
        Outcome::Ok => StepOutcome::Ok,
        Outcome::OkWithWarnings => StepOutcome::Warnings,
        Outcome::Failed => StepOutcome::Failed,
        Outcome::NotAchieved => StepOutcome::NotAchieved,
        Outcome::Running | Outcome::Unknown => StepOutcome::Unknown,
    };
    let is_shutdown = [internal::SHUTDOWN_VM, internal::SHUTDOWN_CONTAINER].contains(&call.operation());
    let message = match &report.says {
        Some(says) => says.clone(),
        None if outcome == StepOutcome::Failed => report.exit_status.clone().unwrap_or_default(),
        None if is_shutdown && outcome.is_done() => "the guest went down by itself".to_owned(),
        None => String::new(),
    };
    let mut shown = Map::new();
    let mut put = |key: &str, value: Json| {
        let nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !nothing {
            shown.insert(key.to_owned(), value);
        }
    };
    put("exitstatus", Json::from(report.exit_status.clone()));
    put("ended", Json::from(report.ended));
    put("warnings", json!(report.warnings));
    put("failures", json!(report.failures));
    if !outcome.is_done() {
        put("log_tail", json!(report.log_tail));
    }
    put("guest", report.guest.as_ref().map_or(Json::Null, guest));
    put("missing", json!(report.missing));
    End { outcome, message, shown }
}

fn guest(guest: &GuestState) -> Json {
    json!({"vmid": guest.vmid.get(), "node": guest.node, "status": guest.status, "hastate": guest.ha})
}

/// Looks at what the call was about, as far as a read shows it.
pub async fn read_back(state: &State, connection: &Arc<Connection>, call: &Call, end: &mut End) {
    let operation = call.operation();
    if [internal::QEMU_CONFIG, internal::LXC_CONFIG].iter().any(|config| config.path == operation.path) {
        return pending(state, connection, call, end).await;
    }
    let made = operation.guards.contains(&Guard::VmidIsFree).then(|| call.with_role(Role::GuestNew)).flatten();
    let acted = call.get("vmid").filter(|_| operation.binds.contains(&"status"));
    let vmid = match made {
        Some(made) => end.outcome.is_done().then_some(made),
        None => acted,
    };
    if let Some(vmid) = vmid.and_then(|text| Vmid::parse(text).ok()) {
        match GuestState::read(connection, vmid, true).await {
            Ok(found) => _ = end.shown.insert("guest".to_owned(), guest(&found)),
            Err(error) => missing(end, format!("guest: {}", state.redactor().text(error.message()))),
        }
    }
}

/// What of the wanted values waits for the guest's next start. Power is never touched for it.
async fn pending(state: &State, connection: &Arc<Connection>, call: &Call, end: &mut End) {
    let is_vm = internal::QEMU_CONFIG.path == call.operation().path;
    let kind = if is_vm { GuestKind::Qemu } else { GuestKind::Lxc };
    let operation = match kind {
        GuestKind::Qemu => internal::QEMU_PENDING,
        GuestKind::Lxc => internal::LXC_PENDING,
    };
    let path = ["node", "vmid"].into_iter().filter_map(|name| Some((name, Json::from(call.get(name)?))));
    let rows = match connection.ask(operation, path).await {
        Ok(reply) => reply.data,
        Err(error) => return missing(end, format!("pending: {}", state.redactor().text(error.message()))),
    };
    let rows = rows.as_array().into_iter().flatten();
    let waiting = rows.filter_map(|row| {
        let key = row.get("key")?.as_str()?;
        let waits = row.get("pending")?;
        let is_wanted = call.wanted().any(|(name, _)| name == key);
        is_wanted.then(|| (key.to_owned(), json!({"value": row.get("value"), "pending": waits})))
    });
    let mut waiting = Json::Object(waiting.collect());
    state.redactor().value(&mut waiting);
    if waiting.as_object().is_some_and(|waiting| !waiting.is_empty()) {
        end.shown.insert("pending".to_owned(), waiting);
    }
}

fn missing(end: &mut End, what: String) {
    if let Some(list) = end.shown.entry("missing").or_insert_with(|| json!([])).as_array_mut() {
        list.push(Json::from(what));
    }
}

/// After a refusal: whether PVE saved a part of it all the same.
pub async fn after_refusal(connection: &Connection, call: &Call, redactor: &Redactor, end: &mut End) {
    if call.wanted().next().is_none() {
        return;
    }
    match connection.read_back(call).await {
        Ok(Some(shown)) => {
            let differs = super::settle::differing(call, &shown);
            let saved: Vec<&str> =
                call.wanted().map(|(name, _)| name).filter(|name| !differs.iter().any(|other| other == name)).collect();
            end.shown.insert("as_wanted".to_owned(), json!(saved));
        }
        Ok(None) => {}
        Err(error) => missing(end, format!("read back: {}", redactor.text(error.message()))),
    }
}
