//! Clusters that are not what they look like: nothing is written where it is not certain to what.

use lab::{Front, FrontOptions, Lab};
use serde_json::json;
use tests::client::Client;
use tests::site::{CLUSTER, low_token, quick};
use tests::upstream::{Script, Upstream};

use super::{START, guests, run};

/// Where a number is listed twice, neither is acted on.
#[tokio::test]
async fn a_guest_that_is_listed_twice() {
    let guest = |node: &str| json!({"id": "qemu/100", "type": "qemu", "vmid": 100, "node": node, "status": "stopped", "name": "a"});
    let script = Script::new(&json!([guest("node-a"), guest("node-b")]));
    let upstream = Upstream::granting(script, &guests(&["*"])).await;
    let refused = run(&upstream.client, START, &json!({"vmid": 100})).await.unwrap_err();
    assert!(refused.message.contains("100"), "{refused:?}");
    let sent = upstream.sent();
    assert!(sent.iter().all(|line| line.starts_with("GET ")), "{sent:?}");
}

/// A server that sees nothing says that nothing is there, and writes nothing.
#[tokio::test]
async fn a_token_that_sees_nothing() {
    let lab = Lab::start(quick()).await.unwrap();
    let (secret, entry) = low_token("operator");
    let options =
        FrontOptions { pve_token: Some(lab.blind_token()), more_tokens: vec![entry], ..FrontOptions::default() };
    let front = Front::start(&[(CLUSTER, &lab)], options).await.unwrap();
    let client = Client::new(&front.url(), &secret);
    let refused = run(&client, START, &json!({"vmid": 118})).await.unwrap_err();
    assert_eq!(refused.code, "not_found", "{refused:?}");
    let create = json!({"node": "pve1", "vmid": 112, "scsi0": "local-lvm:4"});
    let refused = run(&client, super::CREATE, &create).await.unwrap_err();
    assert!(!refused.message.is_empty(), "{refused:?}");
    let done = lab.journal().into_iter().find(|entry| entry.method != "GET" && entry.status == 200);
    assert!(done.is_none(), "{done:?}");
}

/// Two names of one cluster: reads go on, and nothing is written by either.
#[tokio::test]
async fn one_cluster_by_two_names() {
    let lab = Lab::start(quick()).await.unwrap();
    let (secret, entry) = low_token("operator");
    let options = FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() };
    let front = Front::start(&[("one", &lab), ("two", &lab)], options).await.unwrap();
    let client = Client::new(&front.url(), &secret);
    for name in ["one", "two"] {
        let seen = client.tool("get_guest", json!({"cluster": name, "vmid": 118})).await.unwrap();
        assert_eq!(seen["cluster"], name);
        let refused = client.tool("start_vm", json!({"cluster": name, "vmid": 118})).await.unwrap_err();
        assert_eq!(refused.code, "cluster_identity", "{refused:?}");
    }
    assert!(lab.journal().iter().all(|entry| entry.method == "GET"));
}
