//! Tags and pools that protect or grant are neither given nor taken by a low call.

use super::{Rules, on};
use serde_json::json;

/// C088: who may edit tags may not lift a protection with them, nor widen a grant.
#[tokio::test]
async fn tags_that_mean_something_are_neither_added_nor_removed() {
    let rules = Rules::start().await;
    // 112 has `ci`, by which a token selects guests.
    rules.acts("wide", on::CONFIG, json!({"vmid": 112, "tags": "ci;web"})).await;
    rules.acts("wide", on::CONFIG, json!({"vmid": 112, "tags": "CI"})).await;
    rules
        .refused("wide", on::CONFIG, json!({"vmid": 112, "tags": "web"}), "needs_a_plan", "removes the tag `ci`")
        .await;
    // 122 has none.
    rules.acts("wide", on::CONFIG, json!({"vmid": 122, "tags": "web,nonprod"})).await;
    for tags in ["ci", "web;Ci", "web,CI", "web ci"] {
        rules.refused("wide", on::CONFIG, json!({"vmid": 122, "tags": tags}), "needs_a_plan", "adds the tag").await;
    }
    for tags in ["prod", "PROD;web"] {
        rules.refused("wide", on::CONFIG, json!({"vmid": 122, "tags": tags}), "needs_a_plan", "protects").await;
    }
    // Taking it away would end a protection; the guest is protected against its change anyway.
    rules.refused("wide", on::CONFIG_CT, json!({"vmid": 102, "tags": "web"}), "protected", "prod").await;
}

#[tokio::test]
async fn a_new_guest_has_no_tag_that_means_something() {
    let rules = Rules::start().await;
    let vm = |tags: &str| json!({"node": "pve1", "vmid": 600, "scsi0": "local-lvm:8", "tags": tags});
    rules.acts("narrow", on::CREATE, vm("web")).await;
    for tags in ["ci", "x;CI", "prod", "x,Prod"] {
        rules.refused("narrow", on::CREATE, vm(tags), "needs_a_plan", "tag").await;
    }
}

#[tokio::test]
async fn a_new_guest_goes_into_no_pool_by_which_others_reach_it() {
    let rules = Rules::start().await;
    let vm = |vmid: u32| json!({"node": "pve1", "vmid": vmid, "scsi0": "local-lvm:8", "pool": "lab"});
    rules.refused("narrow", on::CREATE, vm(600), "needs_a_plan", "pool").await;
    rules.refused("wide", on::CREATE, vm(600), "needs_a_plan", "pool").await;
    rules.acts("pooled", on::CREATE, vm(600)).await;
    rules.refused("narrow", on::CLONE, json!({"vmid": 122, "newid": 601, "pool": "lab"}), "needs_a_plan", "pool").await;
}
