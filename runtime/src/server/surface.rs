//! Joins the MCP side with the state: which tools a principal sees, and what a call runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use pvegate_generated::model::{Runs, Tool};
use pvegate_generated::terms::Tier;
use pvegate_generated::tools::TOOLS;

use super::{State, gateway, named, run_operation, wait_task};
use crate::audit;
use crate::authorize;
use crate::mcp::{Authenticator, Identity, Surface, ToolCall, ToolList, ToolResult, Turned, View};
use crate::runaway::{Bounds, Guard, Same};
use crate::tokens::Principal;

impl Identity for Principal {
    fn id(&self) -> &str {
        &self.name
    }
}

/// The state that calls are decided by, exchanged as a whole.
pub type Live = Arc<ArcSwap<State>>;

/// Recognises the tokens of the state.
#[derive(Debug)]
pub struct TokenFile(pub Live);

impl Authenticator for TokenFile {
    type Principal = Principal;

    fn authenticate(&self, token: &str) -> Result<Arc<Principal>, String> {
        self.0.load().tokens.authenticate(token, SystemTime::now()).map_err(|error| error.to_string())
    }

    async fn authenticate_slowly(&self, token: &str) -> Option<Result<Arc<Principal>, String>> {
        let found = self.0.load_full().tokens.authenticate_slowly(token, SystemTime::now()).await?;
        Some(found.map_err(|error| error.to_string()))
    }
}

/// Serves the named tools and the gateway.
#[derive(Debug)]
pub struct Tools {
    live: Live,
    /// Built lists, by what they are made of: the names in them.
    lists: Mutex<HashMap<Vec<&'static str>, Arc<ToolList>>>,
    guard: Guard,
}

impl Tools {
    /// Over a state.
    pub fn new(live: Live, bounds: Bounds) -> Self {
        Self { live, lists: Mutex::default(), guard: Guard::new(bounds) }
    }

    fn visible<'a>(principal: &'a Principal, view: &'a View) -> impl Iterator<Item = &'static Tool> + use<'a> {
        TOOLS.iter().filter(move |tool| in_view(tool, view) && authorize::tool(principal, tool))
    }

    /// Runs a call unless it is one of too many, and answers later to one that is refused again and again.
    async fn guarded(&self, call: ToolCall<Principal>) -> ToolResult {
        let (principal, same) = (Arc::clone(&call.principal), Same::call(&call.name, &call.arguments));
        let changes = TOOLS.iter().any(|tool| tool.name == call.name && !is_read(tool));
        if let Err(refusal) = self.guard.enter(&principal.name, same, changes) {
            return ToolResult::Refused(refusal);
        }
        let result = self.run(call).await;
        let refused = !matches!(result, ToolResult::Ok(_)) || audit::current().is_some_and(|call| call.none_done());
        tokio::time::sleep(self.guard.leave(&principal.name, same, refused)).await;
        result
    }

    async fn run(&self, call: ToolCall<Principal>) -> ToolResult {
        let Some(tool) = callable(&call.name, &call.view).filter(|tool| authorize::tool(&call.principal, tool)) else {
            return ToolResult::UnknownTool(unknown(&call.name));
        };
        // One state for the whole call, whatever is exchanged meanwhile.
        let state = self.live.load_full();
        let result = match tool.runs {
            Runs::Gateway if tool.name == run_operation::NAME => {
                Some(run_operation::answer(state, call.principal, call.arguments).await)
            }
            _ if tool.tier != Tier::Read => {
                Some(run_operation::named(state, call.principal, tool, call.arguments).await)
            }
            Runs::Gateway => gateway::call(&state, &call.principal, tool.name, call.arguments, call.progress).await,
            Runs::One(_) | Runs::ByKind { .. } => {
                Some(named::call(&state, &call.principal, tool, call.arguments).await)
            }
        };
        match result {
            Some(Ok(answer)) => ToolResult::Ok(answer),
            Some(Err(refusal)) => ToolResult::Refused(refusal),
            None => ToolResult::UnknownTool(unknown(tool.name)),
        }
    }
}

/// What a list shows.
fn in_view(tool: &Tool, view: &View) -> bool {
    match view {
        View::Gateway => tool.toolset == "gateway",
        View::ReadOnly => tool.toolset == "gateway" && is_read(tool),
        View::Toolset(name) => tool.toolsets().any(|toolset| toolset == &**name),
    }
}

/// What a call may name: at the gateway every tool that is granted, listed or not, so that a client that
/// knows a name need not change its URL; at a toolset only that one's; at `readonly` nothing that changes.
fn callable(name: &str, view: &View) -> Option<&'static Tool> {
    let tool = TOOLS.iter().find(|tool| tool.name == name)?;
    let allowed = match view {
        View::Gateway => true,
        View::ReadOnly => is_read(tool),
        View::Toolset(_) => in_view(tool, view),
    };
    allowed.then_some(tool)
}

fn is_read(tool: &Tool) -> bool {
    tool.tier == Tier::Read
}

fn unknown(name: &str) -> String {
    format!(
        "there is no tool `{}` here that this token may use; tools/list shows what there is",
        crate::untrusted::shown(name, 80)
    )
}

impl Surface for Tools {
    type Principal = Principal;

    fn tools(&self, principal: &Principal, view: &View) -> Arc<ToolList> {
        let names: Vec<&'static str> = Self::visible(principal, view).map(|tool| tool.name).collect();
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = lists.get(&names) {
            return Arc::clone(list);
        }
        let built = ToolList::from_definitions(Self::visible(principal, view).map(|tool| tool.definition));
        let list = Arc::new(built.unwrap_or_else(|error| {
            tracing::error!(%error, "a tool definition cannot be read; the list stays empty");
            ToolList::empty()
        }));
        lists.insert(names, Arc::clone(&list));
        list
    }

    fn has_toolset(&self, name: &str) -> bool {
        TOOLS.iter().any(|tool| tool.toolsets().any(|toolset| toolset == name))
    }

    fn tells_progress(&self, name: &str) -> bool {
        name == wait_task::NAME
    }

    async fn call(&self, call: ToolCall<Principal>) -> ToolResult {
        let state = self.live.load_full();
        let audited = state.audit().call(&call, state.redactor());
        audited.run(self.guarded(call)).await
    }

    fn turned_away(&self, turned: Turned<'_, Principal>) {
        self.live.load().audit().turned_away(&turned);
    }
}
