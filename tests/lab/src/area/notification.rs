//! Notification endpoints and matchers: made, changed and removed, with the status codes that only they use.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::entry::{CHANGED, done, properties};
use super::section::digest_of;
use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;

const ENDPOINTS: [&str; 4] = [
    "/cluster/notifications/endpoints/gotify",
    "/cluster/notifications/endpoints/sendmail",
    "/cluster/notifications/endpoints/smtp",
    "/cluster/notifications/endpoints/webhook",
];
const MATCHERS: &str = "/cluster/notifications/matchers";

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let rows = match call.path() {
        "/cluster/notifications/endpoints" => {
            ["gotify", "sendmail", "smtp", "webhook"].map(|name| json!({"name": name})).into()
        }
        "/cluster/notifications/targets" => targets(cluster),
        _ => return None,
    };
    Some(Ok(Value::Array(rows).into()))
}

fn targets(cluster: &Cluster) -> Vec<Value> {
    let mut rows = Vec::new();
    for list in ENDPOINTS {
        let kind = list.rsplit('/').next().unwrap_or_default();
        for (name, entry) in cluster.sections.entries(list).into_iter().flatten() {
            let mut row = Map::new();
            row.insert("name".to_owned(), json!(name));
            row.insert("type".to_owned(), json!(kind));
            for key in ["origin", "comment", "disable"] {
                if let Some(value) = entry.get(key) {
                    row.insert(key.to_owned(), value.clone());
                }
            }
            rows.push(Value::Object(row));
        }
    }
    rows
}

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let path = call.path();
    if path == "/cluster/notifications/targets/{name}/test" {
        return Some(shared.look(|cluster| test(cluster, call)).and_then(|()| done()));
    }
    let list = ENDPOINTS.into_iter().chain([MATCHERS]).find(|list| path.starts_with(list))?;
    let change: fn(&mut Cluster, &Call<'_>, &'static str) -> Result<(), Refusal> =
        match (call.operation.verb.as_str(), path.strip_prefix(list)?) {
            ("POST", "") => create,
            ("PUT", "/{name}") => update,
            ("DELETE", "/{name}") => delete,
            _ => return None,
        };
    Some(shared.change(|cluster| change(cluster, call, list)).and_then(|()| done()))
}

fn kind(list: &str) -> &'static str {
    if list == MATCHERS { "matcher" } else { "endpoint" }
}

fn endpoint_exists(cluster: &Cluster, name: &str) -> bool {
    ENDPOINTS.iter().any(|list| cluster.sections.get(list, name).is_some())
}

fn missing(list: &str, name: &str) -> Refusal {
    Refusal::new(404, format!("{} '{name}' not found", kind(list)))
}

fn test(cluster: &Cluster, call: &Call<'_>) -> Result<(), Refusal> {
    let name = call.text("name");
    if endpoint_exists(cluster, name) {
        Ok(())
    } else {
        Err(Refusal::new(404, format!("endpoint '{name}' does not exist")))
    }
}

/// The targets of a matcher have to be there.
fn targeted(cluster: &Cluster, entry: &Map<String, Value>) -> Result<(), Refusal> {
    let targets = entry.get("target").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for target in targets {
        if !endpoint_exists(cluster, target) {
            return Err(Refusal::new(404, format!("endpoint '{target}' does not exist")));
        }
    }
    Ok(())
}

/// What is given, without what PVE keeps apart and never shows.
fn shown(call: &Call<'_>) -> Map<String, Value> {
    let mut entry = call.fields(&["name", "token", "password"]);
    if let Some(secrets) = entry.get_mut("secret").and_then(Value::as_array_mut) {
        for secret in secrets {
            let name = properties(secret.as_str().unwrap_or_default()).remove("name").unwrap_or_default();
            *secret = json!(format!("name={}", name.as_str().unwrap_or_default()));
        }
    }
    entry
}

fn mail_has_recipient(call: &Call<'_>, list: &str, entry: &Map<String, Value>) -> Result<(), Refusal> {
    let mails = list.ends_with("/sendmail") || list.ends_with("/smtp");
    if mails && !entry.contains_key("mailto") && !entry.contains_key("mailto-user") {
        let name = call.text("name");
        return Err(Refusal::new(
            400,
            format!("must at least provide one recipient, either in mailto or in mailto-user: {name}"),
        ));
    }
    Ok(())
}

fn create(cluster: &mut Cluster, call: &Call<'_>, list: &'static str) -> Result<(), Refusal> {
    let name = call.text("name");
    if endpoint_exists(cluster, name) || cluster.sections.get(MATCHERS, name).is_some() {
        let message = format!("Cannot create '{name}', an entity with the same name already exists");
        return Err(Refusal::new(400, message));
    }
    let mut entry = shown(call);
    mail_has_recipient(call, list, &entry)?;
    targeted(cluster, &entry)?;
    entry.insert("origin".to_owned(), json!("user-created"));
    cluster.sections.put(list, name, Value::Object(entry));
    Ok(())
}

fn update(cluster: &mut Cluster, call: &Call<'_>, list: &'static str) -> Result<(), Refusal> {
    let name = call.text("name");
    if call.given("digest").is_some_and(|given| given != digest_of(cluster, list)) {
        return Err(Refusal::new(400, CHANGED));
    }
    let mut entry = cluster.sections.get(list, name).cloned().ok_or_else(|| missing(list, name))?;
    for gone in call.deletions() {
        entry.remove(&gone);
    }
    entry.extend(shown(call));
    mail_has_recipient(call, list, &entry)?;
    targeted(cluster, &entry)?;
    if entry.get("origin").and_then(Value::as_str) == Some("builtin") {
        entry.insert("origin".to_owned(), json!("modified-builtin"));
    }
    cluster.sections.put(list, name, Value::Object(entry));
    Ok(())
}

/// What a matcher sends to stays; a built-in entry cannot go either, it only falls back to how it was.
fn delete(cluster: &mut Cluster, call: &Call<'_>, list: &'static str) -> Result<(), Refusal> {
    let name = call.text("name");
    let entry = cluster.sections.get(list, name).ok_or_else(|| missing(list, name))?;
    if entry.get("origin").and_then(Value::as_str) == Some("builtin") {
        return Ok(());
    }
    let users: Vec<&str> = cluster
        .sections
        .entries(MATCHERS)
        .into_iter()
        .flatten()
        .filter(|(_, matcher)| {
            let targets = matcher.get("target").and_then(Value::as_array);
            list != MATCHERS
                && targets.is_some_and(|targets| targets.iter().any(|target| target.as_str() == Some(name)))
        })
        .map(|(name, _)| name.as_str())
        .collect();
    if !users.is_empty() {
        let message = format!("cannot delete '{name}', referenced by: {}", users.join(", "));
        return Err(Refusal::new(400, message));
    }
    cluster.sections.remove(list, name);
    Ok(())
}
