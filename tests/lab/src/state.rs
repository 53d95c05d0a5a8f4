//! Everything the simulated cluster knows. Handlers read it, tasks change it, nothing else holds state.

pub(crate) mod config;
pub(crate) mod disk;
pub(crate) mod firewall;
pub(crate) mod guest;
pub(crate) mod inside;
pub(crate) mod node;
pub(crate) mod property;
pub(crate) mod sdn;
pub(crate) mod secrets;
pub(crate) mod section;
mod seed;
pub(crate) mod sha1;
pub(crate) mod storage;
pub(crate) mod task;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::access::{Access, Caller};
use crate::release::Release;
use firewall::Firewall;
use guest::Guest;
use node::Node;
use secrets::Secrets;
use section::Sections;
use storage::{Storage, Volume};
use task::Tasks;

pub(crate) use seed::Logins;

/// A pool of guests and storages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) comment: String,
    pub(crate) storages: BTreeSet<String>,
    /// Member vmids that no guest has.
    pub(crate) absent: BTreeSet<u32>,
}

/// The whole cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) name: String,
    /// The first node, which listens first.
    pub(crate) local: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) guests: BTreeMap<u32, Guest>,
    pub(crate) storages: BTreeMap<String, Storage>,
    pub(crate) volumes: Vec<Volume>,
    /// What the guests were that backups are of, by volume id.
    pub(crate) archives: BTreeMap<String, serde_json::Map<String, Value>>,
    /// What the proxy has received and nobody has taken yet, by its path.
    pub(crate) uploads: BTreeMap<String, bytes::Bytes>,
    pub(crate) pools: BTreeMap<String, Pool>,
    pub(crate) access: Access,
    pub(crate) tasks: Tasks,
    pub(crate) sections: Sections,
    pub(crate) sdn: sdn::Sdn,
    /// By scope: `cluster`, `node/pve1`, `guest/100`, `group/web`, `vnet/v1`.
    pub(crate) firewalls: BTreeMap<String, Firewall>,
    pub(crate) secrets: Secrets,
    /// The release that the nodes run.
    pub(crate) release: Release,
    /// Whether the node that listens is cut off from most others, however many are online.
    pub(crate) split: bool,
    /// Storages that nothing more fits onto.
    pub(crate) full: BTreeSet<String>,
    /// When the nodes were started.
    pub(crate) booted: i64,
    pub(crate) host: Host,
    /// What is found on a node, and its settings, by node and path below it: `pve1/dns`, `pve1/hardware/pci`.
    pub(crate) facts: BTreeMap<String, Value>,
    /// Names that are no nodes of the cluster and can be looked up all the same.
    pub(crate) peers: BTreeMap<String, node::Peer>,
    /// Rows of `/cluster/resources` of which no state was told yet, such as `qemu/100`.
    pub(crate) unseen: BTreeSet<String>,
    /// The options of the datacenter that are set.
    pub(crate) options: serde_json::Map<String, Value>,
}

/// What the nodes are able to run.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each says on its own whether something is there")]
pub(crate) struct Host {
    /// Whether KVM is there.
    pub(crate) kvm: bool,
    /// Whether QEMU is the one with PVE's own additions.
    pub(crate) own_qemu: bool,
    /// Whether the daemons of HA run.
    pub(crate) ha: bool,
    /// Whether the node is in a cluster, be it of one node.
    pub(crate) clustered: bool,
    /// Whether the node reaches its own API, which work on several guests goes through.
    pub(crate) reaches_itself: bool,
    /// The bridges that guests can be plugged into.
    pub(crate) bridges: BTreeSet<String>,
    /// Programs that are not installed.
    pub(crate) missing: BTreeSet<String>,
    /// File systems of their own below the root, and their sizes in bytes.
    pub(crate) mounts: BTreeMap<String, u64>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            kvm: true,
            own_qemu: true,
            ha: true,
            clustered: true,
            reaches_itself: true,
            bridges: BTreeSet::from(["vmbr0".to_owned(), "vmbr1".to_owned()]),
            missing: BTreeSet::new(),
            mounts: BTreeMap::new(),
        }
    }
}

impl Cluster {
    /// Whether a bridge is there for guests: one of the host, or a network of SDN.
    pub(crate) fn has_bridge(&self, name: &str) -> bool {
        self.host.bridges.contains(name)
            || self.sections.entries("/cluster/sdn/vnets").is_some_and(|vnets| vnets.contains_key(name))
    }
}

impl Cluster {
    /// Whether more than half of the nodes are there, which writes need.
    pub(crate) fn quorate(&self) -> bool {
        let online = self.nodes.iter().filter(|node| node.online).count();
        !self.split && online * 2 > self.nodes.len()
    }

    /// Puts the present configurations of their guests into backups that hold none yet.
    pub(crate) fn fill_archives(&mut self) {
        for volume in self.volumes.iter().filter(|volume| volume.content == "backup") {
            if let Some(guest) = volume.vmid.and_then(|vmid| self.guests.get(&vmid)) {
                self.archives.entry(volume.id()).or_insert_with(|| guest.config.clone());
            }
        }
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        let name = if name == "localhost" { &self.local } else { name };
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Privileges at a path, with those of the pool that a guest or storage is in.
    pub(crate) fn privileges(&self, caller: &Caller, path: &str) -> BTreeSet<&str> {
        if path.is_empty() {
            return BTreeSet::new();
        }
        let pool = path
            .strip_prefix("/vms/")
            .and_then(|vmid| self.guests.get(&vmid.parse().ok()?)?.pool.as_deref())
            .or_else(|| {
                let storage = path.strip_prefix("/storage/")?;
                self.pools.iter().find(|(_, pool)| pool.storages.contains(storage)).map(|(name, _)| name.as_str())
            });
        self.access.privileges(caller, path, pool)
    }

    /// Guests on a node.
    pub(crate) fn guests_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Guest> {
        self.guests.values().filter(move |guest| guest.node == node)
    }
}

/// The digest PVE shows for a configuration: 40 hex digits that change whenever the content does.
pub(crate) fn digest(content: &Value) -> String {
    let text = content.to_string();
    if matches!(text.as_str(), "{}" | "[]" | "null") {
        // SHA-1 of nothing, which PVE shows for a file that does not exist.
        return "da39a3ee5e6b4b0d3255bfef95601890afd80709".to_owned();
    }
    let mut digest = hex(&Sha256::digest(text.as_bytes()));
    digest.truncate(40);
    digest
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
