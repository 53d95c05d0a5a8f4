//! Decides what came of one write: done, refused, not sent, or unknown, and what a look at the cluster says then.
//!
//! Only what PVE answered and what it shows afterwards counts. A write that failed is looked at too, because PVE can
//! fail after it has saved; nothing here ever sends a write again.

use std::collections::BTreeSet;

use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::internal::{self, node_tasks};
use pvegate_generated::model::{Operation, Place, Verb};
use pvegate_generated::terms::Settle;
use serde_json::Value as Json;

use crate::args::{Args, Value};
use crate::connection::{Connection, request};
use crate::pve::{Kind, PveError, Reply, Sent};
use crate::values::Upid;

/// How many of a node's newest tasks are looked at for one whose id was lost.
const NEWEST: u32 = 100;

/// What is known about whether PVE did a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// PVE answered a success. With a task id it means accepted, not done.
    Done,
    /// PVE refused it. It may have saved a part before: look at what is read back.
    Refused,
    /// Nothing reached PVE.
    NotSent,
    /// It may have been done, and must not be sent again before that is settled.
    Unknown,
}

/// What a look at the cluster says after a write whose end is open.
#[derive(Clone, Debug)]
pub enum ReadBack {
    /// Nothing is open.
    NotNeeded,
    /// Tasks that fit and that the server's own API token began since: one is the lost task, none says that it did
    /// not begin, several need a person.
    Tasks(Vec<Upid>),
    /// What a read of the same object answers now.
    Object {
        /// The read.
        operation: &'static Operation,
        /// Its data, unmasked.
        data: Json,
    },
    /// The object that the write was about is not there.
    Gone(&'static Operation),
    /// The cluster could not be asked.
    Unreadable(PveError),
    /// No read shows it: a person has to look.
    Person,
}

/// A write and what came of it.
#[derive(Clone, Debug)]
pub struct Written {
    /// What PVE answered.
    pub answer: Result<Reply, PveError>,
    /// What a look at the cluster says, if the answer left something open.
    pub read_back: ReadBack,
}

impl Written {
    /// What is known about whether PVE did it.
    pub fn outcome(&self) -> Outcome {
        match &self.answer {
            Ok(_) => Outcome::Done,
            Err(error) => match error.sent() {
                Sent::No => Outcome::NotSent,
                Sent::Refused => Outcome::Refused,
                Sent::Unknown => Outcome::Unknown,
            },
        }
    }

    /// The task that PVE began, as far as that is certain: from the answer, or the only one that fits.
    pub fn task(&self) -> Option<Upid> {
        match (&self.answer, &self.read_back) {
            (Ok(reply), _) => Upid::parse(reply.data.as_str()?).ok(),
            (Err(_), ReadBack::Tasks(tasks)) => match tasks.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Connection {
    /// Sends a write once and looks at what a failure left open. Every node that the arguments name has to be one that
    /// the cluster lists. What was known about guests counts as old before and after.
    ///
    /// This does not decide whether it may be sent: only what was authorized gets here.
    pub async fn write(&self, args: &Args) -> Written {
        let not_sent = |error: PveError| Written { answer: Err(error), read_back: ReadBack::NotNeeded };
        if let Err(error) = self.check_nodes(args).await {
            return not_sent(error.not_sent());
        }
        let request = match request(args) {
            Ok(request) => request,
            Err(error) => return not_sent(error),
        };
        // Clocks differ, so what is new is what was not there before.
        let before = if by_task(args.operation()) {
            match self.own_tasks(args).await {
                Ok(tasks) => tasks,
                Err(error) => {
                    let message = format!("{}; so {request} was not sent", error.message());
                    return not_sent(PveError::new(error.kind(), message).not_sent());
                }
            }
        } else {
            BTreeSet::new()
        };
        self.snapshot().expire();
        let answer = self.client().write(&request).await;
        self.snapshot().expire();
        let open = match &answer {
            Ok(_) => false,
            Err(error) => error.sent() != Sent::No,
        };
        let read_back = if open { self.look(args, &before).await } else { ReadBack::NotNeeded };
        Written { answer, read_back }
    }

    async fn look(&self, args: &Args, before: &BTreeSet<Upid>) -> ReadBack {
        if by_task(args.operation()) {
            return match self.own_tasks(args).await {
                Ok(tasks) => ReadBack::Tasks(tasks.difference(before).cloned().collect()),
                Err(error) => ReadBack::Unreadable(error),
            };
        }
        self.read_back(args).await
    }

    /// What the object that a write is about looks like now.
    pub async fn read_back(&self, args: &Args) -> ReadBack {
        let operation = args.operation();
        if operation.settle == Some(Settle::Person) {
            return ReadBack::Person;
        }
        let Some(read) = twin(operation) else { return ReadBack::Person };
        match self.ask(read, path_arguments(args, read)).await {
            Ok(reply) => ReadBack::Object { operation: read, data: reply.data },
            Err(error) if error.kind() == Kind::NotFound => ReadBack::Gone(read),
            Err(error) => ReadBack::Unreadable(error),
        }
    }

    /// Tasks of the server's own API token on what a write is about, running ones too.
    async fn own_tasks(&self, args: &Args) -> Result<BTreeSet<Upid>, PveError> {
        let tasks = match args.get("node") {
            Some(Value::Node(node)) => {
                let given = [
                    ("node", Json::from(node.as_str())),
                    (node_tasks::SOURCE, Json::from("all")),
                    (node_tasks::LIMIT, Json::from(NEWEST)),
                ];
                self.ask(internal::NODE_TASKS, given).await?
            }
            _ => self.ask(internal::CLUSTER_TASKS, []).await?,
        };
        let rows = tasks.data.as_array().into_iter().flatten();
        let upids = rows.filter_map(|row| Upid::parse(row.get("upid")?.as_str()?).ok());
        Ok(upids.filter(|upid| upid.user() == self.user() && fits(upid, args)).collect())
    }
}

fn by_task(operation: &Operation) -> bool {
    operation.settle == Some(Settle::Task)
}

/// Whether a task may be the one of a call: what works on a guest has its vmid as subject.
fn fits(upid: &Upid, args: &Args) -> bool {
    let Some(vmid) = args.get("vmid") else { return true };
    let subject = upid.subject();
    // Some workers name the guest and where: `100@local`.
    subject.split(['@', ':']).next() == Some(&*vmid.wire()) || subject.is_empty()
}

/// The read that shows what a write changes: of the same path, or the configuration of the guest below which it is.
fn twin(operation: &'static Operation) -> Option<&'static Operation> {
    let same = |read: &&&'static Operation| read.verb == Verb::Get && read.path == operation.path;
    OPERATIONS.iter().find(same).copied().or_else(|| {
        let of = |read: &'static Operation| {
            let guest = read.segments.get(..read.segments.len().checked_sub(1)?)?;
            operation.segments.starts_with(guest).then_some(read)
        };
        of(internal::QEMU_CONFIG).or_else(|| of(internal::LXC_CONFIG))
    })
}

/// The arguments that a read's path needs, from those of the write.
fn path_arguments(args: &Args, read: &Operation) -> impl Iterator<Item = (&'static str, Json)> {
    let is_needed = |name: &str| read.parameter(name).is_some_and(|parameter| parameter.place == Place::Path);
    args.iter()
        .filter(move |arg| arg.parameter.place == Place::Path && is_needed(arg.parameter.name))
        .map(|arg| (arg.parameter.name, Json::from(arg.value.wire().into_owned())))
}
