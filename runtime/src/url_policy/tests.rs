//! Which addresses pass, by a resolver that is a book.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use pvegate_generated::catalog;
use pvegate_generated::terms::Release;
use serde_json::{Value as Json, json};

use super::{Resolve, Resolving, UrlPolicy};
use crate::args::decode;

/// Names and their addresses.
#[derive(Debug)]
struct Book(BTreeMap<&'static str, Vec<&'static str>>);

impl Resolve for Book {
    fn resolve<'a>(&'a self, host: &'a str, _port: u16) -> Resolving<'a> {
        let found = self.0.get(host).map(|texts| texts.iter().map(|text| text.parse::<IpAddr>().unwrap()).collect());
        Box::pin(async move { found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)) })
    }
}

fn policy(list: &[&str]) -> UrlPolicy {
    let book = Book(BTreeMap::from([
        ("downloads.example.org", vec!["1.1.1.1", "2606:4700::1111"]),
        ("xn--bcher-kva.example.org", vec!["1.1.1.1"]),
        ("inner.example.org", vec!["10.0.0.5"]),
        ("mixed.example.org", vec!["1.1.1.1", "::ffff:127.0.0.1"]),
        ("empty.example.org", vec![]),
    ]));
    UrlPolicy::with_resolver(list, Arc::new(book)).unwrap()
}

async fn code(policy: &UrlPolicy, url: &str) -> String {
    policy.check(url).await.map_or_else(|refusal| refusal.code.into_owned(), |()| "allowed".to_owned())
}

#[tokio::test]
async fn without_a_list_nothing_is_allowed() {
    for policy in [UrlPolicy::default(), policy(&[])] {
        assert_eq!(code(&policy, "https://downloads.example.org/a.iso").await, "not_offered");
        assert_eq!(policy.check_host("downloads.example.org").await.unwrap_err().code, "not_offered");
    }
}

#[tokio::test]
async fn hosts_are_compared_as_a_whole() {
    let policy =
        policy(&["Downloads.Example.org.", "bücher.example.org", "downloads.example.org:8443", "inner.example.org"]);
    for allowed in [
        "https://downloads.example.org/a.iso",
        "https://DOWNLOADS.example.ORG/a.iso?x=1#y",
        "HTTPS://downloads.example.org",
        "https://downloads.example.org./a.iso",
        "https://downloads.example.org:443/a.iso",
        "https://downloads.example.org:8443/a.iso",
        "https://xn--bcher-kva.example.org/a.iso",
        "https://downloads.example.org/@elsewhere.example.org/a.iso",
    ] {
        assert_eq!(code(&policy, allowed).await, "allowed", "{allowed}");
    }
    for other in [
        "https://downloads.example.org:444/a.iso",
        "https://evil.downloads.example.org/a.iso",
        "https://downloads.example.org.evil.example/a.iso",
        "https://evildownloads.example.org/a.iso",
        "https://xn--bcher-kva.example.org:8443/a.iso",
        "https://1.1.1.1/a.iso",
        "https://[2606:4700::1111]/a.iso",
        // Its addresses are not public, and the list does not say that it may be so.
        "https://inner.example.org/a.iso",
    ] {
        assert_eq!(code(&policy, other).await, "not_granted", "{other}");
    }
}

