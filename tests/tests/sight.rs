//! What the server's API token may not see: an empty list that is not known to be empty says so.

use lab::{FrontOptions, Lab};
use serde_json::{Value, json};
use tests::client::Client;
use tests::site::{CLUSTER, Site, quick};

/// A server whose API token is another one than usual.
async fn with_token(token: impl FnOnce(&Lab) -> String) -> Site {
    let lab = Lab::start(quick()).await.unwrap();
    let options = FrontOptions { pve_token: Some(token(&lab)), ..FrontOptions::default() };
    let front = lab::Front::start(&[(CLUSTER, &lab)], options).await.unwrap();
    let client = Client::new(&front.url(), front.reader());
    Site { lab, front, client }
}

fn missing(answer: &Value) -> String {
    assert_eq!(answer["partial"], true, "{answer}");
    answer["missing"].to_string()
}

#[tokio::test]
async fn a_token_without_privileges_is_told_from_an_empty_cluster() {
    let site = with_token(Lab::blind_token).await;
    let guests = site.client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!(guests["total"], 0);
    let text = missing(&guests);
    assert!(text.contains("no privilege at all") && text.contains("not known"), "{text}");
    assert!(!guests.to_string().contains("no guests"), "{guests}");
    // Once asked, the privileges are remembered for a while.
    let before = site.lab.journal().len();
    site.client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!(site.lab.journal().len(), before);
    let pools = site.client.read(CLUSTER, "GET /pools", json!({})).await.unwrap();
    assert!(missing(&pools).contains("no privilege"), "{pools}");
}

#[tokio::test]
async fn a_token_that_lacks_one_privilege_is_told_which() {
    // It sees the guests of its pool, and no storages.
    let site = with_token(Lab::scoped_token).await;
    let guests = site.client.tool("list_guests", json!({})).await.unwrap();
    assert!(guests["total"].as_u64().unwrap() > 0 && guests.get("partial").is_none(), "{guests}");
    let storages = site.client.read(CLUSTER, "GET /storage", json!({})).await.unwrap();
    assert_eq!(storages["items"], json!([]), "{storages}");
    assert!(missing(&storages).contains("Datastore.Audit"), "{storages}");
}

#[tokio::test]
async fn what_is_really_empty_is_no_riddle() {
    let site = Site::with(lab::Options { guests: 0, ..quick() }, FrontOptions::default()).await;
    let guests = site.client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!((&guests["total"], guests.get("partial")), (&json!(0), None), "{guests}");
}
