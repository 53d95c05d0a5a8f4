//! Storage definitions and the volumes on them.

use serde_json::{Map, Value, json};

/// A storage as `/etc/pve/storage.cfg` defines it.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    /// Without the id.
    pub(crate) config: Map<String, Value>,
    pub(crate) total: u64,
    /// Why it cannot be used, if it cannot.
    pub(crate) broken: Option<String>,
}

impl Storage {
    /// The one that is there where no file defines it, in the node's own file system.
    pub(crate) fn unwritten(total: u64) -> Self {
        let config = super::guest::object(json!({
            "type": "dir", "path": "/var/lib/vz", "priority": 0, "prune-backups": "keep-all=1",
            "content": "backup,vztmpl,rootdir,images,snippets,iso",
        }));
        Self { config, total, broken: None }
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.config.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn enabled(&self) -> bool {
        self.config.get("disable").and_then(Value::as_u64) != Some(1)
    }

    pub(crate) fn shared(&self) -> bool {
        matches!(self.text("type"), "nfs" | "cifs" | "pbs")
            || self.config.get("shared").and_then(Value::as_u64) == Some(1)
    }
}

/// A volume that no guest's configuration has to name: an image file, a template, a backup.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) storage: String,
    /// What follows the storage in a volume id.
    pub(crate) name: String,
    pub(crate) content: String,
    pub(crate) format: String,
    pub(crate) size: u64,
    pub(crate) used: Option<u64>,
    pub(crate) vmid: Option<u32>,
    pub(crate) subtype: Option<String>,
    pub(crate) ctime: i64,
    pub(crate) notes: Option<String>,
    pub(crate) protected: bool,
}

impl Volume {
    pub(crate) fn id(&self) -> String {
        format!("{}:{}", self.storage, self.name)
    }
}
