//! What the events of a change come to, and which event may follow: one closed table, and nothing else decides it.

use serde::Serialize;

use super::event::{Event, StepOutcome};

/// Where a change stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Nothing is recorded.
    New,
    /// It waits for a decision.
    Planned,
    /// It may be done.
    Approved,
    /// Somebody works on it; no step was begun.
    Claimed,
    /// A step may be on its way.
    Intended {
        /// Which.
        step: u32,
    },
    /// A step was sent.
    Sent {
        /// Which.
        step: u32,
        /// Whether its task is known.
        task: bool,
    },
    /// What came of a step is recorded.
    Answered {
        /// Which.
        step: u32,
        /// What came of it.
        outcome: StepOutcome,
    },
    /// Every step is done.
    Applied,
    /// It ended before every step was done.
    Failed,
    /// A person says it may not be done.
    Rejected,
    /// It cannot be done any more, and nothing of it was.
    Void,
    /// Nobody did it in time.
    Expired,
    /// It is not wanted any more.
    Cancelled,
    /// A person has to find out what came of it.
    Indeterminate,
    /// A person has said what came of it.
    Settled,
}

impl State {
    /// What callers read as `state`.
    pub fn name(self) -> &'static str {
        match self {
            Self::New | Self::Planned => "planned",
            Self::Approved => "approved",
            Self::Claimed | Self::Intended { .. } | Self::Sent { .. } | Self::Answered { .. } => "applying",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Void => "void",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Indeterminate => "indeterminate",
            Self::Settled => "settled",
        }
    }

    /// Whether nothing can happen any more.
    pub fn has_ended(self) -> bool {
        matches!(
            self,
            Self::Applied
                | Self::Failed
                | Self::Rejected
                | Self::Void
                | Self::Expired
                | Self::Cancelled
                | Self::Settled
        )
    }

    /// Whether somebody works on it, or did when the server ended.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Claimed | Self::Intended { .. } | Self::Sent { .. } | Self::Answered { .. })
    }
}

/// What events come to, for a change of so many steps. A history that the table does not allow needs a person.
pub fn state<'a>(events: impl IntoIterator<Item = &'a Event>, steps: u32) -> State {
    events.into_iter().fold(State::New, |state, event| after(state, event, steps).unwrap_or(State::Indeterminate))
}

/// Whether an event may follow.
pub fn allowed(state: State, event: &Event, steps: u32) -> bool {
    after(state, event, steps).is_some()
}

/// The table: what comes after.
pub(super) fn after(state: State, event: &Event, steps: u32) -> Option<State> {
    use State as S;
    let next = match (state, event) {
        (S::New, Event::Planned) => S::Planned,

        (S::Planned, Event::Approved { .. }) => S::Approved,
        (S::Planned | S::Approved, Event::Rejected { .. }) => S::Rejected,
        (S::Planned | S::Approved, Event::Expired) => S::Expired,
        (S::Planned | S::Approved, Event::Cancelled { .. }) => S::Cancelled,
        (S::Planned | S::Approved | S::Claimed, Event::Void { .. }) => S::Void,

        (S::Approved, Event::Claimed { .. }) => S::Claimed,
        // Another takes over what was left behind, to find out what came of it.
        (S::Claimed | S::Intended { .. } | S::Sent { .. } | S::Answered { .. }, Event::Claimed { .. }) => state,

        (S::Claimed, Event::Intent { step: 0, .. }) if steps > 0 => S::Intended { step: 0 },
        (S::Answered { step, outcome }, Event::Intent { step: next, .. })
            if outcome.is_done() && step.checked_add(1) == Some(*next) && *next < steps =>
        {
            S::Intended { step: *next }
        }

        (S::Intended { step }, Event::Sent { step: of, upid }) if step == *of => S::Sent { step, task: upid.is_some() },
        // The task of a lost answer is found later.
        (S::Sent { step, task: false }, Event::Sent { step: of, upid: Some(_) }) if step == *of => {
            S::Sent { step, task: true }
        }

        (S::Intended { step } | S::Sent { step, .. }, Event::Outcome { step: of, outcome, .. }) if step == *of => {
            S::Answered { step, outcome: *outcome }
        }
        // What was unknown may be found out.
        (S::Answered { step, outcome: StepOutcome::Unknown }, Event::Outcome { step: of, outcome, .. })
            if step == *of =>
        {
            S::Answered { step, outcome: *outcome }
        }

        (S::Intended { step } | S::Sent { step, .. } | S::Answered { step, .. }, Event::ReadBack { step: of, .. })
            if step == *of =>
        {
            state
        }

        (S::Answered { step, outcome }, Event::Applied) if outcome.is_done() && step.checked_add(1) == Some(steps) => {
            S::Applied
        }
        (S::Claimed, Event::Failed) => S::Failed,
        (S::Answered { outcome, .. }, Event::Failed) if outcome != StepOutcome::Unknown => S::Failed,
        (S::Intended { .. } | S::Sent { .. } | S::Answered { .. }, Event::Indeterminate { .. }) => S::Indeterminate,

        (S::Indeterminate, Event::Settled { .. }) => S::Settled,
        _ => return None,
    };
    Some(next)
}
