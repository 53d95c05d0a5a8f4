//! Limits, hanging up, and stopping.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{Site, send};
use crate::mcp::{Limits, http::accept};

fn wait_call(ms: u64) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "arguments": {"ms": ms}}})
        .to_string()
}

/// A revision of the protocol for the direct way, none for the way through the SDK.
const WAYS: [Option<&str>; 2] = [Some("2025-11-25"), None];

fn wait_on(site: &Site, way: Option<&str>, ms: u64) -> reqwest::RequestBuilder {
    let request = site.post("/mcp").body(wait_call(ms));
    if let Some(version) = way { request.header("mcp-protocol-version", version) } else { request }
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[tokio::test]
async fn a_body_may_not_be_too_large_or_too_slow() {
    let site =
        Site::with_limits(Limits { body_bytes: 10_000, body_time: Duration::from_millis(100), ..Limits::default() })
            .await;
    let (status, body) = send(site.post("/mcp").body("x".repeat(10_001))).await;
    assert_eq!((status, &body["code"]), (413, &json!("body_too_large")));

    let mut stream = TcpStream::connect(site.server.address()).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer token-of-ann\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn too_many_requests_at_once_or_in_a_second() {
    let site = Site::with_limits(Limits {
        in_flight: 3,
        in_flight_per_token: 2,
        requests_per_second: 1,
        burst: 4,
        ..Limits::default()
    })
    .await;
    let waits: Vec<_> = (0..2).map(|_| tokio::spawn(send(site.post("/mcp").body(wait_call(400))))).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let response = site.post("/mcp").body(PING).send().await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    let bob = tokio::spawn(send(site.bare_post("/mcp").bearer_auth("token-of-bob").body(wait_call(200))));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let response = site.post("/mcp").body(PING).send().await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    for wait in waits {
        assert_eq!(wait.await.unwrap().0, 200);
    }
    assert_eq!(bob.await.unwrap().0, 200);
    let statuses = [
        send(site.post("/mcp").body(PING)).await.0,
        send(site.post("/mcp").body(PING)).await.0,
        send(site.post("/mcp").body(PING)).await.0,
    ];
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn connections_do_not_wait_for_acknowledgements() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (stream, _client) = tokio::join!(accept(&listener), TcpStream::connect(listener.local_addr().unwrap()));
    assert!(stream.nodelay().unwrap());
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_its_call() {
    for way in WAYS {
        let site = Site::start().await;
        let call = wait_on(&site, way, 60_000).timeout(Duration::from_millis(100));
        call.send().await.unwrap_err();
        let start = Instant::now();
        while site.surface.dropped.load(Ordering::SeqCst) == 0 {
            assert!(start.elapsed() < Duration::from_secs(5), "the call went on after its client was gone: {way:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn stopping_waits_for_calls_and_not_for_idle_connections() {
    for way in WAYS {
        let site = Site::start().await;
        assert_eq!(send(site.post("/mcp").body(PING)).await.0, 200);
        let call = tokio::spawn(send(wait_on(&site, way, 300)));
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (address, start) = (site.server.address(), Instant::now());
        site.server.stop().await;
        assert!(start.elapsed() < Duration::from_secs(5));
        assert_eq!(call.await.unwrap().0, 200);
        TcpStream::connect(address).await.unwrap_err();
    }
}

#[tokio::test]
async fn stopping_does_not_wait_for_ever() {
    for way in WAYS {
        let limits = Limits { drain_time: Duration::from_millis(100), ..Limits::default() };
        let site = Site::with_limits(limits).await;
        let call = tokio::spawn(wait_on(&site, way, 60_000).send());
        tokio::time::sleep(Duration::from_millis(100)).await;
        let start = Instant::now();
        site.server.stop().await;
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(
            call.await.unwrap().is_err_and(|error| error.is_request())
                || site.surface.dropped.load(Ordering::SeqCst) == 1
        );
    }
}
