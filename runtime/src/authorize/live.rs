//! Reads what a write has to know of a guest or storage from its node, just before it is decided.

use pvegate_generated::internal;
use pvegate_generated::model::Operation;
use serde_json::{Map, Value as Json};

use crate::connection::Connection;
use crate::pve::{Kind, PveError};
use crate::snapshot::{GuestKind, GuestRow};
use crate::values::{NodeName, scalar};

/// The operation that changes a guest's configuration, which knows all its keys.
pub(super) fn change(kind: GuestKind) -> &'static Operation {
    match kind {
        GuestKind::Qemu => internal::CHANGE_VM,
        GuestKind::Lxc => internal::CHANGE_CONTAINER,
    }
}

/// A guest's configuration, with what is pending as if it were made, or that of one of its snapshots.
pub(super) async fn config(
    connection: &Connection,
    guest: &GuestRow,
    snapshot: Option<&str>,
) -> Result<Map<String, Json>, PveError> {
    let (operation, of_snapshot) = match guest.kind {
        GuestKind::Qemu => (internal::QEMU_CONFIG, internal::qemu_config::SNAPSHOT),
        GuestKind::Lxc => (internal::LXC_CONFIG, internal::lxc_config::SNAPSHOT),
    };
    let mut given = address(guest);
    given.extend(snapshot.map(|name| (of_snapshot, Json::from(name))));
    match connection.ask(operation, given).await?.data {
        Json::Object(config) => Ok(config),
        _ => Err(PveError::new(Kind::NotJson, format!("the configuration of guest {} is not one", guest.vmid))),
    }
}

/// How many snapshots a guest has.
pub(super) async fn snapshots(connection: &Connection, guest: &GuestRow) -> Result<u64, PveError> {
    let operation = match guest.kind {
        GuestKind::Qemu => internal::QEMU_SNAPSHOTS,
        GuestKind::Lxc => internal::LXC_SNAPSHOTS,
    };
    let data = connection.ask(operation, address(guest)).await?.data;
    let list = data.as_array().ok_or_else(|| PveError::new(Kind::NotJson, "the list of snapshots is no list"))?;
    // PVE lists the present state among them.
    let made = list.iter().filter(|one| one.get("name").and_then(Json::as_str) != Some("current")).count();
    Ok(u64::try_from(made).unwrap_or(u64::MAX))
}

/// How many bytes are free on a storage of a node, where it tells.
pub(super) async fn free(connection: &Connection, node: &NodeName, storage: &str) -> Result<Option<u64>, PveError> {
    let given = [("node", Json::from(node.as_str())), (internal::storage_status::STORAGE, Json::from(storage))];
    let data = connection.ask(internal::STORAGE_STATUS, given).await?.data;
    let active = data.get("active").is_none_or(|active| scalar::boolean(active).unwrap_or(false));
    Ok(data.get("avail").and_then(scalar::integer).and_then(|bytes| u64::try_from(bytes).ok()).filter(|_| active))
}

/// The volumes of a storage, as a node lists them.
pub(super) async fn volumes(connection: &Connection, node: &str, storage: &str) -> Result<Vec<String>, PveError> {
    let given = [("node", Json::from(node)), (internal::storage_content::STORAGE, Json::from(storage))];
    let data = connection.ask(internal::STORAGE_CONTENT, given).await?.data;
    let list = data.as_array().ok_or_else(|| PveError::new(Kind::NotJson, "the content of a storage is no list"))?;
    Ok(list.iter().filter_map(|one| Some(one.get("volid")?.as_str()?.to_owned())).collect())
}

fn address(guest: &GuestRow) -> Vec<(&'static str, Json)> {
    vec![("node", Json::from(guest.node.as_str())), ("vmid", Json::from(guest.vmid.get()))]
}

/// Memory of a configuration in MiB: a number, or `current=…`; what PVE takes where there is none.
pub(super) fn memory(value: Option<&Json>) -> Option<u64> {
    /// PVE's own default, for VMs and containers alike.
    const DEFAULT: u64 = 512;
    match value {
        None | Some(Json::Null) => Some(DEFAULT),
        Some(Json::String(text)) => memory_text(text),
        Some(other) => scalar::integer(other).and_then(|number| u64::try_from(number).ok()),
    }
}

/// The same as an argument has it.
pub(super) fn memory_text(text: &str) -> Option<u64> {
    text.strip_prefix("current=").unwrap_or(text).parse().ok()
}
