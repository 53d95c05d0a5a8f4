//! The states that a test can put a lab into without asking for them through the API.

mod shown;

use serde_json::Value;

use crate::clock;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind, Snapshot, object};
use crate::state::node::Peer;
use crate::state::storage::Volume;
use crate::state::task::Task;

/// Something that is to be so from now on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arrange {
    /// A read shows just this from now on, as far as what it is about can be set: storages and what is on them, pools,
    /// firewalls, jobs, HA, SDN, notifications.
    Shows {
        /// The path below `/api2/json`, decoded, with its query.
        read: String,
        /// What `data` is to be.
        data: Value,
    },
    /// What a path names is not there.
    Gone(String),
    /// A program that nothing on the node finds any more, or does again.
    Program {
        /// Its name.
        name: String,
        /// Whether it is there.
        there: bool,
    },
    /// Who holds the lock of the software-defined network, by its token.
    NetworkLock(Option<String>),
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
    /// What waits for the next start of an existing guest.
    Pending {
        /// Its id.
        vmid: u32,
        /// Options with the values that they will have.
        set: Value,
        /// Options that will go.
        delete: Vec<String>,
    },
    /// The snapshots of an existing guest and where the present state comes from. They keep its present configuration
    /// where they say nothing else.
    Snapshots {
        /// Its id.
        vmid: u32,
        /// As `GET snapshot` shows them, with `current`, and perhaps a `config`.
        rows: Vec<Value>,
    },
    /// Whether the processors of an existing guest are stopped.
    Paused {
        /// Its id.
        vmid: u32,
        /// Whether they are.
        paused: bool,
    },
    /// A file inside an existing guest.
    File {
        /// Its id.
        vmid: u32,
        /// Where it is.
        path: String,
        /// What it holds.
        content: Vec<u8>,
    },
    /// Whether the host can run machines by KVM.
    Kvm(bool),
    /// Whether a bridge is there.
    Bridge {
        /// Its name.
        name: String,
        /// Whether it is.
        there: bool,
    },
    /// A volume of an existing storage, of no guest, such as a template or a backup.
    Volume {
        /// Its id.
        id: String,
        /// The guest that a backup is of.
        vmid: Option<u32>,
    },
    /// What is found on the node that listens at a path below it, such as `/hardware/pci`, or how it is set there.
    Host {
        /// The path below `/nodes/{node}`.
        path: String,
        /// As a read shows it.
        data: Value,
    },
    /// Whether the node reaches its own API.
    ReachesItself(bool),
    /// A name that is no node of the cluster, and how passing a request on to it ends.
    Peer {
        /// The name.
        name: String,
        /// 595 or 596.
        status: u16,
        /// The reason phrase, which has to be one that PVE knows.
        reason: String,
    },
    /// A row of `/cluster/resources` of which no state was told yet, such as `qemu/100`.
    Unseen(String),
    /// Storages other than these are not there.
    OnlyStorages(Vec<String>),
    /// The options of the datacenter.
    DatacenterOptions(Value),
    /// There is no past task.
    NoTasks,
    /// A task of the past, or one that runs where it has no status; the oldest first.
    Task {
        /// Its id.
        upid: String,
        /// How it ended.
        status: Option<String>,
        /// When it ended.
        ended: i64,
        /// What it logged.
        log: Vec<String>,
    },
    /// There is no such guest, and no volume of it.
    NoGuest(u32),
}

