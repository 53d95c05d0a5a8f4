//! Entries beside what is in force: new, changed, deleted.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::state::Cluster;
use crate::state::sdn::PENDING;
use crate::state::section::Entries;

/// Whether anything waits to be applied.
pub(super) fn any(cluster: &Cluster) -> bool {
    let none = Entries::new();
    PENDING.iter().any(|list| {
        let running = cluster.sdn.running.as_ref().and_then(|running| running.entries(list)).unwrap_or(&none);
        cluster.sections.entries(list).unwrap_or(&none) != running
    })
}

/// Rows of a list as they are in force.
pub(super) fn running(cluster: &Cluster, list: &str) -> Entries {
    cluster.sdn.running.as_ref().and_then(|running| running.entries(list)).cloned().unwrap_or_default()
}

/// Rows of a list with what is to become of them. What is in force stands in the row, what is to be in `pending`.
pub(super) fn waiting(cluster: &Cluster, list: &str) -> Entries {
    let running = running(cluster, list);
    let present = cluster.sections.entries(list).cloned().unwrap_or_default();
    let ids: BTreeSet<&String> = running.keys().chain(present.keys()).collect();
    ids.into_iter().map(|id| (id.clone(), row(running.get(id), present.get(id)))).collect()
}

fn row(running: Option<&Map<String, Value>>, present: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut row = running.cloned().unwrap_or_default();
    let state = match (running, present) {
        (_, None) => Some("deleted"),
        (None, Some(_)) => Some("new"),
        (Some(running), Some(present)) => (running != present).then_some("changed"),
    };
    let mut pending = Map::new();
    for (key, value) in present.into_iter().flatten() {
        if matches!(key.as_str(), "type" | "vnet") {
            row.insert(key.clone(), value.clone());
        } else if row.get(key) != Some(value) {
            pending.insert(key.clone(), value.clone());
        }
    }
    if let Some(state) = state {
        row.insert("state".to_owned(), json!(state));
        row.insert("pending".to_owned(), Value::Object(pending));
    }
    row
}
