//! Decides whether a principal may make a call, before anything is asked of PVE.
//!
//! [`Authorized`] has one constructor, in this module; what sends takes nothing else. What is not
//! granted and what does not exist are refused alike.

mod caps;
mod consumed;
pub mod decide;
mod disks;
mod guards;
mod live;
mod low;
mod named;
mod privileges;
mod proof;
mod reach;
mod read;
mod reserved;
mod rows;
mod source;
mod values;

use std::sync::Arc;

use pvegate_generated::model::{Offered, Operation, Tool};
use pvegate_generated::terms::{Flag, Tier};

use crate::args::InvalidArguments;
use crate::connection::Connection;
use crate::grant::Grant;
use crate::mcp::Refusal;
use crate::server::State;
use crate::tokens::Principal;

pub use low::{Write, low, needs_a_plan};
pub use named::{Named, Network};
pub use proof::Authorized;
pub use reach::{Known, NotReached, Reached, guest, guests, names, no_guest, none, task_guest, whole};
pub use read::{Asked, Fixed, Read, failed, reach, read};

/// Whether the principal may use this tool: by its own name, or by that of a toolset that lists it. `*` stands for
/// those that change nothing; what changes something takes the tier as well.
pub fn tool(principal: &Principal, tool: &Tool) -> bool {
    let Grant { tools, tiers, .. } = &principal.grant;
    let named = tools.allows(tool.name) || tool.toolsets().any(|toolset| tools.allows(toolset));
    named && (tool.tier == Tier::Read || !tools.is_all() && tiers.allows(tool.tier))
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
    found.map(|connection| Authorized::passed(Arc::clone(connection))).ok_or_else(|| {
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
