//! How a pinned file is laid out: keys sorted, one parameter per line, so that an upgrade is a
//! readable diff.
//!
//! An object or list that holds no other object stands on one line, anything else over several.

use serde_json::{Map, Value};

/// The file's text.
pub(super) fn write(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out.push('\n');
    out
}

fn holds_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(elements) => elements.iter().any(holds_object),
        _ => false,
    }
}

fn sorted(object: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(object) if object.values().any(holds_object) => {
            lines('{', '}', sorted(object), indent, out, |(key, value), out| {
                quoted(key, out);
                out.push_str(": ");
                block(value, indent + 2, out);
            });
        }
        Value::Array(elements) if holds_object(value) => {
            lines('[', ']', elements, indent, out, |element, out| block(element, indent + 2, out));
        }
        flat => line(flat, out),
    }
}

fn lines<T>(
    open: char,
    close: char,
    entries: impl IntoIterator<Item = T>,
    indent: usize,
    out: &mut String,
    entry: impl Fn(T, &mut String),
) {
    out.push(open);
    for (index, item) in entries.into_iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n(' ', indent + 2));
        entry(item, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push(close);
}

fn line(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            inline('{', '}', sorted(object), out, |(key, value), out| {
                quoted(key, out);
                out.push_str(": ");
                line(value, out);
            });
        }
        Value::Array(elements) => inline('[', ']', elements, out, line),
        single => out.push_str(&single.to_string()),
    }
}

fn inline<T>(
    open: char,
    close: char,
    entries: impl IntoIterator<Item = T>,
    out: &mut String,
    entry: impl Fn(T, &mut String),
) {
    out.push(open);
    for (index, item) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        entry(item, out);
    }
    out.push(close);
}

fn quoted(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}
