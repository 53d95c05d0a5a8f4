//! Tasks followed to their end through the running server, against tasks of the lab in every state.

mod following;
mod outcomes;
mod reads;

use lab::{Arrange, Entry, Lab};
use serde_json::{Value, json};
use tests::client::Refused;
use tests::site::{CLUSTER, Site};

/// A UPID of the lab's first node. `pstart` tells tasks of a test apart.
fn upid(pstart: &str, worker: &str, id: &str) -> String {
    format!("UPID:pve1:0008366C:{pstart}:638071CE:{worker}:{id}:svc@pve!tok:")
}

/// Puts a task of this state into the lab; `None` is one that goes on. The last of one id counts.
fn put(lab: &Lab, upid: &str, status: Option<&str>, log: &[&str]) {
    lab.arrange(Arrange::Task {
        upid: upid.to_owned(),
        status: status.map(str::to_owned),
        ended: 0x6380_71CE + 9,
        log: log.iter().map(|line| (*line).to_owned()).collect(),
    });
}

/// The state of a task now.
async fn now(site: &Site, upid: &str) -> Result<Value, Refused> {
    wait(site, upid, 0).await
}

async fn wait(site: &Site, upid: &str, timeout: u32) -> Result<Value, Refused> {
    site.client.tool("wait_task", json!({"cluster": CLUSTER, "upid": upid, "timeout": timeout})).await
}

/// How a finished task is told.
async fn outcome_of(site: &Site, worker: &str, id: &str, status: &str, log: &[&str]) -> Value {
    let upid = upid("01665026", worker, id);
    put(&site.lab, &upid, Some(status), log);
    now(site, &upid).await.unwrap()
}

/// Requests for the status of tasks.
fn looks(site: &Site) -> Vec<Entry> {
    let status = Some("GET /nodes/{node}/tasks/{upid}/status");
    site.sent().into_iter().filter(|entry| entry.operation.as_deref() == status).collect()
}

/// Waits until something is so: what is awaited here happens in another task of this process.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if so() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{what}: not so after half a minute");
}

/// Sends a write to the lab, past pvegate, and answers its data.
pub(crate) async fn write(lab: &Lab, path: &str, form: &str) -> Value {
    pvegate::serve::install_crypto();
    let ca = reqwest::Certificate::from_pem(lab.ca_pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap();
    let response = client
        .post(format!("{}/api2/json{path}", lab.url()))
        .header("authorization", format!("PVEAPIToken={}", lab.full_token()))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form.to_owned())
        .send()
        .await
        .unwrap();
    let (status, body) = (response.status(), response.text().await.unwrap());
    assert!(status.is_success(), "{path}: {status} {body}");
    serde_json::from_str::<Value>(&body).unwrap()["data"].clone()
}
