//! The faults in force: which happens to a request, and what those that are a matter of state change and put back.

use super::Fault;
use crate::gate::Shared;
use crate::state::Cluster;

/// How to put back what a fault changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undo {
    Online(String),
    Quorum,
    Storage(String),
    Agent(u32, bool),
    Lock(u32, Option<String>),
    File(u32),
}

#[derive(Debug)]
struct InForce {
    fault: Fault,
    operation: Option<String>,
    left: Option<u32>,
    undo: Option<Undo>,
}

/// The faults in force.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<InForce>);

impl Faults {
    fn set(&mut self, fault: Fault, undo: Option<Undo>) {
        let (fault, operation, left) = fault.parts();
        self.0.push(InForce { fault, operation, left, undo });
    }

    /// Ends a fault, with whatever limits it was set.
    fn clear(&mut self, fault: &Fault) -> Vec<Undo> {
        let (fault, _, _) = fault.clone().parts();
        let (gone, kept) = std::mem::take(&mut self.0).into_iter().partition(|set| set.fault == fault);
        self.0 = kept;
        let gone: Vec<InForce> = gone;
        // What was changed last is put back first.
        gone.into_iter().rev().filter_map(|set| set.undo).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, fault: &Fault) -> bool {
        self.0.iter().any(|set| set.fault == *fault)
    }

    pub(crate) fn dead(&self, node: &str) -> bool {
        self.0.iter().any(|set| matches!(&set.fault, Fault::DeadNode(name) if name == node))
    }

    pub(crate) fn hanging(&self, node: &str) -> bool {
        self.0.iter().any(|set| matches!(&set.fault, Fault::HangingNode(name) if name == node))
    }

    /// Whether a fault is in force for requests of an operation.
    pub(crate) fn applies(&self, operation: Option<&str>, fault: &Fault) -> bool {
        let fits = |set: &InForce| set.operation.is_none() || set.operation.as_deref() == operation;
        self.0.iter().any(|set| set.fault == *fault && fits(set))
    }

    /// The fault of a kind that happens to a request of an operation; it happens once less from now on.
    pub(crate) fn take<T>(&mut self, operation: Option<&str>, kind: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        let fits = |set: &InForce| set.operation.is_none() || set.operation.as_deref() == operation;
        let at = self.0.iter().position(|set| fits(set) && kind(&set.fault).is_some())?;
        let set = self.0.get_mut(at)?;
        let taken = kind(&set.fault);
        if let Some(left) = &mut set.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.0.remove(at);
            }
        }
        taken
    }
}

/// Puts a fault in force.
pub(crate) fn arm(shared: &Shared, fault: Fault) {
    let undo = shared.change(|cluster| change(cluster, &fault));
    if let Some(Undo::File(vmid)) = undo {
        shared.workers.hold(vmid);
    }
    shared.faults_mut().set(fault, undo);
}

/// Ends a fault.
pub(crate) fn disarm(shared: &Shared, fault: &Fault) {
    let undone = shared.faults_mut().clear(fault);
    for undo in undone {
        if let Undo::File(vmid) = undo {
            shared.workers.release(vmid);
        } else {
            shared.change(|cluster| put_back(cluster, undo));
        }
    }
}

/// Brings the cluster into the state that a fault is, if it is one of state.
fn change(cluster: &mut Cluster, fault: &Fault) -> Option<Undo> {
    match fault {
        Fault::DeadNode(name) => {
            let node = cluster.nodes.iter_mut().find(|node| node.name == *name).filter(|node| node.online)?;
            node.online = false;
            Some(Undo::Online(name.clone()))
        }
        Fault::NoQuorum => (!std::mem::replace(&mut cluster.split, true)).then_some(Undo::Quorum),
        Fault::FullStorage(name) => cluster.full.insert(name.clone()).then(|| Undo::Storage(name.clone())),
        Fault::AgentOff(vmid) => {
            let guest = cluster.guests.get_mut(vmid)?;
            Some(Undo::Agent(*vmid, std::mem::replace(&mut guest.agent, false)))
        }
        Fault::LockedGuest(vmid, kind) if kind == "file" => Some(Undo::File(*vmid)),
        Fault::LockedGuest(vmid, kind) => {
            let guest = cluster.guests.get_mut(vmid)?;
            Some(Undo::Lock(*vmid, guest.lock.replace(kind.clone())))
        }
        _ => None,
    }
}

fn put_back(cluster: &mut Cluster, undo: Undo) {
    match undo {
        Undo::Online(name) => {
            cluster.nodes.iter_mut().filter(|node| node.name == name).for_each(|node| node.online = true);
        }
        Undo::Quorum => cluster.split = false,
        Undo::Storage(name) => {
            cluster.full.remove(&name);
        }
        Undo::Agent(vmid, answers) => {
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                guest.agent = answers;
            }
        }
        Undo::Lock(vmid, lock) => {
            if let Some(guest) = cluster.guests.get_mut(&vmid) {
                guest.lock = lock;
            }
        }
        Undo::File(_) => {}
    }
}