#[allow(clippy::too_many_lines, reason = "one arm for each thing that can be arranged")]
pub(crate) fn apply(cluster: &mut Cluster, what: Arrange) {
    match what {
        Arrange::Shows { read, data } => shown::apply(cluster, &read, data),
        Arrange::Gone(path) => shown::remove(cluster, &path),
        Arrange::Program { name, there } => {
            if there {
                cluster.host.missing.remove(&name);
            } else {
                cluster.host.missing.insert(name);
            }
        }
        Arrange::NetworkLock(token) => cluster.sdn.lock = token,
        // Done where the options are known.
        Arrange::Baseline => {}
        Arrange::Guest { vmid, kind, config } => {
            let mut config = object(config);
            config.remove("digest");
            let kind = if kind == "lxc" { Kind::Lxc } else { Kind::Qemu };
            let mut taken = |key: &str| config.remove(key).and_then(|text| text.as_str().map(str::to_owned));
            let (lock, parent) = (taken("lock"), taken("parent"));
            let mut guest = Guest::new(vmid, kind, &cluster.local, config);
            (guest.lock, guest.parent) = (lock, parent);
            guest.inside.obeys = cluster.host.own_qemu;
            let named = guest.volumes();
            cluster.volumes.retain(|volume| {
                volume.vmid != Some(vmid)
                    || !matches!(volume.content.as_str(), "images" | "rootdir")
                    || named.contains(&volume.id())
            });
            let sizes: Vec<(String, u64)> = guest.disks().map(|(_, volume, size)| (volume.to_owned(), size)).collect();
            for volume in &mut cluster.volumes {
                if let Some((_, size)) = sizes.iter().find(|(id, _)| *id == volume.id()) {
                    volume.size = *size;
                }
            }
            if let Some(old) = cluster.guests.remove(&vmid) {
                (guest.agent, guest.inside) = (old.agent, old.inside);
            }
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
        Arrange::Pending { vmid, set, delete } => {
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                (guest.pending, guest.leaving) = (object(set), delete);
            }
        }
        Arrange::Snapshots { vmid, rows } => {
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                snapshots(guest, &rows);
            }
        }
        Arrange::Paused { vmid, paused } => {
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                guest.paused = paused;
            }
        }
        Arrange::File { vmid, path, content } => {
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                guest.inside.files.insert(path, content);
            }
        }
        Arrange::Kvm(there) => cluster.host.kvm = there,
        Arrange::Bridge { name, there } => {
            if there {
                cluster.host.bridges.insert(name);
            } else {
                cluster.host.bridges.remove(&name);
            }
        }
        Arrange::Volume { id, vmid } => volume(cluster, &id, vmid),
        Arrange::Host { path, data } => {
            let key = format!("{}{path}", cluster.local);
            cluster.facts.insert(key, data);
        }
        Arrange::ReachesItself(reaches) => cluster.host.reaches_itself = reaches,
        Arrange::Peer { name, status, reason } => {
            if let Some(peer) = Peer::of(status, &reason) {
                cluster.peers.insert(name, peer);
            }
        }
        Arrange::Unseen(id) => {
            cluster.unseen.insert(id);
        }
        Arrange::OnlyStorages(names) => cluster.storages.retain(|name, _| names.contains(name)),
        Arrange::DatacenterOptions(options) => cluster.options = object(options),
        Arrange::NoTasks => cluster.tasks.all.clear(),
        Arrange::Task { upid, status, ended, log } => {
            if let Some(mut task) = Task::named(&upid) {
                task.log = log;
                task.ended = status.map(|status| (ended, status));
                cluster.tasks.all.push(task);
            }
        }
        Arrange::NoGuest(vmid) => {
            cluster.guests.remove(&vmid);
            cluster.volumes.retain(|volume| volume.vmid != Some(vmid));
        }
    }
}

fn snapshots(guest: &mut Guest, rows: &[Value]) {
    let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    guest.snapshots.clear();
    guest.parent = None;
    for row in rows {
        let name = text(row, "name").unwrap_or_default();
        if name == "current" {
            guest.parent = text(row, "parent");
            continue;
        }
        let mut config = match row.get("config") {
            Some(config) => object(config.clone()),
            None => guest.config.clone(),
        };
        for beside in ["description", "digest", "parent", "snaptime", "snapstate"] {
            config.remove(beside);
        }
        guest.snapshots.push(Snapshot {
            name,
            parent: text(row, "parent"),
            description: text(row, "description").unwrap_or_default(),
            time: row.get("snaptime").and_then(Value::as_i64).unwrap_or_else(clock::now),
            with_memory: row.get("vmstate").and_then(Value::as_i64) == Some(1),
            state: text(row, "snapstate"),
            config,
        });
    }
}

fn volume(cluster: &mut Cluster, id: &str, vmid: Option<u32>) {
    let Some((storage, name)) = id.split_once(':') else { return };
    if cluster.volumes.iter().any(|volume| volume.id() == id) {
        return;
    }
    let known = |content: &&str| matches!(*content, "iso" | "vztmpl" | "backup" | "snippets" | "import");
    let content = name.split('/').next().filter(known).unwrap_or("images");
    // A backup is of the guest that its name tells.
    let named = || name.split('-').nth(2).filter(|_| content == "backup").and_then(|vmid| vmid.parse().ok());
    let vmid = vmid.or_else(named);
    let format = name.split_once('.').map_or("raw", |(_, end)| end);
    cluster.volumes.push(Volume {
        storage: storage.to_owned(),
        name: name.to_owned(),
        content: content.to_owned(),
        format: format.to_owned(),
        size: 1 << 20,
        used: None,
        vmid,
        subtype: (content == "backup").then(|| if name.contains("-lxc-") { "lxc" } else { "qemu" }.to_owned()),
        ctime: clock::now(),
        notes: None,
        protected: false,
    });
    cluster.archives.remove(id);
    cluster.fill_archives();
}
