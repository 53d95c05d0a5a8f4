//! How much one server, and one token, may ask at once and in a second.
//!
//! These limits keep a client in a loop from taking the server from the others. Whoever is a little too fast waits
//! for a turn, so that many callers at once are slowed and not refused; who would have to wait long is refused at
//! once and told when to come back. What PVE itself can bear is decided where PVE is called.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::runaway::Bounds;

/// Limits of the HTTP server; the defaults suit one host with a handful of agents. 0 switches one off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections; more wait to be accepted.
    pub connections: usize,
    /// Requests in flight, over all tokens; more wait, and then get 503.
    pub in_flight: usize,
    /// Requests in flight of one token; more wait, and then get 429.
    pub in_flight_per_token: usize,
    /// Requests that one token may send in a second, over time; more wait, and then get 429.
    pub requests_per_second: u32,
    /// Requests that a token which was quiet may send at once.
    pub burst: u32,
    /// Requests without a token of this server in a second; more get 429 in place of 401. All come from this machine,
    /// so their addresses say nothing, and they are counted together.
    pub strangers_per_second: u32,
    /// The same at once.
    pub strangers_burst: u32,
    /// How long a request waits for its turn, and then for a place.
    pub wait: Duration,
    /// Bytes of a request's body; more get 413.
    pub body_bytes: usize,
    /// Bytes of JSON in an answer; more are refused. Tools keep to budgets of their own, far below.
    pub answer_bytes: usize,
    /// When a token is taken to run in circles.
    pub runaway: Bounds,
    /// How long a request's body may take to arrive.
    pub body_time: Duration,
    /// How long a stopping server waits for requests in flight.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            in_flight: 64,
            in_flight_per_token: 32,
            requests_per_second: 20,
            burst: 40,
            strangers_per_second: 50,
            strangers_burst: 100,
            wait: Duration::from_secs(5),
            body_bytes: 1024 * 1024,
            answer_bytes: 1024 * 1024,
            runaway: Bounds::default(),
            body_time: Duration::from_secs(10),
            drain_time: Duration::from_secs(30),
        }
    }
}

/// 0 stands for none.
pub(super) fn bytes(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

/// As many places as a limit allows.
pub(super) fn places(limit: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(if limit == 0 { Semaphore::MAX_PERMITS } else { limit }))
}

/// A place, as soon as there is one within this time.
pub(super) async fn place(places: &Arc<Semaphore>, wait: Duration) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        return Some(place);
    }
    tokio::time::timeout(wait, Arc::clone(places).acquire_owned()).await.ok()?.ok()
}

/// Why a request has to come back later, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooMuch {
    /// Too many requests at once.
    InFlight,
    /// Too many requests in a short time.
    Rate {
        /// When a request like this one will be heard.
        after: Duration,
    },
}

/// The runtime's time, which tests can hold.
#[derive(Clone, Debug)]
struct Time(Instant);

impl Clock for Time {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

/// So many in a second.
#[derive(Debug)]
pub(super) struct Rate {
    limiter: RateLimiter<NotKeyed, InMemoryState, Time, NoOpMiddleware<Nanos>>,
    time: Time,
}

impl Rate {
    /// `None` if there is no limit.
    pub(super) fn new(per_second: u32, burst: u32) -> Option<Self> {
        let quota = Quota::per_second(NonZeroU32::new(per_second)?);
        let time = Time(Instant::now());
        let limiter = RateLimiter::direct_with_clock(
            quota.allow_burst(NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN)),
            time.clone(),
        );
        Some(Self { limiter, time })
    }

    /// Counts one, or says how long to wait.
    pub(super) fn check(&self) -> Result<(), Duration> {
        self.limiter.check().map_err(|not_until| not_until.wait_time_from(self.time.now()))
    }
}

/// Keeps the count of every token that was recognised since the start.
#[derive(Debug)]
pub(super) struct TokenLimits {
    limits: Limits,
    tokens: Mutex<HashMap<Box<str>, Arc<TokenState>>>,
}

#[derive(Debug)]
struct TokenState {
    places: Arc<Semaphore>,
    rate: Option<Rate>,
    /// Those who wait for their turn, first come, first served.
    queue: tokio::sync::Mutex<()>,
    waiting: AtomicU32,
}

/// Somebody who waits, until it is dropped.
struct Waits<'a>(&'a AtomicU32);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl TokenLimits {
    /// Starts counting.
    pub(super) fn new(limits: &Limits) -> Self {
        Self { limits: limits.clone(), tokens: Mutex::default() }
    }

    /// Lets one request of a token in when it is its turn and there is a place, until the permit is dropped.
    pub(super) async fn enter(&self, id: &str) -> Result<OwnedSemaphorePermit, TooMuch> {
        let state = self.state(id);
        if let Some(rate) = &state.rate {
            state.turn(rate, &self.limits).await?;
        }
        place(&state.places, self.limits.wait).await.ok_or(TooMuch::InFlight)
    }

