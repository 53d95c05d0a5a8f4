//! The states that a test can put a lab into without asking for them through the API.

use serde_json::Value;

use crate::clock;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind, object};

/// Something that is to be so from now on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arrange {
    /// Everything as the lab started, except for tasks, which stay.
    Baseline,
    /// A guest with exactly this configuration and nothing else: no snapshots, nothing pending, stopped, not locked.
    Guest {
        /// Its id.
        vmid: u32,
        /// `qemu` or `lxc`.
        kind: String,
        /// As `GET config` shows it; `digest` is not part of it.
        config: Value,
    },
    /// Whether an existing guest runs.
    Running {
        /// Its id.
        vmid: u32,
        /// Whether it runs.
        running: bool,
    },
    /// The lock that an existing guest is under.
    Lock {
        /// Its id.
        vmid: u32,
        /// Such as `backup`; none to unlock.
        lock: Option<String>,
    },
    /// There is no such guest, and no volume of it.
    NoGuest(u32),
}

pub(crate) fn apply(cluster: &mut Cluster, what: Arrange) {
    match what {
        // Done where the options are known.
        Arrange::Baseline => {}
        Arrange::Guest { vmid, kind, config } => {
            let mut config = object(config);
            config.remove("digest");
            let kind = if kind == "lxc" { Kind::Lxc } else { Kind::Qemu };
            let guest = Guest::new(vmid, kind, &cluster.local, config);
            cluster.guests.insert(vmid, guest);
        }
        Arrange::Running { vmid, running } => {
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                guest.started = running.then(clock::now);
            }
        }
        Arrange::Lock { vmid, lock } => {
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                guest.lock = lock;
            }
        }
        Arrange::NoGuest(vmid) => {
            cluster.guests.remove(&vmid);
            cluster.volumes.retain(|volume| volume.vmid != Some(vmid));
        }
    }
}
