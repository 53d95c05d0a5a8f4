//! Calls that make a node contact an address: only one that the operator lists, and nothing is sent otherwise.

use lab::{Front, FrontOptions, Lab};
use serde_json::{Value, json};
use tests::client::Refused;
use tests::site::{CLUSTER, Site, all_opt_in, quick};

const METADATA: &str = "GET /nodes/{node}/query-url-metadata";
const NFS: &str = "GET /nodes/{node}/scan/nfs";

async fn site(url_allow: &[&str]) -> Site {
    let url_allow = url_allow.iter().map(|host| (*host).to_owned()).collect();
    let site = Site::with(quick(), FrontOptions { opt_in: all_opt_in(), url_allow, ..FrontOptions::default() }).await;
    site.client.tool("list_guests", json!({})).await.unwrap();
    site.lab.clear_journal();
    site
}

async fn read(site: &Site, operation: &str, name: &str, value: &str) -> Result<Value, Refused> {
    site.client.read(CLUSTER, operation, json!({"node": "pve1", name: value})).await
}

#[tokio::test]
async fn without_a_list_no_address_is_contacted() {
    let site = site(&[]).await;
    for (operation, name, value) in
        [(METADATA, "url", "https://downloads.example.org/a.iso"), (NFS, "server", "nas.example.org")]
    {
        let refused = read(&site, operation, name, value).await.unwrap_err();
        assert_eq!(refused.code, "not_offered");
        assert!(refused.next.contains("url_allow"), "{refused:?}");
    }
    site.nothing_sent();
}

#[tokio::test]
async fn only_what_is_listed_is_contacted() {
    let site = site(&["internal:downloads.example.org", "internal:10.0.0.5:2049", "127.0.0.2"]).await;
    for (operation, name, value, code) in [
        (METADATA, "url", "https://elsewhere.example.org/a.iso", "not_granted"),
        (METADATA, "url", "https://downloads.example.org:8443/a.iso", "not_granted"),
        (METADATA, "url", "https://169.254.169.254/latest", "not_granted"),
        // Listed, but not public, and not listed as such.
        (METADATA, "url", "https://127.0.0.2/a.iso", "not_granted"),
        (METADATA, "url", "http://downloads.example.org/a.iso", "invalid_arguments"),
        (METADATA, "url", "https://a@downloads.example.org/a.iso", "invalid_arguments"),
        (METADATA, "url", "https://downloads.example.org@elsewhere.example.org/", "invalid_arguments"),
        (NFS, "server", "10.0.0.6", "not_granted"),
    ] {
        let refused = read(&site, operation, name, value).await.unwrap_err();
        assert_eq!(refused.code, code, "{value}: {refused:?}");
    }
    site.nothing_sent();
    for (operation, name, value) in
        [(METADATA, "url", "https://downloads.example.org/a.iso"), (NFS, "server", "10.0.0.5")]
    {
        site.lab.clear_journal();
        // What the lab answers does not matter; that it is asked this, and once, does.
        let _ = read(&site, operation, name, value).await;
        let sent = site.sent();
        let [entry] = sent.as_slice() else { panic!("{sent:?}") };
        assert_eq!((entry.operation.as_deref(), &entry.params[name]), (Some(operation), &json!(value)));
    }
}

#[tokio::test]
async fn a_list_with_an_entry_that_is_none_stops_the_start() {
    let lab = Lab::start(quick()).await.unwrap();
    let url_allow = ["https://downloads.example.org/", "*.example.org", "fine.example.org"].map(str::to_owned).to_vec();
    let options = FrontOptions { url_allow, ..FrontOptions::default() };
    let error = Front::start(&[(CLUSTER, &lab)], options).await.unwrap_err().to_string();
    assert_eq!(error.matches("url_allow").count(), 2, "{error}");
    assert!(error.contains("*.example.org") && !error.contains("fine.example.org"), "{error}");
}
