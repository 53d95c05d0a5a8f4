//! Theme Q and mass changes: nothing that the caller says takes the place of a person's approval.

use pvegate_generated::catalog;
use pvegate_generated::tools::TOOLS;
use serde_json::{Value, json};
use tests::site::{CLUSTER, Site};

const REMOVE: &str = "DELETE /nodes/{node}/qemu/{vmid}";

/// C143: no tool has an argument by which a model could approve its own call.
#[test]
fn no_tool_takes_a_confirmation() {
    let mut seen = 0;
    for tool in &TOOLS {
        let definition: Value = serde_json::from_str(tool.definition).unwrap();
        for name in definition["inputSchema"]["properties"].as_object().unwrap().keys() {
            seen += 1;
            let plain = name.to_lowercase();
            let approves = ["confirm", "approve", "i_am_sure", "yes", "force", "dry_run", "unsafe", "override"]
                .iter()
                .any(|word| plain.starts_with(word));
            // PVE's own parameters are none of ours.
            let of_pve = catalog::OPERATIONS.iter().any(|operation| operation.parameter(name).is_some());
            assert!(!approves || of_pve, "{}: {name}", tool.name);
        }
    }
    assert!(seen > 100, "{seen}");
}

/// C056, C142, C143: who asks for a removal gets none, whatever is added to the call.
#[tokio::test]
async fn insisting_removes_nothing() {
    let site = Site::low().await;
    for more in [json!({}), json!({"confirm": true}), json!({"approved": true}), json!({"force": true})] {
        let mut asked = json!({"cluster": CLUSTER, "operation": REMOVE, "arguments": {"vmid": 118}});
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = site.client.tool("run_operation", asked).await.unwrap_err();
        assert!(["needs_a_plan", "invalid_arguments"].contains(&refused.code.as_str()), "{more}: {refused:?}");
        let mut arguments = json!({"vmid": 118});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let asked = json!({"cluster": CLUSTER, "operation": REMOVE, "arguments": arguments});
        let refused = site.client.tool("run_operation", asked).await.unwrap_err();
        assert_eq!(refused.code, "needs_a_plan", "{more}: {refused:?}");
    }
    assert!(site.writes().is_empty());
}

/// C057: what acts on many guests at once does not act at once.
#[tokio::test]
async fn many_at_once_need_a_plan() {
    let site = Site::low().await;
    for operation in [
        "POST /nodes/{node}/startall",
        "POST /nodes/{node}/stopall",
        "POST /nodes/{node}/suspendall",
        "POST /nodes/{node}/migrateall",
    ] {
        let asked = json!({"cluster": CLUSTER, "operation": operation, "arguments": {"node": "pve1", "vms": "118"}});
        let refused = site.client.tool("run_operation", asked).await.unwrap_err();
        assert!(["needs_a_plan", "not_offered"].contains(&refused.code.as_str()), "{operation}: {refused:?}");
    }
    assert!(site.writes().is_empty());
}
