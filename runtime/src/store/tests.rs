//! The table of what may follow what, by every order of events that chance makes; and ids.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use serde_json::json;

use super::{ChangeId, Event, Intent, State, StepOutcome, after, allowed, state};

fn intent(step: u32) -> Event {
    let request = Intent {
        operation: "POST /nodes/{node}/qemu/{vmid}/status/start".to_owned(),
        node: Some("pve1".to_owned()),
        vmid: Some(100),
        decided: json!({}),
        needs: Duration::from_secs(30),
    };
    Event::Intent { step, request }
}

fn outcome(step: u32, outcome: StepOutcome) -> Event {
    Event::Outcome { step, outcome, message: String::new(), upid: None }
}

fn by() -> String {
    "ada".to_owned()
}

fn claimed() -> Event {
    Event::Claimed { holder: "one".to_owned(), until: SystemTime::UNIX_EPOCH }
}

const OUTCOMES: [StepOutcome; 7] = [
    StepOutcome::Ok,
    StepOutcome::Warnings,
    StepOutcome::Failed,
    StepOutcome::NotAchieved,
    StepOutcome::Refused,
    StepOutcome::NotSent,
    StepOutcome::Unknown,
];

fn any_event() -> impl Strategy<Value = Event> {
    let step = 0_u32..3;
    let of = prop::sample::select(&OUTCOMES[..]);
    prop_oneof![
        1 => Just(Event::Planned),
        1 => Just(Event::Approved { by: by() }),
        1 => Just(Event::Rejected { by: by() }),
        3 => Just(claimed()),
        6 => step.clone().prop_map(intent),
        3 => (step.clone(), prop::option::of(Just("UPID:x".to_owned())))
            .prop_map(|(step, upid)| Event::Sent { step, upid }),
        6 => (step.clone(), of.clone()).prop_map(|(step, of)| outcome(step, of)),
        1 => step.prop_map(|step| Event::ReadBack { step, data: json!(1) }),
        2 => Just(Event::Applied),
        1 => Just(Event::Failed),
        1 => Just(Event::Void { reason: by() }),
        1 => Just(Event::Expired),
        1 => Just(Event::Cancelled { by: by() }),
        1 => Just(Event::Indeterminate { message: by() }),
        1 => of.prop_map(|outcome| Event::Settled { by: by(), outcome, message: by() }),
    ]
}

/// A history that begins as one that gets somewhere does, and goes on as chance has it.
fn any_history() -> impl Strategy<Value = Vec<Event>> {
    let begun = [Event::Planned, Event::Approved { by: by() }, claimed(), intent(0)];
    (0..=begun.len(), prop::collection::vec(any_event(), 0..24))
        .prop_map(move |(kept, more)| begun.iter().take(kept).cloned().chain(more).collect())
}

