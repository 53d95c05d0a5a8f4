//! One read from arguments to data that may leave: have it authorized, send, mask, shape.

use pvegate_generated::internal;
use pvegate_generated::model::{Operation, Parameter, Place, Rows, Segment};
use pvegate_generated::terms::{Role, Subject, Tier};
use serde_json::{Map, Value as Json};

use super::{State, shape, spread};
use crate::authorize::{self, Asked, Authorized, Fixed, NotReached, Read};
use crate::connection::Connection;
use crate::grant::Grant;
use crate::mcp::Refusal;
use crate::pve::{Kind, PveError, Reply};
use crate::snapshot::GuestKind;
use crate::tasks;
use crate::values::{Vmid, scalar};

/// What a read brought: masked, shaped, with what is known beside it.
#[derive(Debug)]
pub struct Reading {
    /// The data.
    pub data: Json,
    /// How many rows PVE has, where it says so and shows fewer.
    pub total: Option<u64>,
    /// What is not in it, in sentences.
    pub missing: Vec<String>,
}

impl Reading {
    /// Everything that a caller has to know is missing from `shown` rows.
    pub fn gaps(&self, shown: usize) -> Vec<String> {
        let hidden = self.total.filter(|total| usize::try_from(*total).is_ok_and(|total| total > shown));
        let of_pve = hidden
            .map(|total| format!("PVE has {total} rows and showed {shown}; ask with its own limit, start or filters"));
        self.missing.iter().cloned().chain(of_pve).collect()
    }
}

/// Runs one read of which it is not looked at yet what it names.
pub async fn run(
    state: &State,
    asked: &Authorized<Asked<'_>>,
    arguments: &Map<String, Json>,
    fixed: Fixed,
) -> Result<Reading, Refusal> {
    let operation = asked.get().operation;
    let result = if is_everywhere(operation, arguments) {
        Box::pin(spread::run(state, asked, arguments, fixed)).await
    } else if addressed(operation) != Addressed::NoGuest {
        Box::pin(of_guest(state, asked, arguments, fixed)).await
    } else if names_every_node(arguments) {
        Err(NotReached::Refused(one_node(operation)))
    } else {
        Box::pin(of_others(state, asked, arguments, fixed)).await
    };
    result.map_err(|not| not.into_refusal(state))
}

async fn of_others(
    state: &State,
    asked: &Authorized<Asked<'_>>,
    arguments: &Map<String, Json>,
    fixed: Fixed,
) -> Result<Reading, NotReached> {
    let read = authorize::reach(state, asked, arguments, fixed).await?;
    send(state, asked.get(), read).await
}

/// A guest may have moved since the list was read.
async fn of_guest(
    state: &State,
    asked: &Authorized<Asked<'_>>,
    arguments: &Map<String, Json>,
    fixed: Fixed,
) -> Result<Reading, NotReached> {
    let read = authorize::reach(state, asked, arguments, fixed).await?;
    let node = read.get().node().cloned();
    match send(state, asked.get(), read).await {
        Err(NotReached::Pve(error)) if error.kind() == Kind::NotFound => {
            asked.get().connection.snapshot().expire();
            let again = authorize::reach(state, asked, arguments, fixed).await?;
            if again.get().node() == node.as_ref() {
                return Err(NotReached::Pve(error));
            }
            send(state, asked.get(), again).await
        }
        other => other,
    }
}

async fn send(state: &State, asked: &Asked<'_>, read: Authorized<Read<'_>>) -> Result<Reading, NotReached> {
    let Asked { connection, operation, grant, .. } = asked;
    let task = read.get().task().cloned();
    let failed = |error| authorize::failed(grant, connection.name(), task.as_ref(), error);
    let Reply { mut data, mut total, mut missing, .. } = Connection::get(read).await.map_err(failed)?;
    if operation.name == internal::TASK_LOG.name
        && let Json::Array(rows) = &mut data
    {
        tasks::clean(rows, &mut total).ok_or_else(|| failed(no_such_task(connection.name())))?;
    }
    let data = leaving(state, operation, data);
    missing.extend(sight_of(state, asked, &data).await);
    Ok(Reading { data, total, missing })
}

/// Data as it may leave.
pub(super) fn leaving(state: &State, operation: &Operation, mut data: Json) -> Json {
    shape::only_leaves(operation, &mut data);
    shape::decode(operation, &mut data);
    state.redactor().value(&mut data);
    shape::coerce(operation, &mut data);
    data
}

/// Whether an empty list may only look empty, because the server's API token sees nothing.
pub(super) async fn sight_of(state: &State, asked: &Asked<'_>, data: &Json) -> Vec<String> {
    let Asked { connection, operation, grant, .. } = asked;
    let Rows::Columns(columns) = operation.rows else { return Vec::new() };
    if data.as_array().is_none_or(|rows| !rows.is_empty()) {
        return Vec::new();
    }
    sight_on(state, grant, connection, columns.iter().map(|column| column.subject)).await
}

/// The same for lists that are known to be empty. What exactly is not seen is told only to a grant of every guest: its
/// names may be those of things that others do not reach.
pub(super) async fn sight_on(
    state: &State,
    grant: &Grant,
    connection: &Connection,
    subjects: impl IntoIterator<Item = Subject>,
) -> Vec<String> {
    let doubt = match connection.sight().await {
        Ok(sight) => subjects.into_iter().find_map(|subject| sight.doubt(connection.name(), subject)),
        Err(error) => Some(format!(
            "whether the server's API token sees everything on cluster {} is not known: {}",
            connection.name(),
            state.redactor().text(error.message())
        )),
    };
    let told = |doubt| if grant.guests.is_all() { doubt } else { unseen(connection.name()) };
    doubt.map(told).into_iter().collect()
}

