//! Stops an agent that goes round in circles: the same call refused again and again, or change upon change.
//!
//! What counts is one principal's own calls within a short time. Whoever repeats a refused call gets its refusal a
//! few times more slowly, and then none is made at all until a pause is over; other calls go on. Too many changes
//! pause all changes of that principal. A pause ends by itself, and says when.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value as Json};
use tokio::time::Instant;

use crate::mcp::Refusal;

/// When it is too much. 0 for a count switches it off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Refusals of one call within the time, after which it is not made any more.
    pub refusals: u32,
    /// Changes within the time, after which no more are made.
    pub changes: u32,
    /// The time that is looked back.
    pub within: Duration,
    /// How long a pause lasts.
    pub pause: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { refusals: 10, changes: 60, within: Duration::from_mins(1), pause: Duration::from_mins(1) }
    }
}

/// From this part of the allowed refusals on, answers come later and later.
const SLOW_FROM: u32 = 2;

/// How much later each answer comes than the one before.
const SLOWER_BY: Duration = Duration::from_millis(250);

/// Most calls that are remembered of one principal: the oldest are forgotten first.
const MOST: usize = 256;

/// One call, as far as it is the same call when it is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Same(u64);

impl Same {
    /// A tool with its arguments. A key that is new in each try makes no other call of it.
    pub fn call(tool: &str, arguments: &Map<String, Json>) -> Self {
        let mut hasher = DefaultHasher::new();
        tool.hash(&mut hasher);
        for (name, value) in arguments.iter().filter(|(name, _)| *name != "idempotency_key") {
            name.hash(&mut hasher);
            value.to_string().hash(&mut hasher);
        }
        Self(hasher.finish())
    }
}

/// Counts for all principals.
#[derive(Debug, Default)]
pub struct Guard {
    bounds: Bounds,
    principals: Mutex<HashMap<String, Recent>>,
}

#[derive(Debug, Default)]
struct Recent {
    refused: HashMap<Same, Count>,
    changes: Count,
}

/// How often something was in the present time, and whether it pauses.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    since: Option<Instant>,
    number: u32,
    paused_until: Option<Instant>,
}

impl Count {
    /// One more; reaching the limit begins a pause.
    fn add(&mut self, limit: u32, bounds: &Bounds, now: Instant) {
        if self.since.is_none_or(|since| now.duration_since(since) >= bounds.within) {
            *self = Self { since: Some(now), ..Self::default() };
        }
        self.number += 1;
        if limit > 0 && self.number >= limit {
            *self = Self { paused_until: Some(now + bounds.pause), ..Self::default() };
        }
    }

    /// How long it still pauses.
    fn pause(&self, now: Instant) -> Option<Duration> {
        self.paused_until.and_then(|until| until.checked_duration_since(now)).filter(|left| !left.is_zero())
    }
}

impl Guard {
    /// With these bounds.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, principals: Mutex::default() }
    }

    fn with<T>(&self, principal: &str, look: impl FnOnce(&mut Recent) -> T) -> T {
        let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
        if !principals.contains_key(principal) {
            principals.insert(principal.to_owned(), Recent::default());
        }
        look(principals.entry(principal.to_owned()).or_default())
    }

    /// Whether a call may be made now. One that changes something counts from here.
    pub fn enter(&self, principal: &str, call: Same, changes: bool) -> Result<(), Refusal> {
        let now = Instant::now();
        self.with(principal, |recent| {
            if let Some(left) = recent.refused.get(&call).and_then(|count| count.pause(now)) {
                return Err(self.repeats(left));
            }
            if changes {
                if let Some(left) = recent.changes.pause(now) {
                    return Err(self.too_many_changes(left));
                }
                recent.changes.add(self.bounds.changes, &self.bounds, now);
            }
            Ok(())
        })
    }

    /// Takes note of what came of a call: how long its answer is to be held back.
    pub fn leave(&self, principal: &str, call: Same, refused: bool) -> Duration {
        let now = Instant::now();
        self.with(principal, |recent| {
            if !refused {
                recent.refused.remove(&call);
                return Duration::ZERO;
            }
            if self.bounds.refusals == 0 {
                return Duration::ZERO;
            }
            if recent.refused.len() >= MOST && !recent.refused.contains_key(&call) {
                recent.forget(&self.bounds, now);
            }
            let count = recent.refused.entry(call).or_default();
            count.add(self.bounds.refusals, &self.bounds, now);
            SLOWER_BY * count.number.saturating_sub(self.bounds.refusals / SLOW_FROM)
        })
    }

    fn repeats(&self, left: Duration) -> Refusal {
        Refusal::new(
            "runaway",
            format!(
                "this same call was refused {} times in a short time, so it is not made again for {} s",
                self.bounds.refusals,
                seconds(left)
            ),
            "Do not repeat it: read the earlier refusals, change the call, or ask a person.",
        )
    }

    fn too_many_changes(&self, left: Duration) -> Refusal {
        Refusal::new(
            "runaway",
            format!(
                "this token began {} changes within {} s, so it makes no more for {} s",
                self.bounds.changes,
                self.bounds.within.as_secs(),
                seconds(left)
            ),
            "Stop and look at what was changed (reads go on); ask a person whether all of it is meant.",
        )
    }
}

