//! The tool that runs a low operation by its name, and the named tools that run one each.

use std::sync::Arc;

use pvegate_generated::model::{Operation, Runs, Tool};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::{State, gateway, named};
use crate::authorize;
use crate::change::{self, Wish};
use crate::mcp::{Answer, Refusal};
use crate::snapshot::GuestKind;
use crate::tokens::Principal;

/// Its name.
pub const NAME: &str = "run_operation";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    cluster: Option<String>,
    operation: String,
    #[serde(default)]
    arguments: Map<String, Json>,
    reason: Option<String>,
    idempotency_key: Option<String>,
}

/// Runs the operation that is named.
pub async fn answer(state: Arc<State>, principal: Arc<Principal>, given: Map<String, Json>) -> Result<Answer, Refusal> {
    let asked: Asked = gateway::arguments(given)?;
    let operation = gateway::operation(&asked.operation)?;
    if asked.arguments.contains_key("cluster") {
        return Err(Refusal::new(
            "invalid_arguments",
            "`cluster` stands beside `operation`, not inside `arguments`",
            "Move it.",
        ));
    }
    let connection = authorize::cluster(&principal, &state, asked.cluster.as_deref())?;
    let Asked { arguments, reason, idempotency_key, .. } = asked;
    change::run(state, principal, Wish { connection, operation, arguments, idempotency_key, reason }).await
}

/// Runs the operation of a named tool.
pub async fn named(
    state: Arc<State>,
    principal: Arc<Principal>,
    tool: &'static Tool,
    mut given: Map<String, Json>,
) -> Result<Answer, Refusal> {
    let cluster = named::text(&mut given, "cluster")?;
    let idempotency_key = named::text(&mut given, "idempotency_key")?;
    let connection = authorize::cluster(&principal, &state, cluster.as_deref())?;
    let operation = match tool.runs {
        Runs::One(name) => gateway::operation(name)?,
        Runs::ByKind { qemu, lxc } => {
            let vmid = super::vmid(given.get("vmid"))?;
            let guest = authorize::guest(&principal.grant, connection.get(), vmid).await;
            let guest = guest.map_err(|not| not.into_refusal(&state))?;
            gateway::operation(if guest.kind == GuestKind::Qemu { qemu } else { lxc })?
        }
        Runs::Gateway => return Err(broken(tool)),
    };
    named::check_names(tool, operation, &given)?;
    let arguments = complete(tool, operation, given);
    change::run(state, principal, Wish { connection, operation, arguments, idempotency_key, reason: None }).await
}

/// With what the tool sets itself.
fn complete(tool: &Tool, operation: &Operation, mut given: Map<String, Json>) -> Map<String, Json> {
    let set = tool.fixed.iter().filter(|(name, _)| operation.parameter(name).is_some());
    given.extend(set.map(|(name, value)| ((*name).to_owned(), Json::from(*value))));
    given
}

fn broken(tool: &Tool) -> Refusal {
    Refusal::new(
        "internal",
        format!("`{}` is not implemented", tool.name),
        "Report this; it is a mistake of the server.",
    )
}
