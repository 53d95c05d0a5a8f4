//! What a line holds: who, what, about what, and what came of it; texts of callers short, visible and masked.

use std::borrow::Cow;
use std::time::Duration;

use pvegate_generated::model::Operation;
use pvegate_generated::terms::Role;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::mcp::Client;
use crate::redact::Redactor;
use crate::tokens::{Actor, Principal};

/// Longest text of a caller's in a line, in bytes.
const LONGEST: usize = 128;

/// Arguments that say what a call of a tool without an operation is about.
const OF_TOOLS: [&str; 4] = ["vmid", "node", "upid", "change_id"];

/// The parts of a line. What is not known is not written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Record {
    /// The server's own number of the request, the same in all lines that belong together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Who called.
    #[serde(flatten)]
    pub who: Option<Who>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Cow<'static, str>>,
    /// The cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The operation, where there is one.
    #[serde(flatten)]
    pub acted: Option<Acted>,
    /// The operations, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Acted>,
    /// What protects the target, and what came of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protection: Option<String>,
    /// The change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_id: Option<String>,
    /// PVE's task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upid: Option<String>,
    /// What came of it: `ok`, or a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Cow<'static, str>>,
    /// The HTTP status of a request that reached no tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// A sentence of the server's own about it. Never what a caller or PVE wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What the client says, true or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asserted: Option<Asserted>,
}

impl Record {
    /// About one operation.
    pub fn of(who: Who, cluster: &str, acted: Acted) -> Self {
        Self { who: Some(who), cluster: Some(cluster.to_owned()), acted: Some(acted), ..Self::default() }
    }

    /// With what came of it.
    #[must_use]
    pub fn ended(mut self, outcome: impl Into<Cow<'static, str>>, took: Duration) -> Self {
        self.outcome = Some(outcome.into());
        self.duration_ms = Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

/// Who called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Who {
    /// The token's name.
    pub principal: String,
    /// `agent` or `human`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<&'static str>,
    /// Whose token a person's is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Who answers for an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl From<&Principal> for Who {
    fn from(principal: &Principal) -> Self {
        let (actor, person, owner) = match &principal.actor {
            Actor::Agent { owner } => ("agent", None, owner.clone()),
            Actor::Human { person } => ("human", Some(person.clone()), None),
        };
        Self { principal: principal.name.clone(), actor: Some(actor), person, owner }
    }
}

/// One operation, and what it is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Acted {
    /// The operation, or what the caller took for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Cow<'static, str>>,
    /// Its tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<&'static str>,
    /// What it is about.
    #[serde(skip_serializing_if = "Target::is_empty")]
    pub target: Target,
    /// What came of it, where it is one of several.
    #[serde(rename = "outcome", skip_serializing_if = "Option::is_none")]
    pub part: Option<Cow<'static, str>>,
}

impl Acted {
    /// An operation with arguments as the caller gave them.
    pub fn new(operation: &'static Operation, arguments: &Map<String, Json>, redactor: &Redactor) -> Self {
        Self {
            operation: Some(operation.name.into()),
            tier: Some(operation.tier.as_str()),
            target: Target::of(operation, arguments, redactor),
            part: None,
        }
    }
}

/// The guests, nodes, storages and other things that arguments name, by the names of the arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Target(Map<String, Json>);

impl Target {
    /// What a call of an operation names.
    pub fn of(operation: &Operation, arguments: &Map<String, Json>, redactor: &Redactor) -> Self {
        let named = operation.params.iter().filter(|parameter| names(parameter.role)).map(|parameter| parameter.name);
        Self::pick(named, arguments, redactor)
    }

    /// What a call of a tool names that runs no single operation.
    pub fn of_tool(arguments: &Map<String, Json>, redactor: &Redactor) -> Self {
        Self::pick(OF_TOOLS, arguments, redactor)
    }

    fn pick<'a>(named: impl IntoIterator<Item = &'a str>, arguments: &Map<String, Json>, redactor: &Redactor) -> Self {
        let value = |given: &Json| match given {
            Json::Number(number) => Json::Number(number.clone()),
            Json::String(text) => Json::from(said(text, redactor)),
            other => Json::from(said(&other.to_string(), redactor)),
        };
        let given = named.into_iter().filter_map(|name| Some((name.to_owned(), value(arguments.get(name)?))));
        Self(given.collect())
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what the server found out itself, such as a guest's node.
    pub fn insert(&mut self, name: &str, value: impl Into<Json>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

/// Whether a parameter names what a call is about. Its value is a name or a number and no content.
fn names(role: Role) -> bool {
    matches!(
        role,
        Role::GuestTarget
            | Role::GuestSource
            | Role::GuestNew
            | Role::GuestList
            | Role::GuestRef
            | Role::Node
            | Role::NodeList
            | Role::Storage
            | Role::StorageList
            | Role::Pool
            | Role::Volume
            | Role::Snapshot
            | Role::Task
    )
}

/// What the client says of itself and of its request. Nothing of it is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asserted {
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl Asserted {
    /// From a call.
    pub fn new(client: Option<&Client>, request_id: &str, redactor: &Redactor) -> Self {
        Self {
            verified: false,
            client: client.map(|client| said(&client.name, redactor)),
            client_version: client.map(|client| said(&client.version, redactor)),
            request_id: Some(said(request_id, redactor)),
        }
    }
}

/// A caller's text: masked, on one line, without hidden characters, and short.
pub(super) fn said(text: &str, redactor: &Redactor) -> String {
    // Masked before it is cut, or a part of a secret would be left; looked at no further than needed.
    let head = cut(text, LONGEST * 8);
    let masked = redactor.text(head);
    let visible = crate::untrusted::visible(&masked);
    match cut(&visible, LONGEST) {
        whole if whole.len() == visible.len() && head.len() == text.len() => whole.to_owned(),
        _ => format!("{}…", cut(&visible, LONGEST - '…'.len_utf8())),
    }
}

fn cut(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}
