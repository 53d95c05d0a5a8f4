//! JSON Schema as clients cope with it: no references, no unions, no formats of our own.

use serde_json::{Map, Value, json};

use crate::model::{Answer, Field, Kind, Model};
use crate::terms;

/// The schema of an argument.
pub fn input(kind: &Kind, words: Option<&str>, model: &Model) -> Value {
    let mut schema = of(kind, model);
    if let (Some(schema), Some(words)) = (schema.as_object_mut(), words) {
        schema.insert("description".to_owned(), json!(words));
    }
    schema
}

fn of(kind: &Kind, model: &Model) -> Value {
    let mut schema = Map::new();
    let mut put = |key: &str, value: Value| {
        schema.insert(key.to_owned(), value);
    };
    match kind {
        Kind::Boolean => put("type", json!("boolean")),
        Kind::Integer(least, most) => {
            put("type", json!("integer"));
            least.map(|least| put("minimum", json!(least)));
            most.map(|most| put("maximum", json!(most)));
        }
        Kind::Number(least, most) => {
            put("type", json!("number"));
            least.map(|least| put("minimum", json!(least)));
            most.map(|most| put("maximum", json!(most)));
        }
        Kind::Text { value, pattern, min_length, max_length } => {
            if *value == terms::Value::Vmid {
                put("type", json!("integer"));
                put("minimum", json!(100));
                put("maximum", json!(999_999_999));
            } else {
                put("type", json!("string"));
                min_length.map(|least| put("minLength", json!(least)));
                max_length.map(|most| put("maxLength", json!(most)));
                if let Some(pattern) =
                    pattern.and_then(|at| model.patterns.get(at)).and_then(|pattern| portable(pattern))
                {
                    put("pattern", json!(pattern));
                }
            }
        }
        Kind::Choice(choices) => {
            put("type", json!("string"));
            put("enum", json!(choices));
        }
        Kind::List(element) | Kind::Array(element) => {
            put("type", json!("array"));
            put("items", of(element, model));
        }
        Kind::Property(_) => put("type", json!("string")),
    }
    Value::Object(schema)
}

/// The pattern in the dialect of JSON Schema, or nothing where that dialect cannot say it.
fn portable(pattern: &str) -> Option<String> {
    let inline_flags = pattern.contains("(?i") || pattern.contains("(?x") || pattern.contains("(?s");
    (!inline_flags).then(|| pattern.to_owned())
}

/// The schema of what a tool answers, where the apidoc describes it.
pub fn output(answer: &Answer) -> Option<Value> {
    match answer {
        Answer::Object(fields) if !fields.is_empty() => Some(object(fields)),
        Answer::List(fields) if !fields.is_empty() => Some(page(&object(fields))),
        _ => None,
    }
}

/// A page of guests as all list tools answer it.
pub fn guest_page() -> Value {
    let text = || json!({"type": "string"});
    let number = || json!({"type": "number"});
    page(&json!({
        "type": "object",
        "properties": {
            "cluster": text(), "vmid": {"type": "integer"}, "name": text(), "type": text(), "status": text(), "node": text(), "tags": {"type": "array", "items": {"type": "string"}}, "pool": text(),
            "template": {"type": "boolean"}, "cpu": number(), "maxcpu": number(), "mem": number(), "maxmem": number(), "disk": number(), "maxdisk": number(), "uptime": number(),
        },
    }))
}

/// What a tool that changes something answers.
pub fn change() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "change_id": text(), "state": text(), "outcome": text(), "cluster": text(), "operation": text(), "vmid": {"type": "integer"}, "node": text(), "upid": text(), "says": text(), "next": text(),
            "pending": {"type": "object"},
            "partial": {"type": "boolean"},
            "missing": {"type": "array", "items": text()},
        },
        "required": ["change_id", "state", "outcome", "cluster", "operation"],
    })
}

fn page(element: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": element},
            "total": {"type": "integer"},
            "next_cursor": {"type": "string"},
            "partial": {"type": "boolean"},
            "missing": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["items", "total"],
    })
}

/// Nothing is required: PVE leaves out what does not apply, and `fields` leaves out what is not wanted.
fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .filter(|field| field.kind != "any")
        .map(|field| (field.name.clone(), json!({"type": field.kind})))
        .collect();
    json!({"type": "object", "properties": properties})
}
