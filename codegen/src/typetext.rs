//! Decides whether a `typetext` says something that the rest of its schema does not.
//!
//! PVE fills it in for most parameters when it dumps the apidoc. Only those that somebody wrote by
//! hand are facts: they show the grammar of formats that the apidoc only names.

use serde_json::{Map, Value};

/// Whether this schema's `typetext` follows from its other keys.
pub(crate) fn is_derivable(schema: &Map<String, Value>) -> bool {
    let Some(text) = schema.get("typetext").and_then(Value::as_str) else { return false };
    // The grammar of a property string is its keys.
    if schema.get("format").is_some_and(Value::is_object) {
        return true;
    }
    let described = schema.get("format_description").and_then(Value::as_str);
    described.is_some_and(|description| text == format!("<{description}>")) || text == derived(schema)
}

fn derived(schema: &Map<String, Value>) -> String {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("string");
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let mut values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        return format!("<{}>", values.join(" | "));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        return pattern.to_owned();
    }
    if !matches!(kind, "integer" | "number") {
        return format!("<{kind}>");
    }
    match (bound(schema.get("minimum")), bound(schema.get("maximum"))) {
        (Some(low), Some(high)) => format!("<{kind}> ({low} - {high})"),
        (Some(low), None) => format!("<{kind}> ({low} - N)"),
        (None, Some(high)) => format!("<{kind}> (-N - {high})"),
        (None, None) => format!("<{kind}>"),
    }
}

fn bound(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
