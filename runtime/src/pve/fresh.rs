//! Decides when something read from PVE may be used again: up to an age, renewed in the background before
//! that, and never by two requests at once.

use super::{Kind, PveError};
use arc_swap::ArcSwapOption;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex as Gate, OwnedMutexGuard};
use tokio::time::Instant;

/// How a value is read anew.
pub type Fetch<T> = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<T, PveError>> + Send>> + Send + Sync>;

/// A value with an age limit. Clones share it.
pub struct Fresh<T>(Arc<Inner<T>>);

struct Inner<T> {
    current: ArcSwapOption<Stamped<T>>,
    /// Held by the one request that is under way; the last failure lies behind it.
    gate: Arc<Gate<Option<(Instant, PveError)>>>,
    /// Counts expiries: what was asked for before the last one does not count.
    era: AtomicU64,
    limit: Duration,
    fetch: Fetch<T>,
}

/// The value and when it was asked for: what changed after that may not be in it.
struct Stamped<T> {
    value: Arc<T>,
    asked: Instant,
    era: u64,
}

impl<T> Clone for Fresh<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Fresh<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").field("limit", &self.0.limit).finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Fresh<T> {
    /// A value that is at most `limit` old.
    pub fn new(limit: Duration, fetch: Fetch<T>) -> Self {
        Self(Arc::new(Inner {
            current: ArcSwapOption::empty(),
            gate: Arc::default(),
            era: AtomicU64::new(0),
            limit,
            fetch,
        }))
    }

    /// The value; reads it if there is none that is fresh enough.
    pub async fn get(&self) -> Result<Arc<T>, PveError> {
        let arrived = Instant::now();
        if let Some((value, age)) = self.usable(arrived) {
            // Past half of its time it is renewed behind the reader's back, so that readers under load never wait.
            if age >= self.0.limit / 2
                && let Ok(gate) = Arc::clone(&self.0.gate).try_lock_owned()
            {
                tokio::spawn(Self::renew(Arc::clone(&self.0), gate));
            }
            return Ok(value);
        }
        let gate = Arc::clone(&self.0.gate).lock_owned().await;
        if let Some((value, _)) = self.usable(arrived) {
            return Ok(value);
        }
        // Who waited for a request that failed shares the failure.
        if let Some((_, error)) = gate.as_ref().filter(|(asked, _)| *asked >= arrived) {
            return Err(error.clone());
        }
        // In a task of its own, so that a caller who hangs up does not take the answer from those who wait.
        match tokio::spawn(Self::renew(Arc::clone(&self.0), gate)).await {
            Ok(answer) => answer,
            Err(error) => {
                Err(PveError::new(Kind::Other, "the server failed while reading from PVE; its log says more")
                    .context(error.to_string()))
            }
        }
    }

    /// Makes the next reader ask PVE again.
    pub fn expire(&self) {
        self.0.era.fetch_add(1, Ordering::SeqCst);
    }

    /// The value that is there, however old, with its age.
    pub fn last(&self) -> Option<(Arc<T>, Duration)> {
        self.0.current.load().as_ref().map(|stamped| (Arc::clone(&stamped.value), stamped.asked.elapsed()))
    }

    /// What a reader who came at `arrived` may use, with its age then.
    fn usable(&self, arrived: Instant) -> Option<(Arc<T>, Duration)> {
        let current = self.0.current.load();
        let stamped = current.as_ref()?;
        let age = arrived.saturating_duration_since(stamped.asked);
        let young = age < self.0.limit || stamped.asked >= arrived;
        (young && stamped.era == self.0.era.load(Ordering::SeqCst)).then(|| (Arc::clone(&stamped.value), age))
    }

    async fn renew(
        inner: Arc<Inner<T>>,
        mut gate: OwnedMutexGuard<Option<(Instant, PveError)>>,
    ) -> Result<Arc<T>, PveError> {
        let (asked, era) = (Instant::now(), inner.era.load(Ordering::SeqCst));
        match (inner.fetch)().await {
            Ok(value) => {
                let value = Arc::new(value);
                inner.current.store(Some(Arc::new(Stamped { value: Arc::clone(&value), asked, era })));
                *gate = None;
                Ok(value)
            }
            Err(error) => {
                // Stamped with its end: those who queued while it ran need not try again one by one.
                *gate = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use std::sync::atomic::AtomicU32;

    fn counted(limit: u64, fail: bool) -> (Fresh<u32>, Arc<AtomicU32>) {
        let count = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&count);
        let fetch: Fetch<u32> = Box::new(move || {
            let counter = Arc::clone(&counter);
            Box::pin(async move {
                let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::time::sleep(Duration::from_secs(1)).await;
                if fail { Err(PveError::new(Kind::Unreachable, "down")) } else { Ok(number) }
            })
        });
        (Fresh::new(Duration::from_secs(limit), fetch), count)
    }

    #[tokio::test(start_paused = true)]
    async fn many_readers_make_one_request() {
        let (fresh, count) = counted(10, false);
        let readers: Vec<_> = (0..50)
            .map(|_| {
                tokio::spawn({
                    let fresh = fresh.clone();
                    async move { fresh.get().await.map(|value| *value) }
                })
            })
            .collect();
        for reader in readers {
            assert_eq!(reader.await.unwrap().unwrap(), 1);
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_share_a_failure_and_a_later_one_tries_again() {
        let (fresh, count) = counted(10, true);
        let readers: Vec<_> = (0..50)
            .map(|_| {
                tokio::spawn({
                    let fresh = fresh.clone();
                    async move { fresh.get().await.unwrap_err().kind() }
                })
            })
            .collect();
        for reader in readers {
            assert_eq!(reader.await.unwrap(), Kind::Unreachable);
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(fresh.get().await.is_err());
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_ageing_value_is_renewed_without_waiting() {
        let (fresh, count) = counted(10, false);
        fresh.get().await.unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        let before = Instant::now();
        assert_eq!(*fresh.get().await.unwrap(), 1);
        assert_eq!(before.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(*fresh.get().await.unwrap(), 2);
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(*fresh.get().await.unwrap(), 3);
        assert_eq!(count.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn expiry_and_hanging_up() {
        let (fresh, count) = counted(10, false);
        fresh.get().await.unwrap();
        fresh.expire();
        assert_eq!(fresh.last().map(|(value, _)| *value), Some(1));
        // The caller is gone, the request goes on and serves the next one.
        assert!(tokio::time::timeout(Duration::from_millis(100), fresh.get()).await.is_err());
        assert_eq!(*fresh.get().await.unwrap(), 2);
        assert_eq!(count.load(Ordering::SeqCst), 2);
        let (always, count) = counted(0, false);
        always.get().await.unwrap();
        always.get().await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }
}
