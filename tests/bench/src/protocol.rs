//! A surface that answers at once with a prepared page, to see what the protocol alone costs.

use std::sync::Arc;

use anyhow::Result;
use pvegate::mcp::{
    Answer, Authenticator, HttpConfig, Identity, Limits, Running, Surface, ToolCall, ToolList, ToolResult, View,
    serve_http,
};
use serde_json::{Value, json};

/// The token that is accepted.
pub(crate) const TOKEN: &str = "bench";

struct Anyone;

impl Identity for Anyone {
    fn id(&self) -> &'static str {
        "bench"
    }
}

impl Authenticator for Anyone {
    type Principal = Self;

    fn authenticate(&self, token: &str) -> Result<Arc<Self>, String> {
        (token == TOKEN).then(|| Arc::new(Self)).ok_or_else(|| "unknown token".to_owned())
    }
}

struct Prepared {
    tools: Arc<ToolList>,
    answer: Answer,
}

impl Surface for Prepared {
    type Principal = Anyone;

    fn tools(&self, _principal: &Anyone, _view: &View) -> Arc<ToolList> {
        Arc::clone(&self.tools)
    }

    fn has_toolset(&self, _name: &str) -> bool {
        false
    }

    async fn call(&self, _call: ToolCall<Anyone>) -> ToolResult {
        ToolResult::Ok(self.answer.clone())
    }
}

/// Limits that a measurement does not run into.
pub(crate) fn unlimited() -> Limits {
    Limits { requests_per_second: 0, in_flight: 0, in_flight_per_token: 0, ..Limits::default() }
}

/// A page of 40 guests, in the form of `list_guests`.
fn page() -> Value {
    let guest = |vmid: u32| {
        json!({
            "cluster": "lab", "vmid": vmid, "name": format!("web-{vmid}"), "type": "qemu", "status": "running", "node": "pve1",
            "tags": ["ci", "web"], "pool": "lab", "template": false, "protected": false, "cpu": 0.041, "mem": 2_147_483_648_u64 + u64::from(vmid),
        })
    };
    json!({"items": (100..140).map(guest).collect::<Vec<_>>(), "total": 40, "partial": false})
}

/// Starts it.
pub(crate) async fn start() -> Result<Running> {
    let definition = r#"{"name":"list_guests","inputSchema":{"type":"object"}}"#;
    let surface =
        Prepared { tools: Arc::new(ToolList::from_definitions([definition])?), answer: Answer::serialize(&page())? };
    let config = HttpConfig { limits: unlimited(), ..HttpConfig::default() };
    Ok(serve_http(config, Arc::new(surface), Arc::new(Anyone)).await?)
}
