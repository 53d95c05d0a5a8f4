//! How big results get past the SDK without being built, cloned and serialised as trees.
//!
//! The SDK has no way to hand over JSON that is ready. So over HTTP a handler leaves its result in a [`Slot`] and
//! answers with an empty list in its place; when the SDK has written the response, the empty list is replaced.
//! The envelope (id, result type, cache hints, what older clients must not see) stays the SDK's.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::Answer;

/// What a handler left to be put into its response.
#[derive(Debug)]
pub(super) enum Insert {
    /// The answer of a tool, as text and as structured content.
    Answer(Answer),
    /// The JSON array of a list of tools.
    Tools(Bytes),
}

/// Where a handler leaves it: one for each request.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Option<Insert>>);

impl Slot {
    /// Leaves an insert for the response.
    pub(super) fn put(&self, insert: Insert) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(insert);
    }

    /// Takes what was left, if anything.
    pub(super) fn take(&self) -> Option<Insert> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Insert {
    /// The empty list that stands in for it. A client's text cannot imitate it: inside a JSON string its quotes
    /// would be escaped, and the last occurrence is the result's.
    const fn placeholder(&self) -> &'static [u8] {
        match self {
            Self::Answer(_) => br#""content":[]"#,
            Self::Tools(_) => br#""tools":[]"#,
        }
    }

    /// The response with the insert in place, or `None` if the response has no place for it.
    pub(super) fn into_response(self, response: &[u8]) -> Option<Bytes> {
        let placeholder = self.placeholder();
        let start = response.windows(placeholder.len()).rposition(|window| window == placeholder)?;
        let (head, rest) = response.split_at_checked(start)?;
        let tail = rest.get(placeholder.len()..)?;
        let mut out;
        match self {
            Self::Answer(answer) => {
                let json = answer.json();
                // The text is the JSON again with its quotes escaped: about a quarter more.
                out = Vec::with_capacity(response.len() + json.len() * 2 + json.len() / 3 + 64);
                out.extend_from_slice(head);
                out.extend_from_slice(br#""content":[{"type":"text","text":"#);
                serde_json::to_writer(&mut out, json).ok()?;
                out.extend_from_slice(br#"}],"structuredContent":"#);
                out.extend_from_slice(json.as_bytes());
            }
            Self::Tools(json) => {
                out = Vec::with_capacity(response.len() + json.len());
                out.extend_from_slice(head);
                out.extend_from_slice(br#""tools":"#);
                out.extend_from_slice(&json);
            }
        }
        out.extend_from_slice(tail);
        Some(out.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails may panic")]

    use rmcp::model::{CallToolResult, ServerJsonRpcMessage, ServerResult};
    use serde_json::{Value, json};

    use super::*;

    fn empty_response(id: &str) -> Vec<u8> {
        let mut result = CallToolResult::default();
        result.is_error = Some(false);
        let id = rmcp::model::RequestId::String(id.into());
        serde_json::to_vec(&ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id)).unwrap()
    }

    #[test]
    fn text_and_structured_content_say_the_same() {
        let payload = json!({"name": "a \"quoted\" \\ name\n", "n": [1, 2.5, null], "ü": "\u{1}"});
        let insert = Insert::Answer(Answer::serialize(&payload).unwrap());
        let response: Value = serde_json::from_slice(&insert.into_response(&empty_response("1")).unwrap()).unwrap();
        assert_eq!(response["result"]["structuredContent"], payload);
        let text = response["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), payload);
        assert_eq!(response["result"]["isError"], json!(false));
    }

    #[test]
    fn an_id_that_looks_like_the_placeholder_stays_an_id() {
        for id in [r#""content":[]"#, r#"","content":[],""#, r#"\"content":[]"#, "content"] {
            let insert = Insert::Answer(Answer::serialize(&json!({"a": 1})).unwrap());
            let response: Value = serde_json::from_slice(&insert.into_response(&empty_response(id)).unwrap()).unwrap();
            assert_eq!(response["id"], json!(id));
            assert_eq!(response["result"]["structuredContent"], json!({"a": 1}));
        }
    }

    #[test]
    fn a_response_without_a_place_is_left_alone() {
        let insert = Insert::Tools(Bytes::from_static(b"[]"));
        assert!(insert.into_response(br#"{"jsonrpc":"2.0","id":1,"error":{}}"#).is_none());
    }
}
