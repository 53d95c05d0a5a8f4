//! The MCP side on its own: a made-up surface behind the real transports.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails may panic")]

mod direct;
mod limits;
mod progress;
mod protocol;
mod refusals;
mod stdio;
mod via;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    Answer, Authenticator, HttpConfig, Identity, Limits, Refusal, Running, Surface, ToolCall, ToolList, ToolResult,
    View, serve_http,
};

pub(super) struct Person(&'static str);

impl Identity for Person {
    fn id(&self) -> &str {
        self.0
    }
}

/// Tools that show what reached them.
pub(super) struct Mirror {
    gateway: Arc<ToolList>,
    snapshots: Arc<ToolList>,
    /// Calls of `wait` that were dropped before their end.
    dropped: AtomicUsize,
}

fn definition(name: &str) -> String {
    json!({
        "name": name,
        "description": "A tool of this test.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": false},
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
    })
    .to_string()
}

fn list(names: &[&str]) -> Arc<ToolList> {
    let definitions: Vec<_> = names.iter().map(|name| definition(name)).collect();
    Arc::new(ToolList::from_definitions(definitions.iter().map(String::as_str)).unwrap())
}

impl Mirror {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            gateway: list(&["show", "refuse", "wait", "big"]),
            snapshots: list(&["list_snapshots"]),
            dropped: AtomicUsize::new(0),
        })
    }
}

struct CountDrop<'a>(&'a AtomicUsize);

impl Drop for CountDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Surface for Mirror {
    type Principal = Person;

    fn tools(&self, _principal: &Person, view: &View) -> Arc<ToolList> {
        Arc::clone(if matches!(view, View::Toolset(_)) { &self.snapshots } else { &self.gateway })
    }

    fn has_toolset(&self, name: &str) -> bool {
        name == "snapshots"
    }

    fn tells_progress(&self, name: &str) -> bool {
        name == "wait"
    }

    async fn call(&self, mut call: ToolCall<Person>) -> ToolResult {
        match call.name.as_ref() {
            "show" => {
                let view = format!("{:?}", call.view);
                let shown =
                    json!({"who": call.principal.0, "view": view, "arguments": call.arguments, "id": call.request_id});
                ToolResult::Ok(Answer::serialize(&shown).unwrap())
            }
            "refuse" => ToolResult::Refused(Refusal::new("not_granted", "no grant for guest 100", "Ask for one.")),
            "wait" => {
                let _count = CountDrop(&self.dropped);
                if let Some(progress) = &mut call.progress {
                    progress.tell(Some(10.0), "begun").await;
                    progress.tell(None, "at it").await;
                }
                tokio::time::sleep(Duration::from_millis(call.arguments["ms"].as_u64().unwrap())).await;
                ToolResult::Ok(Answer::serialize(&json!({"waited": true})).unwrap())
            }
            "big" => ToolResult::Ok(Answer::serialize(&json!({"text": "x".repeat(2 << 20)})).unwrap()),
            name => ToolResult::UnknownTool(format!("there is no tool `{name}` here")),
        }
    }
}

pub(super) struct Book;

impl Authenticator for Book {
    type Principal = Person;

    fn authenticate(&self, token: &str) -> Result<Arc<Person>, String> {
        match token {
            "token-of-ann" => Ok(Arc::new(Person("ann"))),
            "token-of-bob" => Ok(Arc::new(Person("bob"))),
            _ => Err("the bearer token is not known to this server".to_owned()),
        }
    }
}

/// A running server and a client for it.
pub(super) struct Site {
    pub(super) server: Running,
    pub(super) surface: Arc<Mirror>,
    pub(super) client: reqwest::Client,
}

impl Site {
    pub(super) async fn start() -> Self {
        Self::with_limits(Limits::default()).await
    }

    pub(super) async fn with_limits(limits: Limits) -> Self {
        // Any provider will do: nothing here speaks TLS, but the client wants one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let surface = Mirror::new();
        let config =
            HttpConfig { allowed_origins: vec!["https://console.example".to_owned()], limits, ..HttpConfig::default() };
        let server = serve_http(config, Arc::clone(&surface), Arc::new(Book)).await.unwrap();
        Self { server, surface, client: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    /// A POST as MCP clients send it, with ann's token.
    pub(super) fn post(&self, path: &str) -> reqwest::RequestBuilder {
        self.bare_post(path).bearer_auth("token-of-ann")
    }

    pub(super) fn bare_post(&self, path: &str) -> reqwest::RequestBuilder {
        self.client
            .post(self.url(path))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// One request of the 2026-07-28 revision: status and body.
    pub(super) async fn modern(&self, path: &str, method: &str, mut params: Value) -> (u16, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        let mut request = self.post(path).header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            request = request.header("mcp-name", name);
        }
        send(request.body(json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string())).await
    }

    /// One request of an older revision: status and body.
    pub(super) async fn legacy(&self, version: &str, method: &str, params: Value) -> (u16, Value) {
        let request = self.post("/mcp").header("mcp-protocol-version", version);
        send(request.body(json!({"jsonrpc": "2.0", "id": "seven", "method": method, "params": params}).to_string()))
            .await
    }
}

pub(super) async fn send(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body = response.text().await.unwrap();
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}
