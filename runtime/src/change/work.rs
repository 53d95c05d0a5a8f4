//! What the server has under way: nothing new begins once it stops, and what has begun gets the time to end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// All work on changes of this process.
#[derive(Debug)]
pub struct Work {
    tasks: TaskTracker,
    stopping: CancellationToken,
    holder: String,
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Default for Work {
    fn default() -> Self {
        let random = getrandom::u64().unwrap_or_default();
        Self {
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            // Of this process alone, also where another gets its number.
            holder: format!("pvegate {} {random:016x}", std::process::id()),
            turns: Mutex::default(),
        }
    }
}

impl Work {
    /// By what name this process claims changes.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Begins work that goes on whoever waits for it.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.tasks.spawn(work)
    }

    /// Whether nothing new begins.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Fires when nothing new begins any more.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Lets nothing new begin.
    pub fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
    }

    /// Waits until everything has ended, for that long at most; answers how much has not. That goes on at the next start.
    pub async fn drained(&self, within: Duration) -> usize {
        self.stop();
        // How much is left is counted either way.
        let _ = tokio::time::timeout(within, self.tasks.wait()).await;
        self.tasks.len()
    }

    /// The turn to send something about a subject: while somebody has it, a new task of ours on it is theirs.
    pub async fn turn(&self, subject: String) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(subject).or_default())
        };
        turn.lock_owned().await
    }
}
