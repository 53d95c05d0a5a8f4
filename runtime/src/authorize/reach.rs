//! Decides whether a grant covers everything that a call names, and finds the guests among it. What is not covered and
//! what does not exist are refused in the same words, so nothing is learned by asking.

use crate::connection::Connection;
use crate::grant::Grant;
use crate::mcp::Refusal;
use crate::pve::PveError;
use crate::snapshot::{GuestRow, Inventory, Resolution};
use crate::untrusted::shown;
use crate::values::{Upid, Vmid};

use super::Named;

/// What has to be known of a cluster before a call goes on: the guests that it names, as they are listed now.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// The guests that exist already, by number.
    pub guests: Vec<GuestRow>,
}

/// Why a call does not reach what it names.
#[derive(Clone, Debug)]
pub enum NotReached {
    /// Not covered, or not there.
    Refused(Refusal),
    /// The cluster could not be asked.
    Pve(PveError),
}

/// Checks what a grant says about names alone; nothing is asked.
pub fn names(grant: &Grant, cluster: &str, named: &Named) -> Result<(), Refusal> {
    if named.every_guest && !grant.guests.is_all() {
        return Err(whole("this reaches guests that its arguments do not name"));
    }
    for (kind, scope, given) in [
        ("node", &grant.nodes, &named.nodes),
        ("storage", &grant.storages, &named.storages),
        ("pool", &grant.pools, &named.pools),
    ] {
        if let Some(name) = given.iter().find(|name| !scope.allows(name)) {
            return Err(none(cluster, kind, name));
        }
    }
    if let Some(upid) = named.tasks.iter().find(|upid| !task_by_name(grant, upid)) {
        return Err(none(cluster, "task", upid.as_str()));
    }
    Ok(())
}

/// Finds every guest that a call names, and checks that the grant covers it. A guest that is listed twice is refused.
pub async fn guests(grant: &Grant, connection: &Connection, named: &Named) -> Result<Reached, NotReached> {
    let of_tasks = named.tasks.iter().filter_map(task_guest);
    let vmids: std::collections::BTreeSet<Vmid> = named.guests.iter().copied().chain(of_tasks).collect();
    let mut reached = Reached::default();
    for vmid in vmids {
        reached.guests.push(guest(grant, connection, vmid).await?);
    }
    Ok(reached)
}

/// Finds one guest that the grant covers.
pub async fn guest(grant: &Grant, connection: &Connection, vmid: Vmid) -> Result<GuestRow, NotReached> {
    match connection.snapshot().resolve(vmid).await {
        Ok(row) if grant.guests.covers(&row) => Ok(row),
        // To a grant that covers every guest, nothing is given away by saying what is wrong.
        Err(error) if grant.guests.is_all() => Err(NotReached::Pve(error)),
        Ok(_) => Err(NotReached::Refused(no_guest(connection.name(), vmid))),
        Err(error) if error.kind() == crate::pve::Kind::NotFound => {
            Err(NotReached::Refused(no_guest(connection.name(), vmid)))
        }
        // Listed twice: told only to whom both are granted.
        Err(error) => match connection.snapshot().last() {
            Some((inventory, _)) if is_hidden(grant, &inventory, vmid) => {
                Err(NotReached::Refused(no_guest(connection.name(), vmid)))
            }
            _ => Err(NotReached::Pve(error)),
        },
    }
}

fn is_hidden(grant: &Grant, inventory: &Inventory, vmid: Vmid) -> bool {
    match inventory.resolve(vmid) {
        Resolution::Found(row) => !grant.guests.covers(row),
        Resolution::Missing => true,
        Resolution::Ambiguous(rows) => !rows.iter().all(|row| grant.guests.covers(row)),
    }
}

/// Whether a grant covers a task as far as its id tells: one about a guest is decided by that guest, one about a
/// node by the node, and one about many guests by the grant of all.
fn task_by_name(grant: &Grant, upid: &Upid) -> bool {
    if !is_about_guests(upid) {
        return grant.nodes.allows(upid.node().as_str());
    }
    task_guest(upid).is_some() || grant.guests.is_all()
}

/// The guest that a task works on.
pub fn task_guest(upid: &Upid) -> Option<Vmid> {
    let subject = upid.subject().split(['@', ':']).next()?;
    Vmid::parse(subject).ok().filter(|_| is_about_guests(upid))
}

fn is_about_guests(upid: &Upid) -> bool {
    let worker = upid.worker();
    ["qm", "vz", "ha", "bulk-"].iter().any(|prefix| worker.starts_with(prefix))
        || ["vncproxy", "spiceproxy", "startall", "stopall", "suspendall", "migrateall"].contains(&worker)
}

/// The one refusal of a guest that is not there or not granted.
pub fn no_guest(cluster: &str, vmid: Vmid) -> Refusal {
    none(cluster, "guest", &vmid.to_string())
}

/// The one refusal of a thing that is not there or not granted.
pub fn none(cluster: &str, kind: &str, name: &str) -> Refusal {
    Refusal::new(
        "not_found",
        format!("cluster {cluster} has no {kind} `{}` that this token reaches", shown(name, 120)),
        "Lists show what this token reaches; an operator can widen it with `pvegate token set-scopes`.",
    )
}

/// The refusal of what takes the grant of all guests.
pub fn whole(why: &str) -> Refusal {
    Refusal::new(
        "not_granted",
        format!("{why}, so it takes a token whose grant covers every guest (`guests = [\"*\"]`)"),
        "Read or act on single guests, or ask an operator for a wider token.",
    )
}
