//! Decides whether a call may act at once: a low operation, with arguments and values that keep it low, on what the
//! grant covers. Everything else needs a plan, or is refused.
//!
//! First what can be told before anything is asked; then, once the guests that it names are found, what the grant says
//! of them; and only then what they look like.

use std::collections::BTreeMap;
use std::sync::Arc;

use pvegate_generated::model::{Operation, Place};
use pvegate_generated::terms::{Guard, Role, Tier};
use serde_json::{Map, Value as Json};

use super::decide::{Case, Covered, Decision, decide, may_endanger};
use super::guards::Guards;
use super::reserved::Reserved;
use super::{Authorized, Named, NotReached, consumed, live, names, offered, privileges, reach, read, values};
use crate::args::{Args, decode};
use crate::connection::Connection;
use crate::mcp::Refusal;
use crate::protection;
use crate::server::{Addressed, State, addressed, refusal, vmid};
use crate::snapshot::GuestRow;
use crate::tokens::Principal;
use crate::values::Vmid;

/// A write of one cluster that was authorized.
#[derive(Clone, Debug)]
pub struct Write {
    /// The cluster.
    pub connection: Arc<Connection>,
    /// Which cluster that is, by what PVE says.
    pub identity: String,
    /// What is sent, as it is sent: with the guest's node and with what is always sent.
    pub args: Args,
    /// The guests that it names and that exist, as they were listed when it was authorized.
    pub guests: Vec<GuestRow>,
    /// What has to be told about protected guests: a waiver that lifts it, or a cluster where it only warns.
    pub warnings: Vec<String>,
    /// Privileges that the server's own API token seems to lack for it, all of them: advice for whom PVE refuses.
    pub lacking: Vec<String>,
}

impl Write {
    /// Whether it takes a guest down, by itself or by an argument.
    pub fn interrupts(&self) -> bool {
        values::interrupts(&self.args)
    }

    /// The guest that it acts on, where the caller named one and the server found it.
    pub fn guest(&self) -> Option<&GuestRow> {
        match self.args.get("vmid") {
            Some(crate::args::Value::Vmid(vmid)) => self.guests.iter().find(|guest| guest.vmid == *vmid),
            _ => None,
        }
    }
}

/// What is known on the way.
pub(super) struct Wish<'a> {
    pub state: &'a State,
    pub principal: &'a Principal,
    pub connection: &'a Connection,
    pub args: &'a Args,
    pub named: &'a Named,
    /// The guests that exist.
    pub guests: &'a [GuestRow],
    /// The configuration of each of them, or why it cannot be read.
    pub configs: BTreeMap<Vmid, Result<Map<String, Json>, crate::pve::PveError>>,
    pub reserved: Reserved<'a>,
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
    // Before anything that changes, what was known counts as old.
    connection.snapshot().expire();
    let finds_node = find_node(state, principal, &connection, operation, &mut arguments).await?;
    let release = connection.version().await.map_err(pve)?.release;
    let mut args = decode(operation, &arguments, release).map_err(|error| super::invalid(state, &error))?;
    values::complete(&mut args).map_err(|error| super::invalid(state, &error))?;
    let mut named = Named::by(&args);
    if finds_node && addressed(operation) == Addressed::NoGuest {
        // The server's own, and the only one that such a call names.
        named.nodes.clear();
    }
    values::stay_low(principal, &args, &named)?;
    let guests = reached(state, principal, &connection, &args, &named).await?;
    let identity = crate::identity::check(state, &connection).await?;
    let tokens = state.tokens();
    let reserved = Reserved {
        protection: connection.protection(),
        granting_tags: tokens.granting_tags(),
        granting_pools: tokens.granting_pools(),
    };
    reserved.keeps_pools(&args, &principal.grant)?;
    let mut configs = BTreeMap::new();
    for guest in &guests {
        configs.insert(guest.vmid, live::config(&connection, guest, None).await);
    }
    let wish = Wish {
        state,
        principal,
        connection: &connection,
        args: &args,
        named: &named,
        guests: &guests,
        configs,
        reserved,
    };
    let interrupts = values::interrupts(&args);
    let warnings = if interrupts { protected(&wish)? } else { Vec::new() };
    Guards::of(&wish).check().await?;
    consumed::check(&wish).await?;
    state.url_policy().check_call(&args).await?;
    let lacking = match connection.sight().await {
        Ok(sight) => privileges::lacking(&sight, &args, &named),
        Err(_) => Vec::new(),
    };
    let covered = if principal.grant.guests.is_all() { Covered::Everything } else { Covered::Named };
    // The last word, over the facts as they were found.
    let case = Case { covered, every_guest: named.every_guest, endangers: interrupts, ..Case::granted(operation) };
    match decide(&case) {
        Decision::Acts => {}
        other => return Err(needs_a_plan(&format!("{} is not one that acts at once ({other})", operation.name))),
    }
    Ok(Authorized::passed(Write { identity, args, guests, warnings, lacking, connection: Arc::clone(&connection) }))
}

