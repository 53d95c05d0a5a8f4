//! Named tools: each is one operation of the catalog, or one for each kind of guest.

use pvegate_generated::internal::task_log;
use pvegate_generated::model::{Answer as Shape, Operation, Runs, Tool};
use serde_json::{Map, Value as Json};

use super::State;
use super::gateway;
use super::guests::{self, Guests};
use super::page::{self, Window};
use super::reading::{self, Addressed};
use super::shape;
use crate::authorize;
use crate::mcp::{Answer, Refusal};
use crate::snapshot::GuestKind;
use crate::tokens::Principal;

/// Rows that are asked for at once where PVE cuts the list and the caller does not say.
const PAGE: usize = 500;

/// What the server adds to the arguments of every named tool.
struct Own {
    cluster: Option<String>,
    fields: Vec<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Runs a named tool.
pub async fn call(
    state: &State,
    principal: &Principal,
    tool: &'static Tool,
    mut given: Map<String, Json>,
) -> Result<Answer, Refusal> {
    let question = page::question(&[tool.name, &Json::from(without_paging(&given)).to_string()]);
    let own = own(&mut given)?;
    let connection = authorize::cluster(principal, state, own.cluster.as_deref())?;
    if tool.projection == Some("guests") {
        return guests_of_kind(state, principal, tool, connection.get().name(), given, own).await;
    }
    let operation = match tool.runs {
        Runs::One(name) => gateway::operation(name)?,
        Runs::ByKind { qemu, lxc } => {
            let vmid = reading::vmid(given.get("vmid"))?;
            let guest = authorize::guest(&principal.grant, connection.get(), vmid)
                .await
                .map_err(|not| not.into_refusal(state))?;
            gateway::operation(if guest.kind == GuestKind::Qemu { qemu } else { lxc })?
        }
        Runs::Gateway => {
            return Err(Refusal::new(
                "internal",
                format!("`{}` is not implemented", tool.name),
                "Report this; it is a mistake of the server.",
            ));
        }
    };
    if let Some(call) = crate::audit::current() {
        call.runs(operation);
    }
    check_names(tool, operation, &given)?;
    let window = Window { limit: own.limit, start: page::start_of(own.cursor.as_deref(), question)?, question };
    let asked = authorize::read(state, principal, connection, operation)?;
    let pages_are_pves = pages_are_pves(operation, &given);
    if let Some(start) = pages_are_pves.then_some(window.start) {
        given.insert(task_log::START.to_owned(), Json::from(start));
    }
    if has_pages(operation) {
        let limit = window.limit.filter(|_| pages_are_pves).unwrap_or(PAGE);
        given.insert(task_log::LIMIT.to_owned(), Json::from(limit));
    }
    let mut reading = reading::run(state, &asked, &given, tool.fixed).await?;
    if let Runs::ByKind { qemu, .. } = tool.runs {
        // The definition says for both kinds what the apidoc says of VMs, and of containers it says less.
        shape::coerce(gateway::operation(qemu)?, &mut reading.data);
    }
    let missing = reading.gaps(reading.data.as_array().map_or(0, Vec::len));
    match reading.data {
        Json::Array(rows) if pages_are_pves => {
            page::of_slice(rows, &own.fields, &window, reading.total, reading.missing)
        }
        Json::Array(rows) => page::of_rows(rows, &own.fields, &window, missing),
        Json::Null if matches!(operation.answer, Shape::List(_)) => {
            page::of_rows(Vec::new(), &own.fields, &window, missing)
        }
        other => page::of_object(other, &own.fields),
    }
}

/// Whether PVE cuts this list where it is told to; where it does, the parameters are named as those of a task's log.
fn has_pages(operation: &Operation) -> bool {
    [task_log::START, task_log::LIMIT].iter().all(|name| operation.parameter(name).is_some())
}

/// Whether a page is what PVE is asked for, so that the last one is not read for the first. Several nodes have no
/// pages in common.
fn pages_are_pves(operation: &Operation, given: &Map<String, Json>) -> bool {
    has_pages(operation) && !reading::is_everywhere(operation, given)
}

/// A cursor is for the same question; where it stands and how many rows are wanted is not part of it.
fn without_paging(given: &Map<String, Json>) -> Map<String, Json> {
    given
        .iter()
        .filter(|(name, _)| !["cursor", "limit", "fields"].contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn wrong(name: &str, expected: &str) -> Refusal {
    Refusal::new("invalid_arguments", format!("`{name}` has to be {expected}"), "tools/list has the schema.")
}

/// Takes an argument out that is a text.
pub(super) fn text(given: &mut Map<String, Json>, name: &str) -> Result<Option<String>, Refusal> {
    match given.remove(name) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(name, "a text")),
    }
}

fn own(given: &mut Map<String, Json>) -> Result<Own, Refusal> {
    let fields = match given.remove("fields") {
        None => Vec::new(),
        Some(Json::Array(items)) => items
            .into_iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong("fields", "a list of texts")))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(wrong("fields", "a list of texts")),
    };
    page::check_fields(&fields)?;
    let limit = match given.remove("limit") {
        None => None,
        Some(json) => Some(
            json.as_u64()
                .and_then(|limit| usize::try_from(limit).ok())
                .filter(|limit| (1..=1000).contains(limit))
                .ok_or_else(|| wrong("limit", "a whole number from 1 to 1000"))?,
        ),
    };
    Ok(Own { cluster: text(given, "cluster")?, cursor: text(given, "cursor")?, fields, limit })
}

