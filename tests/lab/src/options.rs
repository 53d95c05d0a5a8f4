//! What a lab is started with.

use std::time::Duration;

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
    /// A node, a dead peer, 40 guests of both kinds: the cluster that the documentation describes.
    #[default]
    Small,
    /// One node with three VMs and a container, as the recordings of genuine PVE start from. Its peers are names only.
    Recorded,
}

/// How to start a lab. `Options::default()` is the cluster that the documentation describes.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is in the cluster.
    pub profile: Profile,
    /// Name of the cluster, as `/cluster/status` shows it.
    pub cluster: String,
    /// TCP port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// How many guests there are, with vmids from 100 on; at most 10,000.
    pub guests: u32,
    /// Whether waits of a real cluster are kept, such as the 3 s of a refused login.
    pub latency: bool,
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
            guests: 40,
            latency: true,
            canary: None,
            certificate: Certificate::Fit,
            task_tick: Duration::from_millis(500),
        }
    }
}