#[tokio::test]
async fn what_readers_of_urls_may_read_in_two_ways_is_refused() {
    let policy = policy(&["downloads.example.org", "internal:127.0.0.1"]);
    for wrong in [
        "http://downloads.example.org/a.iso",
        "ftp://downloads.example.org/a.iso",
        "file:///etc/passwd",
        "downloads.example.org/a.iso",
        "//downloads.example.org/a.iso",
        "https:downloads.example.org/a.iso",
        "https:///downloads.example.org/a.iso",
        "https://user@downloads.example.org/a.iso",
        "https://user:word@downloads.example.org/a.iso",
        "https://downloads.example.org@evil.example/a.iso",
        "https://evil.example\\@downloads.example.org/a.iso",
        "https://downloads.example.org\\.evil.example/a.iso",
        "https://downloads.example.org /a.iso",
        " https://downloads.example.org/a.iso",
        "https://downloads.example.org/a\n.iso",
        "https://downloads.example.org\t/a.iso",
        "https://downloads%2eexample.org/a.iso",
        "https://bücher.example.org/a.iso",
        "https://downloads.example.org:/a.iso",
        "https://downloads.example.org:x/a.iso",
        "https://downloads.example.org:99999/a.iso",
        "https://downloads.example.org../a.iso",
        "https:///a.iso",
        "https://",
        "",
        // 127.0.0.1 is allowed, as it is written here and in no other way.
        "https://2130706433/a.iso",
        "https://0x7f.1/a.iso",
        "https://127.1/a.iso",
        "https://0177.0.0.1/a.iso",
    ] {
        assert_eq!(code(&policy, wrong).await, "invalid_arguments", "{wrong}");
    }
    assert_eq!(
        code(&policy, &format!("https://downloads.example.org/{}", "a".repeat(3000))).await,
        "invalid_arguments"
    );
    assert_eq!(code(&policy, "https://127.0.0.1/a.iso").await, "allowed");
}

#[tokio::test]
async fn addresses_are_public_unless_the_list_says_otherwise() {
    let plain = policy(&[
        "inner.example.org",
        "mixed.example.org",
        "empty.example.org",
        "gone.example.org",
        "10.0.0.5",
        "8.8.8.8",
    ]);
    for (host, expected) in [
        ("inner.example.org", "not_granted"),
        ("mixed.example.org", "not_granted"),
        ("empty.example.org", "not_found"),
        ("gone.example.org", "not_found"),
        ("10.0.0.5", "not_granted"),
        ("8.8.8.8", "allowed"),
    ] {
        assert_eq!(code(&plain, &format!("https://{host}/a.iso")).await, expected, "{host}");
    }
    let refusal = plain.check("https://inner.example.org/").await.unwrap_err();
    assert!(refusal.message.contains("10.0.0.5") && refusal.next.contains("internal:inner.example.org"), "{refusal:?}");
    let inner = policy(&["internal:inner.example.org", "internal:10.0.0.5:8443", "internal:[fd00::1]"]);
    for url in ["https://inner.example.org/a.iso", "https://10.0.0.5:8443/a.iso", "https://[fd00::1]/a.iso"] {
        assert_eq!(code(&inner, url).await, "allowed", "{url}");
    }
    assert_eq!(code(&inner, "https://10.0.0.5/a.iso").await, "not_granted");
}

#[tokio::test]
async fn hosts_without_a_scheme() {
    let policy = policy(&["downloads.example.org:5000", "internal:10.0.0.5:3260", "internal:[fd00::1]"]);
    for allowed in [
        "downloads.example.org",
        "downloads.example.org:5000",
        "downloads.example.org:5000/debian:12",
        "10.0.0.5",
        "10.0.0.5:3260",
        "fd00::1",
    ] {
        policy.check_host(allowed).await.unwrap();
    }
    for other in [
        "downloads.example.org:5001",
        "debian:12",
        "library/debian",
        "10.0.0.6",
        "fd00::2",
        "user@10.0.0.5",
        "10.5",
        "",
        "a b",
    ] {
        policy.check_host(other).await.unwrap_err();
    }
}

#[test]
fn entries_that_are_none_are_told_together() {
    let problems =
        UrlPolicy::new(["https://a.example", "*.example.org", "a/b", "", "a b", "user@host", "ok.example", "a:b"]);
    assert_eq!(problems.unwrap_err().len(), 7);
}

