//! Pools: made, filled, emptied and removed.

use std::sync::Arc;

use super::entry::{done, split, within};
use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::{Cluster, Pool};

type Change = fn(&mut Cluster, &Call<'_>) -> Result<(), Refusal>;

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let (what, change): (&str, Change) = match (call.operation.verb.as_str(), call.path()) {
        ("POST", "/pools") => ("create", create),
        ("PUT", "/pools" | "/pools/{poolid}") => ("update", update),
        ("DELETE", "/pools" | "/pools/{poolid}") => ("delete", delete),
        _ => return None,
    };
    let plural = if what == "update" { "s" } else { "" };
    let outcome = shared.change(|cluster| change(cluster, call));
    Some(match outcome {
        Ok(()) => done(),
        Err(refusal) if refusal.status == 403 => Err(refusal),
        Err(refusal) => Err(within(&format!("{what} pool{plural} failed"), refusal)),
    })
}

fn missing(name: &str) -> Refusal {
    Refusal::failed(format!("pool '{name}' does not exist"))
}

fn create(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let name = call.text("poolid");
    if cluster.pools.contains_key(name) {
        return Err(Refusal::failed(format!("pool '{name}' already exists")));
    }
    if let Some((parent, _)) = name.rsplit_once('/')
        && !cluster.pools.contains_key(parent)
    {
        return Err(Refusal::failed(format!("parent '{parent}' of pool '{name}' does not exist")));
    }
    let pool = Pool { comment: call.text("comment").to_owned(), ..Pool::default() };
    cluster.pools.insert(name.to_owned(), pool);
    Ok(())
}

/// Adding and removing members takes the right to give permissions on each of them.
fn may_move(cluster: &Cluster, call: &Call<'_>, path: &str) -> Result<(), Refusal> {
    let kind = if path.starts_with("/vms") { "VM.Allocate" } else { "Datastore.Allocate" };
    if call.may(cluster, path, &["Permissions.Modify", kind]) {
        return Ok(());
    }
    Err(Refusal::forbidden(&format!("{path}, Permissions.Modify")))
}

fn update(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let name = call.text("poolid").to_owned();
    let mut pool = cluster.pools.get(&name).cloned().ok_or_else(|| missing(&name))?;
    if call.params.contains_key("comment") {
        call.text("comment").clone_into(&mut pool.comment);
    }
    let removing = call.flag("delete");
    let vms: Vec<u32> = split(call.text("vms")).filter_map(|vmid| vmid.parse().ok()).collect();
    // Nothing is kept of an update that is refused half-way.
    let mut moves: Vec<(u32, Option<String>)> = Vec::new();
    for vmid in vms {
        may_move(cluster, call, &format!("/vms/{vmid}"))?;
        let held = pool_of(cluster, vmid);
        let member = held.as_deref() == Some(name.as_str());
        match (removing, member, held) {
            (true, true, _) => moves.push((vmid, None)),
            (true, false, _) => return Err(Refusal::failed(format!("VM {vmid} is not a pool member"))),
            (false, true, _) => return Err(Refusal::failed(format!("VM {vmid} is already a pool member"))),
            (false, false, Some(other)) => {
                if !call.flag("allow-move") {
                    let message = format!("VM {vmid} belongs already to pool '{other}' and 'allow-move' is not set");
                    return Err(Refusal::failed(message));
                }
                if !call.may(cluster, &format!("/pool/{other}"), &["Pool.Allocate"]) {
                    return Err(Refusal::forbidden(&format!("/pool/{other}, Pool.Allocate")));
                }
                moves.push((vmid, Some(name.clone())));
            }
            (false, false, None) => moves.push((vmid, Some(name.clone()))),
        }
    }
    for storage in split(call.text("storage")) {
        may_move(cluster, call, &format!("/storage/{storage}"))?;
        let changed = if removing { pool.storages.remove(storage) } else { pool.storages.insert(storage.to_owned()) };
        if !changed {
            let state = if removing { "not" } else { "already" };
            return Err(Refusal::failed(format!("Storage '{storage}' is {state} a pool member")));
        }
    }
    cluster.pools.insert(name, pool);
    for (vmid, to) in moves {
        put(cluster, vmid, to);
    }
    Ok(())
}

/// The pool of a guest; PVE also remembers vmids that no guest has.
fn pool_of(cluster: &Cluster, vmid: u32) -> Option<String> {
    match cluster.guests.get(&vmid) {
        Some(guest) => guest.pool.clone(),
        None => cluster.pools.iter().find(|(_, pool)| pool.absent.contains(&vmid)).map(|(name, _)| name.clone()),
    }
}

fn put(cluster: &mut Cluster, vmid: u32, to: Option<String>) {
    for pool in cluster.pools.values_mut() {
        pool.absent.remove(&vmid);
    }
    if let Some(guest) = cluster.guests.get_mut(&vmid) {
        guest.pool = to;
    } else if let Some(pool) = to.and_then(|name| cluster.pools.get_mut(&name)) {
        pool.absent.insert(vmid);
    }
}

fn delete(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let name = call.text("poolid");
    let pool = cluster.pools.get(name).ok_or_else(|| missing(name))?;
    let holds = |what: String| Err(Refusal::failed(format!("pool '{name}' is not empty (contains {what})")));
    if let Some(below) = cluster.pools.keys().find(|other| {
        other.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).is_some_and(|rest| !rest.contains('/'))
    }) {
        return holds(format!("pool '{below}'"));
    }
    if let Some(guest) = cluster.guests.values().find(|guest| guest.pool.as_deref() == Some(name)) {
        return holds(format!("VM {}", guest.vmid));
    }
    if let Some(storage) = pool.storages.iter().find(|storage| cluster.storages.contains_key(*storage)) {
        return holds(format!("storage '{storage}'"));
    }
    cluster.pools.remove(name);
    Ok(())
}