/// A tool takes what its definition says, which is less than its operation takes.
pub(super) fn check_names(tool: &Tool, operation: &Operation, given: &Map<String, Json>) -> Result<(), Refusal> {
    let by_vmid = reading::addressed(operation) != Addressed::NoGuest;
    let is_taken = |name: &str| tool.args.contains(&name) || by_vmid && name == "vmid";
    let unknown = given.keys().find(|name| !is_taken(name));
    match unknown {
        None => Ok(()),
        Some(name) if by_vmid && name == "node" => Err(Refusal::new(
            "invalid_arguments",
            format!("{} names a guest by `cluster` and `vmid`: `node` is not taken", tool.name),
            "Leave it out; the server finds the node.",
        )),
        Some(name) => Err(Refusal::new(
            "invalid_arguments",
            format!("{} does not take `{}`", tool.name, crate::untrusted::shown(name, 80)),
            format!("It takes {}.", taken(tool)),
        )),
    }
}

fn taken(tool: &Tool) -> String {
    let definition: Json = serde_json::from_str(tool.definition).unwrap_or_default();
    let names = definition
        .pointer("/inputSchema/properties")
        .and_then(Json::as_object)
        .map(|properties| properties.keys().cloned().collect::<Vec<_>>());
    names.unwrap_or_default().join(", ")
}

async fn guests_of_kind(
    state: &State,
    principal: &Principal,
    tool: &'static Tool,
    cluster: &str,
    given: Map<String, Json>,
    own: Own,
) -> Result<Answer, Refusal> {
    if let Some(name) = given.keys().next() {
        return Err(Refusal::new(
            "invalid_arguments",
            format!("{} does not take `{}`", tool.name, crate::untrusted::shown(name, 80)),
            format!("It takes {}.", taken(tool)),
        ));
    }
    let kind = tool.filter.iter().find(|(column, _)| *column == "type").map(|(_, kind)| *kind);
    let kind = [GuestKind::Qemu, GuestKind::Lxc].into_iter().find(|known| Some(known.as_str()) == kind);
    let Some(kind) = kind else {
        return Err(Refusal::new(
            "internal",
            format!("`{}` shows no kind of guest", tool.name),
            "Report this; it is a mistake of the server.",
        ));
    };
    guests::list_guests(state, principal, &Guests::of_kind(cluster, kind, own.fields, own.limit, own.cursor)).await
}
