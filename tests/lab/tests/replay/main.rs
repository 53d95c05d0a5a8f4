//! Replays recordings of genuine PVE against a lab in the profile `recorded`, and lists every difference.
//!
//! The recordings are in the folder that `PVEGATE_FIXTURES` names, else in `../shared/fixtures` beside the workspace; without
//! any, the test says so and passes. Each area starts from a fresh lab, in the order of `seq`; before each recording
//! `arrange` brings the lab into a state that the recording can have been made in. It knows what was asked and how that
//! ended, and what the other recordings tell, but not the answer that is compared. Where that fails, `show` lets the
//! recording tell its state by itself: such matches are counted apart, and [`show::MOST`] bounds them.
//! `X__task_status` and `X__task_log` are asked of the task that `X` began.
//!
//! One area, with every difference: `PVEGATE_REPLAY_AREA=qemu cargo test -p lab --test replay -- --nocapture`. Further:
//! `PVEGATE_REPLAY_NAME=text` takes only recordings whose name contains the text. Any difference fails the test.
//! `PVEGATE_REPLAY_HOLDOUT=5` hides every fifth recording from the others as a source of state, and counts how many of
//! those match: as many as can be expected to of recordings that nobody has seen. Nothing but the count comes of it.
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
mod known;
mod question;
mod raw;
mod recording;
mod show;
mod stage;
mod wire;

use std::collections::BTreeMap;

use known::Known;
use lab::{Lab, Options, Profile};
use stage::{Match, Stage};

/// What came of one area.
#[derive(Default)]
struct Count {
    matched: usize,
    /// Of those that match: how many only when their own answer tells the lab its state.
    by_itself: usize,
    different: usize,
    excepted: usize,
    /// Recordings that the others did not know of, and how many of them match without their own answer.
    held_out: (usize, usize),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lab_answers_as_the_recordings_do() {
    let Some(folder) = recording::folder() else {
        println!("skipped: no recordings; PVEGATE_FIXTURES names their folder");
        return;
    };
    let all = recording::load(&folder);
    let baseline = recording::baseline(&folder);
    let excepted = exceptions::load();
    let wanted = std::env::var("PVEGATE_REPLAY_AREA").ok();
    let named = std::env::var("PVEGATE_REPLAY_NAME").unwrap_or_default();
    let held_out = std::env::var("PVEGATE_REPLAY_HOLDOUT").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    let known = Known::new(&all, &baseline, held_out);
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let mut differences = Vec::new();
    for area in recording::areas(&all) {
        if wanted.as_deref().is_some_and(|wanted| wanted != area) {
            continue;
        }
        let options = Options { profile: Profile::Recorded, latency: false, ..Options::default() };
        let lab = Lab::start(options).await.expect("the lab starts");
        let mut stage = Stage::new(&lab, &all, known);
        for (place, recording) in all.iter().enumerate().filter(|(_, recording)| recording.question.area == area) {
            let question = &recording.question;
            if !question.name.contains(&named) {
                continue;
            }
            let found = stage.replay(recording).await;
            let count = counts.entry(area).or_default();
            if known.holds_out(place) {
                count.held_out.0 += 1;
                count.held_out.1 += usize::from(found == Ok(Match::Known));
            }
            match found {
                Ok(how) => {
                    count.matched += 1;
                    count.by_itself += usize::from(how == Match::Itself);
                }
                Err(_) if excepted.contains_key(&question.name) => count.excepted += 1,
                Err(difference) => {
                    count.different += 1;
                    differences.push(format!("{area} {} {}: {difference}", question.seq, question.name));
                }
            }
        }
        lab.stop().await;
    }
    for difference in &differences {
        println!("{difference}\n");
    }
    for (area, count) in &counts {
        let Count { matched, by_itself, different, excepted, held_out } = count;
        print!(
            "{area}: {matched} matched, {by_itself} of them told by itself, {different} different, {excepted} excepted"
        );
        println!(
            "{}",
            if held_out.0 > 0 { format!("; {} of {} held out match", held_out.1, held_out.0) } else { String::new() }
        );
    }
    let sum = |of: fn(&Count) -> usize| counts.values().map(of).sum::<usize>();
    let (matched, by_itself) = (sum(|count| count.matched), sum(|count| count.by_itself));
    println!("all: {matched} matched, {by_itself} of them told by itself");
    if held_out > 0 {
        println!("{} of {} held out match", sum(|count| count.held_out.1), sum(|count| count.held_out.0));
        return;
    }
    // Recordings that were not at hand when this was written have not been counted yet.
    if std::env::var_os("PVEGATE_FIXTURES").is_none() {
        assert!(by_itself <= show::MOST, "{by_itself} recordings tell their state by themselves");
    }
    assert!(differences.is_empty(), "{} recordings are answered differently", differences.len());
}

/// The exceptions are few, and none is about what every client meets.
#[test]
fn exceptions_stay_few() {
    let excepted = exceptions::load();
    assert!(excepted.len() <= exceptions::MOST, "{} recordings are excepted", excepted.len());
    let Some(folder) = recording::folder() else { return };
    for recording in recording::load(&folder) {
        let question::Question { area, name, status, .. } = &recording.question;
        if !excepted.contains_key(name) {
            continue;
        }
        assert!(!matches!(area.as_str(), "transport" | "access"), "{name} is in {area}");
        assert!(!matches!(status, 400 | 403), "{name} is about a {status}");
    }
}