fn download(change: Json) -> Json {
    let mut call = json!({
        "node": "pve1", "storage": "tank", "url": "https://downloads.example.org/debian.iso", "filename": "debian.iso", "content": "iso",
        "checksum": "a".repeat(64), "checksum-algorithm": "sha256",
    });
    let Json::Object(change) = change else { return call };
    if let Some(entries) = call.as_object_mut() {
        for (name, value) in change {
            if value.is_null() {
                entries.remove(&name)
            } else {
                entries.insert(name, value)
            };
        }
    }
    call
}

async fn call(operation: &str, arguments: &Json) -> Result<(), String> {
    let operation = catalog::operation(operation).unwrap();
    let args = decode(operation, arguments.as_object().unwrap(), Release::R9_2).unwrap();
    policy(&["downloads.example.org"]).check_call(&args).await.map_err(|refusal| refusal.message)
}

#[tokio::test]
async fn downloads_need_a_checksum_and_a_fitting_name() {
    const DOWNLOAD: &str = "POST /nodes/{node}/storage/{storage}/download-url";
    for change in [
        json!({}),
        json!({"checksum": "B".repeat(128), "checksum-algorithm": "sha512"}),
        json!({"filename": "Debian.IMG"}),
        json!({"filename": "x.tar.zst", "content": "vztmpl"}),
        json!({"filename": "x.qcow2", "content": "import"}),
        json!({"verify-certificates": 1}),
    ] {
        call(DOWNLOAD, &download(change.clone())).await.unwrap_or_else(|message| unreachable!("{change}: {message}"));
    }
    for (change, part) in [
        (json!({"url": "https://evil.example/debian.iso"}), "not among the allowed hosts"),
        (json!({"url": "http://downloads.example.org/debian.iso"}), "https"),
        (json!({"checksum": null, "checksum-algorithm": null}), "needs a checksum"),
        (json!({"checksum": "a".repeat(32), "checksum-algorithm": "md5"}), "needs a checksum"),
        (json!({"checksum": "a".repeat(40), "checksum-algorithm": "sha1"}), "needs a checksum"),
        (json!({"checksum": "a".repeat(63)}), "64 hex digits"),
        (json!({"checksum": "x".repeat(64)}), "64 hex digits"),
        (json!({"verify-certificates": 0}), "always verified"),
        (json!({"filename": "x.qcow2"}), ".iso, .img"),
        (json!({"filename": ".iso"}), ".iso, .img"),
        (json!({"filename": "x.iso", "content": "vztmpl"}), ".tar.gz"),
        (json!({"filename": "x.tar.bz2", "content": "vztmpl"}), ".tar.gz"),
        (json!({"filename": "x.iso", "content": "import"}), ".qcow2"),
        (json!({"filename": "../../etc/x.iso"}), "would replace"),
        (json!({"filename": "sp ace.iso"}), "would replace"),
    ] {
        let said = call(DOWNLOAD, &download(change.clone())).await.unwrap_err();
        assert!(said.contains(part), "{change}: {said}");
    }
}

#[tokio::test]
async fn every_operation_with_an_address_is_checked_and_templates_have_none() {
    let metadata = "GET /nodes/{node}/query-url-metadata";
    let url = |url: &str| json!({"node": "pve1", "url": url});
    call(metadata, &url("https://downloads.example.org/debian.iso")).await.unwrap();
    call(metadata, &url("https://evil.example/debian.iso")).await.unwrap_err();
    let mut unverified = url("https://downloads.example.org/debian.iso");
    unverified.as_object_mut().unwrap().insert("verify-certificates".to_owned(), json!(0));
    assert!(call(metadata, &unverified).await.unwrap_err().contains("always verified"));
    call("GET /nodes/{node}/scan/nfs", &json!({"node": "pve1", "server": "downloads.example.org"})).await.unwrap();
    call("GET /nodes/{node}/scan/nfs", &json!({"node": "pve1", "server": "10.0.0.1"})).await.unwrap_err();
    let template = json!({"node": "pve1", "storage": "tank", "template": "debian-12-standard_12.7-1_amd64.tar.zst"});
    call("POST /nodes/{node}/aplinfo", &template).await.unwrap();
}
