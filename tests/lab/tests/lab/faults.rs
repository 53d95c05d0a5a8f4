//! What can go wrong on purpose.

use std::time::Duration;

use lab::Fault;

use crate::client::Bench;

#[tokio::test]
async fn the_dead_peer_refuses_connections() {
    let bench = Bench::quick().await;
    let seen = bench.get("/nodes/pve2/status").await;
    assert_eq!((seen.status, seen.reason.as_str(), seen.text.as_str()), (595, "Connection refused", ""));
    assert_eq!(seen.content_type, None);
    // What every node has is answered all the same.
    assert_eq!(bench.get("/nodes/pve2").await.status, 200);
    let rows = bench.get("/cluster/resources?type=vm").await.rows();
    let lost: Vec<_> = rows.iter().filter(|row| row["node"] == "pve2").collect();
    assert_eq!(lost.len(), 2);
    assert!(lost.iter().all(|row| row["status"] == "unknown" && row.get("name").is_none()));
    bench.lab.clear_fault(&Fault::DeadNode("pve2".to_owned())).await.unwrap();
    assert_eq!(bench.get("/nodes/pve2/status").await.status, 200);
}

#[tokio::test]
async fn a_hanging_node_answers_when_it_comes_back() {
    let bench = Bench::quick().await;
    let fault = Fault::HangingNode("pve1".to_owned());
    bench.lab.set_fault(fault.clone()).await;
    let asked = tokio::time::timeout(Duration::from_millis(200), bench.get("/version")).await;
    assert!(asked.is_err());
    bench.lab.clear_fault(&fault).await.unwrap();
    assert_eq!(bench.get("/version").await.status, 200);
}

#[tokio::test]
async fn a_page_and_a_cut_connection() {
    let bench = Bench::quick().await;
    bench.lab.set_fault(Fault::HtmlInsteadOfJson).await;
    let seen = bench.get("/version").await;
    assert_eq!((seen.status, seen.content_type.as_deref()), (200, Some("text/html")));
    bench.lab.clear_fault(&Fault::HtmlInsteadOfJson).await.unwrap();

    bench.lab.set_fault(Fault::CutConnection).await;
    let url = format!("{}/api2/json/version", bench.lab.url());
    assert!(bench.client.get(&url).send().await.is_err());
    let entry = bench.lab.journal().pop().unwrap();
    assert_eq!((entry.operation.as_deref(), entry.status), (Some("GET /version"), 0));
}

#[tokio::test]
async fn a_cluster_that_is_down_comes_back_on_its_port() {
    let bench = Bench::quick().await;
    bench.lab.set_fault(Fault::ClusterDown).await;
    let url = format!("{}/api2/json/version", bench.lab.url());
    let error = bench.client.get(&url).send().await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    bench.lab.clear_fault(&Fault::ClusterDown).await.unwrap();
    assert_eq!(bench.get("/version").await.status, 200);
}

#[test]
fn faults_have_names() {
    for fault in ["dead-node:pve2", "hanging-node:pve1", "html-instead-of-json", "cut-connection", "cluster-down"] {
        assert_eq!(fault.parse::<Fault>().unwrap().to_string(), fault);
    }
    assert!("nonsense".parse::<Fault>().unwrap_err().contains("cut-connection"));
}
