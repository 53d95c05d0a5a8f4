//! Low operations through the running server: what is sent, what is recorded, and what the caller is told.

pub(crate) mod each;
mod guests;
mod keys;
mod lost;
mod trail;

use serde_json::{Value, json};
use tests::client::Refused;
use tests::site::{CLUSTER, Site};

const CONFIG: &str = "PUT /nodes/{node}/qemu/{vmid}/config";
const SNAPSHOT: &str = "POST /nodes/{node}/qemu/{vmid}/snapshot";
const START: &str = "POST /nodes/{node}/qemu/{vmid}/status/start";

/// Runs an operation by its name.
async fn run(site: &Site, operation: &str, arguments: Value) -> Result<Value, Refused> {
    site.client.tool("run_operation", json!({"cluster": CLUSTER, "operation": operation, "arguments": arguments})).await
}

/// Waits until something is so: it happens in another task of this process.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    for _ in 0..6000 {
        if so().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{what}: not so after two minutes");
}
