//! Answers and tool lists in the form in which they leave: serialised once.
//!
//! A result goes out twice, as text and as `structuredContent`. Both come from the same string, so the two cannot
//! differ, and nothing is serialised twice.

use bytes::Bytes;
use rmcp::model::Tool;
use serde::Serialize;
use serde_json::{Map, Value};

/// The answer of a tool: one JSON object, already serialised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    json: String,
}

/// Why something is not an answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Older clients accept nothing but an object.
    #[error("the answer of a tool has to be a JSON object")]
    NotAnObject,
    /// The value has no JSON form.
    #[error("the answer of a tool cannot be written as JSON: {0}")]
    Unserializable(#[from] serde_json::Error),
}

impl Answer {
    /// Serialises a value, which has to become an object.
    pub fn serialize(value: &impl Serialize) -> Result<Self, AnswerError> {
        Self::from_json(serde_json::to_string(value)?)
    }

    /// Takes JSON that the caller's own code has written; only the outermost brackets are looked at.
    pub fn from_json(json: String) -> Result<Self, AnswerError> {
        if json.starts_with('{') && json.ends_with('}') { Ok(Self { json }) } else { Err(AnswerError::NotAnObject) }
    }

    /// The JSON.
    pub fn json(&self) -> &str {
        &self.json
    }
}

impl From<&Map<String, Value>> for Answer {
    fn from(object: &Map<String, Value>) -> Self {
        // A map of JSON values always has a JSON form; should that ever fail, an empty object is still an answer.
        Self { json: serde_json::to_string(object).unwrap_or_else(|_| "{}".to_owned()) }
    }
}

/// A list of tools as a client gets it, in stable order.
#[derive(Debug)]
pub struct ToolList {
    tools: Vec<Tool>,
    json: Bytes,
}

impl ToolList {
    /// Keeps the order given.
    pub fn new(tools: Vec<Tool>) -> Result<Self, AnswerError> {
        let json = serde_json::to_vec(&tools)?.into();
        Ok(Self { tools, json })
    }

    /// Reads tool definitions as they stand in `generated/json/tools/`.
    pub fn from_definitions<'a>(definitions: impl IntoIterator<Item = &'a str>) -> Result<Self, AnswerError> {
        Self::new(definitions.into_iter().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// A list without tools.
    pub fn empty() -> Self {
        Self { tools: Vec::new(), json: Bytes::from_static(b"[]") }
    }

    /// The tools.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The JSON array of the tools.
    pub fn json(&self) -> &Bytes {
        &self.json
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

    use serde_json::json;

    use super::*;

    #[test]
    fn only_objects_are_answers() {
        assert_eq!(Answer::serialize(&json!({"a": 1})).unwrap().json(), r#"{"a":1}"#);
        for value in [json!([1]), json!("{}"), json!(null)] {
            assert!(matches!(Answer::serialize(&value), Err(AnswerError::NotAnObject)), "{value}");
        }
    }

    #[test]
    fn a_list_keeps_its_order() {
        let list = ToolList::from_definitions([
            r#"{"name":"zeta","inputSchema":{"type":"object"}}"#,
            r#"{"name":"alpha","inputSchema":{"type":"object"}}"#,
        ])
        .unwrap();
        assert_eq!(list.tools().iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["zeta", "alpha"]);
        assert!(list.json().starts_with(br#"[{"name":"zeta""#));
    }
}
