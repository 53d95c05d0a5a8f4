//! The tools that are not one operation: through them every offered read can be reached.

use std::sync::Arc;
use std::time::Duration;

use pvegate_generated::catalog;
use pvegate_generated::internal;
use pvegate_generated::model::Operation;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use super::reading::{self, Reading};
use super::{State, describe, page, search, shape};
use crate::authorize;
use crate::connection::Connection;
use crate::mcp::{Answer, Refusal};
use crate::snapshot::{GuestKind, GuestRow, Inventory};
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
) -> Option<Result<Answer, Refusal>> {
    Some(match name {
        "search_operations" => arguments(given).and_then(|asked| search::answer(state, &asked)),
        "describe_operation" => {
            arguments(given).and_then(|asked: Describe| describe::answer(state, &asked.operation, &asked.fields))
        }
        "read" => match arguments(given) {
            Ok(asked) => read(state, principal, asked).await,
            Err(refusal) => Err(refusal),
        },
        "list_clusters" => match arguments(given) {
            Ok(Nothing {}) => list_clusters(state, principal).await,
            Err(refusal) => Err(refusal),
        },
        "list_guests" => match arguments(given) {
            Ok(asked) => list_guests(state, principal, &asked).await,
            Err(refusal) => Err(refusal),
        },
        "get_guest" => match arguments(given) {
            Ok(asked) => get_guest(state, principal, asked).await,
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
    let results = futures(asked.reads.into_iter().map(|one| async {
        let operation = one.operation.clone();
        let mut object = match one_read(state, principal, cluster, one, budget).await {
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
    let operation = operation(&one.operation)?;
    if one.arguments.contains_key("cluster") {
        return Err(Refusal::new(
            "invalid_arguments",
            "`cluster` stands beside `reads`, not inside `arguments`",
            "Move it.",
        ));
    }
    let authorized = authorize::read(state, authorize::cluster(principal, state, cluster)?, operation)?;
    let Reading { data, total } = reading::run(state, &authorized, one.arguments, &[]).await?;
    let (answer, limit) = match data {
        Json::Array(rows) => return list_within(rows, &one.fields, total, budget),
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
    let mut missing = Vec::new();
    if fits < total {
        missing.push(format!("rows {} to {total}: they do not fit; name `fields`, filter, read fewer things at once, or use the named tool, which has pages", fits + 1));
    }
    if let Some(known) = known.filter(|known| usize::try_from(*known).is_ok_and(|known| known > total)) {
        missing.push(format!("PVE has {known} rows and showed {total}; ask with its own limit, start or filters"));
    }
    if !missing.is_empty() {
        object.insert("partial".to_owned(), Json::from(true));
        object.insert("missing".to_owned(), Json::from(missing));
    }
    if !untrusted.is_empty() {
        object.insert("untrusted".to_owned(), Json::from(untrusted));
    }
    object.insert("items".to_owned(), Json::Array(rows));
    object.insert("total".to_owned(), Json::from(total));
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
        let version = tokio::time::timeout(HELLO, connection.version()).await;
        let (key, value) = match version {
            Ok(Ok(version)) => ("release", Json::from(version.text.as_str())),
            Ok(Err(error)) => ("error", json!(reading::refusal(state, &error))),
            Err(_) => ("error", Json::from(format!("did not answer within {} s", HELLO.as_secs()))),
        };
        if let Some(item) = item.as_object_mut() {
            item.insert("answers".to_owned(), Json::from(key == "release"));
            item.insert(key.to_owned(), value);
        }
        item
    }))
    .await;
    page::of_rows(items, &[], &page::Window::default(), None)
}

/// What `list_guests` can be asked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guests {
    cluster: Option<String>,
    name: Option<String>,
    text: Option<String>,
    status: Option<String>,
    node: Option<String>,
    tag: Option<String>,
    pool: Option<String>,
    #[serde(rename = "type")]
    kind: Option<GuestType>,
    #[serde(default)]
    fields: Vec<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GuestType {
    Qemu,
    Lxc,
}

impl Guests {
    /// All guests of one kind in one cluster: what the named list tools show.
    pub fn of_kind(
        cluster: &str,
        kind: GuestKind,
        fields: Vec<String>,
        limit: Option<usize>,
        cursor: Option<String>,
    ) -> Self {
        let kind = match kind {
            GuestKind::Qemu => GuestType::Qemu,
            GuestKind::Lxc => GuestType::Lxc,
        };
        Self { cluster: Some(cluster.to_owned()), kind: Some(kind), fields, limit, cursor, ..Self::default() }
    }

    fn is_filtered(&self) -> bool {
        let texts = [&self.name, &self.text, &self.status, &self.node, &self.tag, &self.pool];
        self.kind.is_some() || texts.iter().any(|text| text.is_some())
    }

    fn matches(&self, guest: &GuestRow) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.name, &guest.name)
            && is(&self.status, &guest.status)
            && is(&self.node, guest.node.as_str())
            && self.pool.as_ref().is_none_or(|pool| guest.pool.as_deref() == Some(pool))
            && self.tag.as_ref().is_none_or(|tag| guest.has_tag(tag))
            && self.kind.is_none_or(|kind| {
                matches!((kind, guest.kind), (GuestType::Qemu, GuestKind::Qemu) | (GuestType::Lxc, GuestKind::Lxc))
            })
            && self.text.as_ref().is_none_or(|text| has_text(guest, &text.to_lowercase()))
    }

    fn question(&self) -> u64 {
        let kind = self.kind.map(|kind| format!("{kind:?}"));
        let parts = [&self.cluster, &self.name, &self.text, &self.status, &self.node, &self.tag, &self.pool, &kind];
        page::question(&parts.map(|part| part.as_deref().unwrap_or("\u{1}")))
    }
}

fn has_text(guest: &GuestRow, text: &str) -> bool {
    let inside = |field: &str| field.to_lowercase().contains(text);
    guest.vmid.to_string().contains(text)
        || inside(&guest.name)
        || guest.tags.iter().any(|tag| inside(tag))
        || guest.pool.as_deref().is_some_and(inside)
}

/// Guests of the granted clusters, from their snapshots.
pub async fn list_guests(state: &State, principal: &Principal, asked: &Guests) -> Result<Answer, Refusal> {
    let connections: Vec<Arc<Connection>> = match &asked.cluster {
        Some(name) => vec![authorize::cluster(principal, state, Some(name))?.into_inner()],
        None => authorize::clusters(principal, state).cloned().collect(),
    };
    let window = page::Window {
        limit: asked.limit.map(|limit| limit.clamp(1, 1000)),
        start: page::start_of(asked.cursor.as_deref(), asked.question())?,
        question: asked.question(),
    };
    let answers = futures(connections.iter().map(|connection| connection.snapshot().get())).await;
    let mut inventories: Vec<Arc<Inventory>> = Vec::new();
    let mut missing = Vec::new();
    for (connection, answer) in connections.iter().zip(answers) {
        match answer {
            Ok(inventory) => {
                if inventory.unreadable() > 0 {
                    missing.push(format!(
                        "{} entries of cluster {} could not be read",
                        inventory.unreadable(),
                        connection.name()
                    ));
                }
                inventories.push(inventory);
            }
            Err(error) if connections.len() == 1 => return Err(reading::refusal(state, &error)),
            Err(error) => {
                missing.push(format!("cluster {}: {}", connection.name(), reading::refusal(state, &error).message))
            }
        }
    }
    let guests = || {
        inventories
            .iter()
            .flat_map(|inventory| inventory.guests())
            .filter(|guest| !asked.is_filtered() || asked.matches(guest))
    };
    let mut rest = ",\"untrusted\":[\"name\",\"tags\"]".to_owned();
    if !missing.is_empty() {
        rest.push_str(",\"partial\":true,\"missing\":");
        rest.push_str(&Json::from(missing).to_string());
    }
    let total = if asked.is_filtered() {
        guests().count()
    } else {
        inventories.iter().map(|inventory| inventory.guests().len()).sum()
    };
    if asked.fields.is_empty() {
        return page::of_texts(guests().map(|guest| &*guest.json), total, &window, &rest);
    }
    let most = window.limit.unwrap_or(page::BUDGET);
    let texts: Vec<String> =
        guests().skip(window.start).take(most).map(|guest| projected(guest, &asked.fields)).collect();
    // The rows before the window were not even written.
    page::of_texts(std::iter::repeat_n("", window.start).chain(texts.iter().map(String::as_str)), total, &window, &rest)
}

fn projected(guest: &GuestRow, fields: &[String]) -> String {
    let mut row: Json = serde_json::from_str(&guest.json).unwrap_or_default();
    shape::project(fields, &mut row);
    row.to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneGuest {
    cluster: Option<String>,
    vmid: Json,
    #[serde(default)]
    fields: Vec<String>,
}

async fn get_guest(state: &State, principal: &Principal, asked: OneGuest) -> Result<Answer, Refusal> {
    let connection = authorize::cluster(principal, state, asked.cluster.as_deref())?.into_inner();
    let vmid = reading::vmid(Some(&asked.vmid))?;
    let guest = connection.snapshot().resolve(vmid).await.map_err(|error| reading::refusal(state, &error))?;
    let (status, config) = match guest.kind {
        GuestKind::Qemu => (internal::QEMU_STATUS, internal::QEMU_CONFIG),
        GuestKind::Lxc => (internal::LXC_STATUS, internal::LXC_CONFIG),
    };
    let ask = |operation: &'static Operation| {
        let cluster = asked.cluster.as_deref();
        async move {
            let authorized = authorize::read(state, authorize::cluster(principal, state, cluster)?, operation)?;
            let arguments = [("vmid".to_owned(), Json::from(vmid.get()))].into_iter().collect();
            reading::run(state, &authorized, arguments, &[]).await
        }
    };
    let (status, config) = tokio::join!(ask(status), ask(config));
    let mut object = match status?.data {
        Json::Object(object) => object,
        _ => Map::new(),
    };
    let mut missing = Vec::new();
    match config {
        Ok(config) => {
            let protected = guest.protected
                || config
                    .data
                    .get("protection")
                    .is_some_and(|flag| flag.as_bool() == Some(true) || flag.as_i64() == Some(1));
            object.insert("protected".to_owned(), Json::from(protected));
            object.insert("config".to_owned(), config.data);
        }
        Err(refusal) => {
            object
                .insert("protected".to_owned(), if guest.protected { Json::from(true) } else { Json::from("unknown") });
            missing.push(format!("config: {}", refusal.message));
        }
    }
    let known = [
        ("cluster", Json::from(connection.name())),
        ("vmid", Json::from(vmid.get())),
        ("name", Json::from(&*guest.name)),
        ("type", Json::from(guest.kind.as_str())),
        ("node", Json::from(guest.node.as_str())),
        ("tags", Json::from(guest.tags.iter().map(|tag| Json::from(&**tag)).collect::<Vec<_>>())),
        ("pool", guest.pool.as_deref().map_or(Json::Null, Json::from)),
        ("template", Json::from(guest.template)),
    ];
    for (key, value) in known.into_iter().filter(|(_, value)| !value.is_null()) {
        object.insert(key.to_owned(), value);
    }
    if !missing.is_empty() {
        object.insert("partial".to_owned(), Json::from(true));
        object.insert("missing".to_owned(), Json::from(missing));
    }
    page::of_object(Json::Object(object), &asked.fields)
}

/// Runs futures side by side and keeps their order.
async fn futures<F: Future>(list: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    futures_util::future::join_all(list).await
}
