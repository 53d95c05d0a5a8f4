//! Decides whether a call may act at once: a low operation, with arguments and values that keep it low, on what the
//! grant covers. Everything else needs a plan, or is refused.

use std::sync::Arc;

use pvegate_generated::model::{Operation, Place};
use pvegate_generated::terms::{Role, Tier};
use serde_json::{Map, Value as Json};

use super::{Authorized, Named, NotReached, names, offered, reach};
use crate::args::{Args, decode};
use crate::connection::Connection;
use crate::mcp::Refusal;
use crate::server::{Addressed, State, addressed, refusal, vmid};
use crate::snapshot::GuestRow;
use crate::tokens::Principal;

/// A write of one cluster that was authorized.
#[derive(Clone, Debug)]
pub struct Write {
    /// The cluster.
    pub connection: Arc<Connection>,
    /// What is sent, as it is sent: with the guest's node and with what is always sent.
    pub args: Args,
    /// What it names.
    pub named: Named,
    /// The guests that it names and that exist, as they were listed when it was authorized.
    pub guests: Vec<GuestRow>,
}

impl Write {
    /// The guest that it acts on, where the caller named one and the server found it.
    pub fn guest(&self) -> Option<&GuestRow> {
        match self.args.get("vmid") {
            Some(crate::args::Value::Vmid(vmid)) => self.guests.iter().find(|guest| guest.vmid == *vmid),
            _ => None,
        }
    }
}

/// Whether the operation may be called with these arguments by this principal, as a call that acts at once.
pub async fn low(
    state: &State,
    principal: &Principal,
    connection: Authorized<Arc<Connection>>,
    operation: &'static Operation,
    arguments: &Map<String, Json>,
) -> Result<Authorized<Write>, Refusal> {
    let connection = connection.into_inner();
    stage_one(state, principal, operation, arguments)?;
    let pve = |error| refusal(state, &error);
    let mut arguments = arguments.clone();
    if addressed(operation) != Addressed::NoGuest {
        if arguments.contains_key("node") {
            return Err(Refusal::new(
                "invalid_arguments",
                format!("{} names a guest by `cluster` and `vmid`: `node` is not taken", operation.name),
                "Leave it out; the server finds the node.",
            ));
        }
        if by_list(operation) && arguments.get("vmid").is_none_or(|given| one(given).is_none()) {
            return Err(needs_a_plan(&format!("{} of any number of guests but one", operation.name)));
        }
        let vmid = vmid(arguments.get("vmid").and_then(one))?;
        // Before anything that changes, what was known counts as old.
        connection.snapshot().expire();
        let guest = reach::guest(&principal.grant, &connection, vmid).await.map_err(|not| not.into_refusal(state))?;
        arguments.insert("node".to_owned(), Json::from(guest.node.as_str()));
    }
    let release = connection.version().await.map_err(pve)?.release;
    let args = decode(operation, &arguments, release).map_err(|error| super::invalid(state, &error))?;
    let named = Named::by(&args);
    names(&principal.grant, connection.name(), &named)?;
    let reached = reach::guests(&principal.grant, &connection, &named).await.map_err(|not| not.into_refusal(state))?;
    state.url_policy().check_call(&args).await?;
    Ok(Authorized::passed(Write { connection, args, named, guests: reached.guests }))
}

/// Whether guests are named by a list, of which a low call has one.
fn by_list(operation: &Operation) -> bool {
    operation.parameter("vmid").is_some_and(|parameter| parameter.role == Role::GuestList)
}

/// The only guest in a list.
fn one(given: &Json) -> Option<&Json> {
    match given {
        Json::Array(items) => match items.as_slice() {
            [only] => Some(only),
            _ => None,
        },
        Json::String(text) if text.contains([',', ';', ' ', '\0']) => None,
        single => Some(single),
    }
}

/// What can be told before anything is asked: tier, offer, names of arguments.
fn stage_one(
    state: &State,
    principal: &Principal,
    operation: &'static Operation,
    arguments: &Map<String, Json>,
) -> Result<(), Refusal> {
    offered(state, operation)?;
    match operation.tier {
        Tier::Low if principal.grant.tiers.allows(Tier::Low) => {}
        Tier::Low => {
            return Err(Refusal::new(
                "not_granted",
                format!("{} changes something (tier low), and this token only reads", operation.name),
                "An operator can add the tier with `pvegate token set-scopes`.",
            ));
        }
        Tier::Read => {
            return Err(Refusal::new("invalid_arguments", format!("{} only reads", operation.name), "Use `read`."));
        }
        Tier::Destructive => return Err(needs_a_plan(&format!("{} is destructive", operation.name))),
    }
    let keeps_low = |name: &str| {
        operation
            .parameter(name)
            .is_none_or(|parameter| parameter.place == Place::Path || operation.low_args.contains(&parameter.name))
    };
    match arguments.keys().find(|name| !keeps_low(name)) {
        Some(name) => Err(needs_a_plan(&format!(
            "{} with `{}` is more than a low call",
            operation.name,
            crate::untrusted::shown(name, 80)
        ))),
        None => Ok(()),
    }
}

/// The refusal of what only a plan that a person approved may do.
pub fn needs_a_plan(what: &str) -> Refusal {
    Refusal::new(
        "needs_a_plan",
        format!("{what}, so a person has to approve it first"),
        "Plans come with the next version (`plan_change`); until then ask a person to make the change.",
    )
}

impl NotReached {
    /// For the caller.
    pub fn into_refusal(self, state: &State) -> Refusal {
        match self {
            Self::Refused(refused) => refused,
            Self::Pve(error) => refusal(state, &error),
        }
    }
}
