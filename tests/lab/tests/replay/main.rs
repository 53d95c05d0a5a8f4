//! Replays recordings of genuine PVE against a lab in the profile `recorded`, and lists every difference.
//!
//! The recordings are in the folder that `PVEGATE_FIXTURES` names, else in `../shared/fixtures` beside the workspace; without
//! any, the test says so and passes. Each area starts from a fresh lab, in the order of `seq`; before each recording
//! `arrange` brings the lab into the state that the recording was made in, as far as its request and answer tell.
//! `X__task_status` and `X__task_log` are asked of the task that `X` began.
//!
//! One area, with every difference: `PVEGATE_REPLAY_AREA=qemu cargo test -p lab --test replay -- --nocapture`. Further:
//! `PVEGATE_REPLAY_NAME=text` takes only recordings whose name contains the text. Any difference fails the test.
//!
//! What is excepted stands in `tests/lab/tests/exceptions.txt`, one `name: reason` a line; what no comparison looks at is
//! [`compare::IGNORED`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop where it stands"
)]
#![allow(
    clippy::cmp_owned,
    clippy::match_same_arms,
    clippy::unused_async,
    reason = "one line for each kind of recording, all in the same form"
)]

mod arrange;
mod compare;
mod exceptions;
mod raw;
mod recording;
mod stage;
mod wire;

use std::collections::BTreeMap;

use lab::{Lab, Options, Profile};
use recording::Recording;
use stage::Stage;

/// What came of one area.
#[derive(Default)]
struct Count {
    matched: usize,
    different: usize,
    excepted: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lab_answers_as_the_recordings_do() {
    let Some(folder) = recording::folder() else {
        println!("skipped: no recordings; PVEGATE_FIXTURES names their folder");
        return;
    };
    let all = recording::load(&folder);
    let excepted = exceptions::load();
    let wanted = std::env::var("PVEGATE_REPLAY_AREA").ok();
    let named = std::env::var("PVEGATE_REPLAY_NAME").unwrap_or_default();
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let mut differences = Vec::new();
    for area in recording::areas(&all) {
        if wanted.as_deref().is_some_and(|wanted| wanted != area) {
            continue;
        }
        let options = Options { profile: Profile::Recorded, latency: false, ..Options::default() };
        let lab = Lab::start(options).await.expect("the lab starts");
        let mut stage = Stage::new(&lab, &all);
        for recording in all.iter().filter(|recording| recording.area == area) {
            let found = stage.replay(recording).await;
            if !recording.name.contains(&named) {
                continue;
            }
            let count = counts.entry(area).or_default();
            match found {
                Ok(()) => count.matched += 1,
                Err(_) if excepted.contains_key(&recording.name) => count.excepted += 1,
                Err(difference) => {
                    count.different += 1;
                    differences.push(format!("{area} {} {}: {difference}", recording.seq, recording.name));
                }
            }
        }
        lab.stop().await;
    }
    for difference in &differences {
        println!("{difference}\n");
    }
    for (area, count) in &counts {
        println!("{area}: {} matched, {} different, {} excepted", count.matched, count.different, count.excepted);
    }
    assert!(differences.is_empty(), "{} recordings are answered differently", differences.len());
}

/// The exceptions are few, and none is about what every client meets.
#[test]
fn exceptions_stay_few() {
    let excepted = exceptions::load();
    assert!(excepted.len() <= exceptions::MOST, "{} recordings are excepted", excepted.len());
    let Some(folder) = recording::folder() else { return };
    for recording in recording::load(&folder).iter().filter(|recording| excepted.contains_key(&recording.name)) {
        let Recording { area, name, .. } = recording;
        assert!(!matches!(area.as_str(), "transport" | "access"), "{name} is in {area}");
        let status = recording.status();
        assert!(!matches!(status, 400 | 403), "{name} is about a {status}");
    }
}
