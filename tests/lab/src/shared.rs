//! What all connections and tasks of a lab share: its cluster, its journal, the faults in force.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::daemon::Daemons;
use crate::fault::{Fault, Faults};
use crate::journal::Journal;
use crate::options::Options;
use crate::schema::Schema;
use crate::state::Cluster;

const NODE_TIME_LIMIT: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What all connections and tasks share.
pub(crate) struct Shared {
    pub(crate) schema: &'static Schema,
    pub(crate) cluster: RwLock<Cluster>,
    pub(crate) journal: Journal,
    pub(crate) faults: RwLock<Faults>,
    pub(crate) latency: bool,
    pub(crate) stop: CancellationToken,
    pub(crate) running: TaskTracker,
    pub(crate) workers: crate::worker::Workers,
    pub(crate) daemons: Daemons,
    /// How many connections there were.
    pub(crate) connections: AtomicU64,
    /// How many requests are held.
    pub(crate) held: AtomicUsize,
}

/// Counts one request that is held, for as long as it is.
struct Held<'a>(&'a AtomicUsize);

impl<'a> Held<'a> {
    fn one(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    pub(crate) fn new(options: &Options, cluster: Cluster) -> Self {
        let counted = cluster.nodes.iter().filter(|_| options.workers).map(|node| node.name.as_str());
        Self {
            schema: Schema::pinned(options.profile.release()),
            daemons: Daemons::of(counted),
            cluster: RwLock::new(cluster),
            journal: Journal::default(),
            faults: RwLock::default(),
            latency: options.latency,
            stop: CancellationToken::new(),
            running: TaskTracker::new(),
            workers: crate::worker::Workers::default(),
            connections: AtomicU64::new(0),
            held: AtomicUsize::new(0),
        }
    }

    /// Looks at the cluster.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Cluster) -> T) -> T {
        look(&self.cluster.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the cluster.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        change(&mut self.cluster.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn faulty(&self, ask: impl FnOnce(&Faults) -> bool) -> bool {
        ask(&self.faults.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn faults_mut(&self) -> RwLockWriteGuard<'_, Faults> {
        self.faults.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of a kind that happens to this request of an operation, if one does.
    pub(crate) fn struck<T>(&self, operation: Option<&str>, kind: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        if self.faulty(Faults::is_empty) {
            return None;
        }
        self.faults_mut().take(operation, kind)
    }

    /// The same of one that says no more than that it happens.
    pub(crate) fn hit(&self, operation: Option<&str>, fault: &Fault) -> bool {
        self.struck(operation, |set| (set == fault).then_some(())).is_some()
    }

    /// Holds a request while a fault says so.
    pub(crate) async fn holds(&self, operation: Option<&str>, fault: &Fault) {
        if !self.faulty(|faults| faults.applies(operation, fault)) {
            return;
        }
        let _held = Held::one(&self.held);
        while self.faulty(|faults| faults.applies(operation, fault)) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Keeps a task from ending while a fault says so.
    pub(crate) async fn holds_tasks(&self) {
        while self.faulty(|faults| faults.has(&Fault::HoldTasks)) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits while a node hangs; says whether PVE gave up waiting for it.
    pub(crate) async fn hangs(&self, node: &str) -> bool {
        let mut waited = Duration::ZERO;
        while self.faulty(|faults| faults.hanging(node)) {
            if waited >= NODE_TIME_LIMIT {
                return true;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
            waited += LOOK_AGAIN;
        }
        false
    }
}
