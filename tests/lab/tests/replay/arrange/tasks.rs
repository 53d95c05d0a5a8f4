//! Tasks that were begun elsewhere: what other recordings show of one that a request names.

use lab::Arrange;

use crate::question::Question;
use crate::stage::Stage;

pub fn before(stage: &mut Stage<'_>, question: &Question) {
    let path = question.plain_path();
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    let ["nodes", _, "tasks", upid, ..] = steps.as_slice() else { return };
    let unknown = question.says("no such task") || question.says("unable to parse") || question.status == 595;
    if unknown || question.of_task().is_some() {
        return;
    }
    let mut log: Vec<String> = Vec::new();
    let mut status: Option<String> = None;
    let mut seen = !question.refusal.is_empty() || question.method() == "DELETE";
    for other in stage.known.others() {
        let data = other.data();
        if other.question.plain_path().contains(upid) && other.shows() {
            seen = true;
            status = data["exitstatus"].as_str().map(str::to_owned).or(status);
            let lines = data.as_array().into_iter().flatten().filter_map(|line| line["t"].as_str());
            let text = other.response["text"].as_str().unwrap_or_default().lines();
            let lines: Vec<String> = lines.chain(text).map(str::to_owned).collect();
            if lines.len() > log.len() && lines != ["no content"] {
                log = lines;
            }
        }
        for row in data.as_array().into_iter().flatten().filter(|row| row["upid"] == *upid) {
            seen = true;
            status = row["status"].as_str().filter(|status| *status != "RUNNING").map(str::to_owned).or(status);
        }
        // Who began it tells that it was there.
        seen |= other.data() == *upid;
    }
    if !seen {
        return;
    }
    let last = log.last().map(String::as_str).unwrap_or_default();
    let told = last.strip_prefix("TASK ERROR: ").or_else(|| last.strip_prefix("TASK ").filter(|_| last == "TASK OK"));
    let status = status.or_else(|| told.map(str::to_owned)).unwrap_or_else(|| "OK".to_owned());
    let stopped = question.method() == "DELETE" && question.status == 200;
    if log.is_empty() && status != "unexpected status" {
        log.push(if status == "OK" { "TASK OK".to_owned() } else { format!("TASK ERROR: {status}") });
    }
    let status = (!question.early && !stopped).then_some(status);
    stage.lab.arrange(Arrange::NoTasks);
    stage.forget(upid);
    stage.lab.arrange(Arrange::Task { upid: (*upid).to_owned(), status, ended: 0, log });
}
