//! Guests across clusters: lists from their snapshots, and one guest live from its node.

use std::sync::Arc;

use pvegate_generated::internal;
use pvegate_generated::model::Operation;
use pvegate_generated::terms::Subject;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::{State, gateway, page, reading, shape, spread};
use crate::authorize;
use crate::connection::Connection;
use crate::grant::Grant;
use crate::mcp::{Answer, Refusal};
use crate::pve::{Kind, PveError};
use crate::snapshot::{GuestKind, GuestRow, Inventory, NodeRow};
use crate::tokens::Principal;

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

    /// `text` is the one that is looked for, in lower case.
    fn matches(&self, guest: &GuestRow, text: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.name, &guest.name)
            && is(&self.status, &guest.status)
            && is(&self.node, guest.node.as_str())
            && self.pool.as_ref().is_none_or(|pool| guest.pool.as_deref() == Some(pool))
            && self.tag.as_ref().is_none_or(|tag| guest.has_tag(tag))
            && self.kind.is_none_or(|kind| {
                matches!((kind, guest.kind), (GuestType::Qemu, GuestKind::Qemu) | (GuestType::Lxc, GuestKind::Lxc))
            })
            && text.is_none_or(|text| has_text(guest, text))
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
    page::check_fields(&asked.fields)?;
    check_status(asked.status.as_deref())?;
    let connections: Vec<Arc<Connection>> = match &asked.cluster {
        Some(name) => vec![authorize::cluster(principal, state, Some(name))?.into_inner()],
        None => authorize::clusters(principal, state).cloned().collect(),
    };
    let window = page::Window {
        limit: asked.limit.map(|limit| limit.clamp(1, 1000)),
        start: page::start_of(asked.cursor.as_deref(), asked.question())?,
        question: asked.question(),
    };
    let grant = &principal.grant;
    let only = connections.len() == 1;
    let answers = gateway::futures(connections.iter().map(|connection| inventory(connection, only))).await;
    let mut inventories: Vec<(&Arc<Connection>, Arc<Inventory>)> = Vec::new();
    let mut missing = Vec::new();
    for (connection, answer) in connections.iter().zip(answers) {
        match answer {
            Ok(inventory) => {
                missing.extend(unreadable(grant, connection.name(), &inventory));
                missing.extend(offline(grant, connection.name(), &inventory));
                inventories.push((connection, inventory));
            }
            Err(error) if only => return Err(reading::refusal(state, &error)),
            Err(error) => {
                missing.push(format!("cluster {}: {}", connection.name(), reading::refusal(state, &error).message));
            }
        }
    }
    let text = asked.text.as_deref().map(str::to_lowercase);
    let covers_all = grant.guests.is_all();
    let guests = || {
        inventories
            .iter()
            .flat_map(|(_, inventory)| inventory.guests())
            .filter(|guest| covers_all || grant.guests.covers(guest))
            .filter(|guest| !asked.is_filtered() || asked.matches(guest, text.as_deref()))
    };
    let total = if covers_all && !asked.is_filtered() {
        inventories.iter().map(|(_, inventory)| inventory.guests().len()).sum()
    } else {
        guests().count()
    };
    // Nothing found may mean nothing seen: of the guests, or of the pool that they were looked for by.
    let subjects = [Some(Subject::Guest), asked.pool.as_ref().map(|_| Subject::Pool)];
    for (connection, inventory) in &inventories {
        let is_empty = total == 0 || covers_all && inventory.guests().is_empty();
        if is_empty && inventory.unreadable() == 0 {
            missing.extend(reading::sight_on(state, grant, connection, subjects.into_iter().flatten()).await);
        }
    }
    let rest = format!(",\"untrusted\":[\"name\",\"tags\"]{}", page::gaps(missing));
    if asked.fields.is_empty() {
        return page::of_texts(guests().map(|guest| &*guest.json), total, &window, &rest);
    }
    let most = window.limit.unwrap_or(page::BUDGET);
    let texts: Vec<String> =
        guests().skip(window.start).take(most).map(|guest| projected(guest, &asked.fields)).collect();
    // The rows before the window were not even written.
    page::of_texts(std::iter::repeat_n("", window.start).chain(texts.iter().map(String::as_str)), total, &window, &rest)
}

