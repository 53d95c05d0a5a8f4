//! Realms.

use serde_json::{Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::state::{Cluster, digest};

const LIST: &str = "/access/domains";
/// What the list, which needs no login, shows of a realm.
const SHOWN: [&str; 4] = ["type", "comment", "tfa", "default"];

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    match call.path() {
        LIST => {
            let rows = cluster.sections.entries(LIST).into_iter().flatten().map(|(realm, entry)| {
                let mut row = entry.clone();
                row.retain(|key, _| SHOWN.contains(&key.as_str()));
                row.insert("realm".to_owned(), json!(realm));
                Value::Object(row)
            });
            Some(Ok(Value::Array(rows.collect()).into()))
        }
        "/access/domains/{realm}" => {
            let realm = call.text("realm");
            Some(match cluster.sections.get(LIST, realm) {
                None => Err(Refusal::failed(format!("domain '{realm}' does not exist"))),
                Some(entry) => {
                    let mut data = entry.clone();
                    data.insert("digest".to_owned(), json!(digest(&json!(cluster.sections.entries(LIST)))));
                    Ok(Value::Object(data).into())
                }
            })
        }
        _ => None,
    }
}

pub(super) fn write(cluster: &mut Cluster, call: &Call<'_>) -> Option<Outcome> {
    let (what, done) = match call.operation.name.as_str() {
        "POST /access/domains" => ("add auth server", create(cluster, call)),
        "PUT /access/domains/{realm}" => ("update auth server", update(cluster, call)),
        "DELETE /access/domains/{realm}" => ("delete auth server", delete(cluster, call)),
        _ => return None,
    };
    Some(match done {
        Ok(()) => Ok(Value::Null.into()),
        Err(error) => Err(Refusal::failed(format!("{what} failed: {error}"))),
    })
}

/// A parameter as the configuration keeps it: numbers where the schema says so.
fn kept(call: &Call<'_>, name: &str, value: &Value) -> Value {
    let kind = call.operation.parameters.get(name).and_then(|schema| schema.get("type")).and_then(Value::as_str);
    match (kind, value.as_str().map(str::parse::<i64>)) {
        (Some("integer" | "boolean"), Some(Ok(number))) => json!(number),
        _ => value.clone(),
    }
}

fn create(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), String> {
    let realm = call.text("realm");
    if cluster.sections.get(LIST, realm).is_some() {
        return Err(format!("domain '{realm}' already exists"));
    }
    let entry = call
        .params
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "realm" | "password" | "check-connection"))
        .map(|(name, value)| (name.clone(), kept(call, name, value)))
        .collect();
    cluster.sections.put(LIST, realm, Value::Object(entry));
    Ok(())
}

fn update(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), String> {
    let realm = call.text("realm");
    let mut entry =
        cluster.sections.get(LIST, realm).cloned().ok_or_else(|| format!("domain '{realm}' does not exist"))?;
    let now = digest(&json!(cluster.sections.entries(LIST)));
    if call.given("digest").is_some_and(|given| given != now) {
        return Err("detected modified configuration - file changed by other user? Try again.".to_owned());
    }
    for name in super::people::names(call, "delete") {
        entry.remove(name);
    }
    for (name, value) in call.params {
        if !matches!(name.as_str(), "realm" | "password" | "check-connection" | "delete" | "digest") {
            entry.insert(name.clone(), kept(call, name, value));
        }
    }
    cluster.sections.put(LIST, realm, Value::Object(entry));
    Ok(())
}

/// The built-in realms can be deleted too: their entries go, the realms stay.
fn delete(cluster: &mut Cluster, call: &Call<'_>) -> Result<(), String> {
    let realm = call.text("realm");
    if !cluster.sections.remove(LIST, realm) {
        return Err(format!("domain '{realm}' does not exist"));
    }
    if matches!(realm, "pam" | "pve") {
        cluster.sections.put(LIST, realm, json!({"type": realm}));
    }
    Ok(())
}
