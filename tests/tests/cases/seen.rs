//! Themes C and A: what a token does not see is not called absent, and what it may do is for PVE to say.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::upstream::{Script, Upstream, data};

const PERMISSIONS: &str = "GET /access/permissions";

fn guest() -> Value {
    json!([{"type": "qemu", "id": "qemu/100", "vmid": 100, "node": "node-a", "status": "running", "name": "web"}])
}

/// C018: a token without privileges sees a cluster without guests, which is not one.
#[tokio::test]
async fn nothing_visible_is_not_nothing_there() {
    let upstream = Upstream::start(Script::new(&json!([])).on(PERMISSIONS, data(&json!({})))).await;
    let guests = upstream.client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!((&guests["total"], &guests["partial"]), (&json!(0), &json!(true)));
    let missing = guests["missing"].to_string();
    assert!(missing.contains("no privilege at all") && missing.contains("is not known"), "{missing}");
}

/// C028: a pool in which nothing is found, by a token that sees no pools.
#[tokio::test]
async fn a_pool_that_is_not_seen_is_not_an_empty_one() {
    let only = |privilege: &str| data(&json!({"/vms": {"VM.Audit": 1}, "/pool/team": {privilege: 1}}));
    let script = Script::new(&guest()).on("GET /pools", data(&json!([]))).on(PERMISSIONS, only("Pool.Allocate"));
    let upstream = Upstream::start(script).await;
    let pools = upstream.client.read("lab", "GET /pools", json!({})).await.unwrap();
    assert!(pools["partial"] == true && pools["missing"].to_string().contains("Pool.Audit"), "{pools}");
    let inside = upstream.client.tool("list_guests", json!({"pool": "team"})).await.unwrap();
    assert_eq!((&inside["total"], &inside["items"]), (&json!(0), &json!([])), "never all instead");
    assert!(inside["partial"] == true && inside["missing"].to_string().contains("Pool.Audit"), "{inside}");
    // All guests are seen, so no other filter leaves a doubt.
    let named = upstream.client.tool("list_guests", json!({"name": "db"})).await.unwrap();
    assert_eq!((&named["total"], named.get("partial")), (&json!(0), None), "{named}");
}

/// C018 again: what one filter does not find may be among the guests that are not seen.
#[tokio::test]
async fn a_filter_that_finds_nothing_says_how_much_it_saw() {
    let script = Script::new(&guest()).on(PERMISSIONS, data(&json!({"/pool/team": {"VM.Audit": 1}})));
    let upstream = Upstream::start(script).await;
    let named = upstream.client.tool("list_guests", json!({"name": "db"})).await.unwrap();
    assert!(named["missing"].to_string().contains("only on /pool/team"), "{named}");
    let found = upstream.client.tool("list_guests", json!({"name": "web"})).await.unwrap();
    assert_eq!((&found["total"], found.get("partial")), (&json!(1), None), "{found}");
}

/// C026: privileges below the root are privileges; nothing is refused because the root has none.
#[tokio::test]
async fn pve_decides_what_the_token_may_do() {
    let config = "GET /nodes/node-a/qemu/100/config";
    let script = Script::new(&guest())
        .on(PERMISSIONS, data(&json!({"/pool/team": {"VM.Allocate": 1}})))
        .on(config, data(&json!({"name": "web"})));
    let upstream = Upstream::start(script).await;
    let read = upstream.client.read("lab", "GET /nodes/{node}/qemu/{vmid}/config", json!({"vmid": 100})).await.unwrap();
    assert_eq!(read["item"]["name"], "web");
    assert_eq!(upstream.sent(), [config]);
}

/// C005: ids of tasks that have another form are shown as they are, and cost no other row.
#[tokio::test]
async fn tasks_with_odd_ids_stay_in_their_list() {
    let pbs = "UPID:pbs:00000267:0011E1D7:00000009:6A48CA08:acme-register:test1:root@pam:";
    let own = "UPID:node-a:0008366C:01665026:638071CE:qmclone:1003:svc@pve!tok:";
    let rows = json!([{"upid": pbs, "type": "acme-register"}, {"upid": own, "type": "qmclone"}, {"upid": "odd"}]);
    let upstream = Upstream::start(Script::new(&json!([])).on("GET /nodes/node-a/tasks", data(&rows))).await;
    let tasks = upstream.client.tool("list_tasks", json!({"cluster": "lab", "node": "node-a"})).await.unwrap();
    let ids: BTreeSet<&str> =
        tasks["items"].as_array().unwrap().iter().map(|row| row["upid"].as_str().unwrap()).collect();
    assert_eq!(ids, BTreeSet::from([pbs, own, "odd"]), "{tasks}");
}
