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

use crate::arrange;
use crate::recording::Recording;
use crate::stage::Stage;

/// How many of the recordings at hand tell their state by themselves. Only ever lowered.
pub const MOST: usize = 27;

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
        ["nodes", _, kind @ ("qemu" | "lxc")] => guests::list(stage, kind, data, seq),
        ["nodes", _, kind @ ("qemu" | "lxc"), vmid, rest @ ..] if rest.first() != Some(&"firewall") => {
            let Ok(vmid) = vmid.parse() else { return false };
            if let Some(name) = question.queried("snapshot") {
                guests::snapshot(stage, vmid, &name, data);
                return true;
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

/// What the recording's own answer tells; false where that is nothing.
pub async fn by_itself<'a>(stage: &mut Stage<'a>, recording: &'a Recording) -> bool {
    if !recording.shows() {
        return false;
    }
    let way = arrange::Way { start: arrange::Start::Baseline, ..arrange::Way::default() };
    arrange::before(stage, &recording.question, &way).await;
    inside::process(stage, recording).await || show(stage, recording).await
}
