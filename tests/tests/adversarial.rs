//! Attempts to make the server write what was not granted, through the running server: whatever is tried, the cluster's
//! journal holds the request that was authorized, or none.

mod escapes;
mod lists;
mod paths;
mod sight;
mod together;

use serde_json::{Value, json};
use tests::client::{Client, Refused};
use tests::site::CLUSTER;

const BACKUP: &str = "POST /nodes/{node}/vzdump";
const CLONE: &str = "POST /nodes/{node}/qemu/{vmid}/clone";
const CONFIG: &str = "PUT /nodes/{node}/qemu/{vmid}/config";
const CREATE: &str = "POST /nodes/{node}/qemu";
const CREATE_CT: &str = "POST /nodes/{node}/lxc";
const RESIZE: &str = "PUT /nodes/{node}/qemu/{vmid}/resize";
const START: &str = "POST /nodes/{node}/qemu/{vmid}/status/start";
const STOP_TASK: &str = "DELETE /nodes/{node}/tasks/{upid}";
const VOLUME: &str = "PUT /nodes/{node}/storage/{storage}/content/{volume}";

/// The keys of a token that may change these guests, and nothing else that is named.
fn guests(selectors: &[&str]) -> Value {
    let toolsets: std::collections::BTreeSet<&str> =
        pvegate_generated::tools::TOOLS.iter().flat_map(pvegate_generated::model::Tool::toolsets).collect();
    json!({"tools": toolsets, "tiers": ["read", "low"], "guests": selectors})
}

/// The same with more keys.
fn with(mut keys: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    keys.as_object_mut().unwrap().extend(more);
    keys
}

async fn run(client: &Client, operation: &str, arguments: &Value) -> Result<Value, Refused> {
    client.tool("run_operation", json!({"cluster": CLUSTER, "operation": operation, "arguments": arguments})).await
}
