//! Tasks of the past: a list says which there were, and how many in all.

use lab::Arrange;
use serde_json::Value;

use crate::recording::Recording;
use crate::stage::Stage;

/// One that its status or its log shows.
pub fn one(stage: &Stage<'_>, recording: &Recording, upid: &str) {
    let data = recording.data();
    let lines = data.as_array().into_iter().flatten().filter_map(|line| line["t"].as_str());
    let text = recording.response["text"].as_str().unwrap_or_default().lines();
    let log: Vec<String> = lines.chain(text).filter(|line| *line != "no content").map(str::to_owned).collect();
    let status = data["exitstatus"].as_str().unwrap_or("OK").to_owned();
    let status = (data["status"] != "running").then_some(status);
    stage.lab.arrange(Arrange::NoTasks);
    stage.lab.arrange(Arrange::Task { upid: upid.to_owned(), status, ended: 0, log });
}

/// The rows of a list, oldest first, and as many more as it counts: newer ones where it does not start with the newest.
pub fn list(stage: &Stage<'_>, recording: &Recording) {
    stage.lab.arrange(Arrange::NoTasks);
    let rows = recording.data().as_array().cloned().unwrap_or_default();
    let total = recording.response["json"]["total"].as_u64().unwrap_or(rows.len() as u64);
    let query = recording.question.url().split_once('?').map_or("", |(_, query)| query);
    let asked = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let newer = asked("start").and_then(|start| start.parse::<u64>().ok()).unwrap_or(0);
    let older = total.saturating_sub(newer).saturating_sub(rows.len() as u64);
    let kind = asked("typefilter").unwrap_or("qmstart");
    let id = asked("vmid").unwrap_or("100");
    let status = if query.contains("error") { "failed" } else { "OK" };
    let filler = |nth: u64, start: u64| Arrange::Task {
        upid: format!("UPID:pve1:{:08X}:{:08X}:{:08X}:{kind}:{id}:root@pam!lab:", 0x100 + nth, nth, start + nth),
        status: Some(status.to_owned()),
        ended: i64::try_from(start + nth).unwrap_or_default(),
        log: Vec::new(),
    };
    for nth in 0..older {
        stage.lab.arrange(filler(nth, 0x6000_0000));
    }
    for row in rows.iter().rev() {
        put(stage, row);
    }
    for nth in 0..newer {
        stage.lab.arrange(filler(nth, 0x7000_0000));
    }
}

fn put(stage: &Stage<'_>, row: &Value) {
    let status = row["status"].as_str().filter(|status| *status != "RUNNING").map(str::to_owned);
    let ended = row["endtime"].as_i64().unwrap_or_default();
    let upid = row["upid"].as_str().unwrap_or_default().to_owned();
    stage.lab.arrange(Arrange::Task { upid, status, ended, log: Vec::new() });
}

/// The cluster's log tells of tasks as they begin and end.
pub fn log_of_cluster(stage: &Stage<'_>, recording: &Recording) {
    stage.lab.arrange(Arrange::NoTasks);
    for row in recording.data().as_array().into_iter().flatten().rev() {
        let message = row["msg"].as_str().unwrap_or_default();
        if let Some((upid, status)) = message.strip_prefix("end task ").and_then(|rest| rest.split_once(": ")) {
            let ended = row["time"].as_i64().unwrap_or_default();
            let upid = format!("{upid}:");
            stage.lab.arrange(Arrange::Task { upid, status: Some(status.to_owned()), ended, log: Vec::new() });
        }
    }
}
