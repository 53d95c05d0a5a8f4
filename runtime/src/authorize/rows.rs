//! Decides which rows of an answer a grant covers, and what an answer says of its own length then: rows, counts and
//! pages are those of what is shown, so that none of them tells of anything else.

use pvegate_generated::internal::{self, task_log};
use pvegate_generated::model::{Operation, Row, Rows};
use pvegate_generated::terms::{Role, Subject};
use serde_json::{Map, Value as Json};

use super::decide;
use super::reach::Known;
use crate::grant::Grant;
use crate::pve::Reply;
use crate::values::{Upid, scalar};

/// How many rows are looked through where PVE cuts a list and only some of it is shown.
const MOST: u64 = 5000;

/// What of one operation's answer is shown under one grant.
#[derive(Clone, Debug)]
pub enum Shown<'a> {
    /// All of it: the grant covers whatever it may hold.
    Whole,
    /// What the grant covers.
    Covered(Filter<'a>),
}

/// Tells what is covered from what is not.
#[derive(Clone, Debug)]
pub struct Filter<'a> {
    known: Known<'a>,
    /// Whose a row is; none where the answer is no list of such rows.
    columns: &'static [Row],
    /// Whether the call names whose a row is that says nothing itself.
    is_bound: bool,
    /// Whether there are rows inside the answer: the members of a pool.
    has_members: bool,
    /// Which part of the rows was asked for.
    page: Page,
}

/// The part of a list that a caller wants, where PVE would cut it before anything is left out.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    is_pves: bool,
    start: usize,
    limit: Option<usize>,
}

/// Whether this operation's answer has rows, or members, of which a grant may cover only some.
pub(super) fn is_filtered(grant: &Grant, operation: &Operation) -> bool {
    let narrow = |columns: &[Row]| columns.iter().any(|row| !covers_all(grant, row.subject));
    match operation.rows {
        Rows::Columns(columns) => narrow(columns) || has_members(operation) && narrow(members()),
        Rows::NotAList => has_members(operation) && narrow(members()),
        Rows::Bound | Rows::All => false,
    }
}

fn covers_all(grant: &Grant, subject: Subject) -> bool {
    match subject {
        Subject::Guest => grant.guests.is_all(),
        Subject::Node => grant.nodes.is_all(),
        Subject::Storage => grant.storages.is_all(),
        Subject::Pool => grant.pools.is_all(),
    }
}

/// A pool is read with what is in it.
fn has_members(operation: &Operation) -> bool {
    operation.params.iter().any(|parameter| parameter.role == Role::Pool)
}

/// Members are written as the cluster's list of resources has them.
fn members() -> &'static [Row] {
    match internal::RESOURCES.rows {
        Rows::Columns(columns) => columns,
        _ => &[],
    }
}

/// Whether PVE cuts this list where it is told to.
fn has_pages(operation: &Operation) -> bool {
    [task_log::START, task_log::LIMIT].iter().all(|name| operation.parameter(name).is_some())
}

impl<'a> Shown<'a> {
    /// For a read with these arguments, of which it takes over those that say which part is wanted.
    pub(super) fn of(known: Known<'a>, operation: &'static Operation, arguments: &mut Map<String, Json>) -> Self {
        if !is_filtered(known.grant, operation) {
            return Self::Whole;
        }
        let columns = match operation.rows {
            Rows::Columns(columns) => columns,
            _ => &[],
        };
        let page = if has_pages(operation) { Page::taken_from(arguments) } else { Page::default() };
        Self::Covered(Filter {
            known,
            columns,
            is_bound: decide::is_bound(operation),
            has_members: has_members(operation),
            page,
        })
    }

    /// Leaves in an answer what the grant covers, with the count of that.
    pub(crate) fn apply(&self, reply: &mut Reply) {
        let Self::Covered(filter) = self else { return };
        if let (false, Json::Array(rows)) = (filter.columns.is_empty(), &mut reply.data) {
            if filter.page.is_pves && reply.total.is_some_and(|total| total > rows.len() as u64) {
                reply.missing.push(format!("rows beyond the first {MOST} of the list: they were not looked through"));
            }
            rows.retain(|row| filter.shows(row));
            // PVE counts what it has.
            reply.total = filter.page.is_pves.then_some(rows.len() as u64);
            filter.page.cut(rows);
        }
        if filter.has_members {
            filter.keep_members(&mut reply.data);
        }
    }
}

impl Page {
    /// The numbers of a caller, in place of which as much is asked for as is looked through. What is no number stays,
    /// and is refused with the other arguments.
    fn taken_from(arguments: &mut Map<String, Json>) -> Self {
        let mut take = |name: &str| {
            let number = scalar::integer(arguments.get(name)?).and_then(|number| usize::try_from(number).ok())?;
            arguments.remove(name);
            Some(number)
        };
        let (start, limit) = (take(task_log::START), take(task_log::LIMIT));
        arguments.entry(task_log::LIMIT).or_insert_with(|| Json::from(MOST));
        Self { is_pves: true, start: start.unwrap_or_default(), limit }
    }

    fn cut(self, rows: &mut Vec<Json>) {
        rows.drain(..self.start.min(rows.len()));
        rows.truncate(self.limit.unwrap_or(usize::MAX));
    }
}

impl Filter<'_> {
    fn shows(&self, row: &Json) -> bool {
        // What is no object says nothing of whose it is.
        let Json::Object(row) = row else { return self.known.grant.guests.is_all() };
        match row.get("upid").and_then(Json::as_str).map(Upid::parse) {
            Some(Ok(upid)) => self.known.covers_task(&upid),
            _ => self.covers(row, self.columns, self.is_bound),
        }
    }

    /// A guest's row is decided by the guest, wherever it is; any other by all that it names.
    fn covers(&self, row: &Map<String, Json>, columns: &[Row], is_bound: bool) -> bool {
        let mut named = columns.iter().filter_map(|column| Some((column.subject, row.get(column.column)?)));
        let mut named = named.by_ref().filter(|(_, value)| !value.is_null()).peekable();
        match named.peek() {
            None => is_bound || self.known.grant.guests.is_all(),
            Some((Subject::Guest, guest)) => self.known.covers_value(Subject::Guest, guest),
            Some(_) => named.all(|(subject, value)| self.known.covers_value(subject, value)),
        }
    }

    fn keep_members(&self, data: &mut Json) {
        match data {
            Json::Array(items) => {
                items.retain(|item| {
                    let Json::Object(row) = item else { return true };
                    let is_member = members().iter().any(|column| row.contains_key(column.column));
                    !is_member || self.covers(row, members(), true)
                });
                for item in items {
                    self.keep_members(item);
                }
            }
            Json::Object(object) => object.values_mut().for_each(|value| self.keep_members(value)),
            _ => {}
        }
    }
}
