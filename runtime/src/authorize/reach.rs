//! Decides whether a grant covers everything that a call names, and finds the guests among it. What is not covered and
//! what does not exist are refused in the same words, so nothing is learned by asking.

use std::collections::BTreeSet;
use std::sync::Arc;

use pvegate_generated::terms::Subject;
use serde_json::Value as Json;

use crate::connection::Connection;
use crate::grant::{Grant, Guests};
use crate::mcp::Refusal;
use crate::pve::{Kind, PveError};
use crate::snapshot::{GuestRow, Inventory, Resolution};
use crate::untrusted::shown;
use crate::values::{Upid, Vmid, scalar};

use super::Named;
use super::named::guest_in;

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
    let vmids: BTreeSet<Vmid> = named.guests.iter().copied().chain(of_tasks).collect();
    let mut reached = Reached::default();
    for vmid in vmids {
        reached.guests.push(guest(grant, connection, vmid).await?);
    }
    Ok(reached)
}

/// Finds one guest that the grant covers.
pub async fn guest(grant: &Grant, connection: &Connection, vmid: Vmid) -> Result<GuestRow, NotReached> {
    let refused = || NotReached::Refused(no_guest(connection.name(), vmid));
    match connection.snapshot().resolve(vmid).await {
        Ok(row) if grant.guests.covers(&row) => Ok(row),
        // To a grant that covers every guest, nothing is given away by saying what is wrong.
        Err(error) if grant.guests.is_all() => Err(NotReached::Pve(error)),
        Ok(_) => Err(refused()),
        Err(error) if error.kind() == Kind::NotFound => Err(refused()),
        // Listed twice: told only to whom both are granted.
        Err(error) if error.kind() == Kind::Conflict => match connection.snapshot().last() {
            Some((inventory, _)) if is_covered(&grant.guests, &inventory, vmid) => Err(NotReached::Pve(error)),
            _ => Err(refused()),
        },
        Err(error) => Err(NotReached::Pve(error)),
    }
}

/// What is known of a cluster's guests, to decide by about what belongs to them.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// What is granted.
    pub grant: &'a Grant,
    /// The guests; none where the grant is decided without them.
    pub inventory: Option<Arc<Inventory>>,
}

impl<'a> Known<'a> {
    /// Reads the cluster's guests, where the grant covers some of them.
    pub async fn of(grant: &'a Grant, connection: &Connection) -> Result<Self, PveError> {
        let inventory = match grant.guests {
            Guests::Some(_) => Some(connection.snapshot().get().await?),
            Guests::All | Guests::None => None,
        };
        Ok(Self { grant, inventory })
    }

    /// Whether what belongs to this guest is covered. Of a guest that is gone only its number is known.
    pub fn covers_guest(&self, vmid: Vmid) -> bool {
        match &self.inventory {
            Some(inventory) => is_covered(&self.grant.guests, inventory, vmid),
            None => self.grant.guests.is_all(),
        }
    }

    /// Whether a task is covered.
    pub fn covers_task(&self, upid: &Upid) -> bool {
        match owner(upid) {
            Owner::Guest(vmid) => self.covers_guest(vmid),
            Owner::Node => self.grant.nodes.allows(upid.node().as_str()),
            Owner::Unknown => self.grant.guests.is_all(),
        }
    }

    /// Whether what a column names is covered. What is no such name takes the grant of everything.
    pub(super) fn covers_value(&self, subject: Subject, value: &Json) -> bool {
        let allowed = match subject {
            Subject::Guest => vmid_in(value).map(|vmid| self.covers_guest(vmid)),
            Subject::Node => value.as_str().map(|name| self.grant.nodes.allows(name)),
            Subject::Storage => value.as_str().map(|name| self.grant.storages.allows(name)),
            Subject::Pool => value.as_str().map(|name| self.grant.pools.allows(name)),
        };
        allowed.unwrap_or_else(|| self.grant.guests.is_all())
    }
}

fn vmid_in(value: &Json) -> Option<Vmid> {
    match value {
        Json::String(text) => guest_in(text),
        other => Vmid::from_number(u64::try_from(scalar::integer(other)?).ok()?).ok(),
    }
}

