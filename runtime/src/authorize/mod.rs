//! Decides whether a principal may make a call, before anything is asked of PVE.
//!
//! [`Authorized`] has one constructor, in this module; what sends takes nothing else. What is not
//! granted and what does not exist are refused alike.

pub mod decide;
mod low;
mod named;
mod reach;

use std::sync::Arc;

use pvegate_generated::model::{Offered, Operation, Tool};
use pvegate_generated::terms::{Flag, Tier};

use crate::args::InvalidArguments;
use crate::connection::Connection;
use crate::mcp::Refusal;
use crate::server::State;
use crate::tokens::Principal;

pub use low::{Write, low, needs_a_plan};
pub use named::{Named, Network};
pub use reach::{NotReached, Reached, guest, guests, names, no_guest, none, task_guest, whole};

/// Proof that the checks of this module passed for what is inside.
#[derive(Debug)]
pub struct Authorized<T>(T);

impl<T> Authorized<T> {
    /// What was authorized.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// Takes it out, and the proof with it.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// A read of one cluster that was authorized.
#[derive(Clone, Debug)]
pub struct Read {
    /// The cluster.
    pub connection: Arc<Connection>,
    /// The operation.
    pub operation: &'static Operation,
}

/// Whether the principal may use this tool: by its own name, or by that of a toolset that lists it. `*` stands for
/// those that change nothing.
pub fn tool(principal: &Principal, tool: &Tool) -> bool {
    let tools = &principal.grant.tools;
    let named = tools.allows(tool.name) || tool.toolsets().any(|toolset| tools.allows(toolset));
    named && (tool.tier == Tier::Read || !tools.is_all())
}

/// The clusters that the principal may ask, by name.
pub fn clusters<'a>(principal: &'a Principal, state: &'a State) -> impl Iterator<Item = &'a Arc<Connection>> {
    state.connections().filter(|connection| principal.grant.clusters.allows(connection.name()))
}

/// The cluster with this name; without a name the only one there is for the principal.
pub fn cluster(
    principal: &Principal,
    state: &State,
    name: Option<&str>,
) -> Result<Authorized<Arc<Connection>>, Refusal> {
    let mut granted = clusters(principal, state);
    let found = match name {
        Some(name) => granted.find(|connection| connection.name() == name),
        None => match (granted.next(), granted.next()) {
            (Some(only), None) => Some(only),
            _ => {
                return Err(Refusal::new(
                    "invalid_arguments",
                    "this token reaches several clusters, and `cluster` is missing",
                    "Name one in `cluster`; list_clusters shows them.",
                ));
            }
        },
    };
    found.map(|connection| Authorized(Arc::clone(connection))).ok_or_else(|| {
        Refusal::new(
            "no_such_cluster",
            format!(
                "there is no cluster `{}` that this token may use",
                crate::untrusted::shown(name.unwrap_or_default(), 80)
            ),
            "list_clusters shows the names.",
        )
    })
}

/// Whether an operation may be read on a cluster.
pub fn read(
    state: &State,
    connection: Authorized<Arc<Connection>>,
    operation: &'static Operation,
) -> Result<Authorized<Read>, Refusal> {
    offered(state, operation)?;
    if operation.tier != Tier::Read {
        return Err(Refusal::new(
            "not_a_read",
            format!("{} changes something (tier {}), and this tool only reads", operation.name, operation.tier),
            "This version of the server answers reads only; ask a person to make the change.",
        ));
    }
    Ok(Authorized(Read { connection: connection.into_inner(), operation }))
}

/// Whether an operation can be reached at all on this server.
pub fn offered(state: &State, operation: &Operation) -> Result<(), Refusal> {
    match operation.offered {
        Offered::Yes => Ok(()),
        Offered::OptIn(_) if state.opted_in(operation.name) => Ok(()),
        Offered::OptIn(reason) => Err(Refusal::new(
            "not_offered",
            format!("{} is not offered here unless the operator asks for it ({reason})", operation.name),
            "An operator can add it to `opt_in` in the policy of the cluster file.",
        )),
        Offered::Never(reason) => Err(Refusal::new(
            "not_offered",
            format!("{} is not offered ({reason}): {}", operation.name, why(operation)),
            "search_operations finds what is offered.",
        )),
    }
}

/// Arguments that do not decode, for the caller.
pub(crate) fn invalid(state: &State, error: &InvalidArguments) -> Refusal {
    Refusal::new(
        "invalid_arguments",
        state.redactor().text(&error.to_string()),
        format!("describe_operation {{\"operation\": \"{}\"}} shows its arguments.", error.operation),
    )
}

fn why(operation: &Operation) -> &'static str {
    if operation.has(Flag::SecretOut) {
        "its answer may hold a secret"
    } else {
        "no agent reaches it through this server"
    }
}
