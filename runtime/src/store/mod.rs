//! What is remembered about changes: their events, who works on them, what was sent, and whether anything may be sent.
//!
//! Races are decided here and nowhere else: by unique keys, and by inserts and updates with a condition, each in one
//! statement or transaction. What was read before never decides alone. So the trait holds for a database that several
//! servers share and that shows each statement the newest committed rows.
//!
//! Secrets are never handed to it.

mod change;
mod error;
mod event;
mod recorded;
mod sqlite;
mod state;
#[cfg(test)]
mod tests;
mod time;

use std::time::{Duration, SystemTime};

use async_trait::async_trait;

pub use change::{Begun, Change, ChangeId, Filter, NewChange, NoChangeId, Step};
pub use error::{Freeze, StoreError};
pub use event::{Event, Happened, Intent, StepOutcome};
pub use recorded::Recorded;
pub use sqlite::{OpenError, SqliteStore};
use state::after;
pub use state::{State, allowed, state};

/// Work on a change, for as long as the lease lasts. A copy is the same claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    change: ChangeId,
    holder: String,
    /// Grows each time that another takes over, so that who was slow is told from who came later.
    number: i64,
    until: SystemTime,
}

impl Claim {
    /// The change.
    pub fn change(&self) -> &ChangeId {
        &self.change
    }

    /// Who holds it.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Until when, by the store's clock, unless it was renewed since.
    pub fn until(&self) -> SystemTime {
        self.until
    }

    /// Whether it may send. Who took over from somebody else may only find out what came of it.
    pub fn may_send(&self) -> bool {
        self.number == 1
    }
}

/// What is known about which cluster a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identified {
    /// It is recorded now.
    New,
    /// It is what was recorded.
    Same,
    /// Another identity is recorded under this name, and stays.
    Changed {
        /// The one that is recorded.
        known: String,
    },
    /// The identity is recorded under another name. Nothing is recorded.
    Twice {
        /// That name.
        cluster: String,
    },
}

/// The memory of changes. Whatever it answers `Ok` to is on disk.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Records a wish, planned and, where policy approves it, approved. One principal's key stands for one wish ever.
    async fn begin(&self, new: NewChange) -> Result<Begun, StoreError>;

    /// The change that a principal's key stands for, if it stands for one.
    async fn keyed(&self, principal: &str, idempotency_key: &str) -> Result<Option<Change>, StoreError>;

    /// Begins to work on a change: on an approved one to do it, on one that somebody left to find out what came of it.
    /// Refused as [`StoreError::Claimed`] while another claim lasts.
    async fn claim(&self, change: &ChangeId, holder: &str, lease: Duration) -> Result<Claim, StoreError>;

    /// Lets a claim last `lease` from now. Refused once it has run out.
    async fn renew(&self, claim: &Claim, lease: Duration) -> Result<Claim, StoreError>;

    /// Records that a step is about to be sent. Refused if everything is frozen, if less of the lease is left than the
    /// intent needs, if the claim was taken over from another, and if the step has an intent or is not the next.
    async fn record_intent(&self, claim: &Claim, step: u32, intent: Intent) -> Result<Recorded<Intent>, StoreError>;

    /// Records what whoever works on a change did or found. A claim that has run out is good enough as long as nobody
    /// took over, so that no answer is lost. Not for intents.
    async fn append(&self, claim: &Claim, event: Event) -> Result<(), StoreError>;

    /// Records what was decided about a change that nobody works on: approved, rejected, void, expired, cancelled,
    /// settled.
    async fn decide(&self, change: &ChangeId, event: Event) -> Result<(), StoreError>;

    /// One change.
    async fn change(&self, change: &ChangeId) -> Result<Option<Change>, StoreError>;

    /// Changes, the newest first.
    async fn changes(&self, filter: Filter) -> Result<Vec<Change>, StoreError>;

    /// What nobody may be working on any more and has no end: everything under way, and what policy approved and nobody
    /// claimed. Whoever sees to them claims each first.
    async fn open(&self) -> Result<Vec<Change>, StoreError>;

    /// The principal whose change began a task.
    async fn started_by(&self, upid: &str) -> Result<Option<String>, StoreError>;

    /// Refuses every intent from now on. Replaces a freeze that is there.
    async fn freeze(&self, by: &str, reason: &str, until: Option<SystemTime>) -> Result<Freeze, StoreError>;

    /// Ends a freeze; answers the one that was ended.
    async fn unfreeze(&self, by: &str) -> Result<Option<Freeze>, StoreError>;

    /// The freeze that holds now.
    async fn frozen(&self) -> Result<Option<Freeze>, StoreError>;

    /// The identity that is recorded for a cluster.
    async fn identity(&self, cluster: &str) -> Result<Option<String>, StoreError>;

    /// Records which cluster a name stands for. The first one stays.
    async fn set_identity(&self, cluster: &str, identity: &str) -> Result<Identified, StoreError>;

    /// The operator says that a name stands for another cluster now. An identity that another name has is a conflict.
    async fn replace_identity(&self, cluster: &str, identity: &str) -> Result<(), StoreError>;
}
