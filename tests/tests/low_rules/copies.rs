//! Copies of guests: they reach nothing that the caller's grant does not.

use super::{Rules, on};
use serde_json::json;

#[tokio::test]
async fn source_and_copy_are_both_granted() {
    let rules = Rules::start().await;
    rules.acts("narrow", on::CLONE, json!({"vmid": 122, "newid": 601})).await;
    rules
        .acts(
            "narrow",
            on::CLONE,
            json!({"vmid": 122, "newid": 601, "full": true, "storage": "local-lvm", "target": "pve1"}),
        )
        .await;
    rules.refused("narrow", on::CLONE, json!({"vmid": 122, "newid": 700}), "not_found", "700").await;
    rules.refused("narrow", on::CLONE, json!({"vmid": 115, "newid": 601}), "not_found", "115").await;
    rules
        .refused(
            "narrow",
            on::CLONE,
            json!({"vmid": 122, "newid": 601, "storage": "nas", "full": true}),
            "not_found",
            "nas",
        )
        .await;
    rules.refused("narrow", on::CLONE, json!({"vmid": 122, "newid": 601, "target": "pve3"}), "not_found", "pve3").await;
    rules.refused("narrow", on::CLONE, json!({"vmid": 122, "newid": 110}), "exists", "exists").await;
}

#[tokio::test]
async fn a_copy_has_no_line_to_the_node_and_no_label() {
    let rules = Rules::start().await;
    rules.refused("narrow", on::CLONE, json!({"vmid": 100, "newid": 601}), "needs_a_plan", "`args`").await;
    // Raw lines of a container.
    rules.refused("wide", on::CLONE_CT, json!({"vmid": 117, "newid": 601}), "needs_a_plan", "`lxc`").await;
    // The copy would have the tag `ci`.
    rules.refused("narrow", on::CLONE, json!({"vmid": 112, "newid": 601}), "needs_a_plan", "tag `ci`").await;
    // And of a protected tag.
    rules.refused("narrow", on::CLONE, json!({"vmid": 103, "newid": 601}), "needs_a_plan", "tag `prod`").await;
}

/// The configuration of the snapshot is what is copied.
#[tokio::test]
async fn a_copy_of_a_snapshot_is_judged_by_the_snapshot() {
    let rules = Rules::start().await;
    rules
        .refused("narrow", on::CLONE, json!({"vmid": 122, "newid": 601, "snapname": "nosuch"}), "not_found", "nosuch")
        .await;
    rules
        .refused(
            "narrow",
            on::CLONE,
            json!({"vmid": 100, "newid": 601, "snapname": "before-upgrade"}),
            "needs_a_plan",
            "100",
        )
        .await;
}
