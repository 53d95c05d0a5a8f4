//! Decides whether something that failed is left alone: an address of the cluster, or a node behind it. After each
//! failure it rests for a pause that grows, then one caller tries it while the others still know better.

use super::PveError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Pause after the first failure; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(10);
/// How long one caller tries alone: what it asks for may take long on something that is back.
const ALONE: Duration = Duration::from_secs(5);

/// How one address or node fared.
#[derive(Debug, Default)]
pub(super) struct Health {
    state: Mutex<State>,
    /// Requests that nobody waits for any more and that are still unanswered.
    late: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Doubts that are not yet failures, in a row.
    doubts: u32,
    down: Option<(Instant, PveError)>,
    /// Since when somebody tries whether it is back.
    tried: Option<Instant>,
}

/// What a caller who wants to use it has to know.
#[derive(Debug)]
pub(super) enum Leave<'a> {
    /// Nothing speaks against it.
    Free,
    /// It failed before; the caller is the one who tries whether it is back.
    Trial(Trial<'a>),
    /// It failed a moment ago, or somebody tries it already: how long to wait, and why.
    Wait(Duration, PveError),
}

impl Health {
    /// Asks for leave to use it.
    pub(super) fn ask(&self, now: Instant) -> Leave<'_> {
        let mut state = self.lock();
        match &state.down {
            None => Leave::Free,
            Some((until, error)) if *until > now => Leave::Wait(*until - now, error.clone()),
            Some((_, error)) if state.tried.is_some_and(|since| now < since + ALONE) => {
                Leave::Wait(FIRST, error.clone())
            }
            Some(_) => {
                state.tried = Some(now);
                Leave::Trial(Trial { health: self, since: now })
            }
        }
    }

    /// Why it is not to be counted on, without asking for leave.
    pub(super) fn trouble(&self) -> Option<PveError> {
        self.lock().down.as_ref().map(|(_, error)| error.clone())
    }

    /// Whether there are requests that nobody waits for any more.
    pub(super) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed) > 0
    }

    /// Counts a request that nobody waits for any more, until the guard is dropped.
    pub(super) fn late(&self) -> Late<'_> {
        self.late.fetch_add(1, Ordering::Relaxed);
        Late(self)
    }

    /// It answered, whatever it said.
    pub(super) fn answered(&self) {
        let mut state = self.lock();
        let tried = state.tried;
        *state = State { tried, ..State::default() };
    }

    /// It certainly failed.
    pub(super) fn failed(&self, now: Instant, error: PveError) {
        self.lock().fail(now, error);
    }

    /// It did not answer in time, which one slow request may have caused: twice in a row is a failure.
    pub(super) fn doubted(&self, now: Instant, error: PveError) {
        let mut state = self.lock();
        state.doubts = state.doubts.saturating_add(1);
        if state.doubts > 1 || state.down.is_some() {
            state.fail(now, error);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fail(&mut self, now: Instant, error: PveError) {
        // Callers that failed together count once.
        if self.down.as_ref().is_some_and(|(until, _)| *until > now) {
            return;
        }
        let pause = FIRST.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.down = Some((now + pause, error));
    }
}

/// An attempt to use what failed before, for a while the only one. Dropped, also without a result, it lets the next one
/// try.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    health: &'a Health,
    since: Instant,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        let mut state = self.health.lock();
        // A later one may have begun meanwhile.
        if state.tried == Some(self.since) {
            state.tried = None;
        }
    }
}

/// A request that nobody waits for any more.
#[derive(Debug)]
pub(super) struct Late<'a>(&'a Health);

impl Drop for Late<'_> {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a panic is how a test fails")]

    use super::*;
    use crate::pve::Kind;

    fn error() -> PveError {
        PveError::new(Kind::NodeDown, "down")
    }

    #[test]
    fn one_tries_while_the_others_wait() {
        let (health, now) = (Health::default(), Instant::now());
        assert!(matches!(health.ask(now), Leave::Free));
        health.failed(now, error());
        assert!(matches!(health.ask(now), Leave::Wait(left, _) if left == FIRST));
        let later = now + FIRST;
        let Leave::Trial(trial) = health.ask(later) else { panic!("the pause is over") };
        assert!(matches!(health.ask(later), Leave::Wait(..)), "somebody tries already");
        drop(trial);
        assert!(matches!(health.ask(later), Leave::Trial(_)), "who gave up lets the next one try");
        health.failed(later, error());
        assert!(matches!(health.ask(later), Leave::Wait(left, _) if left == FIRST * 2), "the pause grows");
        assert!(health.trouble().is_some());
        health.answered();
        assert!(matches!(health.ask(later), Leave::Free));
        assert!(health.trouble().is_none());
    }

    #[test]
    fn pauses_end_and_failures_together_count_once() {
        let (health, mut now) = (Health::default(), Instant::now());
        for _ in 0..40 {
            health.failed(now, error());
            health.failed(now, error());
            now += LONGEST;
        }
        health.failed(now, error());
        assert!(matches!(health.ask(now), Leave::Wait(left, _) if left == LONGEST));
    }

    #[test]
    fn doubts_count_twice_in_a_row() {
        let (health, now) = (Health::default(), Instant::now());
        health.doubted(now, error());
        assert!(matches!(health.ask(now), Leave::Free));
        health.answered();
        health.doubted(now, error());
        assert!(matches!(health.ask(now), Leave::Free));
        health.doubted(now, error());
        assert!(matches!(health.ask(now), Leave::Wait(..)));
    }

    #[test]
    fn late_requests_are_counted_until_they_end() {
        let health = Health::default();
        let late = health.late();
        assert!(health.is_late());
        drop(late);
        assert!(!health.is_late());
    }
}
