//! Protected guests: what interrupts them is refused, by each rule, and what does not is not.

use super::{Rules, on};
use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::terms::{Role, Tier};
use serde_json::json;

/// C053, C086: a listed number, a protected tag, PVE's own flag, and templates.
#[tokio::test]
async fn each_rule_protects_against_what_interrupts() {
    let rules = Rules::start().await;
    for (vmid, rule) in [(116, "protected_vmids"), (109, "tag `prod`"), (107, "`protection`"), (103, "template")] {
        let refused = rules.refused("wide", on::STOP, json!({"vmid": vmid}), "protected", rule).await;
        assert!(refused.next.contains("waiver"), "{}", refused.next);
        rules.refused("wide", on::CONFIG, json!({"vmid": vmid, "name": "x"}), "protected", rule).await;
        rules.acts("wide", on::START, json!({"vmid": vmid})).await;
    }
    rules.acts("wide", on::STOP, json!({"vmid": 122})).await;
    for skip in ["skiplock", "migratedfrom"] {
        rules.refused("wide", on::STOP, json!({"vmid": 122, skip: "1"}), "needs_a_plan", skip).await;
    }
}

#[tokio::test]
async fn arguments_that_interrupt_count_as_well() {
    let rules = Rules::start().await;
    rules.acts("wide", on::SNAPSHOT, json!({"vmid": 107, "snapname": "s1"})).await;
    rules
        .refused(
            "wide",
            on::SNAPSHOT,
            json!({"vmid": 107, "snapname": "s1", "vmstate": true}),
            "protected",
            "protection",
        )
        .await;
    rules.acts("wide", on::BACKUP, json!({"vmid": "107", "storage": "local"})).await;
    for mode in ["stop", "suspend"] {
        rules
            .refused(
                "wide",
                on::BACKUP,
                json!({"vmid": "107", "storage": "local", "mode": mode}),
                "protected",
                "protection",
            )
            .await;
    }
}

/// Every low operation on a guest that interrupts, so that a new one is not forgotten.
#[tokio::test]
async fn every_operation_that_interrupts_is_refused() {
    let rules = Rules::start().await;
    let mut asked = 0;
    for operation in OPERATIONS.iter().filter(|one| one.tier == Tier::Low && one.interrupts) {
        if !operation.params.iter().any(|parameter| parameter.role == Role::GuestTarget) {
            continue;
        }
        // A VM and a container with the tag.
        let vmid = if operation.path.contains("/lxc/") { 102 } else { 109 };
        let mut arguments = json!({"vmid": vmid});
        if operation.low_args.contains(&"description") {
            arguments["description"] = json!("x");
        }
        rules.refused("wide", operation.name, arguments, "protected", "prod").await;
        asked += 1;
    }
    assert!(asked >= 10, "{asked}");
}

/// Who does not reach a guest does not learn that it is protected.
#[tokio::test]
async fn protection_is_told_only_to_who_reaches_the_guest() {
    let rules = Rules::start().await;
    let refused = rules.refused("narrow", on::STOP, json!({"vmid": 116}), "not_found", "116").await;
    let absent = rules.refused("narrow", on::STOP, json!({"vmid": 9999}), "not_found", "9999").await;
    assert_eq!(refused.message.replace("116", "N"), absent.message.replace("9999", "N"));
    assert_eq!(refused.next, absent.next);
}

#[tokio::test]
async fn a_waiver_lifts_protection_of_one_guest_for_what_it_names() {
    let rules = Rules::waived().await;
    let write = rules.acts("wide", on::STOP, json!({"vmid": 116})).await;
    let told = write.warnings.join("\n");
    assert!(told.contains("PROTECTED") && told.contains("moving house") && told.contains("2099"), "{told}");
    // Not for what it does not name, not for another guest, not for another planner, and not when it is over.
    rules
        .refused(
            "wide",
            "POST /nodes/{node}/qemu/{vmid}/status/reset",
            json!({"vmid": 116}),
            "protected",
            "protected_vmids",
        )
        .await;
    rules.refused("wide", on::STOP, json!({"vmid": 128}), "protected", "`protection`").await;
    rules.refused("wide", on::STOP, json!({"vmid": 107}), "protected", "`protection`").await;
    rules.refused("wide", on::STOP, json!({"vmid": 109}), "protected", "tag `prod`").await;
}

#[tokio::test]
async fn in_a_lab_protection_only_warns() {
    let rules = Rules::with(&json!({"protected_vmids": [116], "lab": true})).await;
    let write = rules.acts("wide", on::STOP, json!({"vmid": 116})).await;
    let told = write.warnings.join("\n");
    assert!(told.contains("PROTECTED") && told.contains("is a lab"), "{told}");
    assert!(rules.acts("wide", on::STOP, json!({"vmid": 122})).await.warnings.is_empty());
}

/// A configuration that cannot be read may say anything.
#[tokio::test]
async fn what_cannot_be_read_is_protected() {
    let rules = Rules::start().await;
    rules.lab.set_fault("html-instead-of-json".parse::<lab::Fault>().unwrap()).await;
    assert!(rules.low("wide", on::STOP, json!({"vmid": 122})).await.is_err());
}
