//! Decides whether what a call makes or takes is granted: labels and disks of what it changes or copies, caps, and room.

use std::collections::BTreeMap;

use pvegate_generated::internal;
use pvegate_generated::terms::Role;
use serde_json::{Map, Value as Json};

use super::caps::{self, Added, OverCap};
use super::low::Wish;
use super::values::{is, is_on};
use super::{disks, live, needs_a_plan, none, source};
use crate::args::{Args, Value};
use crate::mcp::Refusal;
use crate::server::refusal;
use crate::snapshot::GuestRow;
use crate::untrusted::shown;
use crate::values::NodeName;

/// Checks all of it.
pub(super) async fn check(wish: &Wish<'_>) -> Result<(), Refusal> {
    let operation = wish.args.operation();
    if is(operation, &[internal::CREATE_VM, internal::CREATE_CONTAINER]) {
        created(wish).await
    } else if is(operation, &[internal::CLONE_VM, internal::CLONE_CONTAINER]) {
        cloned(wish).await
    } else if is(operation, &[internal::CHANGE_VM, internal::CHANGE_CONTAINER]) {
        changed(wish).await
    } else if is(operation, &[internal::RESIZE_VM, internal::RESIZE_CONTAINER]) {
        grown(wish).await
    } else if is(operation, &[internal::SNAPSHOT_VM, internal::SNAPSHOT_CONTAINER]) {
        snapshot(wish).await
    } else {
        Ok(())
    }
}

async fn created(wish: &Wish<'_>) -> Result<(), Refusal> {
    let Wish { state, principal, connection, args, reserved, .. } = wish;
    reserved.keeps_tags(args, None)?;
    let made = disks::made(args);
    let disk = made.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    // The two operations name it alike.
    let memory = args.get(internal::create_vm::MEMORY).map(|value| live::memory_text(&value.wire()));
    let added = Added { guests: 1, memory: memory.unwrap_or_else(|| live::memory(None)), disk: Some(disk) };
    let told = |over| told(state, over);
    caps::check(&principal.grant, connection, &added).await.map_err(told)?;
    match node(args) {
        Some(node) => caps::room(connection, node, &made, false).await.map_err(told),
        None => Ok(()),
    }
}

async fn cloned(wish: &Wish<'_>) -> Result<(), Refusal> {
    let Wish { state, principal, connection, args, reserved, .. } = wish;
    let guest = only_guest(wish)?;
    let present = config(wish, guest)?;
    let snapshot = args.get(internal::clone_vm::SNAPNAME).map(|value| value.wire().into_owned());
    let of_snapshot = match &snapshot {
        Some(name) => Some(live::config(connection, guest, Some(name)).await.map_err(|error| refusal(state, &error))?),
        None => None,
    };
    let copied = of_snapshot.as_ref().unwrap_or(present);
    let copy = source::check(connection.name(), &principal.grant, reserved, guest, args, copied)?;
    let added = Added { guests: 1, memory: copy.memory, disk: copy.disk };
    let told = |over| told(state, over);
    caps::check(&principal.grant, connection, &added).await.map_err(told)?;
    caps::room(connection, &guest.node, &copy.written, false).await.map_err(told)
}

async fn changed(wish: &Wish<'_>) -> Result<(), Refusal> {
    let Wish { state, principal, connection, args, reserved, .. } = wish;
    let present = config(wish, only_guest(wish)?)?;
    reserved.keeps_tags(args, Some(present))?;
    let Some(memory) = args.get(internal::change_vm::MEMORY) else { return Ok(()) };
    let (before, after) = (live::memory(present.get(internal::change_vm::MEMORY)), live::memory_text(&memory.wire()));
    let added = match (before, after) {
        (Some(before), Some(after)) => Some(after.saturating_sub(before)),
        _ => None,
    };
    let added = Added { guests: 0, memory: added, disk: Some(0) };
    caps::check(&principal.grant, connection, &added).await.map_err(|over| told(state, over))
}