fn unseen(cluster: &str) -> String {
    format!(
        "cluster {cluster} may not show everything to the server's API token, so whether there is more that this token reaches is not known; an operator has to look at its privileges"
    )
}

/// Whether a list is asked of every node at once.
pub(super) fn is_everywhere(operation: &Operation, arguments: &Map<String, Json>) -> bool {
    names_every_node(arguments) && spread::is_possible(operation)
}

fn names_every_node(arguments: &Map<String, Json>) -> bool {
    arguments.get("node").and_then(Json::as_str) == Some(spread::EVERY_NODE)
}

fn one_node(operation: &Operation) -> Refusal {
    Refusal::new(
        "invalid_arguments",
        format!("`node` may be `*` for lists of what is on a node, and {} is none", operation.name),
        "Name one node. GET /nodes lists them all, with how busy each is.",
    )
}

/// Which guests an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressed {
    /// No guest: what the arguments name is found as it stands.
    NoGuest,
    /// A guest of this kind, named by vmid alone; the server finds its node.
    Guest(GuestKind),
    /// A guest of either kind, named the same way.
    AnyGuest,
}

/// How callers address what an operation is about.
pub fn addressed(operation: &Operation) -> Addressed {
    let in_path = |roles: &[Role]| {
        operation.params.iter().any(|parameter| parameter.place == Place::Path && roles.contains(&parameter.role))
    };
    // A backup names its guest in the body, and is made where that is.
    let in_list = |parameter: &Parameter| parameter.name == "vmid" && parameter.role == Role::GuestList;
    if operation.tier == Tier::Low && in_path(&[Role::Node]) && operation.params.iter().any(in_list) {
        return Addressed::AnyGuest;
    }
    if !in_path(&[Role::GuestTarget, Role::GuestSource]) || !in_path(&[Role::Node]) {
        return Addressed::NoGuest;
    }
    let says = |kind: &GuestKind| operation.segments.contains(&Segment::Literal(kind.as_str()));
    [GuestKind::Qemu, GuestKind::Lxc].into_iter().find(says).map_or(Addressed::AnyGuest, Addressed::Guest)
}

/// Reads a vmid as callers give it.
pub fn vmid(json: Option<&Json>) -> Result<Vmid, Refusal> {
    let wrong = |message: String| {
        Refusal::new("invalid_arguments", message, "Give the guest's number, 100 to 999999999; list_guests shows them.")
    };
    match json {
        // Some clients write 100.0 for 100, which is the same number.
        Some(given @ Json::Number(number)) => scalar::integer(given)
            .and_then(|number| Vmid::from_number(u64::try_from(number).ok()?).ok())
            .ok_or_else(|| wrong(format!("`vmid` {number} is no guest's number"))),
        Some(Json::String(text)) => Vmid::parse(text).map_err(|error| wrong(format!("`vmid` {error}"))),
        Some(_) => Err(wrong("`vmid` has to be a number".to_owned())),
        None => Err(wrong("`vmid` is missing".to_owned())),
    }
}

/// PVE answers with a line about a missing file, as if that were the log.
fn no_such_task(cluster: &str) -> PveError {
    PveError::new(
        Kind::NotFound,
        format!(
            "cluster {cluster} knows no task with this id, or keeps its log no longer; list_tasks shows those it knows"
        ),
    )
}

/// PVE's failure as callers read it.
pub fn refusal(state: &State, error: &PveError) -> Refusal {
    let mut refusal = refusal_of(error);
    refusal.message = state.redactor().text(&refusal.message).into_owned();
    refusal
}

fn refusal_of(error: &PveError) -> Refusal {
    let next = match error.kind() {
        Kind::NotFound => "Check the name or number; lists show what there is.",
        Kind::Invalid => "describe_operation shows the arguments.",
        Kind::Forbidden => "An operator has to give the server's API token the privilege.",
        Kind::Unauthorized | Kind::Certificate => "Only an operator can put this right, in the cluster file.",
        Kind::Unreachable | Kind::NodeDown | Kind::Timeout | Kind::Busy => {
            "Try again later; list_clusters shows which clusters answer."
        }
        Kind::TooLarge => "Ask for less.",
        Kind::Agent => "The guest's agent has to be installed and running.",
        Kind::NotJson => "Try again; where it stays like this, an operator has to look at the endpoint.",
        _ => "The message is PVE's; it says what is in the way.",
    };
    tracing::debug!(kind = %error.kind(), context = error.internal(), "PVE refused or failed");
    let next = match lacking(error) {
        Some((path, privilege)) => format!("An operator has to give the server's API token {privilege} on {path}."),
        None => next.to_owned(),
    };
    Refusal::new(error.kind().as_str(), error.message(), next)
}

/// The ACL path and privileges in PVE's words, `Permission check failed (/vms/100, VM.Audit|VM.Console)`.
fn lacking(error: &PveError) -> Option<(&str, String)> {
    let (_, rest) = error.message().split_once("Permission check failed (")?;
    let (path, privileges) = rest.split_once(')')?.0.split_once(", ")?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let told = error.kind() == Kind::Forbidden && path.starts_with('/') && plain(path) && plain(privileges);
    told.then(|| (path, privileges.replace('|', " or ")))
}