/// What is said of entries that could not be read. How many there are is for a grant of every guest.
fn unreadable(grant: &Grant, cluster: &str, inventory: &Inventory) -> Option<String> {
    match inventory.unreadable() {
        0 => None,
        many if grant.guests.is_all() => Some(format!("{many} entries of cluster {cluster} could not be read")),
        _ => Some(format!("some entries of cluster {cluster} could not be read, so guests may be missing")),
    }
}

/// What is said of nodes that are down: those that are granted, and those with a guest that is.
fn offline(grant: &Grant, cluster: &str, inventory: &Inventory) -> Vec<String> {
    let has_guest =
        |node: &NodeRow| inventory.guests().iter().any(|guest| guest.node == node.node && grant.guests.covers(guest));
    let told = |node: &&NodeRow| {
        &*node.status == "offline"
            && (grant.guests.is_all() || grant.nodes.allows(node.node.as_str()) || has_guest(node))
    };
    let says = |node: &NodeRow| {
        format!("node {} of cluster {cluster} is offline, so what its guests do is not known", node.node)
    };
    inventory.nodes().iter().filter(told).map(says).collect()
}

/// The guests of one cluster, which may take its time if it is the only one that is asked: one that hangs must not hold
/// up what others answer.
async fn inventory(connection: &Connection, only: bool) -> Result<Arc<Inventory>, PveError> {
    if only {
        return connection.snapshot().get().await;
    }
    tokio::time::timeout(spread::PATIENCE, connection.snapshot().get()).await.unwrap_or_else(|_| {
        let message = format!("cluster {} did not answer within {} s", connection.name(), spread::PATIENCE.as_secs());
        Err(PveError::new(Kind::Timeout, message).not_sent())
    })
}

/// States that PVE's list of guests knows; another one would find nothing, which looks like an answer.
const STATES: [&str; 3] = ["running", "stopped", "unknown"];

fn check_status(status: Option<&str>) -> Result<(), Refusal> {
    match status {
        Some(status) if !STATES.contains(&status) => Err(Refusal::new(
            "invalid_arguments",
            format!("`status` has to be one of {}, not `{}`", STATES.join(", "), crate::untrusted::shown(status, 80)),
            "Leave it out for guests in any state.",
        )),
        _ => Ok(()),
    }
}

fn projected(guest: &GuestRow, fields: &[String]) -> String {
    let mut row: Json = serde_json::from_str(&guest.json).unwrap_or_default();
    shape::project(fields, &mut row);
    row.to_string()
}

/// What `get_guest` is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneGuest {
    cluster: Option<String>,
    vmid: Json,
    #[serde(default)]
    fields: Vec<String>,
}

/// One guest, live from its node: state and configuration side by side.
pub async fn get_guest(state: &State, principal: &Principal, asked: OneGuest) -> Result<Answer, Refusal> {
    page::check_fields(&asked.fields)?;
    let connection = authorize::cluster(principal, state, asked.cluster.as_deref())?.into_inner();
    let vmid = reading::vmid(Some(&asked.vmid))?;
    let guest = authorize::guest(&principal.grant, &connection, vmid).await.map_err(|not| not.into_refusal(state))?;
    let (status, config) = match guest.kind {
        GuestKind::Qemu => (internal::QEMU_STATUS, internal::QEMU_CONFIG),
        GuestKind::Lxc => (internal::LXC_STATUS, internal::LXC_CONFIG),
    };
    let ask = |operation: &'static Operation| {
        let cluster = asked.cluster.as_deref();
        async move {
            let cluster = authorize::cluster(principal, state, cluster)?;
            let authorized = authorize::read(state, principal, cluster, operation)?;
            let arguments = [("vmid".to_owned(), Json::from(vmid.get()))].into_iter().collect();
            reading::run(state, &authorized, &arguments, &[]).await
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