async fn grown(wish: &Wish<'_>) -> Result<(), Refusal> {
    let Wish { state, principal, connection, args, .. } = wish;
    let guest = only_guest(wish)?;
    let present = config(wish, guest)?;
    let key = args.get(internal::resize_vm::DISK).map(|value| value.wire().into_owned()).unwrap_or_default();
    let Some(disk) = disks::of(live::change(guest.kind), present).into_iter().find(|disk| disk.key == key) else {
        return Err(Refusal::new(
            "invalid_arguments",
            format!("guest {} has no disk `{}`", guest.vmid, shown(&key, 40)),
            "get_guest shows its disks.",
        ));
    };
    if disk.image {
        return Err(needs_a_plan(&format!("`{}` holds an image that others may use", shown(&key, 40))));
    }
    let storage = disk.volume.storage();
    if !principal.grant.storages.allows(storage) {
        return Err(none(connection.name(), "storage", storage));
    }
    let bytes = match args.get(internal::resize_vm::SIZE) {
        Some(Value::Growth(growth)) => Some(growth.size().bytes()),
        _ => None,
    };
    let told = |over| told(state, over);
    caps::check(&principal.grant, connection, &Added { guests: 0, memory: Some(0), disk: bytes })
        .await
        .map_err(told)?;
    let needed = BTreeMap::from([(storage.to_owned(), bytes.unwrap_or_default())]);
    caps::room(connection, &guest.node, &needed, false).await.map_err(told)
}

async fn snapshot(wish: &Wish<'_>) -> Result<(), Refusal> {
    let Wish { state, principal, connection, args, .. } = wish;
    let guest = only_guest(wish)?;
    let told = |over| told(state, over);
    caps::one_snapshot_more(&principal.grant, connection, guest).await.map_err(told)?;
    if !is_on(args, internal::snapshot_vm::VMSTATE) {
        return Ok(());
    }
    let present = config(wish, guest)?;
    let Some(memory) = live::memory(present.get(internal::change_vm::MEMORY)) else {
        return Err(needs_a_plan("how much memory the guest has cannot be told, and saving it takes room. That"));
    };
    // PVE makes a volume of twice the memory and something for the state of devices.
    let bytes = memory.saturating_mul(2).saturating_add(500).saturating_mul(1 << 20);
    let storages = state_storages(guest, present);
    if storages.is_empty() {
        return Err(needs_a_plan("where PVE would keep the guest's memory cannot be told. A snapshot with `vmstate`"));
    }
    if let Some(storage) = storages.iter().find(|storage| !principal.grant.storages.allows(storage)) {
        return Err(none(connection.name(), "storage", storage));
    }
    let needed = storages.into_iter().map(|storage| (storage, bytes)).collect();
    caps::room(connection, &guest.node, &needed, true).await.map_err(told)
}

/// Where PVE keeps a VM's memory: where its configuration says, or on one of the storages of its disks. Which of these,
/// only PVE knows, so all of them count.
fn state_storages(guest: &GuestRow, config: &Map<String, Json>) -> Vec<String> {
    if let Some(storage) = config.get(internal::change_vm::VMSTATESTORAGE).and_then(Json::as_str) {
        return vec![storage.to_owned()];
    }
    let disks = disks::of(live::change(guest.kind), config);
    let mut storages: Vec<String> =
        disks.iter().filter(|disk| !disk.image).map(|disk| disk.volume.storage().to_owned()).collect();
    storages.sort();
    storages.dedup();
    storages
}

fn only_guest<'a>(wish: &Wish<'a>) -> Result<&'a GuestRow, Refusal> {
    wish.guests
        .first()
        .filter(|_| wish.guests.len() == 1)
        .ok_or_else(|| Refusal::new("invalid_arguments", "the call has to be about one guest", "Name it by `vmid`."))
}

fn config<'a>(wish: &'a Wish<'_>, guest: &GuestRow) -> Result<&'a Map<String, Json>, Refusal> {
    match wish.configs.get(&guest.vmid) {
        Some(Ok(config)) => Ok(config),
        Some(Err(error)) => Err(refusal(wish.state, error)),
        None => Err(none(wish.connection.name(), "guest", &guest.vmid.to_string())),
    }
}

fn node(args: &Args) -> Option<&NodeName> {
    args.iter().filter(|arg| arg.parameter.role == Role::Node).find_map(|arg| match &arg.value {
        Value::Node(node) => Some(node),
        _ => None,
    })
}

fn told(state: &crate::server::State, over: OverCap) -> Refusal {
    match over {
        OverCap::Refused(refused) => refused,
        OverCap::Pve(error) => refusal(state, &error),
    }
}
