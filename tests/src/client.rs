//! A small MCP client over HTTP that speaks both eras of the protocol and hides nothing of an answer.

use serde_json::{Value, json};

/// Which revision of the protocol a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25.
    Older,
    /// 2026-07-28.
    Newer,
}

/// A call that was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The refusal's code; `rpc -32602` for an error of the protocol.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do; empty for an error of the protocol.
    pub next: String,
}

impl Refused {
    /// Reads a refusal as tools, batches and the HTTP side write it.
    pub fn read(json: &Value) -> Self {
        let text =
            |key: &str| json[key].as_str().unwrap_or_else(|| panic!("a refusal without `{key}`: {json}")).to_owned();
        Self { code: text("code"), message: text("message"), next: text("next") }
    }

    /// Everything that the caller can read.
    pub fn text(&self) -> String {
        format!("{} {} {}", self.code, self.message, self.next)
    }
}

/// A client of one endpoint with one token.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    path: String,
    token: String,
    era: Era,
}

impl Client {
    /// For the endpoint of this URL, which ends in `/mcp`.
    pub fn new(url: &str, token: &str) -> Self {
        let base = url.strip_suffix("/mcp").unwrap().to_owned();
        // Whoever talks to a program of its own has no server in its process that did this.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, base, path: "/mcp".to_owned(), token: token.to_owned(), era: Era::Older }
    }

    /// The same at another path.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    /// The same in another era.
    #[must_use]
    pub fn of(&self, era: Era) -> Self {
        Self { era, ..self.clone() }
    }

    /// The same with another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self.clone() }
    }

    /// A POST as MCP clients send it, for tests that change it.
    pub fn request(&self, method: &str, mut params: Value) -> reqwest::RequestBuilder {
        let mut request = self
            .http
            .post(format!("{}{}", self.base, self.path))
            .bearer_auth(&self.token)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        match self.era {
            Era::Older => request = request.header("mcp-protocol-version", "2025-11-25"),
            Era::Newer => {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                });
                request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
                if let Some(name) = params["name"].as_str() {
                    request = request.header("mcp-name", name);
                }
            }
        }
        request.body(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string())
    }

    /// Status and body as they came.
    pub async fn raw(&self, method: &str, params: Value) -> (u16, String) {
        let response = self.request(method, params).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// The tools that are listed.
    pub async fn tools(&self) -> Vec<Value> {
        let (status, body) = self.raw("tools/list", json!({})).await;
        assert_eq!(status, 200, "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        body["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools in {body}")).clone()
    }

    /// Calls a tool: its structured content, or why not.
    pub async fn tool(&self, name: &str, arguments: Value) -> Result<Value, Refused> {
        let (_, body) = self.raw("tools/call", json!({"name": name, "arguments": arguments})).await;
        outcome(&body)
    }

    /// Runs one operation through `read`: its item or items with what stands beside them, or why not.
    pub async fn read(&self, cluster: &str, operation: &str, arguments: Value) -> Result<Value, Refused> {
        let reads = json!([{"operation": operation, "arguments": arguments}]);
        let answer = self.tool("read", json!({"cluster": cluster, "reads": reads})).await?;
        let result = answer["results"][0].clone();
        if result["error"].is_null() { Ok(result) } else { Err(Refused::read(&result["error"])) }
    }
}

/// What the body of a `tools/call` says.
pub fn outcome(body: &str) -> Result<Value, Refused> {
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    if body.get("jsonrpc").is_none() {
        return Err(Refused::read(&body));
    }
    if let Some(error) = body.get("error") {
        let message = error["message"].as_str().unwrap().to_owned();
        return Err(Refused { code: format!("rpc {}", error["code"]), message, next: String::new() });
    }
    let result = &body["result"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    if result["isError"] == true {
        assert!(result.get("structuredContent").is_none(), "{body}");
        return Err(Refused::read(&text));
    }
    assert_eq!(text, result["structuredContent"], "text and structured content have to be the same");
    Ok(text)
}
