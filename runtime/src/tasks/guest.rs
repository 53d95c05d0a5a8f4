//! Decides whether the HA manager did what it was asked for.
//!
//! For a guest under HA, PVE's task ends as soon as the request is noted. What was wanted happens later, by other
//! hands, or not at all; only the guest itself tells.

use std::time::Duration;

use pvegate_generated::internal;
use serde_json::Value as Json;

use super::Outcome;
use super::log::Log;
use crate::connection::Connection;
use crate::pve::{Kind, PveError};
use crate::snapshot::GuestKind;
use crate::untrusted;
use crate::values::Vmid;

/// How long the HA manager is given: it may shut a guest down, move it, or fence a node first.
const LIMIT: Duration = Duration::from_mins(10);

/// What a request to the HA manager is to lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The guest runs.
    Running,
    /// The guest is down.
    Stopped,
    /// The guest is on this node; `None` where the log does not tell which.
    On(Option<String>),
}

impl Wanted {
    /// By the type of the task, if it is one that only asks.
    pub(super) fn of(worker: &str, log: &Log) -> Option<Self> {
        match worker {
            "hastart" => Some(Self::Running),
            "hastop" | "hashutdown" => Some(Self::Stopped),
            "hamigrate" | "harelocate" => Some(Self::On(log.target().map(str::to_owned))),
            _ => None,
        }
    }
}

/// A guest as it really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestState {
    /// Which.
    pub vmid: Vmid,
    /// Where.
    pub node: String,
    /// `running` or `stopped`, as PVE says; `None` while it cannot be asked, as between two nodes.
    pub status: Option<String>,
    /// What the HA manager says of it.
    pub ha: Option<String>,
}

impl GuestState {
    /// Asks for it; `look_up` where its node may have changed.
    pub(crate) async fn read(connection: &Connection, vmid: Vmid, look_up: bool) -> Result<Self, PveError> {
        if look_up {
            connection.snapshot().expire();
        }
        let guest = connection.snapshot().resolve(vmid).await?;
        let operation = match guest.kind {
            GuestKind::Qemu => internal::QEMU_STATUS,
            GuestKind::Lxc => internal::LXC_STATUS,
        };
        let node = guest.node.as_str().to_owned();
        let given = [("node", Json::from(node.as_str())), ("vmid", Json::from(vmid.get()))];
        let data = match connection.ask(operation, given).await {
            Ok(reply) => reply.data,
            // It is on its way to another node.
            Err(error) if error.kind() == Kind::NotFound => Json::Null,
            Err(error) => return Err(error),
        };
        let text = |pointer: &str| data.pointer(pointer).and_then(Json::as_str).map(|text| untrusted::shown(text, 40));
        Ok(Self { vmid, node, status: text("/status"), ha: text("/ha/state") })
    }

    /// Whether it is as wanted, `age` after that was asked for.
    pub(super) fn judge(&self, wanted: &Wanted, age: Duration) -> (Outcome, String) {
        let is = |wanted: &str| self.status.as_deref() == Some(wanted);
        let moving = self.ha.as_deref().is_some_and(|state| matches!(state, "migrate" | "relocate"));
        let (reached, aim) = match wanted {
            Wanted::Running => (is("running"), "run".to_owned()),
            Wanted::Stopped => (is("stopped"), "be down".to_owned()),
            Wanted::On(Some(node)) => (
                self.node == *node && self.status.is_some() && !moving,
                format!("be on node {}", untrusted::shown(node, 80)),
            ),
            Wanted::On(None) => {
                let says = format!("the HA manager took the request, and the log does not say to which node; {self}");
                return (Outcome::Unknown, says);
            }
        };
        if reached {
            return (Outcome::Ok, format!("the HA manager has done it: {self}"));
        }
        if self.ha.as_deref() == Some("error") {
            return (Outcome::NotAchieved, format!("the HA manager gave up: {self}, and was to {aim}"));
        }
        if age > LIMIT {
            let minutes = age.as_secs() / 60;
            let says =
                format!("{minutes} min after the request {self}, and was to {aim}: it was not done, or undone since");
            return (Outcome::NotAchieved, says);
        }
        (Outcome::Running, format!("the HA manager took the request and is not done: {self}, and is to {aim}"))
    }
}

impl std::fmt::Display for GuestState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.status.as_deref().unwrap_or("between two nodes");
        write!(f, "guest {} is {status} on node {}", self.vmid, self.node)?;
        match &self.ha {
            Some(state) => write!(f, " (HA state {state})"),
            None => f.write_str(" (no HA state)"),
        }
    }
}
