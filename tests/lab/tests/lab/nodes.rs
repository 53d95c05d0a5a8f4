//! Several nodes: each listens, passes on what belongs to another, and may be gone.

use std::time::Duration;

use lab::{Fault, Options};

use crate::client::{Bench, quick};

fn dead(node: &str) -> Fault {
    Fault::DeadNode(node.to_owned())
}

#[tokio::test]
async fn each_node_listens_with_a_certificate_of_its_own() {
    let bench = Bench::quick().await;
    let endpoints = bench.lab.endpoints().to_vec();
    let names: Vec<_> = endpoints.iter().map(|endpoint| endpoint.node.as_str()).collect();
    assert_eq!((names, &endpoints[0].url), (vec!["pve1", "pve2", "pve3"], &bench.lab.url()));
    let rows = bench.get("/nodes").await.rows();
    for (at, endpoint) in endpoints.iter().enumerate() {
        let status = bench.ask(at + 1, "/cluster/status").await.unwrap().rows();
        let local: Vec<_> = status.iter().filter(|row| row["local"] == 1).map(|row| &row["name"]).collect();
        assert_eq!(local, [endpoint.node.as_str()]);
        let row = rows.iter().find(|row| row["node"] == endpoint.node.as_str()).unwrap();
        assert_eq!(
            (&row["ssl_fingerprint"], &row["status"]),
            (&endpoint.fingerprint.as_str().into(), &"online".into())
        );
        let by_name = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(bench.lab.ca_pem().as_bytes()).unwrap()])
            .resolve(&endpoint.node, endpoint.address)
            .no_proxy()
            .build()
            .unwrap();
        let url = format!("https://{}:{}/api2/json/version", endpoint.node, endpoint.address.port());
        assert_eq!(by_name.get(url).send().await.unwrap().status(), 401, "the certificate holds the node's name");
        assert_eq!(bench.lab.journal().pop().unwrap().node, endpoint.node);
    }
    let prints: std::collections::BTreeSet<_> = endpoints.iter().map(|endpoint| &endpoint.fingerprint).collect();
    assert_eq!(prints.len(), 3);
}

#[tokio::test]
async fn any_node_answers_for_any_other() {
    let bench = Bench::quick().await;
    for node in 1..=3 {
        for row in bench.get("/cluster/resources?type=vm").await.rows() {
            let path =
                format!("/nodes/{}/{}/status/current", row["node"].as_str().unwrap(), row["id"].as_str().unwrap());
            let seen = bench.ask(node, &path).await.unwrap();
            assert_eq!((seen.status, &seen.data()["vmid"]), (200, &row["vmid"]), "{path} through pve{node}: {seen:?}");
        }
        let here = bench.ask(node, "/nodes/localhost/tasks?limit=1").await.unwrap();
        assert_eq!(here.status, 200);
    }
    let config = bench.ask(3, "/nodes/pve1/qemu/100/config").await.unwrap();
    assert_eq!(config.data()["name"], "web");
}

#[tokio::test]
async fn what_is_on_a_node_stays_there() {
    let bench = Bench::quick().await;
    let guests = bench.get("/nodes/pve2/qemu").await.rows();
    let stopped = guests.iter().find(|row| row["status"] == "stopped").unwrap()["vmid"].clone();
    let path = format!("/nodes/pve2/qemu/{stopped}");
    let upid = bench.send("POST", &format!("{path}/status/start"), Some("")).await.data();
    assert!(upid.as_str().unwrap().starts_with("UPID:pve2:"), "{upid}");
    let listed = async |node: &str| {
        let rows = bench.get(&format!("/nodes/{node}/tasks?source=all&limit=500")).await.rows();
        rows.iter().any(|row| row["upid"] == upid)
    };
    assert_eq!((listed("pve2").await, listed("pve1").await), (true, false));
    let disks = async |node: &str| {
        let rows = bench.get(&format!("/nodes/{node}/storage/local-lvm/content")).await.rows();
        rows.iter().any(|row| row["vmid"] == stopped)
    };
    assert_eq!((disks("pve2").await, disks("pve1").await), (true, false));
    let isos = bench.get("/nodes/pve3/storage/nas/content?content=iso").await.rows();
    assert_eq!(
        isos,
        bench.get("/nodes/pve1/storage/nas/content?content=iso").await.rows(),
        "what is shared is everywhere"
    );
}