    fn state(&self, id: &str) -> Arc<TokenState> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = tokens.get(id) {
            return Arc::clone(state);
        }
        let state = Arc::new(TokenState {
            places: places(self.limits.in_flight_per_token),
            rate: Rate::new(self.limits.requests_per_second, self.limits.burst),
            queue: tokio::sync::Mutex::default(),
            waiting: AtomicU32::new(0),
        });
        tokens.insert(id.into(), Arc::clone(&state));
        state
    }
}

impl TokenState {
    async fn turn(&self, rate: &Rate, limits: &Limits) -> Result<(), TooMuch> {
        let in_time = |after| if after > limits.wait { Err(TooMuch::Rate { after }) } else { Ok(()) };
        let (_turn, _waits) = if let Ok(turn) = self.queue.try_lock() {
            match rate.check() {
                Ok(()) => return Ok(()),
                Err(wait) => in_time(wait)?,
            }
            (turn, self.wait().1)
        } else {
            let (ahead, waits) = self.wait();
            if ahead > 0 {
                in_time(Duration::from_secs(1) * (ahead + 1) / limits.requests_per_second.max(1))?;
            }
            (self.queue.lock().await, waits)
        };
        while let Err(wait) = rate.check() {
            in_time(wait)?;
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    /// How many wait already, and one more.
    fn wait(&self) -> (u32, Waits<'_>) {
        (self.waiting.fetch_add(1, Ordering::Relaxed), Waits(&self.waiting))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

    use futures_util::future::join_all;

    use super::*;

    const NONE: Duration = Duration::ZERO;

    fn limits(limits: &Limits) -> TokenLimits {
        TokenLimits::new(limits)
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_then_the_rate_and_the_time_to_come_back() {
        let limits = limits(&Limits { requests_per_second: 10, burst: 3, wait: NONE, ..Limits::default() });
        for _ in 0..3 {
            drop(limits.enter("a").await.unwrap());
        }
        let after = Duration::from_millis(100);
        assert_eq!(limits.enter("a").await.unwrap_err(), TooMuch::Rate { after });
        drop(limits.enter("b").await.unwrap());
        tokio::time::advance(after).await;
        drop(limits.enter("a").await.unwrap());
        assert!(matches!(limits.enter("a").await, Err(TooMuch::Rate { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn many_at_once_wait_for_their_turn_and_too_many_are_refused_at_once() {
        let limits = limits(&Limits::default());
        let start = Instant::now();
        // The burst passes, five seconds of the rate wait, and no more.
        let entered = join_all((0..200).map(|_| async {
            let entered = limits.enter("a").await;
            (entered.is_ok(), entered.err(), start.elapsed())
        }))
        .await;
        assert_eq!(entered.iter().filter(|(entered, ..)| *entered).count(), 140);
        assert_eq!(entered.iter().filter(|(.., waited)| *waited == NONE).count(), 40 + 60);
        assert!(entered.iter().all(|(entered, _, waited)| !entered || *waited <= Duration::from_secs(5)));
        assert_eq!(entered.last().unwrap().1, Some(TooMuch::Rate { after: Duration::from_millis(5050) }));
    }

    #[tokio::test(start_paused = true)]
    async fn thirty_two_callers_of_one_token_are_slowed_and_never_refused() {
        let limits = limits(&Limits::default());
        let start = Instant::now();
        join_all((0..32).map(|_| async {
            for _ in 0..20 {
                drop(limits.enter("a").await.unwrap());
            }
        }))
        .await;
        // 640 calls, of which 40 pass at once.
        assert_eq!(start.elapsed(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn places_come_back_to_those_who_wait() {
        let limits = limits(&Limits {
            in_flight_per_token: 2,
            requests_per_second: 0,
            wait: Duration::from_secs(1),
            ..Limits::default()
        });
        let (first, _second) = (limits.enter("a").await.unwrap(), limits.enter("a").await.unwrap());
        assert_eq!(limits.enter("a").await.unwrap_err(), TooMuch::InFlight);
        drop(limits.enter("b").await.unwrap());
        let (third, ()) = tokio::join!(limits.enter("a"), async { drop(first) });
        drop(third.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_waiting_is_not_counted() {
        let limits = limits(&Limits { requests_per_second: 1, burst: 1, ..Limits::default() });
        drop(limits.enter("a").await.unwrap());
        for _ in 0..50 {
            let gave_up = tokio::time::timeout(Duration::from_millis(1), limits.enter("a")).await;
            assert!(gave_up.is_err());
        }
        drop(limits.enter("a").await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_no_limit() {
        let limits =
            limits(&Limits { in_flight_per_token: 0, requests_per_second: 0, wait: NONE, ..Limits::default() });
        let entered = join_all((0..10_000).map(|_| limits.enter("a"))).await;
        assert!(entered.iter().all(Result::is_ok));
    }
}