proptest! {
    /// Events that are refused are left out, as the store leaves them out.
    #[test]
    fn what_is_recorded_is_in_order(history in any_history(), steps in 1_u32..3) {
        let mut recorded: Vec<Event> = Vec::new();
        for event in history {
            let before = state(&recorded, steps);
            if !allowed(before, &event, steps) {
                continue;
            }
            prop_assert!(!before.has_ended(), "{before:?} had ended, and {event:?} came");
            match &event {
                Event::Intent { step, .. } => {
                    let names: Vec<&str> = recorded.iter().map(Event::name).collect();
                    prop_assert!(names.contains(&"approved") && names.contains(&"claimed"), "{:?}", names);
                    prop_assert!(*step < steps);
                    prop_assert_eq!(done(&recorded), *step, "every step before it is done, and none twice");
                }
                Event::Sent { step, .. } | Event::Outcome { step, .. } | Event::ReadBack { step, .. } => {
                    let intents = recorded.iter().filter(|event| matches!(event, Event::Intent { .. })).count();
                    prop_assert_eq!(intents, usize::try_from(*step).unwrap() + 1, "it is the step that was begun last");
                }
                Event::Applied => prop_assert_eq!(done(&recorded), steps),
                Event::Void { .. } | Event::Expired | Event::Cancelled { .. } | Event::Rejected { .. } => {
                    let sent = recorded.iter().any(|event| matches!(event, Event::Intent { .. }));
                    prop_assert!(!sent, "{event:?} says that nothing was done");
                }
                _ => {}
            }
            recorded.push(event);
        }
        let settled = recorded.iter().filter(|event| matches!(event, Event::Settled { .. })).count();
        prop_assert!(settled <= 1);
        let intents: Vec<u32> = recorded.iter().filter_map(|event| match event {
            Event::Intent { step, .. } => Some(*step),
            _ => None,
        }).collect();
        prop_assert!(intents.iter().copied().eq(0..u32::try_from(intents.len()).unwrap()), "{intents:?}");
    }

    /// A history that cannot have been recorded is nothing to act upon.
    #[test]
    fn what_cannot_be_is_for_a_person(history in any_history(), steps in 1_u32..3) {
        let mut at = State::New;
        for (place, event) in history.iter().enumerate() {
            let Some(next) = after(at, event, steps) else {
                prop_assert_eq!(state(&history[..=place], steps), State::Indeterminate);
                return Ok(());
            };
            at = next;
        }
        prop_assert_eq!(state(&history, steps), at);
    }

    #[test]
    fn events_are_read_as_they_were_written(event in any_event()) {
        let text = serde_json::to_string(&event).unwrap();
        let read: Event = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &event);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&json["event"], event.name(), "the name in its column is the one in its text");
    }

    #[test]
    fn no_other_text_is_an_id(text in "(chg_)?[0-9a-z]{24,27}|.{0,40}") {
        if let Ok(id) = ChangeId::parse(&text) {
            prop_assert_eq!(id.as_str(), text);
        }
    }

    #[test]
    fn newer_ids_come_later(one in 0_u64..1 << 47, other in 0_u64..1 << 47) {
        let id = |millis| ChangeId::new(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)).unwrap();
        let (first, second) = (id(one), id(other));
        prop_assert_eq!(ChangeId::parse(first.as_str()).unwrap(), first.clone());
        prop_assert!(one == other || (one < other) == (first < second), "{} {}", first, second);
        prop_assert_ne!(id(one), first, "chance tells those of one moment apart");
    }
}

/// How many steps are done, counted without the table.
fn done(events: &[Event]) -> u32 {
    let mut last: std::collections::BTreeMap<u32, StepOutcome> = std::collections::BTreeMap::new();
    for event in events {
        if let Event::Outcome { step, outcome, .. } = event {
            last.insert(*step, *outcome);
        }
    }
    u32::try_from(last.values().filter(|outcome| matches!(outcome, StepOutcome::Ok | StepOutcome::Warnings)).count())
        .unwrap()
}

#[test]
fn ways_to_each_end() {
    let begun = [Event::Planned, Event::Approved { by: by() }, claimed(), intent(0)];
    let sent = Event::Sent { step: 0, upid: None };
    let unknown = outcome(0, StepOutcome::Unknown);
    let lost = Event::Indeterminate { message: by() };
    let settled = Event::Settled { by: by(), outcome: StepOutcome::Ok, message: by() };
    for (more, end) in [
        (vec![outcome(0, StepOutcome::Ok), Event::Applied], State::Applied),
        (vec![sent.clone(), outcome(0, StepOutcome::Warnings), Event::Applied], State::Applied),
        (vec![outcome(0, StepOutcome::NotSent), Event::Failed], State::Failed),
        (vec![sent.clone(), claimed(), unknown.clone(), outcome(0, StepOutcome::Ok), Event::Applied], State::Applied),
        (vec![unknown.clone(), lost.clone()], State::Indeterminate),
        (vec![claimed(), lost, settled], State::Settled),
        // What is unknown is neither failed nor applied.
        (vec![unknown.clone(), Event::Failed], State::Indeterminate),
        (vec![unknown, Event::Applied], State::Indeterminate),
    ] {
        let history: Vec<&Event> = begun.iter().chain(&more).collect();
        assert_eq!(state(history, 1), end, "{more:?}");
    }
}
