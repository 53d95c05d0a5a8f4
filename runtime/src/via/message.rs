//! What has to be known of a message so that it can travel: what it is, and which headers it needs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value as Json, json};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Where a request of the revision without a handshake says which revision it is in.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// One message of the client.
#[derive(Debug)]
pub(super) struct Message {
    /// As the client wrote it.
    pub(super) line: String,
    json: Json,
    /// A request's id, as it is written.
    id: Option<String>,
}

impl Message {
    /// Reads a line; the error is the answer to it.
    pub(super) fn read(line: String) -> Result<Self, String> {
        let json: Json = match serde_json::from_str(&line) {
            Ok(json) => json,
            Err(error) => return Err(error_line(None, -32700, &format!("the line is not JSON: {error}"), None)),
        };
        if !json.is_object() {
            return Err(error_line(None, -32600, "the line is not one JSON-RPC 2.0 message", None));
        }
        // What has an id and no method is an answer, and is not answered.
        let id = json.get("method").and(json.get("id")).map(Json::to_string);
        Ok(Self { line, json, id })
    }

    fn method(&self) -> &str {
        self.json.get("method").and_then(Json::as_str).unwrap_or_default()
    }

    fn param(&self, name: &str) -> Option<&Json> {
        self.json.get("params")?.get(name)
    }

    /// The id of a request, as it is written; nothing else is answered.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Whether it begins a conversation of the older revisions.
    pub(super) fn is_initialize(&self) -> bool {
        self.method() == "initialize"
    }

    /// The request that it takes back.
    pub(super) fn cancels(&self) -> Option<String> {
        if self.method() == "notifications/cancelled" { self.param("requestId").map(Json::to_string) } else { None }
    }

    /// Whether a message of the server is the answer to it.
    pub(super) fn is_answered_by(&self, answer: &Json) -> bool {
        let answers = answer.get("result").is_some() || answer.get("error").is_some();
        answers && answer.get("id").map(Json::to_string).as_deref() == self.id()
    }

    /// The headers that say over HTTP what the message says. `agreed` is the revision of the conversation.
    pub(super) fn headers(&self, agreed: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut put = |name: HeaderName, value: &str| {
            // A value that still cannot travel is left out, and the server says that it misses it.
            if let Ok(value) = HeaderValue::from_str(&encoded(value)) {
                headers.insert(name, value);
            }
        };
        let stated = self.param("_meta").and_then(|meta| meta.get(VERSION_KEY)).and_then(Json::as_str);
        match (stated, agreed) {
            (Some(version), _) => {
                put(VERSION, version);
                put(METHOD, self.method());
                if let Some(name) = self.subject() {
                    put(NAME, name);
                }
            }
            // A handshake says itself which revision it wants.
            (None, Some(version)) if !self.is_initialize() => put(VERSION, version),
            (None, _) => {}
        }
        headers
    }

    /// What a request is about, for those methods that name it in a header.
    fn subject(&self) -> Option<&str> {
        let key = match self.method() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return None,
        };
        self.param(key)?.as_str()
    }

    /// An error in answer to it, as a line; nothing for what is not answered.
    pub(super) fn error(&self, message: &str, data: Option<Json>) -> Option<String> {
        self.id.as_ref()?;
        Some(error_line(self.json.get("id"), -32000, message, data))
    }
}

/// A text as a header's value: in base64, and marked so, where it could not travel as it is.
fn encoded(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if plain && text.trim() == text && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}

/// A JSON-RPC error, as a line.
pub(super) fn error_line(id: Option<&Json>, code: i32, message: &str, data: Option<Json>) -> String {
    let mut error = json!({"code": code, "message": message});
    if let (Some(data), Some(error)) = (data, error.as_object_mut()) {
        error.insert("data".to_owned(), data);
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}
