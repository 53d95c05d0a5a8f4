//! A guest: its configuration, what is pending, its snapshots, and whether it runs.

use serde_json::{Map, Value, json};

use super::inside::Inside;
use crate::clock;

/// VM or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Qemu,
    Lxc,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }

    /// The folder of its configuration files.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-server",
            Self::Lxc => "lxc",
        }
    }
}

/// A snapshot with the configuration it keeps.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) description: String,
    pub(crate) time: i64,
    pub(crate) with_memory: bool,
    /// What it is in the middle of, or stuck in: `prepare`, `delete`.
    pub(crate) state: Option<String>,
    pub(crate) config: Map<String, Value>,
}

/// A guest.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) vmid: u32,
    pub(crate) kind: Kind,
    pub(crate) node: String,
    /// Since when it runs.
    pub(crate) started: Option<i64>,
    pub(crate) pool: Option<String>,
    pub(crate) lock: Option<String>,
    pub(crate) config: Map<String, Value>,
    /// Values that apply at the next start.
    pub(crate) pending: Map<String, Value>,
    /// Keys that go at the next start.
    pub(crate) leaving: Vec<String>,
    pub(crate) snapshots: Vec<Snapshot>,
    /// The snapshot that the present state goes back to.
    pub(crate) parent: Option<String>,
    /// Its processors are stopped.
    pub(crate) paused: bool,
    /// Whether an agent answers inside.
    pub(crate) agent: bool,
    pub(crate) inside: Inside,
}

impl Guest {
    /// A stopped guest of some configuration, with an operating system that shuts down when told to.
    pub(crate) fn new(vmid: u32, kind: Kind, node: &str, config: Map<String, Value>) -> Self {
        Self {
            vmid,
            kind,
            node: node.to_owned(),
            started: None,
            pool: None,
            lock: None,
            config,
            pending: Map::new(),
            leaving: Vec::new(),
            snapshots: Vec::new(),
            parent: None,
            paused: false,
            agent: false,
            inside: Inside::default(),
        }
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.config.get(key).and_then(Value::as_str)
    }

    pub(crate) fn name(&self) -> String {
        let key = match self.kind {
            Kind::Qemu => "name",
            Kind::Lxc => "hostname",
        };
        self.text(key).map_or_else(|| format!("VM {}", self.vmid), str::to_owned)
    }

    pub(crate) fn template(&self) -> bool {
        self.config.get("template").and_then(Value::as_u64) == Some(1)
    }

    pub(crate) fn running(&self) -> bool {
        self.started.is_some()
    }

