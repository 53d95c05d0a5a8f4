//! What a server allows: many callers at once, and no agent that goes round in circles.

use lab::FrontOptions;
use pvegate::mcp::Limits;
use pvegate::runaway::Bounds;
use serde_json::{Value, json};
use tests::client::Refused;
use tests::site::{CLUSTER, Site, quick};

async fn site(limits: Limits) -> Site {
    Site::with(quick(), FrontOptions { limits, ..FrontOptions::default() }).await
}

#[tokio::test]
async fn thirty_two_callers_of_one_cluster_are_all_served() {
    let site = site(Limits::default()).await;
    let calls = (0..32).map(|at| {
        let client = site.client.clone();
        let vmid = 100 + at % 8;
        let read = json!({"operation": "GET /nodes/{node}/qemu/{vmid}/config", "arguments": {"vmid": vmid}});
        tokio::spawn(async move { client.tool("read", json!({"cluster": CLUSTER, "reads": [read]})).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
}

/// Three refusals of one call are enough.
fn three() -> Limits {
    Limits { runaway: Bounds { refusals: 3, ..Bounds::default() }, ..Limits::default() }
}

#[tokio::test]
async fn a_call_that_is_refused_again_and_again_is_not_made_any_more() {
    let site = site(three()).await;
    let call = || site.client.tool("get_guest", json!({"cluster": CLUSTER, "vmid": 4711}));
    for _ in 0..3 {
        assert_eq!(call().await.unwrap_err().code, "not_found");
    }
    site.lab.clear_journal();
    let refused = call().await.unwrap_err();
    assert_eq!(refused.code, "runaway");
    assert!(refused.message.contains("3 times") && refused.next.contains("Do not repeat"), "{refused:?}");
    assert!(site.lab.journal().is_empty(), "nothing is asked for it");
    // Another guest is another call.
    site.client.tool("get_guest", json!({"cluster": CLUSTER, "vmid": 100})).await.unwrap();
    let trail = std::fs::read_to_string(site.front.audit_file()).unwrap();
    let outcomes: Vec<Value> =
        trail.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["outcome"].clone()).collect();
    assert_eq!(outcomes, ["http", "not_found", "not_found", "not_found", "runaway", "ok"]);
}

#[tokio::test]
async fn reads_that_all_fail_count_as_one_refusal() {
    let site = site(three()).await;
    let reads = |second: u32| {
        let read =
            |vmid: u32| json!({"operation": "GET /nodes/{node}/qemu/{vmid}/config", "arguments": {"vmid": vmid}});
        json!({"cluster": CLUSTER, "reads": [read(4711), read(second)]})
    };
    let results = |answer: Result<Value, Refused>| answer.map(|answer| answer["results"].as_array().unwrap().len());
    for _ in 0..3 {
        assert_eq!(results(site.client.tool("read", reads(4712)).await), Ok(2));
    }
    assert_eq!(site.client.tool("read", reads(4712)).await.unwrap_err().code, "runaway");
    for _ in 0..5 {
        assert_eq!(results(site.client.tool("read", reads(100)).await), Ok(2), "one of them is answered");
    }
}
