//! Brings the lab into a state that a recording can have been made in, knowing its question but never its answer.
//!
//! Within one session of recording the numbers follow the names, not what happened first: a list may come before what
//! created its rows. What had happened before is told by the other recordings: the writes that were accepted, the reads
//! of the same thing, the words of a refusal. Where several states are possible, each is a [`Way`], and the replay
//! goes them in turn. Nothing here is about a single recording: each rule is for a kind of request. Each area has a file
//! of its own.

mod access;
mod guests;
mod history;
mod host;
mod kept;
mod tasks;

pub use guests::config;

use lab::Arrange;
use serde_json::Value;

use crate::known::Known;
use crate::question::Question;
use crate::recording::Recording;
use crate::show;
use crate::stage::Stage;

/// Areas in which each recording starts from the baseline, as what came before it does not lead to it.
const APART: [&str; 4] = ["access", "cluster", "nodes", "transport"];

/// What a way starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// What the recordings before it left.
    #[default]
    AsItIs,
    /// The baseline.
    Baseline,
    /// The baseline without what the read is about.
    Empty,
}

/// One state that a recording can have been made in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way<'a> {
    pub start: Start,
    /// What the guest that the request is about was.
    pub guest: Option<guests::Before>,
    /// Other recordings' writes that had been done.
    pub writes: Vec<&'a Recording>,
    /// Whether things are not as most that ask this meet them: guests of work on many, a volume that is removed.
    pub other: bool,
    /// Whether the node does not reach its own API.
    pub cut_off: bool,
    /// Whether a shutdown of the guest goes on.
    pub ending: bool,
    /// Other recordings' reads that showed the same then.
    pub shown: Vec<&'a Recording>,
}

/// The ways to a question, the likeliest first.
pub fn ways<'a>(question: &Question, known: Known<'a>) -> Vec<Way<'a>> {
    let mut ways = vec![Way::default()];
    if question.steps().get(1) == Some(&"bulk-action") {
        ways.push(Way { cut_off: true, ..Way::default() });
        ways.push(Way { other: true, ..Way::default() });
        ways.push(Way { cut_off: true, other: true, ..Way::default() });
    }
    if question.method() == "DELETE" && question.path().contains("/content/") {
        ways.push(Way { other: true, ..Way::default() });
    }
    if question.given("overrule-shutdown") == Some("1") {
        ways.push(Way { ending: true, ..Way::default() });
    }
    let reads = question.method() == "GET" && question.status == 200;
    if reads {
        ways.extend(history::shown(question, known));
    }
    if guests::subject(question).is_some() && !question.path().contains("/firewall/") {
        ways.extend(guests::ways(question, known));
    } else if reads {
        ways.extend(history::ways(question, known));
    }
    ways
}

pub async fn before<'a>(stage: &mut Stage<'a>, question: &Question, way: &Way<'a>) {
    if way.start != Start::AsItIs || APART.contains(&question.area.as_str()) {
        stage.lab.arrange(Arrange::Baseline);
    }
    if way.start == Start::Empty {
        let read = question.plain_path();
        if let ["nodes", _, kind @ ("qemu" | "lxc")] = question.steps().as_slice() {
            for vmid in config::known(stage.known, kind) {
                stage.lab.arrange(Arrange::NoGuest(vmid));
            }
        }
        stage.lab.arrange(Arrange::Shows { read: read.clone(), data: Value::Array(Vec::new()) });
        stage.lab.arrange(Arrange::Shows { read, data: Value::Object(serde_json::Map::new()) });
    }
    // What is there already was made by the same request.
    if question.method() == "POST" && question.complaint().contains("already ") {
        stage.call("POST", question.path(), question.fields()).await;
    }
    access::before(stage, question, *way != Way::default()).await;
    host::before(stage, question).await;
    stage.lab.arrange(Arrange::ReachesItself(!way.cut_off));
    tasks::before(stage, question);
    guests::before(stage, question, way).await;
    kept::before(stage, question, way.other).await;
    history::repeat(stage, &way.writes).await;
    for other in &way.shown {
        show::show(stage, other).await;
    }
}
