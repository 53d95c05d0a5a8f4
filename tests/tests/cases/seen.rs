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

/// C028 and C018 by a token that reaches some guests: a pool that PVE does not show selects no guest, never all of them,
/// and that is not called an empty pool. What exactly is not seen is for others to know.
#[tokio::test]
async fn a_selector_that_sees_nothing_selects_nothing() {
    let rights = json!({"/vms": {"VM.Audit": 1}, "/vms/100": {"VM.Console": 1}, "/pool/team": {"Pool.Allocate": 1}});
    for (rows, keys) in [
        (guest(), json!({"guests": ["pool:team"]})),
        (guest(), json!({"guests": ["tag:ci"]})),
        (json!([]), json!({"guests": ["vmid:100"]})),
    ] {
        let upstream = Upstream::granting(Script::new(&rows).on(PERMISSIONS, data(&rights)), &keys).await;
        let seen = upstream.client.tool("list_guests", json!({})).await.unwrap();
        assert_eq!((&seen["total"], &seen["items"], &seen["partial"]), (&json!(0), &json!([]), &json!(true)), "{seen}");
        let missing = seen["missing"].to_string();
        assert!(missing.contains("may not show everything") && !missing.contains("/vms"), "{missing}");
        let one = upstream.client.tool("get_guest", json!({"vmid": 100})).await.unwrap_err();
        assert_eq!(one.code, "not_found");
        assert!(one.message.contains("that this token reaches") && !one.text().contains("VM.Audit"), "{one:?}");
        assert!(upstream.sent().is_empty(), "{:?}", upstream.sent());
    }
}

/// C026 by such a token: what PVE lets the server read of the guest is for PVE to say.
#[tokio::test]
async fn pve_decides_also_about_the_guests_of_a_selector() {
    let config = "GET /nodes/node-a/qemu/100/config";
    let script = Script::new(&guest()).on(PERMISSIONS, data(&json!({}))).on(config, data(&json!({"name": "web"})));
    let upstream = Upstream::granting(script, &json!({"guests": ["type:qemu"]})).await;
    let read = upstream.client.read("lab", "GET /nodes/{node}/qemu/{vmid}/config", json!({"vmid": 100})).await.unwrap();
    assert_eq!(read["item"]["name"], "web");
    assert_eq!(upstream.sent(), [config]);
}

/// Entries that cannot be read may be guests of anybody: that there are some is said, and not how many.
#[tokio::test]
async fn what_cannot_be_read_is_not_counted_for_everybody() {
    let rows =
        json!([{"type": "qemu", "id": "qemu/x"}, {"type": "lxc"}, {"type": "qemu", "vmid": 100, "node": "node-a"}]);
    let upstream = Upstream::granting(Script::new(&rows), &json!({"guests": ["vmid:100"]})).await;
    let seen = upstream.client.tool("list_guests", json!({})).await.unwrap();
    let missing = seen["missing"].to_string();
    assert!(seen["total"] == 1 && missing.contains("some entries") && !missing.contains('2'), "{seen}");
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
