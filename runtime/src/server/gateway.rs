//! The tools that are not one operation: through them every offered read can be reached.

use std::time::Duration;

use pvegate_generated::catalog;
use pvegate_generated::model::Operation;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use super::reading;
use super::{State, describe, get_change, guests, page, search, shape, wait_task};
use crate::authorize;
use crate::mcp::{Answer, Progress, Refusal};
use crate::pve::Kind;
use crate::tokens::Principal;

/// Most reads in one call.
const MOST_READS: usize = 20;

/// How long `list_clusters` waits for each cluster.
const HELLO: Duration = Duration::from_secs(5);

/// Reads a tool's own arguments.
pub fn arguments<T: DeserializeOwned>(given: Map<String, Json>) -> Result<T, Refusal> {
    serde_json::from_value(Json::Object(given)).map_err(|error| {
        Refusal::new(
            "invalid_arguments",
            format!("the arguments of this tool are not valid: {}", crate::untrusted::shown(&error.to_string(), 300)),
            "tools/list has their schema.",
        )
    })
}

/// Runs a tool of the gateway; `None`: there is none of this name.
pub async fn call(
    state: &State,
    principal: &Principal,
    name: &str,
    given: Map<String, Json>,
    progress: Option<Progress>,
) -> Option<Result<Answer, Refusal>> {
    Some(match name {
        "search_operations" => arguments(given).and_then(|asked| search::answer(state, &asked)),
        "describe_operation" => arguments(given)
            .and_then(|asked: Describe| describe::answer(state, principal, &asked.operation, &asked.fields)),
        "read" => match arguments(given) {
            Ok(asked) => read(state, principal, asked).await,
            Err(refusal) => Err(refusal),
        },
        "list_clusters" => match arguments(given) {
            Ok(Nothing {}) => list_clusters(state, principal).await,
            Err(refusal) => Err(refusal),
        },
        "list_guests" => match arguments(given) {
            Ok(asked) => guests::list_guests(state, principal, &asked).await,
            Err(refusal) => Err(refusal),
        },
        "get_guest" => match arguments(given) {
            Ok(asked) => guests::get_guest(state, principal, asked).await,
            Err(refusal) => Err(refusal),
        },
        get_change::NAME => match arguments(given) {
            Ok(asked) => get_change::answer(state, principal, asked).await,
            Err(refusal) => Err(refusal),
        },
        wait_task::NAME => match arguments(given) {
            Ok(asked) => wait_task::answer(state, principal, asked, progress).await,
            Err(refusal) => Err(refusal),
        },
        _ => return None,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Describe {
    operation: String,
    #[serde(default)]
    fields: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reads {
    cluster: Option<String>,
    reads: Vec<OneRead>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneRead {
    operation: String,
    #[serde(default)]
    arguments: Map<String, Json>,
    #[serde(default)]
    fields: Vec<String>,
}

async fn read(state: &State, principal: &Principal, asked: Reads) -> Result<Answer, Refusal> {
    if asked.reads.is_empty() || asked.reads.len() > MOST_READS {
        return Err(Refusal::new(
            "invalid_arguments",
            format!("`reads` has {} entries", asked.reads.len()),
            format!("Give 1 to {MOST_READS}."),
        ));
    }
    let cluster = asked.cluster.as_deref();
    // Found once, so that an unknown cluster is one refusal and not twenty.
    authorize::cluster(principal, state, cluster)?;
    let budget = page::BUDGET / asked.reads.len();
    let results = futures(asked.reads.into_iter().enumerate().map(|(at, one)| async move {
        // A name that is none of the catalog's is as long as its caller made it.
        let operation = crate::untrusted::shown(&one.operation, 120);
        let read = one_read(state, principal, cluster, one, budget).await;
        if let Some(call) = crate::audit::current() {
            call.part(at, read.as_ref().map_or_else(|refusal| refusal.code.clone(), |_| "ok".into()));
        }
        let mut object = match read {
            Ok(object) => object,
            Err(refusal) => [("error".to_owned(), json!(refusal))].into_iter().collect(),
        };
        object.insert("operation".to_owned(), Json::from(operation));
        Json::Object(object)
    }))
    .await;
    Ok(Answer::from(&[("results".to_owned(), Json::Array(results))].into_iter().collect::<Map<_, _>>()))
}

async fn one_read(
    state: &State,
    principal: &Principal,
    cluster: Option<&str>,
    one: OneRead,
    budget: usize,
) -> Result<Map<String, Json>, Refusal> {
    page::check_fields(&one.fields)?;
    let operation = operation(&one.operation)?;
    if one.arguments.contains_key("cluster") {
        return Err(Refusal::new(
            "invalid_arguments",
            "`cluster` stands beside `reads`, not inside `arguments`",
            "Move it.",
        ));
    }
    let asked = authorize::read(state, principal, authorize::cluster(principal, state, cluster)?, operation)?;
    let reading = reading::run(state, &asked, &one.arguments, &[]).await?;
    let missing = reading.gaps(reading.data.as_array().map_or(0, Vec::len));
    let (answer, limit) = match reading.data {
        Json::Array(rows) => return list_within(rows, &one.fields, reading.total, missing, budget),
        other => (page::of_object(other, &one.fields)?, budget),
    };
    if answer.json().len() > limit {
        return Err(page::too_large());
    }
    match serde_json::from_str(answer.json()) {
        Ok(Json::Object(object)) => Ok([("item".to_owned(), Json::Object(object))].into_iter().collect()),
        _ => Err(page::too_large()),
    }
}

/// Rows as far as they fit; what is missing is said.
fn list_within(
    rows: Vec<Json>,
    fields: &[String],
    known: Option<u64>,
    mut missing: Vec<String>,
    budget: usize,
) -> Result<Map<String, Json>, Refusal> {
    let data = Json::Array(rows);
    let untrusted = shape::guest_written(&data);
    let Json::Array(mut rows) = data else { return Err(page::too_large()) };
    let total = rows.len();
    let mut used = 512;
    let mut fits = 0;
    for row in &mut rows {
        shape::project(fields, row);
        used += row.to_string().len() + 1;
        if used > budget {
            break;
        }
        fits += 1;
    }
    if fits == 0 && total > 0 {
        return Err(page::too_large());
    }
    rows.truncate(fits);
    let mut object = Map::new();
    if fits < total {
        missing.insert(0, format!("rows {} to {total}: they do not fit; name `fields`, filter, read fewer things at once, or use the named tool, which has pages", fits + 1));
    }
    if !missing.is_empty() {
        object.insert("partial".to_owned(), Json::from(true));
        object.insert("missing".to_owned(), Json::from(missing));
    }
    if !untrusted.is_empty() {
        object.insert("untrusted".to_owned(), Json::from(untrusted));
    }
    object.insert("items".to_owned(), Json::Array(rows));
    // As many as PVE has, where it says so and shows fewer.
    object.insert("total".to_owned(), Json::from(known.unwrap_or_default().max(total as u64)));
    Ok(object)
}

/// The operation with this name, or a refusal that helps to find it.
pub fn operation(name: &str) -> Result<&'static Operation, Refusal> {
    catalog::operation(name).ok_or_else(|| {
        let shown = crate::untrusted::shown(name, 120);
        Refusal::new(
            "no_such_operation",
            format!("there is no operation `{shown}`"),
            "search_operations finds names by words; they look like `GET /nodes/{node}/status`, braces included.",
        )
    })
}

async fn list_clusters(state: &State, principal: &Principal) -> Result<Answer, Refusal> {
    let items = futures(authorize::clusters(principal, state).map(|connection| async {
        let mut item = json!({"cluster": connection.name()});
        // Asked, not remembered: whether it answers is the question.
        let version = tokio::time::timeout(HELLO, connection.hello()).await;
        let (key, value) = match version {
            Ok(Ok(version)) => ("release", Json::from(version.text.as_str())),
            Ok(Err(error)) => ("error", json!(reading::refusal(state, &error))),
            Err(_) => ("error", json!(too_slow(connection.name()))),
        };
        if let Some(item) = item.as_object_mut() {
            item.insert("answers".to_owned(), Json::from(key == "release"));
            item.insert(key.to_owned(), value);
        }
        item
    }))
    .await;
    page::of_rows(items, &[], &page::Window::default(), Vec::new())
}

fn too_slow(cluster: &str) -> Refusal {
    let message = format!("cluster {cluster} did not answer within {} s", HELLO.as_secs());
    Refusal::new(Kind::Timeout.as_str(), message, "Try again later, or ask an operator to look.")
}

/// Runs futures side by side and keeps their order.
pub async fn futures<F: Future>(list: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    futures_util::future::join_all(list).await
}