fn is_covered(guests: &Guests, inventory: &Inventory, vmid: Vmid) -> bool {
    match inventory.resolve(vmid) {
        Resolution::Found(row) => guests.covers(row),
        Resolution::Missing => guests.covers_new(vmid, None),
        Resolution::Ambiguous(rows) => rows.iter().all(|row| guests.covers(row)),
    }
}

/// Whose a task is, as far as its id tells.
enum Owner {
    Guest(Vmid),
    Node,
    Unknown,
}

/// Workers of tasks over several guests, which name none.
const OVER_GUESTS: [&str; 8] =
    ["imgcopy", "imgdel", "migrateall", "prunebackups", "startall", "stopall", "suspendall", "vzdump"];

/// A task whose subject begins with a guest's number is that guest's, whatever it does (`100`, `100@local`); one
/// without a subject is its node's, unless it works on guests.
fn owner(upid: &Upid) -> Owner {
    let worker = upid.worker();
    if let Some(vmid) = upid.subject().split('@').next().and_then(guest_in) {
        return Owner::Guest(vmid);
    }
    let over_guests =
        OVER_GUESTS.contains(&worker) || ["bulk-", "ha", "qm", "vz"].iter().any(|one| worker.starts_with(one));
    if upid.subject().is_empty() && !over_guests { Owner::Node } else { Owner::Unknown }
}

/// Whether a grant covers a task as far as its id tells; a guest's task is decided by the guest.
fn task_by_name(grant: &Grant, upid: &Upid) -> bool {
    match owner(upid) {
        Owner::Guest(_) => true,
        Owner::Node => grant.nodes.allows(upid.node().as_str()),
        Owner::Unknown => grant.guests.is_all(),
    }
}

/// The guest that a task works on.
pub fn task_guest(upid: &Upid) -> Option<Vmid> {
    match owner(upid) {
        Owner::Guest(vmid) => Some(vmid),
        Owner::Node | Owner::Unknown => None,
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn upid(worker: &str, subject: &str) -> Upid {
        Upid::parse(&format!("UPID:pve1:0008366C:01665026:638071CE:{worker}:{subject}:root@pam:")).unwrap()
    }

    #[test]
    fn a_task_is_its_guests_or_its_nodes_or_for_who_reaches_everything() {
        let grant = |guests: &[&str], nodes: &[&str]| {
            let texts: Vec<String> = guests.iter().map(|text| (*text).to_owned()).collect();
            let names = nodes.iter().map(|name| (*name).to_owned()).collect();
            Grant {
                guests: Guests::from_texts(&texts).unwrap(),
                nodes: crate::grant::Scope::from_names(names).unwrap_or_default(),
                ..Grant::all()
            }
        };
        // None of the guests exists any more: their numbers decide.
        let inventory = Some(Arc::new(Inventory::default()));
        let (guest, node, all) = (grant(&["vmid:100"], &[]), grant(&["tag:ci"], &["pve1"]), grant(&["*"], &[]));
        for (worker, subject, of_guest, of_node, of_all) in [
            ("qmstart", "100", true, false, true),
            ("vzdump", "100", true, false, true),
            ("imgdel", "100@local", true, false, true),
            ("resize", "100", true, false, true),
            ("qmstart", "1000", false, false, true),
            ("imgdel", "101@local", false, false, true),
            ("aptupdate", "", false, true, false),
            ("srvreload", "networking", false, false, true),
            ("download", "noble.img", false, false, true),
            ("vzdump", "", false, false, true),
            ("startall", "", false, false, true),
            ("bulk-start", "", false, false, true),
            ("imgcopy", "", false, false, true),
        ] {
            let upid = upid(worker, subject);
            for (grant, covers) in [(&guest, of_guest), (&node, of_node), (&all, of_all)] {
                let known = Known { grant, inventory: inventory.clone().filter(|_| !grant.guests.is_all()) };
                assert_eq!(known.covers_task(&upid), covers, "{worker} `{subject}` {grant:?}");
            }
        }
    }
}
