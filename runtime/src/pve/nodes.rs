//! Decides which node names may stand in a path: those that the cluster itself lists, byte for byte.

use super::{Fetch, Fresh, Kind, PveError};
use crate::values::NodeName;
use serde_json::Value;
use std::time::Duration;

/// How old the list may be.
const LIMIT: Duration = Duration::from_secs(10);
/// A name that is missing in an older list is looked for once more.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The node names of one cluster.
#[derive(Clone, Debug)]
pub struct Nodes {
    cluster: String,
    names: Fresh<Vec<NodeName>>,
}

impl Nodes {
    /// `fetch` answers the data of the cluster's node list.
    pub fn new(
        cluster: impl Into<String>,
        fetch: impl Fn() -> std::pin::Pin<Box<dyn Future<Output = Result<Value, PveError>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        let cluster = cluster.into();
        let name = cluster.clone();
        let names: Fetch<Vec<NodeName>> = Box::new(move || {
            let data = fetch();
            let cluster = name.clone();
            Box::pin(async move { read(&cluster, &data.await?) })
        });
        Self { cluster, names: Fresh::new(LIMIT, names) }
    }

    /// All names, sorted.
    pub async fn names(&self) -> Result<std::sync::Arc<Vec<NodeName>>, PveError> {
        self.names.get().await
    }

    /// Whether the cluster lists exactly this name.
    pub async fn check(&self, node: &NodeName) -> Result<(), PveError> {
        let mut names = self.names.get().await?;
        if !names.contains(node) && self.names.last().is_none_or(|(_, age)| age >= LOOK_AGAIN) {
            self.names.expire();
            names = self.names.get().await?;
        }
        if names.contains(node) {
            return Ok(());
        }
        let list: Vec<&str> = names.iter().map(NodeName::as_str).collect();
        let message = format!(
            "cluster {} has no node `{node}`; it has {} (names are exact, also in case)",
            self.cluster,
            list.join(", ")
        );
        Err(PveError::new(Kind::NotFound, message).not_sent())
    }
}

fn read(cluster: &str, data: &Value) -> Result<Vec<NodeName>, PveError> {
    let rows = data.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<NodeName> =
        rows.iter().filter_map(|row| NodeName::parse(row.get("node")?.as_str()?).ok()).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        // Every cluster has a node, so this is a list that cannot be seen or read.
        return Err(PveError::new(
            Kind::Forbidden,
            format!("cluster {cluster} lists no nodes; the server's API token may lack Sys.Audit on /nodes"),
        ));
    }
    Ok(names)
}
