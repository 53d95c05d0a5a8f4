//! Routing and the checks of parameters.

use serde_json::json;

use crate::client::Bench;

#[tokio::test]
async fn unknown_paths_and_methods_are_not_implemented() {
    let bench = Bench::quick().await;
    let seen = bench.get("/nosuchpath").await;
    assert_eq!((seen.status, seen.reason.as_str()), (501, "Method 'GET /nosuchpath' not implemented"));
    assert_eq!(seen.json(), json!({"data": null, "message": "Method 'GET /nosuchpath' not implemented"}));
    assert_eq!(seen.connection.as_deref(), Some("close"));

    let seen = bench.send("POST", "/version", Some("")).await;
    assert_eq!(seen.reason, "Method 'POST /version' not implemented");
    let seen = bench.send("PATCH", "/version", None).await;
    assert_eq!((seen.status, seen.reason.as_str(), seen.text.as_str()), (501, "method 'PATCH' not available", ""));
    assert_eq!(seen.content_type, None);
}

#[tokio::test]
async fn a_path_is_decoded_before_it_is_routed() {
    let bench = Bench::quick().await;
    let seen = bench.get("/nodes/pve1/qemu/100%2Fconfig").await;
    assert_eq!(seen.status, 200);
    assert_eq!(seen.data()["name"], "web");
    let entry = bench.lab.journal().pop().unwrap();
    assert_eq!(entry.operation.as_deref(), Some("GET /nodes/{node}/qemu/{vmid}/config"));
    assert_eq!(entry.raw_path, "/api2/json/nodes/pve1/qemu/100%2Fconfig");
    assert_eq!(entry.decoded_path, "/nodes/pve1/qemu/100/config");
    assert_eq!(entry.params["vmid"], "100");

    assert_eq!(bench.get("//version/").await.status, 200);
    assert_eq!(bench.get("/nodes/pve1/qemu/1%2000/config").await.status, 501);
}

#[tokio::test]
async fn volumes_and_networks_may_hold_slashes() {
    let bench = Bench::quick().await;
    for path in [
        "/nodes/pve1/storage/local/content/local:iso/virtio-win-0.1.285.iso",
        "/nodes/pve1/storage/local/content/local%3Aiso%2Fvirtio-win-0.1.285.iso",
        "/nodes/pve1/qemu/100/firewall/ipset/trusted/192.0.2.0/25",
        "/nodes/pve1/qemu/100/firewall/ipset/trusted/192.0.2.0%2F25",
    ] {
        assert_eq!(bench.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn parameters_are_checked_in_pves_words() {
    let bench = Bench::quick().await;
    let seen = bench.get("/cluster/resources?type=bogus").await;
    assert_eq!((seen.status, seen.reason.as_str()), (400, "Parameter verification failed."));
    assert_eq!(seen.json()["message"], "Parameter verification failed.\n");
    assert_eq!(seen.error("type"), "value 'bogus' does not have a value in the enumeration 'vm, storage, node, sdn'");

    assert_eq!(
        bench.get("/cluster/resources?type=vm&type=node").await.error("type"),
        "type check ('string') failed - got ARRAY"
    );
    assert_eq!(
        bench.get("/nodes/pve1/tasks?limit=abc").await.error("limit"),
        "type check ('integer') failed - got 'abc'"
    );
    assert_eq!(
        bench.get("/nodes/pve1/qemu?full=true").await.error("full"),
        "type check ('boolean') failed - got 'true'"
    );
    assert_eq!(
        bench.get("/nodes/pve1/qemu/100/rrddata").await.error("timeframe"),
        "property is missing and it is not optional"
    );
    assert_eq!(
        bench.get("/version?x=1").await.error("x"),
        "property is not defined in schema and the schema does not allow additional properties"
    );
    assert_eq!(
        bench.get("/nodes/pve1/qemu/0100/config").await.error("vmid"),
        "invalid format - value does not look like a valid VM ID\n"
    );
    assert_eq!(
        bench.get("/nodes/pve1/qemu/100/snapshot/schn%C3%A4/config").await.error("snapname"),
        "invalid format - invalid configuration ID 'schnÃ¤'\n"
    );
    assert_eq!(bench.get("/version?_dc=1").await.status, 200);
}

#[tokio::test]
async fn query_and_body_are_merged_and_the_path_wins() {
    let bench = Bench::quick().await;
    let config = "/nodes/pve1/qemu/100/config";
    let seen = bench.send("PUT", config, Some("vmid=101&memory=512")).await;
    assert_eq!(seen.error("vmid"), "duplicate parameter (already defined in URI) with conflicting values!");
    let seen = bench.send("PUT", &format!("{config}?onboot=maybe"), Some("onboot=1")).await;
    assert_eq!(seen.error("onboot"), "type check ('boolean') failed - got 'maybe'");
    let seen = bench.get(&format!("{config}?vmid=100")).await;
    assert_eq!(seen.status, 200);
}

#[tokio::test]
async fn a_body_is_refused_where_pve_reads_none() {
    let bench = Bench::quick().await;
    for method in ["GET", "DELETE"] {
        let seen = bench.send(method, "/nodes/pve1/qemu/100/config", Some("a=1")).await;
        assert_eq!(seen.status, 501);
        assert_eq!(seen.text, format!("Unexpected content for method '{method}'"));
        assert_eq!(seen.content_type, None);
    }
}

#[tokio::test]
async fn writes_are_checked_before_they_are_done() {
    let bench = Bench::quick().await;
    let config = "/nodes/pve1/qemu/100/config";
    let seen = bench.send("PUT", config, Some("net32=virtio")).await;
    assert_eq!(seen.status, 400);
    let seen = bench.send("PUT", config, Some("memory=512")).await;
    assert_eq!((seen.status, seen.data()), (200, serde_json::Value::Null));
    assert_eq!(bench.get(config).await.data()["memory"], "512");
    let seen = bench.send("POST", "/nodes/pve1/ceph/init", Some("")).await;
    assert_eq!((seen.status, seen.reason.as_str()), (500, "the lab does not simulate this yet"));
}

#[tokio::test]
async fn what_does_not_exist_is_a_500_that_says_so() {
    let bench = Bench::quick().await;
    let reason = |path: &'static str| {
        let bench = &bench;
        async move {
            let seen = bench.get(path).await;
            assert_eq!(seen.status, 500, "{path}");
            seen.reason
        }
    };
    assert_eq!(
        reason("/nodes/pve1/lxc/999/config").await,
        "Configuration file 'nodes/pve1/lxc/999.conf' does not exist"
    );
    assert_eq!(
        reason("/nodes/pve1/lxc/100/config").await,
        "Configuration file 'nodes/pve1/lxc/100.conf' does not exist"
    );
    assert_eq!(reason("/nodes/pve1/storage/nope/content").await, "storage 'nope' does not exist");
    assert_eq!(reason("/pools/nope").await, "pool 'nope' does not exist");
    assert!(reason("/nodes/nope/status").await.starts_with("hostname lookup 'nope' failed"));
}
