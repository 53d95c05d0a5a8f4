//! The inverse of reads: brings the lab into the state that a read showed.
//!
//! With the read of another recording this is one way to a question; with the recording's own it is how a recording tells
//! its state by itself.

mod access;
mod guests;
mod host;
mod inside;
mod resources;
mod tasks;

use lab::Arrange;
use serde_json::json;

use crate::arrange;
use crate::question::decoded;
use crate::recording::Recording;
use crate::stage::Stage;

/// How many of the recordings at hand tell their state by themselves. Only ever lowered.
pub const MOST: usize = 26;

/// Whether the recording shows a state at all: not when it was refused, or when it wrote.
pub async fn show(stage: &Stage<'_>, recording: &Recording) -> bool {
    if !recording.shows() {
        return false;
    }
    let question = &recording.question;
    let (path, data, seq) = (question.plain_path(), recording.data(), question.seq);
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    match steps.as_slice() {
        ["cluster", "resources"] => resources::all(stage, data).await,
        ["cluster", "metrics", "export"] => resources::metrics(stage, data),
        ["cluster", "log"] => tasks::log_of_cluster(stage, recording),
        ["cluster", "options"] => host::options(stage, data),
        ["cluster", "tasks"] | ["nodes", _, "tasks"] => tasks::list(stage, recording),
        ["cluster", "mapping", kind, id] => {
            let form = json!({"id": id, "map": data["map"]});
            stage.call("POST", &format!("/cluster/mapping/{kind}"), &form).await;
        }
        ["cluster", "metrics", "server", id] => {
            stage.call("POST", &format!("/cluster/metrics/server/{id}"), data).await;
        }
        ["nodes", _, "tasks", upid, ..] => tasks::one(stage, recording, upid),
        ["nodes", _, kind @ ("qemu" | "lxc")] => guests::list(stage, kind, data, seq),
        ["nodes", _, kind @ ("qemu" | "lxc"), vmid, rest @ ..] if rest.first() != Some(&"firewall") => {
            let Ok(vmid) = vmid.parse() else { return false };
            if let Some(name) = question.queried("snapshot") {
                guests::snapshot(stage, vmid, &name, data);
                return true;
            }
            if inside::file(stage, vmid, recording) {
                return true;
            }
            if data["ha"]["managed"] == 1 {
                let sid = format!("{}:{vmid}", if *kind == "qemu" { "vm" } else { "ct" });
                stage.call("POST", "/cluster/ha/resources", &json!({"sid": sid})).await;
            }
            return guests::one(stage, kind, vmid, rest, data, seq);
        }
        ["nodes", _, "storage" | "vzdump", ..] => shows(stage, recording),
        ["nodes", _, rest @ ..] if !rest.contains(&"firewall") => return host::found(stage, rest, data),
        ["access", rest @ ..] => access::all(stage, rest, data).await,
        _ => shows(stage, recording),
    }
    true
}

fn shows(stage: &Stage<'_>, recording: &Recording) {
    let (path, url) = (recording.question.plain_path(), recording.question.url());
    let read = url.split_once('?').map_or_else(|| path.clone(), |(_, query)| format!("{path}?{query}"));
    stage.lab.arrange(Arrange::Shows { read, data: recording.data().clone() });
}

/// What the recording's own answer tells; false where that is nothing. What a task of the lab did is for the lab to say.
pub async fn by_itself<'a>(stage: &mut Stage<'a>, recording: &'a Recording) -> bool {
    if !recording.shows() || recording.question.of_task().is_some() {
        return false;
    }
    let way = arrange::Way { start: arrange::Start::Baseline, ..arrange::Way::default() };
    arrange::before(stage, &recording.question, &way).await;
    if let Some(upid) = recording.question.path().split("/tasks/").nth(1).and_then(|rest| rest.split('/').next()) {
        // It stands for itself from now on.
        stage.forget(&decoded(upid));
    }
    inside::process(stage, recording).await || show(stage, recording).await
}