/// Finds the node of the guest that a call is about, and names it to PVE. Answers whether it did.
async fn find_node(
    state: &State,
    principal: &Principal,
    connection: &Connection,
    operation: &'static Operation,
    arguments: &mut Map<String, Json>,
) -> Result<bool, Refusal> {
    let by_list = operation.parameter("vmid").is_some_and(|parameter| parameter.role == Role::GuestList);
    if addressed(operation) == Addressed::NoGuest && !by_list {
        return Ok(false);
    }
    if arguments.contains_key("node") {
        return Err(Refusal::new(
            "invalid_arguments",
            format!("{} names a guest by `cluster` and `vmid`: `node` is not taken", operation.name),
            "Leave it out; the server finds the node.",
        ));
    }
    let given = arguments.get("vmid");
    if by_list && given.is_none_or(|given| only(given).is_none()) {
        return Err(needs_a_plan(&format!("{} of any number of guests but one", operation.name)));
    }
    let vmid = vmid(given.and_then(only))?;
    let guest = reach::guest(&principal.grant, connection, vmid).await.map_err(|not| not.into_refusal(state))?;
    if let Addressed::Guest(kind) = addressed(operation)
        && kind != guest.kind
    {
        return Err(read::other_kind(operation, vmid.get(), guest.kind));
    }
    arguments.insert("node".to_owned(), Json::from(guest.node.as_str()));
    Ok(true)
}

/// Checks that the grant covers everything that is named, and finds the guests among it.
async fn reached(
    state: &State,
    principal: &Principal,
    connection: &Connection,
    args: &Args,
    named: &Named,
) -> Result<Vec<GuestRow>, Refusal> {
    let (grant, cluster) = (&principal.grant, connection.name());
    let own_task = args.operation().guards.contains(&Guard::OwnTask);
    let mut asked = named.clone();
    if own_task {
        // Who started a task may stop it, whatever else is granted.
        super::guards::own_tasks(state, principal, cluster, named).await?;
        asked.tasks.clear();
    }
    names(grant, cluster, &asked)?;
    let pool = args.iter().find(|arg| arg.parameter.role == Role::Pool).map(|arg| arg.value.wire().into_owned());
    if let Some(vmid) = named.new_guests.iter().find(|vmid| !grant.guests.covers_new(**vmid, pool.as_deref())) {
        return Err(super::guards::no_new_guest(cluster, *vmid));
    }
    let mut guests = reach::guests(grant, connection, &asked).await.map_err(|not| not.into_refusal(state))?.guests;
    for vmid in named.tasks.iter().filter(|_| own_task).filter_map(super::task_guest) {
        // A guest that is gone cannot be interrupted.
        if let Ok(guest) = connection.snapshot().resolve(vmid).await {
            guests.push(guest);
        }
    }
    Ok(guests)
}

/// The only one in a list.
fn only(given: &Json) -> Option<&Json> {
    match given {
        Json::Array(items) => match items.as_slice() {
            [only] => Some(only),
            _ => None,
        },
        Json::String(text) if text.contains([',', ';', ' ', '\0']) => None,
        single => Some(single),
    }
}

/// Refuses what interrupts a protected guest, unless an operator lifted that; answers what has to be told.
fn protected(wish: &Wish<'_>) -> Result<Vec<String>, Refusal> {
    let (connection, operation) = (wish.connection, wish.args.operation());
    let mut warnings = Vec::new();
    for guest in wish.guests {
        let config = match wish.configs.get(&guest.vmid) {
            Some(Ok(config)) => Ok(Json::Object(config.clone())),
            Some(Err(error)) => Err(wish.state.redactor().text(error.message()).into_owned()),
            None => Err("its configuration was not read".to_owned()),
        };
        let rules = protection::rules(connection.protection(), guest, config.as_ref().map_err(Clone::clone));
        let waiver = protection::waiver(wish.state, connection.name(), guest.vmid, operation, wish.principal);
        let case = Case {
            endangers: true,
            protected: !rules.is_empty(),
            waived: waiver.is_some(),
            lab: connection.is_lab(),
            ..Case::granted(operation)
        };
        if decide(&case) == Decision::Protected {
            let what = format!("{} interrupts it", operation.name);
            return Err(protection::refusal(connection.name(), guest, &what, &rules));
        }
        if !rules.is_empty() {
            let by = waiver.unwrap_or_else(|| format!("cluster {} is a lab, where that only warns", connection.name()));
            warnings.push(protection::lifted(guest, &rules, &by));
        }
    }
    Ok(warnings)
}

/// What can be told before anything is asked: tier, offer, names of arguments.
fn stage_one(
    state: &State,
    principal: &Principal,
    operation: &'static Operation,
    arguments: &Map<String, Json>,
) -> Result<(), Refusal> {
    let keeps_low = |name: &str| {
        operation
            .parameter(name)
            .is_none_or(|parameter| parameter.place == Place::Path || operation.low_args.contains(&parameter.name))
    };
    let more = arguments.keys().find(|name| !keeps_low(name));
    let case = Case {
        opted_in: state.opted_in(operation.name),
        tier: principal.grant.tiers.allows(Tier::Low),
        stays_low: more.is_none(),
        endangers: may_endanger(operation),
        ..Case::granted(operation)
    };
    match decide(&case) {
        Decision::Acts => Ok(()),
        Decision::NotOffered => offered(state, operation),
        Decision::Reads => {
            Err(Refusal::new("invalid_arguments", format!("{} only reads", operation.name), "Use `read`."))
        }
        Decision::NotGranted => Err(Refusal::new(
            "not_granted",
            format!("{} changes something (tier {}), and this token only reads", operation.name, operation.tier),
            "An operator can add the tier with `pvegate token set-scopes`.",
        )),
        Decision::Plans => Err(match more.filter(|_| operation.tier == Tier::Low) {
            Some(name) => needs_a_plan(&format!(
                "{} with `{}` is more than a low call",
                operation.name,
                crate::untrusted::shown(name, 80)
            )),
            None => needs_a_plan(&format!("{} is destructive", operation.name)),
        }),
        other @ (Decision::NotFound | Decision::Protected) => {
            Err(needs_a_plan(&format!("{} cannot be judged before it is looked at ({other})", operation.name)))
        }
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
