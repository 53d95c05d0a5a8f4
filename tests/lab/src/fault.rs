//! What can be made to go wrong while a lab runs, by name.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Something that goes wrong until it is cleared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Requests that are proxied to this node answer `595 Connection refused`. `pve2` starts this way.
    DeadNode(String),
    /// Requests that are proxied to this node get no answer (`596` after 30 s where latency is kept). For the node
    /// that listens, every request hangs.
    HangingNode(String),
    /// Every request is answered by a page, as a misconfigured reverse proxy does.
    HtmlInsteadOfJson,
    /// The connection is closed after the request was read, without an answer.
    CutConnection,
    /// Nothing listens, and open connections are closed.
    ClusterDown,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadNode(node) => write!(f, "dead-node:{node}"),
            Self::HangingNode(node) => write!(f, "hanging-node:{node}"),
            Self::HtmlInsteadOfJson => f.write_str("html-instead-of-json"),
            Self::CutConnection => f.write_str("cut-connection"),
            Self::ClusterDown => f.write_str("cluster-down"),
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("dead-node", node)) if !node.is_empty() => Ok(Self::DeadNode(node.to_owned())),
            Some(("hanging-node", node)) if !node.is_empty() => Ok(Self::HangingNode(node.to_owned())),
            None if text == "html-instead-of-json" => Ok(Self::HtmlInsteadOfJson),
            None if text == "cut-connection" => Ok(Self::CutConnection),
            None if text == "cluster-down" => Ok(Self::ClusterDown),
            _ => Err(format!(
                "no fault `{text}`; known: dead-node:NODE, hanging-node:NODE, html-instead-of-json, cut-connection, cluster-down"
            )),
        }
    }
}

/// The faults in force.
#[derive(Debug, Default)]
pub(crate) struct Faults(BTreeSet<Fault>);

impl Faults {
    pub(crate) fn set(&mut self, fault: Fault) {
        self.0.insert(fault);
    }

    pub(crate) fn clear(&mut self, fault: &Fault) {
        self.0.remove(fault);
    }

    pub(crate) fn has(&self, fault: &Fault) -> bool {
        self.0.contains(fault)
    }

    pub(crate) fn dead(&self, node: &str) -> bool {
        self.0.iter().any(|fault| matches!(fault, Fault::DeadNode(name) if name == node))
    }

    pub(crate) fn hanging(&self, node: &str) -> bool {
        self.0.iter().any(|fault| matches!(fault, Fault::HangingNode(name) if name == node))
    }
}