    pub(crate) fn status(&self) -> &'static str {
        if self.running() { "running" } else { "stopped" }
    }

    pub(crate) fn uptime(&self) -> i64 {
        self.started.map_or(0, |since| (clock::now() - since).max(0))
    }

    pub(crate) fn cores(&self) -> u64 {
        self.config.get("cores").and_then(Value::as_u64).unwrap_or(1)
    }

    /// Memory in bytes. A VM's configuration holds it as text, a container's as a number.
    pub(crate) fn memory(&self) -> u64 {
        let mebibytes = match self.config.get("memory") {
            Some(Value::String(text)) => text.parse().unwrap_or(512),
            Some(other) => other.as_u64().unwrap_or(512),
            None => 512,
        };
        mebibytes << 20
    }

    /// Size of the first disk in bytes.
    pub(crate) fn disk_size(&self) -> u64 {
        self.disks().next().map_or(0, |(_, _, size)| size)
    }

    /// Size in bytes of the disk that a guest is listed with: the one it starts from, or a container's root.
    fn main_disk(&self) -> u64 {
        let order = self.text("boot").and_then(|boot| boot.strip_prefix("order="));
        let size = |wanted: &str| self.disks().find(|(key, _, _)| *key == wanted).map(|(_, _, size)| size);
        match (self.kind, order) {
            (Kind::Lxc, _) => match size("rootfs") {
                // A root in a plain folder is listed with the size of a new one.
                Some(0) => 4 << 30,
                size => size.unwrap_or_default(),
            },
            (Kind::Qemu, Some(order)) => order.split(';').find_map(size).unwrap_or_default(),
            (Kind::Qemu, None) if self.config.contains_key("boot") => 0,
            (Kind::Qemu, None) => self.disk_size(),
        }
    }

    /// Disks as (key, volume, size in bytes).
    pub(crate) fn disks(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.config.iter().filter_map(|(key, value)| {
            let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
            if !matches!(stem, "scsi" | "virtio" | "sata" | "ide" | "rootfs" | "mp") {
                return None;
            }
            let text = value.as_str()?;
            if text.contains("media=cdrom") {
                return None;
            }
            let volume = text.split(',').next()?;
            let size = text.split(',').find_map(|part| part.strip_prefix("size=")).map_or(0, bytes);
            Some((key.as_str(), volume, size))
        })
    }

    /// A figure that wanders a little over time, the same for everyone who asks.
    pub(crate) fn wander(&self, salt: u64, below: u64) -> u64 {
        let step = u64::try_from(clock::now() / 10).unwrap_or_default();
        let mixed =
            (u64::from(self.vmid) << 16 ^ step ^ salt.rotate_left(24)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        mixed.checked_rem(below).unwrap_or_default()
    }

    /// The figures of `status/current` and of the lists.
    pub(crate) fn figures(&self) -> Map<String, Value> {
        let up = self.running();
        let memory = self.memory();
        let used = if up { memory / 4 + self.wander(1, memory / 4) } else { 0 };
        let cpu = if up { f64::from(u32::try_from(self.wander(2, 400)).unwrap_or_default()) / 1000.0 } else { 0.0 };
        let traffic = |salt: u64| {
            if up { u64::try_from(self.uptime()).unwrap_or_default() * (900 + self.wander(salt, 200)) } else { 0 }
        };
        let mut row = object(json!({
            "vmid": self.vmid,
            "name": self.name(),
            "status": self.status(),
            "cpu": cpu,
            "cpus": self.cores(),
            "mem": used,
            "maxmem": memory,
            "maxdisk": self.main_disk(),
            "netin": traffic(3),
            "netout": traffic(4),
            "uptime": self.uptime(),
        }));
        let disk = if self.kind == Kind::Lxc && up { self.disk_size() / 3 } else { 0 };
        row.insert("disk".to_owned(), json!(disk));
        if self.kind == Kind::Lxc || up {
            row.insert("diskread".to_owned(), json!(traffic(5)));
            row.insert("diskwrite".to_owned(), json!(traffic(6)));
        }
        if self.kind == Kind::Qemu && self.config.keys().any(|key| key.starts_with("serial")) {
            row.insert("serial".to_owned(), json!(1));
        }
        if self.kind == Kind::Lxc {
            row.insert("type".to_owned(), json!("lxc"));
            row.insert("swap".to_owned(), json!(0));
            row.insert(
                "maxswap".to_owned(),
                json!(self.config.get("swap").and_then(Value::as_u64).unwrap_or(512) << 20),
            );
        } else {
            row.insert("memhost".to_owned(), json!(used));
            if up {
                row.insert("pid".to_owned(), json!(10_000 + self.vmid));
            }
        }
        if let Some(tags) = self.text("tags") {
            row.insert("tags".to_owned(), json!(tags));
        }
        if self.template() {
            row.insert("template".to_owned(), json!(1));
        }
        if let Some(lock) = &self.lock {
            row.insert("lock".to_owned(), json!(lock));
        }
        row
    }
}

/// The fields of an object literal.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// A size such as `32G` in bytes.
pub(crate) fn bytes(size: &str) -> u64 {
    let unit = [("K", 10), ("M", 20), ("G", 30), ("T", 40)]
        .into_iter()
        .find_map(|(unit, shift)| Some((size.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((size, 0));
    digits.parse::<u64>().unwrap_or_default() << shift
}
