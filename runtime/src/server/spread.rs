//! One list asked of every node of a cluster: the nodes side by side, and none of them may hold up the others.

use std::time::Duration;

use pvegate_generated::model::{Answer, Operation, Place};
use pvegate_generated::terms::{Role, Tier};
use serde_json::{Map, Value as Json};

use super::reading::{self, Addressed, Reading};
use super::{State, gateway};
use crate::authorize::{self, Asked, Authorized, Fixed, NotReached};
use crate::connection::Connection;
use crate::pve::{Kind, ListedNode, PveError, Reply};

/// What callers write in place of a node's name.
pub const EVERY_NODE: &str = "*";

/// How long one of several nodes or clusters may take. The list is answered without it then.
pub const PATIENCE: Duration = Duration::from_millis(4500);

/// Whether an operation is a list of what is on one node.
pub fn is_possible(operation: &Operation) -> bool {
    operation.tier == Tier::Read
        && matches!(operation.answer, Answer::List(_))
        && operation.parameter("node").is_some_and(|parameter| parameter.place == Place::Path)
        && reading::addressed(operation) == Addressed::NoGuest
        // A task names its node.
        && !operation.params.iter().any(|parameter| parameter.role == Role::Task)
}

/// Asks every node that is up and granted; each row says whose it is. Of other nodes nothing is said.
pub async fn run(
    state: &State,
    asked: &Authorized<Asked<'_>>,
    arguments: &Map<String, Json>,
    fixed: Fixed,
) -> Result<Reading, NotReached> {
    let Asked { connection, grant, .. } = asked.get();
    let listed = connection.nodes().list().await.map_err(NotReached::Pve)?;
    let nodes: Vec<&ListedNode> = listed.iter().filter(|node| grant.nodes.allows(node.name.as_str())).collect();
    if nodes.is_empty() {
        return Err(NotReached::Refused(authorize::none(connection.name(), "node", EVERY_NODE)));
    }
    let answers = gateway::futures(nodes.iter().map(|node| one(state, asked, arguments, fixed, node))).await;
    let mut rows = Vec::new();
    let (mut total, mut counted) = (0, true);
    let mut missing = Vec::new();
    let mut failures = Vec::new();
    for (node, answer) in nodes.iter().zip(answers) {
        match answer {
            Ok((data, reply)) => {
                match reply.total {
                    Some(said) => total = u64::saturating_add(total, said),
                    // An empty list has no count beside it.
                    None => counted &= data.is_empty(),
                }
                missing.extend(reply.missing.iter().map(|what| format!("node {}: {what}", node.name)));
                rows.extend(data.into_iter().map(|row| named(row, node)));
            }
            Err(NotReached::Pve(error)) => {
                missing.push(format!("node {}: {}", node.name, state.redactor().text(error.message())));
                failures.push(error);
            }
            // Arguments that are wrong are wrong on every node.
            Err(refused @ NotReached::Refused(_)) => return Err(refused),
        }
    }
    if failures.len() == nodes.len()
        && let Some(error) = failures.pop()
    {
        return Err(NotReached::Pve(error));
    }
    let data = Json::Array(rows);
    if missing.is_empty() {
        missing = reading::sight_of(state, asked.get(), &data).await;
    }
    Ok(Reading { data, total: (counted && missing.is_empty()).then_some(total), missing })
}

async fn one(
    state: &State,
    asked: &Authorized<Asked<'_>>,
    arguments: &Map<String, Json>,
    fixed: Fixed,
    node: &ListedNode,
) -> Result<(Vec<Json>, Reply), NotReached> {
    let Asked { connection, operation, .. } = asked.get();
    if node.offline {
        let message = format!("cluster {} says that it is offline", connection.name());
        return Err(NotReached::Pve(PveError::new(Kind::NodeDown, message).not_sent()));
    }
    let mut arguments = arguments.clone();
    arguments.insert("node".to_owned(), Json::from(node.name.as_str()));
    let read = authorize::reach(state, asked, &arguments, fixed).await?;
    let mut reply = Connection::get_within(read, PATIENCE).await.map_err(NotReached::Pve)?;
    match reading::leaving(state, operation, reply.data.take()) {
        Json::Array(rows) => Ok((rows, reply)),
        Json::Null => Ok((Vec::new(), reply)),
        _ => Err(NotReached::Pve(PveError::new(Kind::NotJson, "it answered with something that is not a list"))),
    }
}

/// A row with its node, where it does not say so itself.
fn named(mut row: Json, node: &ListedNode) -> Json {
    if let Json::Object(object) = &mut row {
        object.entry("node").or_insert_with(|| Json::from(node.name.as_str()));
    }
    row
}
