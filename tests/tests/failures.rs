//! Clusters that do not answer as they should: what the caller reads names the cluster and what to do.

use std::time::{Duration, Instant};

use lab::{Certificate, Fault, FrontOptions, Options};
use serde_json::{Value, json};
use tests::client::Refused;
use tests::site::{CLUSTER, Site, quick};

const CONFIG: &str = "GET /nodes/{node}/qemu/{vmid}/config";

async fn config(site: &Site) -> Result<Value, Refused> {
    site.client.read(CLUSTER, CONFIG, json!({"vmid": 100})).await
}

/// A refusal of this code that names the cluster and these.
fn check(refused: &Refused, code: &str, named: &[&str]) {
    assert_eq!(refused.code, code, "{refused:?}");
    for name in named.iter().chain(&[CLUSTER]) {
        assert!(refused.message.contains(name), "`{name}` is not named: {refused:?}");
    }
    assert!(!refused.next.is_empty(), "{refused:?}");
}

/// A site whose server knows the cluster already.
async fn warm() -> Site {
    let site = Site::start().await;
    config(&site).await.unwrap();
    site.lab.clear_journal();
    site
}

#[tokio::test]
async fn a_cluster_that_is_down() {
    let site = warm().await;
    site.lab.set_fault(Fault::ClusterDown).await;
    let refused = config(&site).await.unwrap_err();
    check(&refused, "unreachable", &[]);
    let named = |endpoint: &lab::Endpoint| refused.message.contains(&endpoint.url);
    assert!(site.lab.endpoints().iter().any(named), "no address is named: {refused:?}");
    let clusters = site.client.tool("list_clusters", json!({})).await.unwrap();
    assert_eq!(clusters["items"][0]["cluster"], CLUSTER);
    site.nothing_sent();
    site.lab.clear_fault(&Fault::ClusterDown).await.unwrap();
    let start = Instant::now();
    while config(&site).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(15), "a cluster that is back is used again");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_cluster_that_was_never_there() {
    let site = Site::start().await;
    site.lab.set_fault(Fault::ClusterDown).await;
    check(&config(&site).await.unwrap_err(), "unreachable", &["cannot be reached"]);
    check(&site.client.tool("list_guests", json!({})).await.unwrap_err(), "unreachable", &[]);
    let clusters = site.client.tool("list_clusters", json!({})).await.unwrap();
    assert_eq!(clusters["items"][0]["answers"], false);
    assert_eq!(clusters["items"][0]["error"]["code"], "unreachable");
}

#[tokio::test]
async fn a_page_instead_of_json() {
    let site = warm().await;
    site.lab.set_fault(Fault::HtmlInsteadOfJson).await;
    let refused = config(&site).await.unwrap_err();
    check(&refused, "not_json", &[CONFIG]);
    assert!(!refused.text().contains('<'), "the page is not repeated: {refused:?}");
    assert!(refused.next.contains("endpoint"), "whose fault it is: {refused:?}");
}

#[tokio::test]
async fn a_connection_that_is_cut() {
    let site = warm().await;
    site.lab.set_fault(Fault::CutBefore).await;
    check(&config(&site).await.unwrap_err(), "unreachable", &[CONFIG]);
    // A read is sent once more, and no oftener.
    assert_eq!(site.sent().len(), 2, "{:?}", site.sent());
}

#[tokio::test]
async fn a_certificate_that_does_not_fit() {
    let site = Site::with(Options { certificate: Certificate::WrongName, ..quick() }, FrontOptions::default()).await;
    let refused = config(&site).await.unwrap_err();
    check(&refused, "certificate", &["not trusted"]);
    assert!(site.lab.journal().is_empty(), "nothing is sent, the token least of all: {:?}", site.lab.journal());
}

#[tokio::test]
async fn a_node_that_is_dead() {
    let site = warm().await;
    site.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    let refused = site.client.read(CLUSTER, "GET /nodes/{node}/status", json!({"node": "pve2"})).await.unwrap_err();
    check(&refused, "node_down", &["pve2"]);
    let sent = site.sent();
    assert_eq!((sent.len(), sent[0].status), (1, 595), "{sent:?}");
}

#[tokio::test]
async fn a_node_that_hangs() {
    let site = warm().await;
    site.lab.set_fault(Fault::HangingNode("pve1".to_owned())).await;
    let asked = Instant::now();
    let (waiting, meanwhile) = tokio::join!(config(&site), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let before = Instant::now();
        let guests = site.client.tool("list_guests", json!({})).await;
        (guests, before.elapsed())
    });
    let (guests, took) = meanwhile;
    assert!(guests.is_ok() && took < Duration::from_secs(2), "who needs no node does not wait: {took:?} {guests:?}");
    check(&waiting.unwrap_err(), "timeout", &[CONFIG]);
    assert!(asked.elapsed() < Duration::from_mins(1), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_node_that_hangs_for_a_moment() {
    let site = warm().await;
    let fault = Fault::HangingNode("pve1".to_owned());
    site.lab.set_fault(fault.clone()).await;
    let (answer, ()) = tokio::join!(config(&site), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        site.lab.clear_fault(&fault).await.unwrap();
    });
    assert_eq!(answer.unwrap()["operation"], CONFIG);
}

#[tokio::test]
async fn one_bad_read_does_not_spoil_the_others() {
    let site = Site::start().await;
    site.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    let reads = json!([
        {"operation": "GET /nodes/{node}/status", "arguments": {"node": "pve1"}},
        {"operation": "GET /nodes/{node}/status", "arguments": {"node": "pve2"}},
        {"operation": CONFIG, "arguments": {"vmid": 4711}},
        {"operation": "GET /version"},
    ]);
    let answer = site.client.tool("read", json!({"cluster": CLUSTER, "reads": reads})).await.unwrap();
    let codes: Vec<Value> =
        answer["results"].as_array().unwrap().iter().map(|result| result["error"]["code"].clone()).collect();
    assert_eq!(codes, [Value::Null, json!("node_down"), json!("not_found"), Value::Null]);
    assert_eq!(answer["results"][3]["operation"], "GET /version");
}
