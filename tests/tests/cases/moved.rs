//! Theme D: where guests and nodes are, and which of them answer.

use serde_json::json;
use tests::upstream::{Script, Upstream, answer, data};

const CONFIG: &str = "GET /nodes/{node}/qemu/{vmid}/config";

fn guest_on(node: &str) -> serde_json::Value {
    json!([{"type": "qemu", "id": "qemu/100", "vmid": 100, "node": node, "status": "running", "name": "web"}])
}

fn gone() -> Vec<u8> {
    answer("500 Configuration file 'nodes/node-a/qemu-server/100.conf' does not exist", r#"{"data":null}"#)
}

/// C029: a guest that moved since the list was read is found again, once.
#[tokio::test]
async fn a_guest_that_moved_is_found_again() {
    let script = Script::new(&guest_on("node-a"))
        .on("GET /nodes/node-a/qemu/100/config", gone())
        .on("GET /nodes/node-b/qemu/100/config", data(&json!({"name": "web", "digest": "x"})));
    let upstream = Upstream::start(script).await;
    upstream.client.tool("list_guests", json!({})).await.unwrap();
    upstream.change("GET /cluster/resources", data(&guest_on("node-b")));
    let config = upstream.client.read("lab", CONFIG, json!({"vmid": 100})).await.unwrap();
    assert_eq!(config["item"]["name"], "web");
    assert_eq!(upstream.sent(), ["GET /nodes/node-a/qemu/100/config", "GET /nodes/node-b/qemu/100/config"]);
}

/// C029: one that the list still has there is not looked for again and again, and is not called deleted.
#[tokio::test]
async fn a_guest_between_two_nodes_is_not_called_deleted() {
    let upstream =
        Upstream::start(Script::new(&guest_on("node-a")).on("GET /nodes/node-a/qemu/100/config", gone())).await;
    let refused = upstream.client.read("lab", CONFIG, json!({"vmid": 100})).await.unwrap_err();
    assert_eq!(refused.code, "not_found");
    assert!(!refused.text().contains("deleted"), "{refused:?}");
    assert_eq!(upstream.sent().len(), 1);
}

/// C014: a node under another name than the cluster's own is refused before anything is sent; and where PVE itself
/// cannot trust its other node, that is said, without advice to check less.
#[tokio::test]
async fn names_of_nodes_are_exact_and_the_inner_hop_is_explained() {
    let status = "596 tls_process_server_certificate: certificate verify failed";
    let upstream = Upstream::start(Script::new(&json!([])).on("GET /nodes/node-b/status", answer(status, ""))).await;
    let operation = "GET /nodes/{node}/status";
    for name in ["node-a.example", "NODE-A", "localhost"] {
        let refused = upstream.client.read("lab", operation, json!({"node": name})).await.unwrap_err();
        assert!(["not_found", "invalid_arguments"].contains(&refused.code.as_str()), "{refused:?}");
    }
    assert!(upstream.sent().is_empty());
    let refused = upstream.client.read("lab", operation, json!({"node": "node-b"})).await.unwrap_err();
    assert_eq!(refused.code, "node_down");
    assert!(refused.message.contains("node-b") && refused.message.contains("between the nodes"), "{refused:?}");
    let text = refused.text().to_lowercase();
    assert!(!text.contains("disable") && !text.contains("insecure"), "{text}");
}

/// C036, C037: one node alone is not a cluster without quorum, and one without quorum says so.
#[tokio::test]
async fn quorum_is_what_the_cluster_row_says() {
    let alone = json!([{"type": "node", "id": "node/node-a", "name": "node-a", "local": 1, "online": 1}]);
    let upstream = Upstream::start(Script::new(&json!([])).on("GET /cluster/status", data(&alone))).await;
    let status = upstream.client.tool("get_cluster_status", json!({"cluster": "lab"})).await.unwrap();
    assert_eq!(status["total"], 1);
    assert!(!status.to_string().contains("quorate"), "{status}");
    let split = json!([{"type": "node", "name": "node-a", "online": 1, "local": 1}, {"type": "cluster", "name": "c", "quorate": 0, "nodes": 3}]);
    upstream.change("GET /cluster/status", data(&split));
    let status = upstream.client.tool("get_cluster_status", json!({"cluster": "lab"})).await.unwrap();
    let row = status["items"].as_array().unwrap().iter().find(|row| row["type"] == "cluster").unwrap();
    assert!(row["quorate"] == 0 || row["quorate"] == false, "{row}");
}
