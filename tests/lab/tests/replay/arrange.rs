//! Brings the lab into the state that a recording was made in, as far as its request and answer tell.
//!
//! Within one session of recording the numbers follow the names, not what happened first: a list may come before what
//! created its rows. So each recording says itself what has to be there before. Nothing here is about a single
//! recording: each rule is for a kind of request and answer. Each area has a file of its own.

mod access;
mod guests;
mod host;
mod kept;
mod resources;
mod tasks;

use lab::Arrange;
use serde_json::Value;

use crate::recording::Recording;
use crate::stage::Stage;

/// Areas in which each recording starts from the baseline, as what came before it does not lead to it.
const APART: [&str; 4] = ["access", "cluster", "nodes", "transport"];

pub async fn before(stage: &mut Stage<'_>, recording: &Recording) {
    if APART.contains(&recording.area.as_str()) {
        stage.lab.arrange(Arrange::Baseline);
    }
    // What is there already was made by the same request.
    if recording.method() == "POST" && recording.complaint().contains("already ") {
        let form: Value = recording.request["form"].clone();
        stage.call("POST", recording.path(), &form).await;
    }
    access::before(stage, recording).await;
    host::before(stage, recording).await;
    resources::before(stage, recording).await;
    tasks::before(stage, recording);
    guests::before(stage, recording).await;
    kept::before(stage, recording).await;
}
