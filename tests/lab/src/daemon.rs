//! The blocking workers of each node's daemon: what the schema marks as protected holds one while it runs, and more than
//! there are workers waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many there are on a node.
const WORKERS: usize = 3;

/// The workers of all nodes; none where they are not counted.
#[derive(Debug, Default)]
pub(crate) struct Daemons(BTreeMap<String, Arc<Semaphore>>);

impl Daemons {
    pub(crate) fn of<'a>(nodes: impl Iterator<Item = &'a str>) -> Self {
        Self(nodes.map(|node| (node.to_owned(), Arc::new(Semaphore::new(WORKERS)))).collect())
    }

    /// Waits for a worker of a node.
    pub(crate) async fn worker(&self, node: &str) -> Option<OwnedSemaphorePermit> {
        Arc::clone(self.0.get(node)?).acquire_owned().await.ok()
    }
}
