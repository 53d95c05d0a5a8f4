//! The handlers, by area. Each answers the operations it knows; what none knows is made up from the schema's own words.

#![allow(clippy::unnecessary_wraps, reason = "handlers of one area share a signature, and some of them cannot fail")]

mod access;
mod agent;
mod backup;
mod cluster;
mod cluster_write;
mod entry;
mod firewall;
mod guest;
mod guest_list;
mod ha;
mod job;
mod machine;
mod node;
mod node_write;
mod notification;
mod pool;
mod sdn;
mod section;
pub(crate) mod storage;
mod system;
mod task;
pub(crate) mod work;
mod writes;

pub(crate) use access::guard_of;

use serde_json::{Value, json};

use crate::access::{Caller, any_of};
use crate::answer::{Refusal, Reply};
use crate::gate::Shared;
use crate::params::{Params, text};
use crate::schema::Operation;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind};
use crate::synth;

/// A request that has passed every check of the schema.
pub(crate) struct Call<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) params: &'a Params,
    pub(crate) caller: &'a Caller,
    /// The node that answers.
    pub(crate) here: &'a str,
}

pub(crate) type Outcome = Result<Reply, Refusal>;

impl Call<'_> {
    /// The path template.
    pub(crate) fn path(&self) -> &str {
        &self.operation.path
    }

    /// A text parameter; empty where it is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        text(self.params, name).unwrap_or_default()
    }

    /// A text parameter, if it is given and not empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        text(self.params, name).filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.given(name)?.parse().ok()
    }

    /// A count or position, which cannot be negative.
    pub(crate) fn count(&self, name: &str) -> Option<usize> {
        self.given(name)?.parse().ok()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name) == "1"
    }

    /// Whether the caller has one of some privileges at a path.
    pub(crate) fn may(&self, cluster: &Cluster, path: &str, privileges: &[&str]) -> bool {
        any_of(cluster, self.caller, path, privileges)
    }

    /// The node that the path names.
    pub(crate) fn node<'a>(&self, cluster: &'a Cluster) -> Result<&'a crate::state::node::Node, Refusal> {
        let name = self.text("node");
        cluster.node(name).ok_or_else(|| Refusal::failed(format!("no such cluster node '{name}'")))
    }

    /// The guest that the path names, on the node and of the kind that it says.
    pub(crate) fn guest<'a>(&self, cluster: &'a Cluster, kind: Kind) -> Result<&'a Guest, Refusal> {
        let node = &self.node(cluster)?.name;
        let vmid = self.text("vmid");
        vmid.parse()
            .ok()
            .and_then(|vmid: u32| cluster.guests.get(&vmid))
            .filter(|guest| guest.kind == kind && guest.node == *node)
            .ok_or_else(|| {
                Refusal::failed(format!(
                    "Configuration file 'nodes/{node}/{}/{vmid}.conf' does not exist",
                    kind.folder()
                ))
            })
    }
}

/// The listing at the root of the API.
pub(crate) fn root() -> Value {
    let rows: Vec<Value> = ["version", "cluster", "nodes", "storage", "access", "pools"]
        .iter()
        .map(|name| json!({"subdir": name}))
        .collect();
    Value::Array(rows)
}

/// The guest whose configuration file a call writes by itself, without a task.
pub(crate) fn writes_file_of(call: &Call<'_>) -> Option<u32> {
    let (_, rest) = guest::split(call.path())?;
    let writes = matches!(rest, "/config" | "/unlink" | "/snapshot/{snapname}/config") && call.operation.verb == "PUT";
    writes.then(|| call.text("vmid").parse().ok()).flatten()
}

/// Answers a call.
pub(crate) fn answer(shared: &std::sync::Arc<Shared>, call: &Call<'_>) -> Outcome {
    if let Some(outcome) = machine::read_once(shared, call) {
        outcome
    } else if call.operation.verb == "GET" {
        shared.look(|cluster| read(shared.schema, cluster, call))
    } else {
        writes::answer(shared, call).unwrap_or_else(|| work::answer(shared, call))
    }
}

/// Answers a read.
pub(crate) fn read(schema: &crate::schema::Schema, cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let areas: [fn(&Cluster, &Call<'_>) -> Option<Outcome>; 16] = [
        guest_list::read,
        guest::read,
        agent::read,
        task::read,
        firewall::read,
        backup::read,
        ha::read,
        job::read,
        notification::read,
        cluster::read,
        sdn::read,
        access::read,
        section::read,
        storage::read,
        node::read,
        system::read,
    ];
    areas.iter().find_map(|area| area(cluster, call)).unwrap_or_else(|| Ok(synth::answer(schema, cluster, call).into()))
}
