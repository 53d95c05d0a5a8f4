//! Decides what came of one write: done, refused, not sent, or unknown; and reads what shows it afterwards.
//!
//! A write takes the proof that it may be done and the proof that it is on record, both by value, and is sent once.
//! Nothing here ever sends one again.

use std::collections::{BTreeMap, BTreeSet};

use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::internal::{self, node_tasks};
use pvegate_generated::model::{Operation, Place, Verb};
use pvegate_generated::terms::Role;
use serde_json::{Map, Value as Json};
use tokio::time::Instant;

use crate::args::{Args, Value};
use crate::authorize::{Authorized, Write};
use crate::connection::{Connection, request};
use crate::pve::{Kind, PveError, Reply, Sent};
use crate::store::{Intent, Recorded};
use crate::values::Upid;

/// How many of a node's newest tasks are looked at for one whose id was lost.
const NEWEST: usize = 100;

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

/// What PVE answered to a write.
#[derive(Clone, Debug)]
pub struct Written(pub Result<Reply, PveError>);

impl Written {
    /// What is known about whether PVE did it.
    pub fn outcome(&self) -> Outcome {
        match &self.0 {
            Ok(_) => Outcome::Done,
            Err(error) => match error.sent() {
                Sent::No => Outcome::NotSent,
                Sent::Refused => Outcome::Refused,
                Sent::Unknown => Outcome::Unknown,
            },
        }
    }

    /// The task that PVE says it began.
    pub fn task(&self) -> Option<Upid> {
        Upid::parse(self.0.as_ref().ok()?.data.as_str()?).ok()
    }
}

/// A call as it was or may have been sent: what is needed to look for what came of it, also by another process later.
#[derive(Clone, Debug)]
pub struct Call {
    operation: &'static Operation,
    values: BTreeMap<String, String>,
}

impl Call {
    /// From arguments that are sent.
    pub fn of(args: &Args) -> Self {
        let shown = args.iter().filter(|arg| arg.parameter.role != Role::Secret);
        let values = shown.map(|arg| (arg.name(), arg.value.wire().into_owned())).collect();
        Self { operation: args.operation(), values }
    }

    /// From what the store has of it.
    pub fn stored(operation: &'static Operation, arguments: &Json) -> Self {
        let texts = arguments.as_object().into_iter().flatten();
        let values = texts.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
        Self { operation, values }
    }

    /// For the store.
    pub fn arguments(&self) -> Json {
        let pairs = self.values.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str())));
        Json::Object(pairs.collect::<Map<_, _>>())
    }

    /// The operation.
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// An argument, as it is sent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The value of the argument with this role.
    pub fn with_role(&self, role: Role) -> Option<&str> {
        let parameter = self.operation.params.iter().find(|parameter| parameter.role == role)?;
        self.get(parameter.name)
    }

    /// What is in neither the path nor fixed: what the caller wants it to be.
    pub fn wanted(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(name, _)| {
            let fixed = self.operation.fixed.iter().any(|(fixed, _)| fixed == name);
            !fixed && self.operation.parameter(name).is_some_and(|parameter| parameter.place != Place::Path)
        })
    }

    /// What only one call at a time may work on, so that a task of ours that is new is the one of this call.
    pub fn subject(&self) -> String {
        let name = self.get("vmid").or(self.get("node")).unwrap_or_default();
        name.to_owned()
    }

    /// The read that shows what it changes: of the same path, or the configuration of the guest below which it is.
    pub fn twin(&self) -> Option<&'static Operation> {
        let same = |read: &&&'static Operation| read.verb == Verb::Get && read.path == self.operation.path;
        OPERATIONS.iter().find(same).copied().or_else(|| {
            let of = |read: &'static Operation| {
                let guest = read.segments.get(..read.segments.len().checked_sub(1)?)?;
                self.operation.segments.starts_with(guest).then_some(read)
            };
            of(internal::QEMU_CONFIG).or_else(|| of(internal::LXC_CONFIG))
        })
    }

    /// The arguments that the path of a read needs, from those of the write.
    fn path_of(&self, read: &'static Operation) -> impl Iterator<Item = (&'static str, Json)> {
        let in_path = read.params.iter().filter(|parameter| parameter.place == Place::Path);
        in_path.filter_map(|parameter| Some((parameter.name, Json::from(self.get(parameter.name)?))))
    }

    /// Whether a task may be the one of this call: what works on a guest has its vmid as subject.
    fn fits(&self, upid: &Upid) -> bool {
        let Some(vmid) = self.get("vmid") else { return true };
        let subject = upid.subject();
        // Some workers name the guest and where: `100@local`.
        subject.split(['@', ':']).next() == Some(vmid) || subject.is_empty()
    }
}

impl Connection {
    /// Sends a write once, if its record still covers the time that it may take. Every node that the arguments name has
    /// to be one that the cluster lists. What was known about guests counts as old before and after. `digest` is PVE's
    /// own lock, of what the write was decided by.
    pub async fn write(write: Authorized<Write>, intent: Recorded<Intent>, digest: Option<&str>) -> Written {
        let Write { connection, mut args, .. } = write.into_inner();
        if let Some(digest) = digest {
            args.supply_digest(digest);
        }
        let not_sent = |error: PveError| Written(Err(error.not_sent()));
        if intent.value().operation != args.operation().name {
            return not_sent(PveError::new(Kind::Other, "what is on record is another operation, so nothing was sent"));
        }
        if let Err(error) = connection.check_nodes(&args).await {
            return not_sent(error);
        }
        let request = match request(&args) {
            Ok(request) => request,
            Err(error) => return not_sent(error),
        };
        if Instant::now().into_std() >= intent.good_until() {
            let message = "the server was held up for too long after it had recorded the write, so it was not sent";
            return not_sent(PveError::new(Kind::Timeout, message));
        }
        connection.snapshot().expire();
        let answer = connection.client().write(&request).await;
        connection.snapshot().expire();
        Written(answer)
    }

    /// What the object that a write is about looks like now; nothing where no read shows it.
    pub(crate) async fn read_back(&self, call: &Call) -> Result<Option<Json>, PveError> {
        let Some(read) = call.twin() else { return Ok(None) };
        Ok(Some(self.ask(read, call.path_of(read)).await?.data))
    }

    /// The newest tasks of the server's own API token on what a write is about, running ones too.
    pub(crate) async fn own_tasks(&self, call: &Call) -> Result<BTreeSet<Upid>, PveError> {
        let tasks = match call.get("node") {
            Some(node) => {
                let given = [
                    ("node", Json::from(node)),
                    (node_tasks::SOURCE, Json::from("all")),
                    (node_tasks::LIMIT, Json::from(NEWEST)),
                ];
                self.ask(internal::NODE_TASKS, given).await?
            }
            None => self.ask(internal::CLUSTER_TASKS, []).await?,
        };
        let rows = tasks.data.as_array().into_iter().flatten();
        let upids = rows.filter_map(|row| Upid::parse(row.get("upid")?.as_str()?).ok());
        Ok(upids.filter(|upid| upid.user() == self.user() && call.fits(upid)).collect())
    }
}

/// The single guest that arguments name by vmid: the one that is acted on, copied, or backed up.
pub(crate) fn vmid_of(args: &Args) -> Option<String> {
    match args.get("vmid")? {
        Value::List(items) | Value::Array(items) => match items.as_slice() {
            [only] => Some(only.wire().into_owned()),
            _ => None,
        },
        single => Some(single.wire().into_owned()),
    }
}
