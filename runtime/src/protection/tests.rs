//! Each rule that protects a guest, and what is protected because nothing is known of it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::snapshot::{Resolution, Snapshot};
use crate::values::Vmid;

fn protection() -> Protection {
    Protection { vmids: [Vmid::parse("100").unwrap()].into(), tags: ["prod".to_owned(), "no touch".to_owned()].into() }
}

async fn row(item: Json) -> GuestRow {
    let list = Arc::new(json!([item]));
    let fetch = move || -> std::pin::Pin<Box<dyn Future<Output = _> + Send>> {
        let list = Arc::clone(&list);
        Box::pin(async move { Ok(Json::clone(&list)) })
    };
    let inventory = Snapshot::with("lab", protection(), Duration::from_secs(10), fetch).get().await.unwrap();
    match inventory.resolve(inventory.guests()[0].vmid) {
        Resolution::Found(row) => row.clone(),
        other => panic!("{other:?}"),
    }
}

async fn found(vmid: u32, listed_tags: &str, config: &Json) -> Vec<Rule> {
    let row = row(json!({"type": "qemu", "vmid": vmid, "node": "pve1", "tags": listed_tags})).await;
    rules(&protection(), &row, Ok(config))
}

#[tokio::test]
async fn every_rule_protects_by_itself() {
    assert_eq!(found(101, "", &json!({})).await, []);
    assert_eq!(found(100, "", &json!({})).await, [Rule::Listed]);
    assert_eq!(found(101, "", &json!({"protection": 1})).await, [Rule::Flag]);
    assert_eq!(found(101, "", &json!({"protection": "1"})).await, [Rule::Flag]);
    assert_eq!(found(101, "", &json!({"protection": 0})).await, []);
    assert_eq!(found(101, "", &json!({"protection": "perhaps"})).await, [Rule::Flag]);
    assert_eq!(found(101, "", &json!({"template": 1})).await, [Rule::Template]);
}

#[tokio::test]
async fn tags_protect_without_case_and_whatever_stands_between_them() {
    let tag = |name: &str| vec![Rule::Tag(name.to_owned())];
    for text in ["prod", "PROD", "web;prod", "web,Prod", "web prod", "a;b,prod c"] {
        assert_eq!(found(101, text, &json!({"tags": text})).await, tag("prod"), "{text}");
    }
    assert_eq!(found(101, "", &json!({"tags": "x;No Touch"})).await, tag("no touch"));
    for text in ["production", "nonprod", "pro;d", ""] {
        assert_eq!(found(101, text, &json!({"tags": text})).await, [], "{text}");
    }
}

#[tokio::test]
async fn what_cannot_be_told_protects() {
    let plain = row(json!({"type": "lxc", "vmid": 101, "node": "pve1"})).await;
    let unclear = |rules: Vec<Rule>| assert!(matches!(rules.as_slice(), [Rule::Unclear(_)]), "{rules:?}");
    unclear(rules(&protection(), &plain, Err("the node does not answer".to_owned())));
    unclear(rules(&protection(), &plain, Ok(&json!(null))));
    unclear(rules(&protection(), &plain, Ok(&json!({"tags": ["prod"]}))));
    // The tag was taken off between the list and the look at the configuration, or the other way round.
    unclear(found(101, "prod", &json!({"tags": "web"})).await);
}
