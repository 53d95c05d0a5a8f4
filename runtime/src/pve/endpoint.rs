//! Decides which of a cluster's addresses is tried: the first that is not known to be down, with a growing
//! pause after each failure.

use super::PveError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Pause after the first failure; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(10);

/// One address and how it fared.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) base: String,
    health: Mutex<Health>,
}

#[derive(Debug, Default)]
struct Health {
    failures: u32,
    down: Option<(Instant, PveError)>,
}

impl Address {
    pub(super) fn new(base: String) -> Self {
        Self { base, health: Mutex::default() }
    }

    /// How long it is still left alone, and why.
    pub(super) fn pause(&self, now: Instant) -> Option<(Duration, PveError)> {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.down.as_ref().filter(|(until, _)| *until > now).map(|(until, error)| (*until - now, error.clone()))
    }

    /// It answered, whatever it said.
    pub(super) fn answered(&self) {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner) = Health::default();
    }

    /// It could not be reached, or is not the one that is trusted.
    pub(super) fn failed(&self, now: Instant, error: PveError) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        // Callers that failed together count once.
        if health.down.as_ref().is_some_and(|(until, _)| *until > now) {
            return;
        }
        let pause = FIRST.saturating_mul(1 << health.failures.min(8)).min(LONGEST);
        health.failures = health.failures.saturating_add(1);
        health.down = Some((now + pause, error));
    }
}
