//! Decides what is known about a cluster's guests without asking for each: one list, at most some seconds
//! old, read by one request at a time, with every guest's row written out once.

mod guest;
mod inventory;

#[cfg(test)]
mod tests;

pub use guest::{GuestKind, GuestRow};
pub use inventory::{Inventory, NodeRow, Resolution};

use crate::config::Cluster;
use crate::pve::{Fetch, Fresh, PveError};
use crate::values::Vmid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Which guests the operator protects.
#[derive(Clone, Debug, Default)]
pub struct Protection {
    /// By number.
    pub vmids: BTreeSet<Vmid>,
    /// By tag, in lower case.
    pub tags: BTreeSet<String>,
}

/// The list of one cluster's resources. Clones share it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    cluster: Arc<str>,
    list: Fresh<Inventory>,
}

impl Snapshot {
    /// `fetch` answers the data of the cluster's resource list.
    pub fn new(
        cluster: &Cluster,
        fetch: impl Fn() -> Pin<Box<dyn Future<Output = Result<Value, PveError>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        let protection = Protection { vmids: cluster.protected_vmids.clone(), tags: cluster.protected_tags.clone() };
        Self::with(cluster.name.as_str(), protection, cluster.resource_ttl, fetch)
    }

    /// The same from its parts.
    pub fn with(
        cluster: &str,
        protection: Protection,
        limit: Duration,
        fetch: impl Fn() -> Pin<Box<dyn Future<Output = Result<Value, PveError>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        let cluster: Arc<str> = cluster.into();
        let (name, protection) = (Arc::clone(&cluster), Arc::new(protection));
        let read: Fetch<Inventory> = Box::new(move || {
            let (data, name, protection) = (fetch(), Arc::clone(&name), Arc::clone(&protection));
            Box::pin(async move { Inventory::read(&name, &protection, &data.await?) })
        });
        Self { cluster, list: Fresh::new(limit, read) }
    }

    /// The list; reads it if there is none that is fresh enough.
    pub async fn get(&self) -> Result<Arc<Inventory>, PveError> {
        self.list.get().await
    }

    /// Where a guest is. One that is not in the list is looked for once more, if the list is not brand-new.
    pub async fn resolve(&self, vmid: Vmid) -> Result<GuestRow, PveError> {
        let mut inventory = self.get().await?;
        if matches!(inventory.resolve(vmid), Resolution::Missing)
            && self.list.last().is_none_or(|(_, age)| age >= Duration::from_secs(2))
        {
            self.expire();
            inventory = self.get().await?;
        }
        inventory.guest(&self.cluster, vmid).cloned()
    }

    /// Makes the next reader ask PVE again: before anything that changes, and after it.
    pub fn expire(&self) {
        self.list.expire();
    }

    /// What is there, however old, with its age.
    pub fn last(&self) -> Option<(Arc<Inventory>, Duration)> {
        self.list.last()
    }
}
