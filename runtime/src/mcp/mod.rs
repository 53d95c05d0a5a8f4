//! The MCP side: who is heard, what a client sees, and in which form answers leave.
//!
//! Nothing here knows PVE. What is served comes through [`Surface`], who may ask through [`Authenticator`];
//! this module decides only about the protocol, and about requests that never reach a tool.
//!
//! No session exists anywhere: each request carries everything, in the 2026-07-28 revision of the protocol
//! and in the older ones alike, so any replica may answer any request.

use std::{borrow::Cow, future::Future, sync::Arc};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

mod answer;
mod direct;
mod door;
mod gate;
mod handler;
mod http;
mod limits;
mod progress;
mod reply;
mod splice;
mod stdio;
#[cfg(test)]
mod tests;

pub use answer::{Answer, AnswerError, ToolList};
pub use http::{HttpConfig, Running, ServeError, serve_http};
pub use limits::Limits;
pub use progress::Progress;
pub(crate) use stdio::streams as stdio_streams;
pub use stdio::{StdioError, serve_stdio};

/// What the log's filter has to hold, whatever else it is set to: at its finer levels the SDK writes whole requests,
/// with arguments that may be secrets, and several lines for each.
pub const LOG_DIRECTIVE: &str = "rmcp=warn";

/// What the MCP side serves.
pub trait Surface: Send + Sync + 'static {
    /// Who calls.
    type Principal: Identity;

    /// The tools that this principal sees at this view, in stable order.
    ///
    /// Called for every `tools/list`, so keep lists built. It may depend on nothing but its arguments and the
    /// loaded configuration: calling a tool never changes a list.
    fn tools(&self, principal: &Self::Principal, view: &View) -> Arc<ToolList>;

    /// Whether a toolset of this name exists, for the path `/mcp/x/{toolset}`.
    fn has_toolset(&self, name: &str) -> bool;

    /// Whether a tool of this name tells how far it is. Calls of others never do, so a client's wish to be told does
    /// not cost them the direct way.
    fn tells_progress(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Takes note of a request that was refused before it reached a tool.
    fn turned_away(&self, turned: Turned<'_, Self::Principal>) {
        let _ = turned;
    }

    /// Runs one tool.
    ///
    /// The future is dropped when the client hangs up or cancels. Work that must go on regardless, such as a write
    /// that has been sent, belongs in a task of its own.
    fn call(&self, call: ToolCall<Self::Principal>) -> impl Future<Output = ToolResult> + Send;
}

/// What the MCP side has to know about a principal.
pub trait Identity: Send + Sync + 'static {
    /// Tells tokens apart, for limits and logs. Never the token itself.
    fn id(&self) -> &str;
}

/// Recognises bearer tokens.
pub trait Authenticator: Send + Sync + 'static {
    /// Who bears a token.
    type Principal: Identity;

    /// The bearer of `token`, or a sentence for its bearer that says why it is not accepted.
    ///
    /// The time it takes must not depend on how much of a token is right.
    fn authenticate(&self, token: &str) -> Result<Arc<Self::Principal>, String>;

    /// The same for tokens whose comparison is slow on purpose, asked where `authenticate` does not know one and the
    /// limit for such requests is not reached. `None`: there are no such tokens.
    fn authenticate_slowly(
        &self,
        token: &str,
    ) -> impl Future<Output = Option<Result<Arc<Self::Principal>, String>>> + Send {
        let _ = token;
        std::future::ready(None)
    }
}

/// Which list of tools a client asked for, by the path it uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// `/mcp`: the gateway, through which every offered operation can be reached.
    Gateway,
    /// `/mcp/x/{toolset}`: one toolset of named tools.
    Toolset(Arc<str>),
    /// `/mcp/readonly`: the gateway without whatever mutates.
    ReadOnly,
}

/// One `tools/call`.
#[derive(Debug)]
pub struct ToolCall<P> {
    /// Who calls.
    pub principal: Arc<P>,
    /// Where.
    pub view: View,
    /// Which tool: as the client wrote it, known or not.
    pub name: Cow<'static, str>,
    /// With what: as the client wrote it, not validated.
    pub arguments: Map<String, Value>,
    /// The client's id of this request, for the audit log.
    pub request_id: String,
    /// What the client says that it is.
    pub client: Option<Client>,
    /// Where to tell how far the call is, if the client wants to know.
    pub progress: Option<Progress>,
    /// Fires when the client hangs up or cancels, and when the server's time to drain is over.
    pub cancellation: CancellationToken,
}

/// What a client says of itself. Nothing about it is checked, and it may be long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Client {
    /// As the 2026-07-28 revision has it in every request.
    fn from_meta(meta: &Map<String, Value>) -> Option<Self> {
        let info = meta.get("io.modelcontextprotocol/clientInfo")?;
        let text = |key| info.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { name: text("name"), version: text("version") })
    }
}

/// A request that was refused before it reached a tool.
#[derive(Debug)]
pub struct Turned<'a, P> {
    /// Who sent it, as far as that was found out.
    pub principal: Option<&'a P>,
    /// Why, for programs.
    pub code: &'a str,
    /// The HTTP status that it was answered with, if it came over HTTP.
    pub status: Option<u16>,
}

/// What came of a call.
#[derive(Debug)]
pub enum ToolResult {
    /// The answer: a JSON object.
    Ok(Answer),
    /// The call was understood and not done; the model can read why.
    Refused(Refusal),
    /// No such tool in this view, with a sentence saying so. A protocol error, as the specification asks.
    UnknownTool(String),
}

/// Why a call was not done, in the form in which models read it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Refusal {
    /// Stable, for programs: `invalid_arguments`, `not_granted`, ….
    pub code: Cow<'static, str>,
    /// What happened, to what.
    pub message: String,
    /// What to do about it.
    pub next: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), next: next.into() }
    }
}
