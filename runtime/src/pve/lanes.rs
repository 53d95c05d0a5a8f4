//! Decides how many requests are in flight, so that callers queue here and not in PVE's few blocking workers.
//!
//! A node's pvedaemon has three workers for everyone. Two of them at most are ours, one at most with
//! something slow, so that people at the web interface and short reads always find one. Replicas of this
//! server share these numbers, as far as they can be divided.

use super::{Kind, PveError, Request};
use crate::values::NodeName;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Who works on a request on the PVE side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// pveproxy itself.
    Proxy,
    /// One of the three blocking workers of a node's pvedaemon.
    Daemon,
    /// The same, and known to hold the worker for long (agent, scan, smart, report).
    Slow,
}

/// In flight per node with the daemon.
const DAEMON: usize = 2;
/// In flight per node with something slow.
const SLOW: usize = 1;
/// In flight per cluster with the proxy.
const PROXY: usize = 16;
/// Waiting in one lane; beyond that callers are told to come back.
const WAITING: usize = 256;
/// Nodes that are remembered before those without requests are forgotten.
const NODES: usize = 1024;

/// The lanes of one cluster.
#[derive(Debug)]
pub(super) struct Lanes {
    /// In flight per node with the daemon.
    daemon: usize,
    proxy: Arc<Queue>,
    nodes: Mutex<HashMap<Option<NodeName>, Arc<NodeLanes>>>,
}

#[derive(Debug)]
struct NodeLanes {
    daemon: Arc<Queue>,
    slow: Arc<Queue>,
}

/// Leave to send; the place in the lane is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Leave {
    _places: [Option<OwnedSemaphorePermit>; 2],
}

impl Lanes {
    /// One replica's share of the places; there is always one.
    pub(super) fn new(replicas: NonZeroUsize) -> Self {
        let share = |places: usize| (places / replicas).max(1);
        Self { daemon: share(DAEMON), proxy: Arc::new(Queue::new(share(PROXY))), nodes: Mutex::default() }
    }

    /// Waits for a place until `deadline`.
    pub(super) async fn enter(&self, request: &Request, deadline: Instant) -> Result<Leave, PveError> {
        let places = match request.lane {
            Lane::Proxy => [Some(self.proxy.enter(request, deadline).await?), None],
            Lane::Daemon => [Some(self.of(request.node.as_ref()).daemon.enter(request, deadline).await?), None],
            Lane::Slow => {
                // The slow place first: who waits for it must not hold one that a short read could use.
                let lanes = self.of(request.node.as_ref());
                let slow = lanes.slow.enter(request, deadline).await?;
                [Some(lanes.daemon.enter(request, deadline).await?), Some(slow)]
            }
        };
        Ok(Leave { _places: places })
    }

    fn of(&self, node: Option<&NodeName>) -> Arc<NodeLanes> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if nodes.len() >= NODES {
            nodes.retain(|_, lanes| Arc::strong_count(lanes) > 1 || lanes.daemon.is_used() || lanes.slow.is_used());
        }
        let fresh =
            || Arc::new(NodeLanes { daemon: Arc::new(Queue::new(self.daemon)), slow: Arc::new(Queue::new(SLOW)) });
        Arc::clone(nodes.entry(node.cloned()).or_insert_with(fresh))
    }
}

/// A number of places and a bounded number of those who wait for one.
#[derive(Debug)]
struct Queue {
    places: Arc<Semaphore>,
    size: usize,
    waiting: AtomicUsize,
}

impl Queue {
    fn new(size: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(size)), size, waiting: AtomicUsize::new(0) }
    }

    fn is_used(&self) -> bool {
        self.places.available_permits() < self.size
    }

    async fn enter(&self, request: &Request, deadline: Instant) -> Result<OwnedSemaphorePermit, PveError> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        let _waiting = Waiting::new(&self.waiting).ok_or_else(|| busy(request))?;
        match tokio::time::timeout_at(deadline, Arc::clone(&self.places).acquire_owned()).await {
            // A place that came with the deadline is too late for anything.
            Ok(Ok(place)) if Instant::now() < deadline => Ok(place),
            // The semaphore is never closed, so only time can run out.
            _ => Err(busy(request)),
        }
    }
}

/// Counts who waits, also when the caller hangs up while waiting.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Option<Self> {
        if count.fetch_add(1, Ordering::Relaxed) >= WAITING {
            count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn busy(request: &Request) -> PveError {
    let place = request.node.as_ref().map_or_else(|| "the cluster".to_owned(), |node| format!("node {node}"));
    PveError::new(
        Kind::Busy,
        format!("too many requests to {place} are waiting, so {request} was not sent; try again in a few seconds"),
    )
    .not_sent()
    .retry_after(std::time::Duration::from_secs(5))
}
