//! The line of one tool call: begun when the call is, written when it ends, however it ends.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Instant;

use pvegate_generated::catalog;
use pvegate_generated::model::{Operation, Runs, Tool};
use pvegate_generated::tools::TOOLS;
use serde_json::{Map, Value as Json};

use super::record::said;
use super::{Acted, Asserted, Audit, Event, Record, Target, Who};
use crate::mcp::{ToolCall, ToolResult};
use crate::redact::Redactor;
use crate::tokens::Principal;

tokio::task_local! {
    static CURRENT: Arc<Current>;
}

/// The call that runs in this task, for lines about its writes. A task of its own that goes on with it takes it along.
pub fn current() -> Option<Arc<Current>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// What belongs together, and what is found out on the way.
#[derive(Debug)]
pub struct Current {
    /// The server's own number of the request.
    pub request_id: String,
    /// The tool.
    pub tool: Option<Cow<'static, str>>,
    /// What the client says.
    pub asserted: Asserted,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    operation: Option<&'static Operation>,
    parts: Vec<(usize, Cow<'static, str>)>,
    change_id: Option<String>,
    upid: Option<String>,
    protection: Option<String>,
}

impl Current {
    fn found(&self, note: impl FnOnce(&mut Found)) {
        note(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Which of its operations a tool runs.
    pub fn runs(&self, operation: &'static Operation) {
        self.found(|found| found.operation = Some(operation));
    }

    /// What came of one of several operations, by its place among them.
    pub fn part(&self, at: usize, outcome: impl Into<Cow<'static, str>>) {
        self.found(|found| found.parts.push((at, outcome.into())));
    }

    /// Whether it ran several operations, and none was done.
    pub fn none_done(&self) -> bool {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        !found.parts.is_empty() && found.parts.iter().all(|(_, outcome)| outcome != "ok")
    }

    /// The change that the call made or found, and its task.
    pub fn change(&self, change_id: &str, upid: Option<&str>) {
        self.found(|found| {
            found.change_id = Some(change_id.to_owned());
            found.upid = upid.map(str::to_owned);
        });
    }

    /// What protects the target, and what came of that.
    pub fn protection(&self, protection: &str) {
        self.found(|found| found.protection = Some(protection.to_owned()));
    }

    /// Puts what belongs to the call into a line about its write.
    #[must_use]
    pub fn complete(&self, mut record: Record) -> Record {
        record.request_id = Some(self.request_id.clone());
        record.tool.clone_from(&self.tool);
        record.asserted = Some(self.asserted.clone());
        record
    }
}

/// A call whose line is written when this ends. Without a result, its client hung up or cancelled it.
#[derive(Debug)]
pub struct Call {
    audit: Audit,
    record: Record,
    current: Arc<Current>,
    started: Instant,
    ended: Option<(Event, Cow<'static, str>)>,
}

/// Numbers of requests: unique across restarts without asking anything.
pub(super) fn request_id() -> String {
    static START: LazyLock<u64> = LazyLock::new(|| getrandom::u64().unwrap_or_default());
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:016x}-{}", *START, NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Audit {
    /// Begins the line of a call.
    pub fn call(&self, call: &ToolCall<Principal>, redactor: &Redactor) -> Call {
        let known = TOOLS.iter().find(|tool| tool.name == call.name);
        let tool: Cow<'static, str> = match known {
            Some(tool) => tool.name.into(),
            None => said(&call.name, redactor).into(),
        };
        let cluster = call.arguments.get("cluster").and_then(Json::as_str).map(|name| said(name, redactor));
        let (acted, operations) = asked(known, &call.arguments, redactor);
        let request_id = request_id();
        let asserted = Asserted::new(call.client.as_ref(), &call.request_id, redactor);
        let record = Record {
            request_id: Some(request_id.clone()),
            who: Some(Who::from(&*call.principal)),
            tool: Some(tool.clone()),
            cluster,
            acted,
            operations,
            asserted: Some(asserted.clone()),
            ..Record::default()
        };
        let current = Arc::new(Current { request_id, tool: Some(tool), asserted, found: Mutex::default() });
        Call { audit: self.clone(), record, current, started: Instant::now(), ended: None }
    }
}

impl Call {
    /// Runs the call, so that [`current`] knows of it.
    pub async fn run<F: Future<Output = ToolResult>>(mut self, call: F) -> ToolResult {
        let result = CURRENT.scope(Arc::clone(&self.current), call).await;
        self.ended = Some(match &result {
            ToolResult::Ok(_) => (Event::Call, "ok".into()),
            ToolResult::Refused(refusal) => (Event::Refused, refusal.code.clone()),
            ToolResult::UnknownTool(_) => (Event::Refused, "unknown_tool".into()),
        });
        result
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let (event, outcome) = self.ended.take().unwrap_or((Event::Call, "hung_up".into()));
        let mut record = std::mem::take(&mut self.record).ended(outcome, self.started.elapsed());
        self.current.found(|found| {
            if let (Some(operation), false) = (found.operation, record.operations.is_empty()) {
                record.operations.retain(|acted| acted.operation.as_deref() == Some(operation.name));
                record.acted = record.operations.pop();
                record.operations.clear();
            }
            for (at, outcome) in found.parts.drain(..) {
                if let Some(acted) = record.operations.get_mut(at) {
                    acted.part = Some(outcome);
                }
            }
            record.change_id = found.change_id.take();
            record.upid = found.upid.take();
            record.protection = found.protection.take();
        });
        // Whoever changes something asks whether it was written; nothing that only reads depends on it.
        let _ = self.audit.record(event, &record);
    }
}

/// What a call is about, as far as its arguments say: one operation, or several.
fn asked(
    tool: Option<&'static Tool>,
    arguments: &Map<String, Json>,
    redactor: &Redactor,
) -> (Option<Acted>, Vec<Acted>) {
    let none = Map::new();
    let one = |given: &Map<String, Json>| {
        let name = given.get("operation").and_then(Json::as_str)?;
        let arguments = given.get("arguments").and_then(Json::as_object).unwrap_or(&none);
        Some(match catalog::operation(name) {
            Some(operation) => Acted::new(operation, arguments, redactor),
            None => Acted { operation: Some(said(name, redactor).into()), ..Acted::default() },
        })
    };
    let of_catalog = |name| Some(Acted::new(catalog::operation(name)?, arguments, redactor));
    match tool.map(|tool| &tool.runs) {
        Some(Runs::One(name)) => (of_catalog(name), Vec::new()),
        // Which of them it is depends on the guest; `Current::runs` tells.
        Some(Runs::ByKind { qemu, lxc }) => {
            (None, [qemu, lxc].into_iter().filter_map(|name| of_catalog(name)).collect())
        }
        Some(Runs::Gateway) => {
            let several = arguments.get("reads").or_else(|| arguments.get("steps")).and_then(Json::as_array);
            if let Some(several) = several {
                // More than any tool takes is refused as a whole.
                let entries = several.iter().take(64).map(|entry| entry.as_object().and_then(one).unwrap_or_default());
                return (None, entries.collect());
            }
            let acted = one(arguments)
                .unwrap_or_else(|| Acted { target: Target::of_tool(arguments, redactor), ..Acted::default() });
            (Some(acted), Vec::new())
        }
        None => (None, Vec::new()),
    }
}
