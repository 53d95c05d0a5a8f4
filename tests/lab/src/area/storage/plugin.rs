//! The types of storages: their options, what they hold by default, whether they can be used, and how much fits.

use serde_json::{Map, Value};

use crate::answer::Refusal;
use crate::state::Cluster;
use crate::state::storage::Storage;

/// Options of every type.
const COMMON: &[&str] =
    &["nodes", "disable", "content", "type", "bwlimit", "shared", "prune-backups", "max-protected-backups"];
const DIRECTORY: &[&str] = &[
    "format",
    "mkdir",
    "create-base-path",
    "create-subdirs",
    "content-dirs",
    "preallocation",
    "snapshot-as-volume-chain",
];

/// Required options and further ones of a type.
fn options(kind: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        "dir" => (&["path"], &["is_mountpoint"]),
        "btrfs" => (&["path"], &["is_mountpoint", "nocow"]),
        "nfs" => (&["server", "export"], &["path", "options"]),
        "cifs" => {
            (&["server", "share"], &["path", "username", "password", "domain", "smbversion", "subdir", "options"])
        }
        "cephfs" => (&[], &["path", "monhost", "username", "fuse", "subdir", "fs-name", "keyring", "options"]),
        "pbs" => (
            &["server", "datastore", "username"],
            &[
                "port",
                "fingerprint",
                "password",
                "encryption-key",
                "master-pubkey",
                "namespace",
                "skip-cert-verification",
            ],
        ),
        "lvm" => (
            &["vgname"],
            &[
                "base",
                "saferemove",
                "saferemove_throughput",
                "saferemove-stepsize",
                "tagged_only",
                "snapshot-as-volume-chain",
            ],
        ),
        "lvmthin" => (&["vgname", "thinpool"], &[]),
        "zfspool" => (&["pool"], &["blocksize", "sparse", "mountpoint"]),
        "zfs" => (
            &["portal", "target", "pool", "iscsiprovider"],
            &["blocksize", "sparse", "nowritecache", "comstar_tg", "comstar_hg", "lio_tpg", "zfs-base-path"],
        ),
        "iscsi" | "iscsidirect" => (&["portal", "target"], &[]),
        "rbd" => (&[], &["pool", "monhost", "username", "krbd", "keyring", "data-pool", "namespace"]),
        "esxi" => (&["server", "username"], &["port", "password", "skip-cert-verification"]),
        _ => (&[], &[]),
    }
}

fn in_directory(kind: &str) -> bool {
    matches!(kind, "dir" | "btrfs" | "nfs" | "cifs" | "cephfs")
}

/// Whether a type has an option.
pub(super) fn knows(kind: &str, option: &str) -> bool {
    let (required, further) = options(kind);
    COMMON.contains(&option)
        || required.contains(&option)
        || further.contains(&option)
        || (in_directory(kind) && DIRECTORY.contains(&option))
}

/// Refuses options that a type does not have, changes of those that are fixed, and a new one without what it needs.
pub(super) fn check(kind: &str, given: &Map<String, Value>, new: bool) -> Result<(), Refusal> {
    let (required, _) = options(kind);
    for name in given.keys() {
        if !knows(kind, name) {
            return Err(Refusal::failed(format!("unexpected property '{name}'")));
        }
        let fixed = required.contains(&name.as_str()) && !matches!(name.as_str(), "server" | "username");
        if !new && fixed {
            return Err(Refusal::failed(format!("can't change value of fixed parameter '{name}'")));
        }
    }
    match required.iter().find(|name| new && !given.contains_key(**name)) {
        Some(missing) => Err(Refusal::failed(format!("missing value for required option '{missing}'"))),
        None => Ok(()),
    }
}

/// What a storage of a type holds if nothing is said.
pub(super) fn content(kind: &str) -> &'static str {
    match kind {
        "dir" => "images,rootdir,vztmpl,iso,backup,snippets",
        "pbs" | "cephfs" => "backup",
        "esxi" => "import",
        "nfs" | "cifs" | "iscsi" | "zfs" | "iscsidirect" => "images",
        _ => "images,rootdir",
    }
}

fn flag(storage: &Storage, name: &str) -> Option<bool> {
    storage.config.get(name).and_then(Value::as_i64).map(|flag| flag != 0)
}

/// Hosts of the lab's own domain answer; there is no way to others.
fn reachable(host: &str) -> bool {
    host.ends_with(".lab.test")
}

/// Why a storage cannot be used on this node, if it cannot.
pub(super) fn activate(cluster: &Cluster, name: &str, storage: &Storage, new: bool) -> Option<String> {
    let path = storage.text("path");
    let server = storage.text("server");
    match storage.text("type") {
        "dir" | "btrfs" => {
            let mount = match storage.config.get("is_mountpoint") {
                Some(Value::String(text)) if !matches!(text.as_str(), "0" | "no" | "false" | "off") => {
                    Some(if text.starts_with('/') { text.as_str() } else { path })
                }
                _ => flag(storage, "is_mountpoint").filter(|flag| *flag).map(|_| path),
            };
            let unmounted = mount.filter(|mount| !cluster.host.mounts.contains_key(*mount));
            if let Some(mount) = unmounted {
                return Some(format!(
                    "unable to activate storage '{name}' - directory is expected to be a mount point but is not mounted: '{mount}'"
                ));
            }
            let makes = flag(storage, "mkdir") != Some(false) && flag(storage, "create-base-path") != Some(false);
            let there = cluster.storages.values().any(|other| other.text("path") == path);
            (new && !makes && !there && !cluster.host.mounts.contains_key(path)).then(|| {
                format!("unable to activate storage '{name}' - directory '{path}' does not exist or is unreachable")
            })
        }
        "nfs" | "cifs" if !reachable(server) => Some(format!("storage '{name}' is not online")),
        "pbs" if !reachable(server) => {
            Some(format!("{name}: error fetching datastores - 500 Can't connect to {server}:8007 (No route to host)"))
        }
        _ => None,
    }
}

/// The size of the file system that a storage is on.
pub(super) fn room(cluster: &Cluster, storage: &Storage) -> u64 {
    let path = storage.text("path");
    let mounted = cluster.host.mounts.iter().filter(|(mount, _)| {
        path.strip_prefix(mount.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let deepest = mounted.max_by_key(|(mount, _)| mount.len()).map(|(_, size)| *size);
    deepest.unwrap_or_else(|| cluster.node(&cluster.local).map_or(0, |node| node.disk))
}
