//! Lists hold what is granted, and count nothing else.

use std::collections::BTreeSet;

use lab::{Fault, Front, FrontOptions, Lab};
use serde_json::{Value, json};
use tests::client::Client;
use tests::site::{CLUSTER, Site, quick};
use tests::token::Token;

fn vmids(answer: &Value) -> Vec<u64> {
    answer["items"].as_array().unwrap().iter().map(|row| row["vmid"].as_u64().unwrap()).collect()
}

fn texts(answer: &Value, key: &str) -> BTreeSet<String> {
    answer["items"].as_array().unwrap().iter().filter_map(|row| row[key].as_str()).map(str::to_owned).collect()
}

/// Every selector against the list of somebody who sees all guests.
#[tokio::test]
async fn guests_are_those_that_a_selector_names() {
    let grants = [
        (
            json!(["vmid:103-107"]),
            Box::new(|row: &Value| (103..=107).contains(&row["vmid"].as_u64().unwrap())) as Box<dyn Fn(&Value) -> bool>,
        ),
        (json!(["tag:CI"]), Box::new(|row| row["tags"].as_array().unwrap().contains(&json!("ci")))),
        (json!(["tag:prod"]), Box::new(|row| row["tags"].to_string().to_lowercase().contains("\"prod\""))),
        (json!(["pool:lab"]), Box::new(|row| row["pool"] == "lab")),
        (json!(["node:pve2"]), Box::new(|row| row["node"] == "pve2")),
        (json!(["type:lxc"]), Box::new(|row| row["type"] == "lxc")),
        (json!(["vmid:100", "pool:lab"]), Box::new(|row| row["vmid"] == 100 || row["pool"] == "lab")),
    ];
    let tokens: Vec<Token> = grants
        .iter()
        .enumerate()
        .map(|(at, (guests, _))| Token::new(&format!("token-{at}"), &json!({"guests": guests})))
        .collect();
    let more_tokens = tokens.iter().map(|token| token.entry.clone()).collect();
    let site = Site::with(quick(), FrontOptions { more_tokens, ..FrontOptions::default() }).await;
    let all = site.client.tool("list_guests", json!({})).await.unwrap();
    for ((guests, selects), token) in grants.iter().zip(&tokens) {
        let client = site.client.with_token(&token.secret);
        let expected: Vec<Value> =
            all["items"].as_array().unwrap().iter().filter(|row| selects(row)).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < 40, "{guests} decides something");
        let seen = client.tool("list_guests", json!({})).await.unwrap();
        assert_eq!((&seen["items"], &seen["total"]), (&json!(expected), &json!(expected.len())), "{guests}");
        // In pages, by another list, and by a filter.
        let (mut joined, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let mut asked = json!({"limit": 2});
            if !cursor.is_null() {
                asked["cursor"] = cursor;
            }
            let page = client.tool("list_guests", asked).await.unwrap();
            assert_eq!(page["total"], seen["total"]);
            joined.extend(page["items"].as_array().unwrap().clone());
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(joined, expected, "{guests}");
        let vms = client.tool("get_vms", json!({"cluster": CLUSTER})).await.unwrap();
        let of_kind: Vec<u64> =
            expected.iter().filter(|row| row["type"] == "qemu").map(|row| row["vmid"].as_u64().unwrap()).collect();
        assert_eq!((vmids(&vms), &vms["total"]), (of_kind.clone(), &json!(of_kind.len())), "{guests}");
    }
    site.nothing_sent();
}

#[tokio::test]
async fn no_grant_means_no_guest() {
    let (site, [client]) = Site::granting([json!({})]).await;
    let seen = client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!((&seen["total"], &seen["items"], seen.get("partial")), (&json!(0), &json!([]), None), "{seen}");
    for operation in ["GET /nodes", "GET /storage", "GET /pools", "GET /cluster/resources", "GET /cluster/status"] {
        let seen = client.read(CLUSTER, operation, json!({})).await.unwrap();
        assert_eq!((&seen["total"], &seen["items"]), (&json!(0), &json!([])), "{operation}: {seen}");
    }
    assert!(!site.lab.journal().is_empty());
}

#[tokio::test]
async fn rows_of_every_kind_are_those_that_are_granted() {
    let keys = json!({"guests": ["vmid:100-101"], "nodes": ["pve1"], "storages": ["local"], "pools": ["ci"]});
    let (_site, [client]) = Site::granting([keys]).await;
    let read = async |operation: &str, arguments: Value| client.read(CLUSTER, operation, arguments).await.unwrap();
    let all = read("GET /cluster/resources", json!({})).await;
    // Zones of the node belong to the node.
    let (zones, others): (Vec<Value>, Vec<Value>) =
        all["items"].as_array().unwrap().iter().cloned().partition(|row| row["type"] == "network");
    assert!(zones.iter().all(|row| row["node"] == "pve1"), "{zones:?}");
    assert_eq!(
        texts(&json!({"items": others}), "id"),
        ["node/pve1", "qemu/100", "qemu/101", "storage/pve1/local", "/pool/ci"].map(str::to_owned).into(),
        "{all}"
    );
    assert_eq!(all["total"], zones.len() + 5);
    assert_eq!(texts(&read("GET /nodes", json!({})).await, "node"), ["pve1".to_owned()].into());
    assert_eq!(texts(&read("GET /storage", json!({})).await, "storage"), ["local".to_owned()].into());
    assert_eq!(texts(&read("GET /pools", json!({})).await, "poolid"), ["ci".to_owned()].into());
    assert_eq!(vmids(&read("GET /nodes/{node}/qemu", json!({"node": "pve1"})).await), [100, 101]);
    let storages = read("GET /nodes/{node}/storage", json!({"node": "pve1"})).await;
    assert_eq!((texts(&storages, "storage"), &storages["total"]), (["local".to_owned()].into(), &json!(1)));
    // The row of the cluster itself tells how many nodes there are.
    assert_eq!(texts(&read("GET /cluster/status", json!({})).await, "name"), ["pve1".to_owned()].into());
}

