//! Firewall of the cluster, a node, a guest, a VNet, or a security group.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// An IP set: its comment and its entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct IpSet {
    pub(crate) comment: String,
    pub(crate) entries: Vec<Map<String, Value>>,
}

/// One firewall configuration. A group has rules and a comment only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Firewall {
    pub(crate) comment: String,
    pub(crate) options: Map<String, Value>,
    pub(crate) rules: Vec<Map<String, Value>>,
    /// Address and comment by name.
    pub(crate) aliases: BTreeMap<String, (String, String)>,
    pub(crate) ipsets: BTreeMap<String, IpSet>,
    pub(crate) log: Vec<String>,
}

impl Firewall {
    /// The name of an alias as it was given: upper and lower case are the same.
    pub(crate) fn alias(&self, name: &str) -> Option<String> {
        self.aliases.keys().find(|known| known.eq_ignore_ascii_case(name)).cloned()
    }
}
