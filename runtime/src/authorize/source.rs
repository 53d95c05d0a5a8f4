//! Decides whether a guest may be copied: the copy reaches nothing that the caller's grant does not, has no label that
//! means something, and no line to the node.

use std::collections::BTreeMap;

use pvegate_generated::internal;
use serde_json::{Map, Value as Json};

use super::reserved::Reserved;
use super::values::{is_off, is_on};
use super::{caps, disks, live, needs_a_plan, none};
use crate::args::Args;
use crate::grant::Grant;
use crate::mcp::Refusal;
use crate::snapshot::{GuestKind, GuestRow};
use crate::untrusted::shown;
use crate::values::scalar;

/// What a copy takes.
#[derive(Debug)]
pub(super) struct Copy {
    /// Memory in MiB, where the configuration tells.
    pub memory: Option<u64>,
    /// Bytes on disks of the copy, as PVE counts them.
    pub disk: Option<u64>,
    /// Bytes that are written anew on each storage; nothing where disks are only linked.
    pub written: BTreeMap<String, u64>,
}

/// `config` is the configuration that is copied: the present one, or a snapshot's.
pub(super) fn check(
    cluster: &str,
    grant: &Grant,
    reserved: &Reserved<'_>,
    guest: &GuestRow,
    args: &Args,
    config: &Map<String, Json>,
) -> Result<Copy, Refusal> {
    let change = live::change(guest.kind);
    if let Some(key) = disks::reaches_node(change, config) {
        return Err(needs_a_plan(&format!(
            "guest {} has `{}` in its configuration, which may reach the node, and a copy would have it too",
            guest.vmid,
            shown(&key, 40)
        )));
    }
    let unprivileged =
        config.get(internal::create_container::UNPRIVILEGED).is_some_and(|value| scalar::boolean(value) == Some(true));
    if guest.kind == GuestKind::Lxc && !unprivileged {
        return Err(needs_a_plan(&format!(
            "container {} is privileged, which makes root in it root on the node, and a copy would be so too",
            guest.vmid
        )));
    }
    reserved.inherited(config)?;
    let disks: Vec<disks::Disk> =
        disks::of(change, config).into_iter().filter(|disk| !disk.image && !disk.key.starts_with("unused")).collect();
    // The two operations name these alike.
    let storage = args.get(internal::clone_vm::STORAGE).map(|value| value.wire().into_owned());
    if storage.is_none()
        && let Some(disk) = disks.iter().find(|disk| !grant.storages.allows(disk.volume.storage()))
    {
        return Err(none(cluster, "storage", disk.volume.storage()));
    }
    let linked = guest.template && !is_on(args, internal::clone_vm::FULL) || is_off(args, internal::clone_vm::FULL);
    let mut written: BTreeMap<String, u64> = BTreeMap::new();
    for disk in disks.iter().filter(|_| !linked) {
        let on = storage.clone().unwrap_or_else(|| disk.volume.storage().to_owned());
        let sum = written.entry(on).or_default();
        *sum = sum.saturating_add(disk.bytes.unwrap_or_default());
    }
    Ok(Copy { memory: live::memory(config.get(internal::change_vm::MEMORY)), disk: Some(caps::bytes(&disks)), written })
}
