//! Several clusters behind one server: each call goes to its own, and one that is down takes only itself away.

use std::time::Duration;

use lab::{Fault, Front, FrontOptions, Lab, Options};
use serde_json::{Value, json};
use tests::client::Client;
use tests::site::quick;

struct Two {
    north: Lab,
    south: Lab,
    client: Client,
    _front: Front,
}

async fn two() -> Two {
    let north = Lab::start(Options { cluster: "north".to_owned(), guests: 8, ..quick() }).await.unwrap();
    let south = Lab::start(Options { cluster: "south".to_owned(), guests: 5, ..quick() }).await.unwrap();
    let front = Front::start(&[("north", &north), ("south", &south)], FrontOptions::default()).await.unwrap();
    let client = Client::new(&front.url(), front.reader());
    Two { north, south, client, _front: front }
}

fn of<'a>(items: &'a Value, cluster: &str) -> Vec<&'a Value> {
    items.as_array().unwrap().iter().filter(|row| row["cluster"] == cluster).collect()
}

#[tokio::test]
async fn a_list_joins_all_and_a_name_picks_one() {
    let two = two().await;
    let all = two.client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!((of(&all["items"], "north").len(), of(&all["items"], "south").len()), (8, 5));
    assert_eq!((&all["total"], all.get("partial")), (&json!(13), None));
    let south = two.client.tool("list_guests", json!({"cluster": "south"})).await.unwrap();
    assert_eq!(south["items"].as_array().unwrap().len(), 5);
    assert!(of(&south["items"], "north").is_empty());
}

#[tokio::test]
async fn a_call_reaches_only_its_cluster() {
    let two = two().await;
    two.client.tool("get_nodes", json!({"cluster": "south"})).await.unwrap();
    two.client.tool("get_vm_config", json!({"cluster": "south", "vmid": 100})).await.unwrap();
    assert!(two.north.journal().is_empty(), "{:?}", two.north.journal());
    assert!(!two.south.journal().is_empty());
    for tool in ["get_nodes", "get_vm_config"] {
        let refused = two.client.tool(tool, json!({"vmid": 100})).await.unwrap_err();
        assert_eq!(refused.code, "invalid_arguments");
        assert!(refused.message.contains("cluster") && refused.next.contains("list_clusters"), "{refused:?}");
    }
}

#[tokio::test]
async fn one_that_is_down_is_said_and_the_other_answers() {
    let two = two().await;
    two.north.set_fault(Fault::ClusterDown).await;
    let all = two.client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!((of(&all["items"], "north").len(), of(&all["items"], "south").len()), (0, 5));
    assert_eq!(all["partial"], true);
    let missing = all["missing"].as_array().unwrap();
    assert!(missing.len() == 1 && missing[0].as_str().unwrap().contains("north"), "{missing:?}");

    let clusters = two.client.tool("list_clusters", json!({})).await.unwrap();
    assert_eq!(clusters["items"][0]["cluster"], "north");
    assert_eq!((&clusters["items"][0]["answers"], &clusters["items"][1]["answers"]), (&json!(false), &json!(true)));
    let refused = two.client.tool("list_guests", json!({"cluster": "north"})).await.unwrap_err();
    assert_eq!(refused.code, "unreachable");
    assert!(two.client.tool("get_vm_config", json!({"cluster": "south", "vmid": 100})).await.is_ok());
}

/// One that takes connections and says nothing is named after seconds; it does not take the others' time.
#[tokio::test]
async fn one_that_hangs_does_not_hold_up_the_other() {
    let two = two().await;
    two.north.set_fault(Fault::Slow(Duration::from_mins(5))).await;
    let all = two.client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!((of(&all["items"], "north").len(), of(&all["items"], "south").len()), (0, 5));
    let missing = all["missing"].to_string();
    assert!(all["partial"] == true && missing.contains("north did not answer within 4 s"), "{all}");
}
