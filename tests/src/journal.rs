//! What the lab's journal tells: which requests belong to which call, and which to none.

use lab::Entry;
use pvegate_generated::internal;
use pvegate_generated::model::Kind;
use serde_json::Value;

use crate::call::{Call, by_vmid};

/// Whether the server makes this request for itself, whoever calls.
pub fn is_internal(entry: &Entry) -> bool {
    let own = [internal::VERSION, internal::NODES, internal::RESOURCES, internal::PERMISSIONS];
    entry.params.is_empty() && own.iter().any(|operation| entry.operation.as_deref() == Some(operation.name))
}

/// Requests that none of these calls stands for: another operation, or other values.
pub fn strays<'a>(journal: &'a [Entry], calls: &[Call]) -> Vec<&'a Entry> {
    journal.iter().filter(|entry| !is_internal(entry) && !calls.iter().any(|call| is_of(entry, call))).collect()
}

/// Whether a request is exactly what this call asks for.
pub fn is_of(entry: &Entry, call: &Call) -> bool {
    let operation = call.operation;
    let given = |name: &str| call.arguments.get(name);
    let number =
        |name: &str| operation.parameter(name).is_some_and(|parameter| matches!(parameter.kind, Kind::Integer(..)));
    let asked = call.arguments.iter().all(|(name, value)| {
        entry.params.get(name).is_some_and(|sent| same(sent, value) || number(name) && same_number(sent, value))
    });
    let known = entry.params.iter().all(|(name, sent)| {
        given(name).is_some()
            || name == "node" && by_vmid(operation)
            || operation.fixed.iter().any(|(fixed, value)| fixed == name && same(sent, &Value::from(*value)))
    });
    entry.method == operation.verb.as_str() && entry.operation.as_deref() == Some(operation.name) && asked && known
}

/// Whether a number that arrived is the one that was given, which may have been written otherwise.
fn same_number(sent: &Value, given: &Value) -> bool {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<i64>().ok());
    number(sent).is_some_and(|sent| number(given) == Some(sent))
}

/// Whether a value that arrived is the one that was given.
fn same(sent: &Value, given: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => u8::from(*flag).to_string(),
        other => other.to_string(),
    };
    // PVE takes each byte of a path for one Latin-1 character, and so does the lab.
    let bytes =
        |text: &str| text.chars().map(|character| u8::try_from(u32::from(character)).ok()).collect::<Option<Vec<u8>>>();
    let (sent, given) = (text(sent), text(given));
    sent == given || bytes(&sent).is_some_and(|sent| sent == given.as_bytes())
}
