//! Answers for reads that no handler knows: directory listings from the schema's tree, everything else a value for each
//! described property, always the same for the same question.

use serde_json::{Map, Value, json};

use crate::area::Call;
use crate::clock;
use crate::params::{Params, text};
use crate::schema::{Schema, number};
use crate::state::Cluster;

/// Makes up an answer in the shape that the schema describes.
pub(crate) fn answer(schema: &Schema, cluster: &Cluster, call: &Call<'_>) -> Value {
    let returns = &call.operation.returns;
    if let Some(listing) = listing(schema, call) {
        return listing;
    }
    value("", returns, call.params, cluster, 0)
}

/// What PVE's own listings leave out.
fn unlisted(path: &str) -> &'static [&'static str] {
    match path {
        "/access" => &["permissions", "vncticket"],
        "/nodes/{node}" => &["execute", "vncwebsocket"],
        _ => &[],
    }
}

/// A directory listing: an array whose link is the name of what is below.
fn listing(schema: &Schema, call: &Call<'_>) -> Option<Value> {
    let returns = &call.operation.returns;
    let href = returns.get("links")?.as_array()?.first()?.get("href")?.as_str()?;
    let column = href.strip_prefix('{')?.strip_suffix('}')?;
    let unlisted = unlisted(call.path());
    let mut below = schema.children(call.path());
    below.retain(|name| !unlisted.contains(name));
    if below.is_empty() {
        return None;
    }
    Some(Value::Array(below.iter().map(|name| json!({column: name})).collect()))
}

fn value(name: &str, schema: &Value, params: &Params, cluster: &Cluster, depth: usize) -> Value {
    // A property named like a parameter shows what was asked for.
    if let Some(asked) = text(params, name) {
        return match schema.get("type").and_then(Value::as_str) {
            Some("integer" | "number") => asked.parse::<i64>().map_or_else(|_| json!(asked), |number| json!(number)),
            _ => json!(asked),
        };
    }
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|all| all.first()) {
        return first.clone();
    }
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_else(|| if schema.get("properties").is_some() { "object" } else { "null" });
    match kind {
        "object" => object(schema, params, cluster, depth),
        "array" => {
            let items = schema.get("items");
            let described = items.is_some_and(|items| {
                items.get("properties").is_some() || items.get("type").and_then(Value::as_str) != Some("object")
            });
            match items {
                Some(items) if described && depth < 6 => json!([value("", items, params, cluster, depth + 1)]),
                _ => json!([]),
            }
        }
        "boolean" => json!(0),
        "integer" => integer(name, schema),
        "number" => json!(number(schema.get("minimum")).unwrap_or(0.5)),
        "null" => Value::Null,
        _ => json!(string(name, schema, cluster)),
    }
}

fn object(schema: &Value, params: &Params, cluster: &Cluster, depth: usize) -> Value {
    let mut fields = Map::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if depth < 6 {
            let name = name.replace("[n]", "0");
            fields.insert(name.clone(), value(&name, property, params, cluster, depth + 1));
        }
    }
    Value::Object(fields)
}

fn integer(name: &str, schema: &Value) -> Value {
    let timestamp = schema.get("renderer").and_then(Value::as_str) == Some("timestamp");
    if timestamp || name.contains("time") {
        return json!(clock::now() - 60);
    }
    #[allow(clippy::cast_possible_truncation, reason = "minima in the schema are small")]
    let least = number(schema.get("minimum")).unwrap_or(1.0) as i64;
    json!(least)
}

fn string(name: &str, schema: &Value, cluster: &Cluster) -> String {
    match (schema.get("format").and_then(Value::as_str), name) {
        (Some("pve-node"), _) | (_, "node" | "host") => cluster.local.clone(),
        (Some("pve-storage-id"), _) => "local".to_owned(),
        (Some("CIDR" | "CIDRv4"), _) => "192.0.2.0/24".to_owned(),
        (Some("ip" | "ipv4"), _) => "192.0.2.1".to_owned(),
        (Some("pve-vmid"), _) => "100".to_owned(),
        _ if name.contains("password") || name.contains("secret") || name.contains("token") => {
            cluster.secrets.of(&format!("made-up-{name}"))
        }
        _ if name.is_empty() => "lab".to_owned(),
        _ => format!("lab-{name}"),
    }
}
