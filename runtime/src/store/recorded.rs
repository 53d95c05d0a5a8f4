//! The proof that something is on record: only the store makes one.

use std::time::Instant;

use super::change::ChangeId;

/// A value that the store has on record, durably. The write path takes it by value, so each is good for one write.
///
/// Nobody else can make one:
///
/// ```compile_fail
/// use pvegate::store::{Intent, Recorded};
/// fn forge(intent: Intent, change: pvegate::store::ChangeId) -> Recorded<Intent> {
///     Recorded { value: intent, change, step: 0, good_until: std::time::Instant::now() }
/// }
/// ```
///
/// nor take one for two writes:
///
/// ```compile_fail
/// use pvegate::store::{Intent, Recorded};
/// fn twice(intent: Recorded<Intent>) -> (Recorded<Intent>, Recorded<Intent>) {
///     (intent.clone(), intent)
/// }
/// ```
#[derive(Debug)]
#[must_use = "what is on record is to be done, or its outcome recorded as not sent"]
pub struct Recorded<T> {
    value: T,
    change: ChangeId,
    step: u32,
    good_until: Instant,
}

impl<T> Recorded<T> {
    pub(super) fn new(value: T, change: ChangeId, step: u32, good_until: Instant) -> Self {
        Self { value, change, step, good_until }
    }

    /// What is on record.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The change that it belongs to.
    pub fn change(&self) -> &ChangeId {
        &self.change
    }

    /// The step of the change, from 0.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Until when the lease still covers what it needs. To be looked at just before the first byte: recording may have
    /// taken long, and the process may have been held up since.
    pub fn good_until(&self) -> Instant {
        self.good_until
    }

    /// What is on record, for whoever has used it.
    pub fn into_value(self) -> T {
        self.value
    }
}