impl Recent {
    /// Makes room: what is over goes, and if nothing is, the call that was refused first.
    fn forget(&mut self, bounds: &Bounds, now: Instant) {
        let over = |count: &Count| {
            count.pause(now).is_none() && count.since.is_none_or(|since| now.duration_since(since) >= bounds.within)
        };
        self.refused.retain(|_, count| !over(count));
        if self.refused.len() >= MOST {
            let oldest = self.refused.iter().min_by_key(|(_, count)| count.since).map(|(call, _)| *call);
            oldest.and_then(|call| self.refused.remove(&call));
        }
    }
}

fn seconds(left: Duration) -> u64 {
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

    use serde_json::json;

    use super::*;

    fn call(vmid: u32) -> Same {
        Same::call("start_vm", json!({"cluster": "lab", "vmid": vmid}).as_object().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_refused_again_and_again_is_slowed_and_then_not_made() {
        let guard = Guard::default();
        let waits: Vec<u128> = (0..10)
            .map(|_| {
                guard.enter("ci", call(100), false).unwrap();
                guard.leave("ci", call(100), true).as_millis()
            })
            .collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 250, 500, 750, 1000, 0]);
        let refusal = guard.enter("ci", call(100), false).unwrap_err();
        assert_eq!(refusal.code, "runaway");
        assert!(refusal.message.contains("for 60 s"), "{refusal:?}");
        // Others, and other calls, go on.
        guard.enter("ci", call(101), false).unwrap();
        guard.enter("other", call(100), false).unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        guard.enter("ci", call(100), false).unwrap_err();
        tokio::time::advance(Duration::from_secs(1)).await;
        guard.enter("ci", call(100), false).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn success_and_time_make_it_forgotten() {
        let guard = Guard::default();
        let refused = |times| {
            for _ in 0..times {
                guard.leave("ci", call(100), true);
            }
        };
        refused(9);
        guard.leave("ci", call(100), false);
        refused(9);
        tokio::time::advance(Duration::from_mins(1)).await;
        refused(9);
        guard.enter("ci", call(100), false).unwrap();
        refused(1);
        guard.enter("ci", call(100), false).unwrap_err();
    }

    #[test]
    fn a_new_key_makes_no_new_call() {
        let with = |key: &str| json!({"vmid": 100, "idempotency_key": key});
        let same = |json: &Json| Same::call("start_vm", json.as_object().unwrap());
        assert_eq!(same(&with("a")), same(&with("b")));
        assert_ne!(same(&with("a")), same(&json!({"vmid": 101})));
        assert_ne!(same(&json!({})), Same::call("stop_vm", &Map::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_changes_pause_changes_and_no_reads() {
        let guard = Guard::new(Bounds { changes: 3, ..Bounds::default() });
        for vmid in 0..3 {
            guard.enter("ci", call(vmid), true).unwrap();
        }
        let refusal = guard.enter("ci", call(9), true).unwrap_err();
        assert_eq!(refusal.code, "runaway");
        guard.enter("ci", call(9), false).unwrap();
        guard.enter("other", call(9), true).unwrap();
        tokio::time::advance(Duration::from_mins(1)).await;
        guard.enter("ci", call(9), true).unwrap();
    }

    #[test]
    fn what_is_remembered_is_bounded_and_nothing_is_no_bound() {
        let guard = Guard::default();
        for vmid in 0..5_000 {
            guard.leave("ci", call(vmid), true);
        }
        assert_eq!(guard.with("ci", |recent| recent.refused.len()), MOST);
        let guard = Guard::new(Bounds { refusals: 0, changes: 0, ..Bounds::default() });
        for _ in 0..1_000 {
            guard.enter("ci", call(1), true).unwrap();
            assert_eq!(guard.leave("ci", call(1), true), Duration::ZERO);
        }
    }
}
