//! How much one server, and one token, may ask at once and in a second.
//!
//! These limits keep a client in a loop from taking the server from the others. What PVE itself can bear is decided
//! where PVE is called.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits of the HTTP server; the defaults suit one host with a handful of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections; more wait to be accepted.
    pub connections: usize,
    /// Requests in flight, over all tokens; more get 503.
    pub in_flight: usize,
    /// Requests in flight of one token; more get 429.
    pub in_flight_per_token: usize,
    /// Requests that one token may send in a second, over time; more get 429.
    pub requests_per_second: u32,
    /// Requests that a token which was quiet may send at once.
    pub burst: u32,
    /// Bytes of a request's body; more get 413.
    pub body_bytes: usize,
    /// How long a request's body may take to arrive.
    pub body_time: Duration,
    /// How long a stopping server waits for requests in flight.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            in_flight: 256,
            in_flight_per_token: 64,
            requests_per_second: 2_000,
            burst: 10_000,
            body_bytes: 1024 * 1024,
            body_time: Duration::from_secs(10),
            drain_time: Duration::from_secs(30),
        }
    }
}

/// Why a token has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooMuch {
    /// Too many requests at once.
    InFlight,
    /// Too many requests in a short time.
    Rate,
}

/// Keeps the count of every token that was recognised since the start.
#[derive(Debug)]
pub(super) struct TokenLimits {
    in_flight: usize,
    per_second: f64,
    burst: f64,
    tokens: Mutex<HashMap<Box<str>, TokenState>>,
}

#[derive(Debug)]
struct TokenState {
    slots: Arc<Semaphore>,
    left: f64,
    counted: Instant,
}

impl TokenLimits {
    /// Starts counting.
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            in_flight: limits.in_flight_per_token,
            per_second: f64::from(limits.requests_per_second),
            burst: f64::from(limits.burst.max(1)),
            tokens: Mutex::default(),
        }
    }

    /// Lets one request of a token in, until the permit is dropped.
    pub(super) fn enter(&self, id: &str, now: Instant) -> Result<OwnedSemaphorePermit, TooMuch> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if !tokens.contains_key(id) {
            let slots = Arc::new(Semaphore::new(self.in_flight));
            tokens.insert(id.into(), TokenState { slots, left: self.burst, counted: now });
        }
        let Some(state) = tokens.get_mut(id) else { return Err(TooMuch::Rate) };
        let passed = now.saturating_duration_since(state.counted).as_secs_f64();
        state.left = (state.left + passed * self.per_second).min(self.burst);
        state.counted = now;
        if state.left < 1.0 {
            return Err(TooMuch::Rate);
        }
        let permit = Arc::clone(&state.slots).try_acquire_owned().map_err(|_| TooMuch::InFlight)?;
        state.left -= 1.0;
        Ok(permit)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

    use super::*;

    fn limits(in_flight_per_token: usize, requests_per_second: u32, burst: u32) -> TokenLimits {
        TokenLimits::new(&Limits { in_flight_per_token, requests_per_second, burst, ..Limits::default() })
    }

    #[test]
    fn a_burst_then_the_rate() {
        let (limits, start) = (limits(100, 10, 3), Instant::now());
        for _ in 0..3 {
            drop(limits.enter("a", start).unwrap());
        }
        assert_eq!(limits.enter("a", start).unwrap_err(), TooMuch::Rate);
        drop(limits.enter("b", start).unwrap());
        let later = start + Duration::from_millis(101);
        drop(limits.enter("a", later).unwrap());
        assert_eq!(limits.enter("a", later).unwrap_err(), TooMuch::Rate);
    }

    #[test]
    fn slots_come_back() {
        let (limits, now) = (limits(2, 1000, 1000), Instant::now());
        let (first, _second) = (limits.enter("a", now).unwrap(), limits.enter("a", now).unwrap());
        assert_eq!(limits.enter("a", now).unwrap_err(), TooMuch::InFlight);
        drop(limits.enter("b", now).unwrap());
        drop(first);
        drop(limits.enter("a", now).unwrap());
    }
}