/// Volumes and backups belong to their guest, also where it is gone; an ISO belongs to its storage.
#[tokio::test]
async fn the_content_of_a_storage_is_shown_by_guest() {
    let storages = json!({"nodes": ["pve1"], "storages": ["local", "local-lvm", "nas", "pbs"]});
    let mut guest = storages.clone();
    guest["guests"] = json!(["vmid:100"]);
    let (site, [hundred, none]) = Site::granting([guest, storages]).await;
    let content = async |client: &Client, storage: &str| {
        let arguments = json!({"node": "pve1", "storage": storage});
        client.read(CLUSTER, "GET /nodes/{node}/storage/{storage}/content", arguments).await.unwrap()
    };
    for storage in ["local", "local-lvm", "nas", "pbs"] {
        let all = content(&site.client, storage).await;
        let of = |covered: &dyn Fn(u64) -> bool| -> Vec<Value> {
            let rows = all["items"].as_array().unwrap().iter();
            rows.filter(|row| row["vmid"].as_u64().is_none_or(covered)).cloned().collect()
        };
        for (client, expected) in [(&hundred, of(&|vmid| vmid == 100)), (&none, of(&|_| false))] {
            let seen = content(client, storage).await;
            assert_eq!((&seen["items"], &seen["total"]), (&json!(expected), &json!(expected.len())), "{storage}");
        }
    }
    let named =
        hundred.tool("list_backups", json!({"cluster": CLUSTER, "node": "pve1", "storage": "nas"})).await.unwrap();
    assert!(!vmids(&named).is_empty() && vmids(&named).iter().all(|vmid| *vmid == 100), "{named}");
    let isos = none.tool("list_isos", json!({"cluster": CLUSTER, "node": "pve1", "storage": "local"})).await.unwrap();
    assert_eq!(isos["total"], 2, "{isos}");
}

#[tokio::test]
async fn every_node_means_every_granted_node() {
    let keys = json!({"guests": ["*"], "nodes": ["pve1", "pve3"], "storages": ["*"]});
    let (site, [client, nowhere]) = Site::granting([keys, json!({"guests": ["*"], "storages": ["*"]})]).await;
    site.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    site.lab.clear_journal();
    let seen = client.read(CLUSTER, "GET /nodes/{node}/storage", json!({"node": "*"})).await.unwrap();
    assert_eq!(texts(&seen, "node"), ["pve1", "pve3"].map(str::to_owned).into(), "{seen}");
    assert!(seen.get("partial").is_none() && !seen.to_string().contains("pve2"), "{seen}");
    assert!(site.sent().iter().all(|entry| !entry.raw_path.contains("/pve2/")), "{:?}", site.sent());
    let refused = nowhere.read(CLUSTER, "GET /nodes/{node}/storage", json!({"node": "*"})).await.unwrap_err();
    assert_eq!(refused.code, "not_found", "{refused:?}");
}

/// A node that is down is told of by those who reach it, or a guest on it.
#[tokio::test]
async fn what_is_down_is_told_to_whom_it_concerns() {
    let grants = [
        json!({"guests": ["vmid:100"]}),
        json!({"guests": ["vmid:100-110"]}),
        json!({"guests": ["vmid:100"], "nodes": ["pve2"]}),
    ];
    let (site, [other, guest, node]) = Site::granting(grants).await;
    site.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    for (client, told) in [(&other, false), (&guest, true), (&node, true), (&site.client, true)] {
        let seen = client.tool("list_guests", json!({})).await.unwrap();
        assert_eq!(seen.to_string().contains("node pve2 of cluster lab is offline"), told, "{seen}");
    }
}

/// C044: a number means a guest of one cluster, and a grant of it reaches no other cluster's.
#[tokio::test]
async fn the_same_number_elsewhere_is_another_guest() {
    let (one, other) = (Lab::start(quick()).await.unwrap(), Lab::start(quick()).await.unwrap());
    let token = Token::new("narrow", &json!({"clusters": ["one"], "guests": ["vmid:100"]}));
    let options = FrontOptions { more_tokens: vec![token.entry.clone()], ..FrontOptions::default() };
    let front = Front::start(&[("one", &one), ("other", &other)], options).await.unwrap();
    let client = Client::new(&front.url(), &token.secret);
    let seen = client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!((vmids(&seen), &seen["items"][0]["cluster"]), (vec![100], &json!("one")));
    assert_eq!(client.tool("get_guest", json!({"cluster": "one", "vmid": 100})).await.unwrap()["cluster"], "one");
    let refused = client.tool("get_guest", json!({"cluster": "other", "vmid": 100})).await.unwrap_err();
    assert_eq!(refused.code, "no_such_cluster");
    assert!(other.journal().is_empty(), "{:?}", other.journal());
    // Who reaches both has to say which.
    let wide = Client::new(&front.url(), front.reader());
    let refused = wide.tool("get_guest", json!({"vmid": 100})).await.unwrap_err();
    assert_eq!(refused.code, "invalid_arguments", "{refused:?}");
    assert!(refused.message.contains("`cluster` is missing"), "{refused:?}");
}
