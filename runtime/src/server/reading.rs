//! One read from arguments to data that may leave: resolve the guest, decode, send, mask, shape.

use pvegate_generated::model::{Operation, Place, Rows, Segment};
use pvegate_generated::terms::{Role, Subject};
use pvegate_generated::{catalog, internal};
use serde_json::{Map, Value as Json};

use super::{State, shape, spread};
use crate::args::{Args, InvalidArguments, decode, decode_text};
use crate::authorize::{self, Authorized, Read};
use crate::connection::Connection;
use crate::mcp::Refusal;
use crate::pve::{Kind, PveError, Reply};
use crate::snapshot::{GuestKind, GuestRow};
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

/// Parameters that a tool sets, whoever calls.
pub type Fixed = &'static [(&'static str, &'static str)];

/// Runs one authorized read.
pub async fn run(
    state: &State,
    read: &Authorized<Read>,
    arguments: Map<String, Json>,
    fixed: Fixed,
) -> Result<Reading, Refusal> {
    let Read { connection, operation } = read.get();
    let addressed = addressed(operation);
    if is_everywhere(operation, &arguments) {
        return spread::run(state, read, &arguments, fixed).await.map_err(|failure| failure.into_refusal(state));
    }
    if addressed == Addressed::NoGuest {
        if names_every_node(&arguments) {
            return Err(one_node(operation));
        }
        return send(state, read, &arguments, fixed).await.map_err(|failure| failure.into_refusal(state));
    }
    let guest = guest(state, read, &arguments).await?;
    if matches!(addressed, Addressed::Guest(kind) if kind != guest.kind) {
        return Err(other_kind(operation, &guest));
    }
    match send(state, read, &on_node(&arguments, &guest), fixed).await {
        Err(Failure::Pve(error)) if error.kind() == Kind::NotFound => {
            // It may have moved since the list was read.
            connection.snapshot().expire();
            let found = self::guest(state, read, &arguments).await?;
            if found.node == guest.node {
                return Err(refusal(state, &error));
            }
            send(state, read, &on_node(&arguments, &found), fixed).await.map_err(|failure| failure.into_refusal(state))
        }
        other => other.map_err(|failure| failure.into_refusal(state)),
    }
}

fn on_node(arguments: &Map<String, Json>, guest: &GuestRow) -> Map<String, Json> {
    let mut arguments = arguments.clone();
    arguments.insert("node".to_owned(), Json::from(guest.node.as_str()));
    arguments
}

/// Why there is no reading: PVE, or what was asked of it.
pub(super) enum Failure {
    Pve(PveError),
    Refused(Refusal),
}

impl Failure {
    fn into_refusal(self, state: &State) -> Refusal {
        match self {
            Self::Pve(error) => refusal(state, &error),
            Self::Refused(refusal) => refusal,
        }
    }
}

async fn send(
    state: &State,
    read: &Authorized<Read>,
    arguments: &Map<String, Json>,
    fixed: Fixed,
) -> Result<Reading, Failure> {
    let args = prepare(state, read, arguments, fixed).await?;
    let Read { connection, operation } = read.get();
    let Reply { mut data, mut total, .. } = connection.get(&args).await.map_err(Failure::Pve)?;
    if operation.name == internal::TASK_LOG.name
        && let Json::Array(rows) = &mut data
    {
        tasks::clean(rows, &mut total).ok_or_else(|| Failure::Pve(no_such_task(connection.name())))?;
    }
    let data = leaving(state, read, data);
    let missing = sight_of(state, read, &data).await;
    Ok(Reading { data, total, missing })
}

/// Arguments as they are sent: decoded by the cluster's release.
pub(super) async fn prepare(
    state: &State,
    read: &Authorized<Read>,
    arguments: &Map<String, Json>,
    fixed: Fixed,
) -> Result<Args, Failure> {
    let Read { connection, operation } = read.get();
    let version = connection.version().await.map_err(Failure::Pve)?;
    if !operation.releases.contains(version.release) {
        return Err(Failure::Refused(Refusal::new(
            "not_offered",
            format!(
                "{} does not exist on PVE {}, which cluster {} runs; it came with {}",
                operation.name,
                version.text,
                connection.name(),
                operation.releases.first
            ),
            "search_operations finds what there is.",
        )));
    }
    let refuse = |error: InvalidArguments| Failure::Refused(authorize::invalid(state, &error));
    let mut args = decode(operation, arguments, version.release).map_err(refuse)?;
    decode_text(&mut args, fixed).map_err(refuse)?;
    no_urls(&args).map_err(Failure::Refused)?;
    Ok(args)
}

