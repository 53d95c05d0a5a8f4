//! Decides whether a call keeps within what a grant may use up: memory, disks and number of the guests that it selects
//! in a cluster, counted now, and snapshots of one guest. And whether there is room on the storages.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{disks, live};
use crate::connection::Connection;
use crate::grant::Grant;
use crate::mcp::Refusal;
use crate::pve::PveError;
use crate::snapshot::{GuestRow, Inventory};
use crate::untrusted::shown;
use crate::values::{NodeName, scalar};

/// What a call adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// Guests.
    pub guests: u64,
    /// Memory in MiB. None is an amount that cannot be told.
    pub memory: Option<u64>,
    /// Bytes on disks. None is an amount that cannot be told.
    pub disk: Option<u64>,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Whose disks are counted one by one; a cap over more guests than this cannot be kept.
const MOST_READ: usize = 256;

/// Why a cap refuses.
pub(super) enum OverCap {
    /// It does.
    Refused(Refusal),
    /// It cannot be counted, because the cluster does not tell.
    Pve(PveError),
}

/// Whether everything that the grant selects, with what is added, keeps within its caps.
pub(super) async fn check(grant: &Grant, connection: &Connection, added: &Added) -> Result<(), OverCap> {
    let caps = grant.caps;
    let adds_memory = added.memory != Some(0);
    let adds_disk = added.disk != Some(0);
    let counts = [
        caps.max_guests.filter(|_| added.guests > 0),
        caps.max_memory_mib.filter(|_| adds_memory),
        caps.max_disk_gib.filter(|_| adds_disk),
    ];
    if counts == [None; 3] {
        return Ok(());
    }
    let cluster = connection.name();
    let inventory: Arc<Inventory> = connection.snapshot().get().await.map_err(OverCap::Pve)?;
    if inventory.unreadable() > 0 {
        return Err(OverCap::Refused(uncounted(cluster, "some guests of the cluster could not be read")));
    }
    let selected: Vec<&GuestRow> = inventory.guests().iter().filter(|guest| grant.guests.covers(guest)).collect();
    let [guests, memory, disk] = counts;
    if let Some(most) = guests {
        let used = u64::try_from(selected.len()).unwrap_or(u64::MAX);
        within(cluster, "max_guests", "guests", most, Some(used), Some(added.guests)).map_err(OverCap::Refused)?;
    }
    if let Some(most) = memory {
        let used = selected.iter().map(|guest| Some(listed(guest, "maxmem")?.div_ceil(MIB))).sum::<Option<u64>>();
        within(cluster, "max_memory_mib", "MiB", most, used, added.memory).map_err(OverCap::Refused)?;
    }
    if let Some(most) = disk {
        let used = disks_of(connection, &selected).await?;
        let gib = |bytes: u64| bytes.div_ceil(GIB);
        within(cluster, "max_disk_gib", "GiB", most, Some(gib(used)), added.disk.map(gib)).map_err(OverCap::Refused)?;
    }
    Ok(())
}

/// Bytes of all volumes of these guests. The cluster's list has a VM's first disk only, so their configurations are read.
async fn disks_of(connection: &Connection, guests: &[&GuestRow]) -> Result<u64, OverCap> {
    if guests.len() > MOST_READ {
        let why = format!("the token selects {} guests, and disks of at most {MOST_READ} are counted", guests.len());
        return Err(OverCap::Refused(uncounted(connection.name(), &why)));
    }
    let mut sum: u64 = 0;
    for guest in guests {
        let config = live::config(connection, guest, None).await.map_err(OverCap::Pve)?;
        sum = sum.saturating_add(bytes(&disks::of(live::change(guest.kind), &config)));
    }
    Ok(sum)
}

/// Bytes of volumes as far as the configuration tells; unused ones, and what is passed through from a node, have no size
/// there.
pub(super) fn bytes(disks: &[disks::Disk]) -> u64 {
    disks.iter().filter(|disk| !disk.image).filter_map(|disk| disk.bytes).fold(0, u64::saturating_add)
}

fn listed(guest: &GuestRow, measure: &str) -> Option<u64> {
    let row: Json = serde_json::from_str(&guest.json).ok()?;
    u64::try_from(scalar::integer(row.get(measure)?)?).ok()
}

fn within(
    cluster: &str,
    cap: &str,
    unit: &str,
    most: u64,
    used: Option<u64>,
    added: Option<u64>,
) -> Result<(), Refusal> {
    let (Some(used), Some(added)) = (used, added) else {
        return Err(uncounted(
            cluster,
            &format!("`{cap}` is {most} {unit}, and how much is used or added cannot be told"),
        ));
    };
    let sum = used.saturating_add(added);
    if sum <= most {
        return Ok(());
    }
    Err(Refusal::new(
        "over_cap",
        format!(
            "this token's guests on cluster {cluster} use {used} {unit}, with this call {sum}, and `{cap}` is {most}"
        ),
        "Take less, or ask an operator to raise the cap or to remove what is no longer needed.",
    ))
}

fn uncounted(cluster: &str, why: &str) -> Refusal {
    Refusal::new(
        "over_cap",
        format!("whether this token's caps on cluster {cluster} are kept cannot be told: {why}"),
        "An operator has to look at the cluster, or at the token's caps.",
    )
}

/// Whether a guest may have one more snapshot.
pub(super) async fn one_snapshot_more(grant: &Grant, connection: &Connection, guest: &GuestRow) -> Result<(), OverCap> {
    let Some(most) = grant.caps.max_snapshots else { return Ok(()) };
    let used = live::snapshots(connection, guest).await.map_err(OverCap::Pve)?;
    if used < most {
        return Ok(());
    }
    Err(OverCap::Refused(Refusal::new(
        "over_cap",
        format!("guest {} has {used} snapshots, and `max_snapshots` of this token is {most}", guest.vmid),
        "A person can remove one; it takes a plan.",
    )))
}

/// Whether there is room. Where a storage does not tell, that is no reason to refuse, unless the room is `certain`ly
/// needed for the guest to go on.
pub(super) async fn room(
    connection: &Connection,
    node: &NodeName,
    needed: &BTreeMap<String, u64>,
    certain: bool,
) -> Result<(), OverCap> {
    for (storage, bytes) in needed {
        let free = match live::free(connection, node, storage).await {
            Ok(free) => free,
            Err(error) if certain => return Err(OverCap::Pve(error)),
            Err(_) => None,
        };
        match free {
            Some(free) if free >= *bytes => {}
            None if !certain => {}
            told => return Err(OverCap::Refused(no_room(connection.name(), node, storage, *bytes, told))),
        }
    }
    Ok(())
}

fn no_room(cluster: &str, node: &NodeName, storage: &str, bytes: u64, free: Option<u64>) -> Refusal {
    let free =
        free.map_or_else(|| "how much is free is not known".to_owned(), |free| format!("{} MiB are free", free / MIB));
    Refusal::new(
        "no_space",
        format!(
            "storage {} of node {node} on cluster {cluster}: {free}, and this may take {} MiB",
            shown(storage, 80),
            bytes.div_ceil(MIB)
        ),
        "Take another storage, or less; or ask a person to make room.",
    )
}
