//! One list of every node: nodes that are down are named, and never hold up the others.

use lab::Fault;
use serde_json::json;
use tests::client::Refused;
use tests::site::{CLUSTER, Site};

#[tokio::test]
async fn rows_of_all_nodes_and_what_is_missing() {
    let site = Site::start().await;
    let ask = async || {
        site.client.tool("list_tasks", json!({"cluster": CLUSTER, "node": "*", "source": "all"})).await.unwrap()
    };
    site.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    let first = ask().await;
    assert_eq!(first["partial"], true);
    let missing = first["missing"].to_string();
    assert!(missing.contains("node pve2"), "{missing}");
    let rows = first["items"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["node"] != "pve2"), "{rows:?}");

    // The node is left alone now: it is not asked again, and the answer is the same.
    site.lab.clear_journal();
    let second = ask().await;
    assert_eq!((&second["partial"], &second["total"]), (&json!(true), &first["total"]));
    assert!(second["missing"].to_string().contains("node pve2"));
    assert!(site.sent().iter().all(|entry| !entry.raw_path.contains("/pve2/")), "{:?}", site.sent());
}

#[tokio::test]
async fn the_same_through_read() {
    let site = Site::start().await;
    let operation = "GET /nodes/{node}/storage";
    let answer = site.client.read(CLUSTER, operation, json!({"node": "*"})).await.unwrap();
    let rows = answer["items"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["node"] == "pve1"), "{rows:?}");
    let described = site.client.tool("describe_operation", json!({"operation": operation})).await.unwrap();
    assert!(described["every_node"].is_string(), "{described}");
}

/// PVE tells no count beside an empty list, so that one node without tasks must not hide what the others did not show.
#[tokio::test]
async fn rows_that_pve_keeps_back_are_counted_over_all_nodes() {
    let site = Site::start().await;
    let operation = "GET /nodes/{node}/tasks";
    let none = site.client.read(CLUSTER, operation, json!({"node": "pve2"})).await.unwrap();
    assert_eq!(none["items"], json!([]), "the lab's second node ran nothing yet");
    let first = site.client.read(CLUSTER, operation, json!({"node": "*", "limit": 1})).await.unwrap();
    assert_eq!((first["items"].as_array().unwrap().len(), &first["partial"]), (1, &json!(true)), "{first}");
    assert!(first["missing"].to_string().contains("showed 1"), "{first}");
}

#[tokio::test]
async fn only_lists_of_nodes_take_it() {
    let site = Site::start().await;
    let refused = |result: Result<serde_json::Value, Refused>| result.unwrap_err();
    let one = refused(site.client.read(CLUSTER, "GET /nodes/{node}/status", json!({"node": "*"})).await);
    assert_eq!(one.code, "invalid_arguments", "{one:?}");
    assert!(one.message.contains("for lists of what is on a node") && one.next.contains("GET /nodes"), "{one:?}");
    let wrong = json!({"node": "*", "source": "soon"});
    let wrong = refused(site.client.read(CLUSTER, "GET /nodes/{node}/tasks", wrong).await);
    assert_eq!(wrong.code, "invalid_arguments", "{wrong:?}");
    site.nothing_sent();
}

#[tokio::test]
async fn a_node_that_hangs_is_named_in_time() {
    let site = Site::start().await;
    site.lab.set_fault(Fault::HangingNode("pve2".to_owned())).await;
    let answer = site.client.read(CLUSTER, "GET /nodes/{node}/storage", json!({"node": "*"})).await.unwrap();
    let missing = answer["missing"].to_string();
    assert!(missing.contains("node pve2") && missing.contains("4 s"), "{answer}");
    let again = site.client.read(CLUSTER, "GET /nodes/{node}/storage", json!({"node": "*"})).await.unwrap();
    assert!(again["missing"].to_string().contains("earlier request"), "{again}");
}
