//! Decides which node names may stand in a path: those that the cluster itself lists, byte for byte. The same list says
//! which nodes are down.

use super::{Fetch, Fresh, Kind, PveError};
use crate::values::NodeName;
use serde_json::Value;
use std::time::Duration;

/// How old the list may be.
const LIMIT: Duration = Duration::from_secs(10);
/// A name that is missing in an older list is looked for once more.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// A node as the cluster lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedNode {
    /// Its name.
    pub name: NodeName,
    /// Whether the cluster says that it is down. Without a word it counts as up.
    pub offline: bool,
}

/// The nodes of one cluster.
#[derive(Clone, Debug)]
pub struct Nodes {
    cluster: String,
    list: Fresh<Vec<ListedNode>>,
}

impl Nodes {
    /// `fetch` answers the data of the cluster's node list.
    pub fn new(
        cluster: impl Into<String>,
        fetch: impl Fn() -> std::pin::Pin<Box<dyn Future<Output = Result<Value, PveError>> + Send>> + Send + Sync + 'static,
    ) -> Self {
        let cluster = cluster.into();
        let name = cluster.clone();
        let list: Fetch<Vec<ListedNode>> = Box::new(move || {
            let data = fetch();
            let cluster = name.clone();
            Box::pin(async move { read(&cluster, &data.await?) })
        });
        Self { cluster, list: Fresh::new(LIMIT, list) }
    }

    /// All nodes, by name.
    pub async fn list(&self) -> Result<std::sync::Arc<Vec<ListedNode>>, PveError> {
        self.list.get().await
    }

    /// Whether the cluster lists exactly this name.
    pub async fn check(&self, node: &NodeName) -> Result<(), PveError> {
        let has = |nodes: &[ListedNode]| nodes.iter().any(|listed| listed.name == *node);
        let mut nodes = self.list.get().await?;
        if !has(&nodes) && self.list.last().is_none_or(|(_, age)| age >= LOOK_AGAIN) {
            self.list.expire();
            nodes = self.list.get().await?;
        }
        if has(&nodes) {
            return Ok(());
        }
        let list: Vec<&str> = nodes.iter().map(|listed| listed.name.as_str()).collect();
        let message = format!(
            "cluster {} has no node `{node}`; it has {} (names are exact, also in case)",
            self.cluster,
            list.join(", ")
        );
        Err(PveError::new(Kind::NotFound, message).not_sent())
    }
}

fn read(cluster: &str, data: &Value) -> Result<Vec<ListedNode>, PveError> {
    let rows = data.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut nodes: Vec<ListedNode> = rows
        .iter()
        .filter_map(|row| {
            let name = NodeName::parse(row.get("node")?.as_str()?).ok()?;
            Some(ListedNode { name, offline: row.get("status").and_then(Value::as_str) == Some("offline") })
        })
        .collect();
    nodes.sort();
    nodes.dedup_by(|one, other| one.name == other.name);
    if nodes.is_empty() {
        // Every cluster has a node, so this is a list that cannot be seen or read.
        return Err(PveError::new(
            Kind::Forbidden,
            format!("cluster {cluster} lists no nodes; the server's API token may lack Sys.Audit on /nodes"),
        ));
    }
    Ok(nodes)
}
