//! Takes the prose out of an apidoc that was read without a problem, and nothing else.
//!
//! It knows where schemas stand, because a parameter or column may itself be called `description`.

use serde_json::{Map, Value};

use crate::typetext;

const SCHEMA_PROSE: [&str; 4] = ["description", "format_description", "title", "verbose_description"];

/// Removes the prose of these nodes and sorts them by path.
pub(super) fn remove(nodes: &mut Value) {
    let Some(nodes) = nodes.as_array_mut() else { return };
    for node in nodes.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(children) = node.get_mut("children") {
            remove(children);
        }
        for info in node.get_mut("info").into_iter().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
            method(info);
        }
    }
    nodes.sort_by(|one, other| path(one).cmp(path(other)));
}

fn path(node: &Value) -> &str {
    node.get("path").and_then(Value::as_str).unwrap_or_default()
}

fn method(info: &mut Value) {
    let Some(info) = info.as_object_mut() else { return };
    info.remove("description");
    if let Some(permissions) = info.get_mut("permissions").and_then(Value::as_object_mut) {
        permissions.remove("description");
    }
    for key in ["parameters", "returns"] {
        info.get_mut(key).into_iter().for_each(schema);
    }
}

fn schema(value: &mut Value) {
    let Some(object) = value.as_object_mut() else { return };
    // Before the prose goes: `format_description` is one of the things it derives from.
    if typetext::is_derivable(object) {
        object.remove("typetext");
    }
    for key in SCHEMA_PROSE {
        object.remove(key);
    }
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "format", Value::Object(named)) => named.values_mut().for_each(schema),
            ("items" | "additionalProperties" | "type-property-schema", value) => schema(value),
            ("oneOf" | "allOf", Value::Array(parts)) => parts.iter_mut().for_each(schema),
            _ => {}
        }
    }
}
