//! What a lab is started with.

use std::time::Duration;

use crate::release::Release;

/// Which certificate the listener shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// Signed by the lab's CA, valid for `localhost`, `127.0.0.1` and the node's name.
    Fit,
    /// Signed by the lab's CA, but for another host: a client that verifies must refuse it.
    WrongName,
}

/// What a lab starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Nodes and guests of both kinds: the cluster that the documentation describes.
    #[default]
    Small,
    /// The same of release 8.4: its operations only, groups instead of rules in HA, errors that only the reason phrase
    /// tells.
    Old,
    /// One node with three VMs and a container, as the recordings of genuine PVE start from. Its peers are names only.
    Recorded,
}

impl Profile {
    /// The release that the nodes run.
    pub(crate) const fn release(self) -> Release {
        match self {
            Self::Old => Release::Old,
            Self::Small | Self::Recorded => Release::Present,
        }
    }
}

/// How to start a lab. `Options::default()` is the cluster that the documentation describes.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is in the cluster.
    pub profile: Profile,
    /// Name of the cluster, as `/cluster/status` shows it.
    pub cluster: String,
    /// TCP port of the first node on 127.0.0.1; 0 takes a free one, as the other nodes do.
    pub port: u16,
    /// How many nodes there are, `pve1` and so on, each with a listener of its own; at least one. One alone is in no
    /// cluster. The profile `Recorded` has one whatever this says.
    pub nodes: u8,
    /// How many guests there are; at most 10,000.
    pub guests: u32,
    /// The vmid of the first one; the others follow. What is special to single guests begins at 100.
    pub first_vmid: u32,
    /// Whether waits of a real cluster are kept, such as the 3 s of a refused login.
    pub latency: bool,
    /// Whether each node has no more than three workers for what its daemon does, so that a fourth call waits.
    pub workers: bool,
    /// When set, every field that may hold a secret carries a value built from this text.
    pub canary: Option<String>,
    /// The certificate to show.
    pub certificate: Certificate,
    /// How often the running task makes progress.
    pub task_tick: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: Profile::Small,
            cluster: "lab".to_owned(),
            port: 0,
            nodes: 3,
            guests: 40,
            first_vmid: 100,
            latency: true,
            workers: true,
            canary: None,
            certificate: Certificate::Fit,
            task_tick: Duration::from_millis(500),
        }
    }
}
