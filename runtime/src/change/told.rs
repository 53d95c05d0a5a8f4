//! How a change is told to its caller: its state, what came of it, how to go on; and nothing that the caller may not see.

use pvegate_generated::terms::Role;
use serde_json::{Map, Value as Json, json};

use crate::server::State as Server;
use crate::store::{Change, Event, Happened, State, StepOutcome};

/// Keys of what was read back whose texts PVE or guests wrote.
const FOREIGN: [&str; 5] = ["says", "exitstatus", "failures", "log_tail", "warnings"];

/// What is known of a change; `whole` also what happened, event by event.
pub fn told(server: &Server, change: &Change, whole: bool) -> Map<String, Json> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Json| {
        if !value.is_null() {
            object.insert(key.to_owned(), value);
        }
    };
    put("change_id", Json::from(change.id.as_str()));
    put("state", Json::from(change.state.name()));
    let last = change.events.iter().rev().find_map(|happened| match &happened.event {
        Event::Outcome { outcome, message, .. } | Event::Settled { outcome, message, .. } => {
            Some((Some(*outcome), message.clone()))
        }
        Event::Indeterminate { message } => Some((Some(StepOutcome::Unknown), message.clone())),
        Event::Void { reason } => Some((Some(StepOutcome::NotSent), reason.clone())),
        _ => None,
    });
    let (outcome, says) = last.unwrap_or((None, String::new()));
    put("outcome", Json::from(outcome.map_or("running", word)));
    put("cluster", Json::from(change.new.cluster.as_str()));
    if let Some(step) = change.new.steps.first() {
        put("operation", Json::from(step.operation.as_str()));
        let target = step.target.as_ref();
        for key in ["vmid", "node"] {
            put(key, target.and_then(|target| target.get(key)).cloned().unwrap_or_default());
        }
    }
    let upid = change.events.iter().rev().find_map(|happened| happened.event.upid());
    put("upid", Json::from(upid));
    if !says.is_empty() {
        put("says", Json::from(says));
    }
    let shown = change.events.iter().rev().find_map(|happened| match &happened.event {
        Event::ReadBack { data, .. } => data.as_object(),
        _ => None,
    });
    for (key, value) in shown.into_iter().flatten() {
        put(key, value.clone());
    }
    let protection = change.events.iter().rev().find_map(|happened| match &happened.event {
        Event::Intent { request, .. } => request.decided.get("protection").filter(|said| **said != json!([])),
        _ => None,
    });
    put("protection", protection.cloned().unwrap_or_default());
    put("next", Json::from(next(change, upid)));
    if object.contains_key("missing") {
        object.insert("partial".to_owned(), Json::from(true));
    }
    if whole {
        let step = change.new.steps.first();
        object.insert("arguments".to_owned(), step.map(|step| step.arguments.clone()).unwrap_or_default());
        if let Some(reason) = &change.new.reason {
            object.insert("reason".to_owned(), Json::from(reason.as_str()));
        }
        object.insert("events".to_owned(), change.events.iter().map(event).collect());
    }
    let untrusted: Vec<&str> = FOREIGN.into_iter().filter(|key| object.contains_key(*key)).collect();
    if !untrusted.is_empty() {
        object.insert("untrusted".to_owned(), json!(untrusted));
    }
    let mut whole = Json::Object(object);
    server.redactor().value(&mut whole);
    match whole {
        Json::Object(object) => object,
        _ => Map::new(),
    }
}

/// Outcomes as the tools that follow tasks have them.
pub fn word(outcome: StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Ok => "ok",
        StepOutcome::Warnings => "ok_with_warnings",
        StepOutcome::Failed => "failed",
        StepOutcome::NotAchieved => "not_achieved",
        StepOutcome::Refused => "refused",
        StepOutcome::NotSent => "not_sent",
        StepOutcome::Unknown => "unknown",
    }
}

/// How to go on, where the answer is not the end.
fn next(change: &Change, upid: Option<&str>) -> Option<String> {
    let (id, cluster) = (&change.id, &change.new.cluster);
    match change.state {
        State::Indeterminate => Some(
            "It may have been done. Look at what it was about with get_guest or list_tasks; do not repeat it before a person has found out."
                .to_owned(),
        ),
        state if state.has_ended() => None,
        _ => Some(match upid {
            Some(upid) => format!(
                "It goes on: wait_task {{\"cluster\": \"{cluster}\", \"upid\": \"{upid}\"}}, then get_change {{\"change_id\": \"{id}\"}}. Do not repeat it."
            ),
            None => format!("It goes on: get_change {{\"change_id\": \"{id}\"}} tells how it stands. Do not repeat it."),
        }),
    }
}

fn event(happened: &Happened) -> Json {
    let at = chrono::DateTime::<chrono::Utc>::from(happened.at).to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let mut told = json!({"event": happened.event.name(), "at": at});
    let extra = match &happened.event {
        Event::Approved { by } | Event::Rejected { by } | Event::Cancelled { by } => Some(("by", by.clone())),
        Event::Outcome { outcome, .. } | Event::Settled { outcome, .. } => Some(("outcome", word(*outcome).to_owned())),
        Event::Sent { upid: Some(upid), .. } => Some(("upid", upid.clone())),
        Event::Intent { request, .. } => request.node.clone().map(|node| ("node", node)),
        _ => None,
    };
    if let (Some(told), Some((key, value))) = (told.as_object_mut(), extra) {
        told.insert(key.to_owned(), Json::from(value));
    }
    told
}

/// What a step is about, for the record and for answers: the guest that it acts on or makes, and where.
pub fn target(call: &crate::write::Call, kind: Option<&str>, name: Option<&str>) -> Json {
    let vmid = call.with_role(Role::GuestNew).or(call.get("vmid"));
    let number = vmid.and_then(|text| text.parse::<u32>().ok());
    let copied =
        call.with_role(Role::GuestNew).and(call.with_role(Role::GuestSource)).and_then(|text| text.parse::<u32>().ok());
    let all = [
        ("vmid", Json::from(number)),
        ("node", Json::from(call.get("node"))),
        ("source", Json::from(copied)),
        ("type", Json::from(kind)),
        ("name", Json::from(name)),
    ];
    Json::Object(
        all.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.to_owned(), value)).collect(),
    )
}
