//! What changes the cluster itself: the datacenter's options, mappings, metric servers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::guest::object;

/// Entries by list, the word for one in errors, and how a missing one is told.
const LISTS: [(&str, &str, &str); 4] = [
    ("/cluster/mapping/dir", "directory mapping", "mapping '{}' not found"),
    ("/cluster/mapping/pci", "hardware mapping", "mapping '{}' not found"),
    ("/cluster/mapping/usb", "hardware mapping", "mapping '{}' not found"),
    ("/cluster/metrics/server", "metric server", "status server entry '{}' does not exist"),
];

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    if call.operation.name == "PUT /cluster/options" {
        return Some(shared.change(|cluster| options(cluster, call)));
    }
    let (list, what, missing) = LISTS
        .into_iter()
        .find(|(list, _, _)| call.path() == *list || call.path().starts_with(&format!("{list}/{{")))?;
    Some(shared.change(|cluster| entry(cluster, call, list, (what, missing))))
}

fn options(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    for name in call.deletions() {
        cluster.options.remove(&name);
    }
    for (name, value) in call.fields(&[]) {
        cluster.options.insert(name, value);
    }
    Ok(Value::Null.into())
}

fn entry(cluster: &mut Cluster, call: &Call<'_>, list: &'static str, (what, missing): (&str, &str)) -> Outcome {
    let id = call.text("id").to_owned();
    let mut present = cluster.sections.get(list, &id).cloned();
    match call.operation.verb.as_str() {
        "POST" => {
            if present.is_some() {
                return Err(Refusal::failed(format!("create {what} failed: {what} ID '{id}' already defined")));
            }
            let mut fields = call.fields(&["id"]);
            if let Some(kind) = list.strip_prefix("/cluster/mapping/") {
                fields.insert("type".to_owned(), json!(kind));
            }
            cluster.sections.put(list, &id, Value::Object(fields));
        }
        "PUT" => {
            let Some(fields) = present.as_mut() else {
                return Err(Refusal::failed(missing.replace("{}", &id)));
            };
            call.unchanged(&super::section::digest_of(cluster, list))?;
            call.delete_from(fields, &["type"])?;
            fields.extend(call.fields(&["id"]));
            let fields = Value::Object(fields.clone());
            cluster.sections.put(list, &id, fields);
        }
        _ => {
            // What is not there is deleted all the same.
            cluster.sections.remove(list, &id);
        }
    }
    Ok(Value::Null.into())
}

/// The options as they are read: property strings in parts, and what is never empty.
pub(super) fn shown_options(cluster: &Cluster) -> Value {
    let mut shown = object(json!({"allowed-tags": [], "description": "", "mac_prefix": "BC:24:11"}));
    for (name, value) in &cluster.options {
        let value = match (name.as_str(), value.as_str()) {
            (
                "migration" | "crs" | "ha" | "notify" | "tag-style" | "user-tag-access" | "next-id" | "replication",
                Some(text),
            ) => Value::Object(super::entry::properties(text)),
            _ => value.clone(),
        };
        shown.insert(name.clone(), value);
    }
    Value::Object(shown)
}