#[tokio::test]
async fn a_dead_node_refuses_and_the_others_say_so() {
    let bench = Bench::quick().await;
    bench.lab.set_fault(dead("pve1")).await;
    let error = bench.ask(1, "/version").await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    let seen = bench.ask(2, "/nodes/pve1/qemu/100/config").await.unwrap();
    assert_eq!((seen.status, seen.reason.as_str(), seen.text.as_str()), (595, "Connection refused", ""));
    assert_eq!(seen.content_type, None);
    // What every node has is answered all the same.
    assert_eq!(bench.ask(2, "/nodes/pve1").await.unwrap().status, 200);
    let rows = bench.ask(2, "/nodes").await.unwrap().rows();
    assert_eq!(rows.iter().find(|row| row["node"] == "pve1").unwrap()["status"], "offline");
    let rows = bench.ask(3, "/cluster/resources?type=vm").await.unwrap().rows();
    let lost: Vec<_> = rows.iter().filter(|row| row["node"] == "pve1").collect();
    assert!(lost.len() == 20 && lost.iter().all(|row| row["status"] == "unknown" && row.get("name").is_none()));
    bench.lab.clear_fault(&dead("pve1")).await.unwrap();
    assert_eq!(bench.get("/nodes/pve1/qemu/100/config").await.data()["name"], "web");
    assert_eq!(bench.get("/nodes").await.rows().iter().filter(|row| row["status"] == "online").count(), 3);
}

#[tokio::test]
async fn a_hanging_node_accepts_and_does_not_answer_until_it_comes_back() {
    let bench = Bench::quick().await;
    let fault = Fault::HangingNode("pve2".to_owned());
    bench.lab.set_fault(fault.clone()).await;
    for (node, path) in [(2, "/version"), (1, "/nodes/pve2/status")] {
        let asked = tokio::time::timeout(Duration::from_millis(200), bench.ask(node, path)).await;
        assert!(asked.is_err(), "{path} of pve{node}");
    }
    assert_eq!(bench.ask(3, "/nodes/pve1/status").await.unwrap().status, 200);
    let rows = bench.get("/nodes").await.rows();
    assert!(rows.iter().all(|row| row["status"] == "online"), "the cluster does not notice");
    let (waiting, ()) = tokio::join!(bench.ask(1, "/nodes/pve2/status"), async {
        bench.lab.clear_fault(&fault).await.unwrap();
    });
    assert_eq!(waiting.unwrap().status, 200);
    assert_eq!(bench.ask(2, "/version").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_name_that_is_no_node_cannot_be_looked_up() {
    let bench = Bench::quick().await;
    for name in ["pve9", "PVE1"] {
        let seen = bench.get(&format!("/nodes/{name}/status")).await;
        assert_eq!(seen.status, 500);
        assert!(seen.reason.starts_with(&format!("hostname lookup '{name}' failed")), "{seen:?}");
    }
}

#[tokio::test]
async fn with_most_nodes_gone_nothing_can_be_written() {
    let bench = Bench::quick().await;
    let quorate = async || bench.get("/cluster/status").await.rows()[0]["quorate"].clone();
    bench.lab.set_fault(dead("pve2")).await;
    assert_eq!((quorate().await, bench.send("POST", "/pools", Some("poolid=a")).await.status), (1.into(), 200));
    bench.lab.set_fault(dead("pve3")).await;
    let seen = bench.send("POST", "/pools", Some("poolid=b")).await;
    assert_eq!((seen.status, seen.reason.as_str()), (500, "cluster not ready - no quorum?"));
    assert_eq!((quorate().await, bench.get("/pools/a").await.status), (0.into(), 200));
    bench.lab.clear_fault(&dead("pve2")).await.unwrap();
    assert_eq!(bench.send("POST", "/pools", Some("poolid=b")).await.status, 200);
}

#[tokio::test]
async fn a_node_alone_is_in_no_cluster() {
    let bench = Bench::start(Options { nodes: 1, guests: 3, first_vmid: 200, ..quick() }).await;
    let rows = bench.get("/cluster/status").await.rows();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["type"], &rows[0]["nodeid"]), (&"node".into(), &0.into()));
    let vmids: Vec<_> =
        bench.get("/cluster/resources?type=vm").await.rows().iter().map(|row| row["vmid"].as_u64()).collect();
    assert_eq!(vmids, [Some(200), Some(201), Some(202)]);
    assert_eq!(bench.get("/cluster/ha/resources").await.rows().len(), 0);
    assert_eq!(bench.send("POST", "/pools", Some("poolid=a")).await.status, 200);
}
