//! What can happen to a change. Events are added and never altered.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::time;

/// An event as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// Its place among the events of its change, from 1.
    pub sequence: u32,
    /// When, by the store's clock.
    #[serde(with = "time")]
    pub at: SystemTime,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// It was recorded as wanted.
    Planned,
    /// It may be done.
    Approved {
        /// Who says so: a person, or `policy`.
        by: String,
    },
    /// It may not be done.
    Rejected {
        /// Who says so.
        by: String,
    },
    /// Somebody began to work on it. An approval is used up by that, whatever follows.
    Claimed {
        /// Who.
        holder: String,
        /// Until when, unless renewed.
        #[serde(with = "time")]
        until: SystemTime,
    },
    /// A step is about to be sent. Without it nothing is.
    Intent {
        /// Which, from 0.
        step: u32,
        /// What is sent.
        request: Intent,
    },
    /// A step was sent.
    Sent {
        /// Which.
        step: u32,
        /// The task that PVE began for it.
        upid: Option<String>,
    },
    /// What came of a step is known, or known to be unknown.
    Outcome {
        /// Which.
        step: u32,
        /// What came of it.
        outcome: StepOutcome,
        /// In words.
        message: String,
        /// The task that did it.
        upid: Option<String>,
    },
    /// A look at what a step was about.
    ReadBack {
        /// Which.
        step: u32,
        /// What it showed, without secrets.
        data: Json,
    },
    /// Every step is done.
    Applied,
    /// It ended before every step was done.
    Failed,
    /// It cannot be done any more, and nothing of it was.
    Void {
        /// Why.
        reason: String,
    },
    /// Nobody did it in time.
    Expired,
    /// It is not wanted any more.
    Cancelled {
        /// Who says so.
        by: String,
    },
    /// What came of a step cannot be found out: a person has to look.
    Indeterminate {
        /// What is open.
        message: String,
    },
    /// A person looked, and says what came of it.
    Settled {
        /// Who.
        by: String,
        /// What came of it.
        outcome: StepOutcome,
        /// In words.
        message: String,
    },
}

/// What a step sends, as far as it was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// The operation, as the catalog names it.
    pub operation: String,
    /// The node that it is sent to.
    pub node: Option<String>,
    /// The guest that it is about.
    pub vmid: Option<u32>,
    /// What was decided and why, for those who look later. Without secrets.
    pub decided: Json,
    /// How long sending may take: that much of the lease has to be left.
    pub needs: Duration,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// It is done.
    Ok,
    /// It is done, and PVE had something to say about it.
    Warnings,
    /// It was begun and failed; a part of it may be done.
    Failed,
    /// It was begun and ended well, and what it was for did not happen: it only asked the HA manager.
    NotAchieved,
    /// PVE refused it.
    Refused,
    /// Nothing reached PVE.
    NotSent,
    /// It may have been done.
    Unknown,
}

impl StepOutcome {
    /// Whether the step is done.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Ok | Self::Warnings)
    }
}

impl Event {
    /// The name by which it is stored.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Approved { .. } => "approved",
            Self::Rejected { .. } => "rejected",
            Self::Claimed { .. } => "claimed",
            Self::Intent { .. } => "intent",
            Self::Sent { .. } => "sent",
            Self::Outcome { .. } => "outcome",
            Self::ReadBack { .. } => "read_back",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Void { .. } => "void",
            Self::Expired => "expired",
            Self::Cancelled { .. } => "cancelled",
            Self::Indeterminate { .. } => "indeterminate",
            Self::Settled { .. } => "settled",
        }
    }

    /// The step that it is about.
    pub fn step(&self) -> Option<u32> {
        match self {
            Self::Intent { step, .. }
            | Self::Sent { step, .. }
            | Self::Outcome { step, .. }
            | Self::ReadBack { step, .. } => Some(*step),
            _ => None,
        }
    }

    /// The task that it tells of.
    pub fn upid(&self) -> Option<&str> {
        match self {
            Self::Sent { upid, .. } | Self::Outcome { upid, .. } => upid.as_deref(),
            _ => None,
        }
    }
}
