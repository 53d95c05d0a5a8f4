//! What writes of all areas share: given values in the types that PVE stores, names to delete, digests, and entries that
//! are made, changed and removed.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;

/// What PVE says where a digest does not fit.
pub(super) const CHANGED: &str = "detected modified configuration - file changed by other user? Try again.";

/// Nothing to tell: what most writes answer.
pub(super) fn done() -> Outcome {
    Ok(Value::Null.into())
}

/// Puts what was being done in front of a refusal; a refusal of parameters then arrives as text.
pub(super) fn within(what: &str, refusal: Refusal) -> Refusal {
    let Refusal { status, message, errors } = refusal;
    let plain = status == 500;
    let prefix = if what.is_empty() { String::new() } else { format!("{what}: ") };
    let mut message = if plain { format!("{prefix}{message}") } else { format!("{prefix}{status} {message}") };
    for (name, error) in errors {
        // Writing to a text does not fail.
        let _written = write!(message, "\n{name}: {error}");
    }
    Refusal::failed(message)
}

impl Call<'_> {
    /// The given parameters that become part of an entry, in the types of the schema.
    pub(super) fn fields(&self, without: &[&str]) -> Map<String, Value> {
        self.params
            .iter()
            .filter(|(name, _)| {
                !self.operation.in_path(name)
                    && !matches!(name.as_str(), "digest" | "delete" | "lock-token" | "node")
                    && !without.contains(&name.as_str())
            })
            .map(|(name, value)| {
                let schema = self.operation.parameters.get(name);
                (name.clone(), schema.map_or_else(|| value.clone(), |schema| typed(schema, value)))
            })
            .collect()
    }

    /// The names that `delete` lists, each once.
    pub(super) fn deletions(&self) -> Vec<String> {
        let mut names: Vec<String> = match self.params.get("delete") {
            Some(Value::String(text)) => split(text).map(str::to_owned).collect(),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        names.dedup();
        names
    }

    /// Refuses where a digest is given that is not the present one.
    pub(super) fn unchanged(&self, present: &str) -> Result<(), Refusal> {
        match self.given("digest") {
            Some(given) if given != present => Err(Refusal::failed(CHANGED)),
            _ => Ok(()),
        }
    }

    /// Removes what `delete` names from an entry; required and unknown names are refused.
    pub(super) fn delete_from(&self, entry: &mut Map<String, Value>, required: &[&str]) -> Result<(), Refusal> {
        for name in self.deletions() {
            if !self.operation.parameters.contains_key(&name) {
                return Err(Refusal::failed(format!("no such option '{name}'")));
            }
            if required.contains(&name.as_str()) {
                return Err(Refusal::failed(format!("unable to delete required option '{name}'")));
            }
            if self.params.contains_key(&name) {
                return Err(Refusal::failed(format!("cannot set and delete property '{name}' at the same time!")));
            }
            entry.remove(&name);
        }
        Ok(())
    }
}

/// The elements of a list in text.
pub(super) fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ';', ' ', '\0', '\t', '\n']).filter(|part| !part.is_empty())
}

/// A given value as PVE stores and shows it.
fn typed(schema: &Value, value: &Value) -> Value {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match (kind, value) {
        ("integer" | "boolean", Value::String(text)) => {
            text.parse::<i64>().map_or_else(|_| value.clone(), |number| json!(number))
        }
        ("number", Value::String(text)) => text.parse::<f64>().map_or_else(|_| value.clone(), |number| json!(number)),
        ("array", Value::Array(items)) => {
            let item = schema.get("items");
            items.iter().map(|value| item.map_or_else(|| value.clone(), |item| typed(item, value))).collect()
        }
        (_, Value::String(text)) if text.contains('\0') => json!(split(text).collect::<Vec<_>>().join(",")),
        _ => value.clone(),
    }
}

/// A property string as an object, its values as text.
pub(super) fn properties(text: &str) -> Map<String, Value> {
    text.split(',')
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), json!(value)))
        .collect()
}