/// Data as it may leave.
pub(super) fn leaving(state: &State, read: &Authorized<Read>, mut data: Json) -> Json {
    let operation = read.get().operation;
    shape::only_leaves(operation, &mut data);
    shape::decode(operation, &mut data);
    state.redactor().value(&mut data);
    shape::coerce(operation, &mut data);
    data
}

/// Whether an empty list may only look empty, because the server's API token sees nothing.
pub(super) async fn sight_of(state: &State, read: &Authorized<Read>, data: &Json) -> Vec<String> {
    let Read { connection, operation } = read.get();
    let Rows::Columns(columns) = operation.rows else { return Vec::new() };
    if data.as_array().is_none_or(|rows| !rows.is_empty()) {
        return Vec::new();
    }
    sight_on(state, connection, columns.iter().map(|column| column.subject)).await
}

/// The same for lists that are known to be empty.
pub(super) async fn sight_on(
    state: &State,
    connection: &Connection,
    subjects: impl IntoIterator<Item = Subject>,
) -> Vec<String> {
    match connection.sight().await {
        Ok(sight) => {
            subjects.into_iter().find_map(|subject| sight.doubt(connection.name(), subject)).into_iter().collect()
        }
        Err(error) => vec![format!(
            "whether the server's API token sees everything on cluster {} is not known: {}",
            connection.name(),
            state.redactor().text(error.message())
        )],
    }
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
    if !in_path(&[Role::GuestTarget, Role::GuestSource]) || !in_path(&[Role::Node]) {
        return Addressed::NoGuest;
    }
    let says = |kind: &GuestKind| operation.segments.contains(&Segment::Literal(kind.as_str()));
    [GuestKind::Qemu, GuestKind::Lxc].into_iter().find(says).map_or(Addressed::AnyGuest, Addressed::Guest)
}

async fn guest(state: &State, read: &Authorized<Read>, arguments: &Map<String, Json>) -> Result<GuestRow, Refusal> {
    let Read { connection, operation } = read.get();
    if arguments.contains_key("node") {
        return Err(Refusal::new(
            "invalid_arguments",
            format!(
                "{} names a guest, and guests are named by `cluster` and `vmid`: `node` is not taken",
                operation.name
            ),
            "Leave out `node`; the server finds it.",
        ));
    }
    let vmid = vmid(arguments.get("vmid"))?;
    connection.snapshot().resolve(vmid).await.map_err(|error| refusal(state, &error))
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

fn other_kind(operation: &Operation, guest: &GuestRow) -> Refusal {
    let (is, other) = match guest.kind {
        GuestKind::Qemu => ("a VM", GuestKind::Lxc),
        GuestKind::Lxc => ("a container", GuestKind::Qemu),
    };
    let twin = operation.name.replace(&format!("/{other}/"), &format!("/{}/", guest.kind));
    let next = if catalog::operation(&twin).is_some() {
        format!("Use {twin}.")
    } else {
        format!("Choose a guest of type {other}; list_guests filters by `type`.")
    };
    Refusal::new(
        "wrong_kind",
        format!("guest {} is {is}, and {} is for guests of type {other}", guest.vmid, operation.name),
        next,
    )
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

/// A node contacts no address that a caller chose, as long as there is no policy about addresses.
fn no_urls(args: &Args) -> Result<(), Refusal> {
    match args.iter().find(|arg| arg.parameter.role == Role::Url) {
        Some(arg) => Err(Refusal::new(
            "not_offered",
            format!(
                "`{}` makes a node contact an address that the caller chooses, and this server has no policy about addresses yet",
                arg.name()
            ),
            "Ask a person to look there.",
        )),
        None => Ok(()),
    }
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
