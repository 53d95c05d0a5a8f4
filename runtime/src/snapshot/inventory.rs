//! Decides what one reading of the resource list says: which guests there are, where, and whether that is
//! certain. A bad item never loses the list, and never goes unnoticed.

use super::guest::text;
use super::{GuestKind, GuestRow, Protection};
use crate::pve::{Kind, PveError};
use crate::values::{NodeName, Vmid};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// A node as the resource list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its name.
    pub node: NodeName,
    /// `online`, `offline` or `unknown`.
    pub status: Box<str>,
}

/// One reading of the list.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    guests: Box<[GuestRow]>,
    nodes: Box<[NodeRow]>,
    unreadable: usize,
}

/// What the list says about a guest number.
#[derive(Clone, Copy, Debug)]
pub enum Resolution<'a> {
    /// Exactly one guest has it.
    Found(&'a GuestRow),
    /// None has it, as far as the server's API token sees.
    Missing,
    /// Several rows have it.
    Ambiguous(&'a [GuestRow]),
}

impl Inventory {
    pub(super) fn read(cluster: &str, protection: &Protection, data: &Value) -> Result<Self, PveError> {
        let Some(items) = data.as_array() else {
            return Err(PveError::new(
                Kind::NotJson,
                format!("cluster {cluster} answered its resource list with something that is not a list"),
            ));
        };
        let mut guests = Vec::with_capacity(items.len());
        let mut nodes = Vec::new();
        let mut unreadable = 0;
        let mut words = Words::default();
        for item in items {
            let kind = match text(item, "type") {
                Some("qemu") => GuestKind::Qemu,
                Some("lxc") => GuestKind::Lxc,
                Some("node") => {
                    match text(item, "node").and_then(|name| NodeName::parse(name).ok()) {
                        Some(node) => {
                            nodes.push(NodeRow { node, status: text(item, "status").unwrap_or("unknown").into() });
                        }
                        None => unreadable += 1,
                    }
                    continue;
                }
                // Storages, SDN and kinds of releases to come are not kept here.
                Some(_) => continue,
                None => {
                    unreadable += 1;
                    continue;
                }
            };
            match GuestRow::read(cluster, protection, kind, item) {
                Some(mut row) => {
                    row.status = words.shared(row.status);
                    row.pool = row.pool.map(|pool| words.shared(pool));
                    guests.push(row);
                }
                None => unreadable += 1,
            }
        }
        guests.sort_by_key(|row| row.vmid);
        nodes.sort_by(|one, other| one.node.cmp(&other.node));
        Ok(Self { guests: guests.into(), nodes: nodes.into(), unreadable })
    }

    /// All guests by number; a number may come twice.
    pub fn guests(&self) -> &[GuestRow] {
        &self.guests
    }

    /// All nodes by name.
    pub fn nodes(&self) -> &[NodeRow] {
        &self.nodes
    }

    /// How many items could not be read; where there are any, nothing is known to be missing.
    pub fn unreadable(&self) -> usize {
        self.unreadable
    }

    /// What the list says about a number.
    pub fn resolve(&self, vmid: Vmid) -> Resolution<'_> {
        let first = self.guests.partition_point(|row| row.vmid < vmid);
        let rest = self.guests.get(first..).unwrap_or_default();
        let same = rest.iter().take_while(|row| row.vmid == vmid).count();
        match rest.get(..same).unwrap_or_default() {
            [] => Resolution::Missing,
            [row] => Resolution::Found(row),
            rows => Resolution::Ambiguous(rows),
        }
    }

    /// The one guest with this number, or why there is none.
    pub fn guest(&self, cluster: &str, vmid: Vmid) -> Result<&GuestRow, PveError> {
        let error = match self.resolve(vmid) {
            Resolution::Found(row) => return Ok(row),
            Resolution::Ambiguous(rows) => {
                let places: Vec<String> = rows.iter().map(|row| format!("{} on node {}", row.kind, row.node)).collect();
                PveError::new(
                    Kind::Conflict,
                    format!(
                        "cluster {cluster} lists guest {vmid} more than once ({}), so it cannot be told which is meant; try again, or have an operator look",
                        places.join(", ")
                    ),
                )
            }
            Resolution::Missing if self.guests.is_empty() => PveError::new(
                Kind::NotFound,
                format!(
                    "cluster {cluster} shows the server no guests at all, so guest {vmid} is not known; its API token may lack VM.Audit on /vms"
                ),
            ),
            Resolution::Missing if self.unreadable > 0 => PveError::new(
                Kind::NotFound,
                format!(
                    "guest {vmid} is not among those of cluster {cluster} that could be read ({} entries could not); list the guests, or have an operator look",
                    self.unreadable
                ),
            ),
            Resolution::Missing => PveError::new(
                Kind::NotFound,
                format!(
                    "cluster {cluster} has no guest {vmid} that the server can see; list its guests for the numbers"
                ),
            ),
        };
        Err(error.not_sent())
    }
}

/// Few different words for many rows: each is kept once.
#[derive(Default)]
struct Words(HashSet<Arc<str>>);

impl Words {
    fn shared(&mut self, word: Arc<str>) -> Arc<str> {
        if let Some(known) = self.0.get(&word) {
            return Arc::clone(known);
        }
        self.0.insert(Arc::clone(&word));
        word
    }
}
