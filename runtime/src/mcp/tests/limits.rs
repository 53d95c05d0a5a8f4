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

/// A call that has begun, and goes on as long as this is held.
async fn begun(request: reqwest::RequestBuilder) -> reqwest::Response {
    let params = json!({"name": "wait", "arguments": {"ms": 60_000}, "_meta": {"progressToken": 1}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut stream = request.body(call.to_string()).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    stream
}

async fn refused(request: reqwest::RequestBuilder) -> (u16, String, String) {
    let response = request.body(PING).send().await.unwrap();
    let after = response.headers().get("retry-after").map(|after| after.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body: serde_json::Value = response.json().await.unwrap();
    (status, body["code"].as_str().unwrap_or_default().to_owned(), after.unwrap_or_default())
}

fn told(status: u16, code: &str, after: &str) -> (u16, String, String) {
    (status, code.to_owned(), after.to_owned())
}

#[tokio::test]
async fn too_many_requests_at_once() {
    let limits = Limits { in_flight: 3, in_flight_per_token: 2, wait: Duration::ZERO, ..Limits::default() };
    let site = Site::with_limits(limits).await;
    let bob = || site.bare_post("/mcp").bearer_auth("token-of-bob");
    let (_one, _two) = (begun(site.post("/mcp")).await, begun(site.post("/mcp")).await);
    assert_eq!(refused(site.post("/mcp")).await, told(429, "too_many_requests", "1"));
    let third = begun(bob()).await;
    assert_eq!(refused(bob()).await, told(503, "server_busy", "1"));
    drop(third);
    // The place comes back when the server sees that its client is gone.
    let start = Instant::now();
    while send(bob().body(PING)).await.0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn who_waits_for_a_place_gets_it() {
    let limits = Limits { in_flight_per_token: 1, wait: Duration::from_mins(1), ..Limits::default() };
    let site = Site::with_limits(limits).await;
    let stream = begun(site.post("/mcp")).await;
    let (second, ()) = tokio::join!(send(site.post("/mcp").body(PING)), async { drop(stream) });
    assert_eq!(second.0, 200);
}

#[tokio::test]
async fn too_many_requests_in_a_second() {
    let limits = Limits { requests_per_second: 1, burst: 1, wait: Duration::ZERO, ..Limits::default() };
    let site = Site::with_limits(limits).await;
    assert_eq!(send(site.post("/mcp").body(PING)).await.0, 200);
    assert_eq!(refused(site.post("/mcp")).await, told(429, "too_many_requests", "1"));
    assert_eq!(send(site.bare_post("/mcp").bearer_auth("token-of-bob").body(PING)).await.0, 200);
}

#[tokio::test]
async fn strangers_are_told_less_and_cost_nobody_else_anything() {
    let limits = Limits { strangers_per_second: 1, strangers_burst: 2, ..Limits::default() };
    let site = Site::with_limits(limits).await;
    let mut heard = Vec::new();
    for _ in 0..6 {
        heard.push(refused(site.bare_post("/mcp").bearer_auth("a guess")).await);
    }
    assert_eq!(heard[..2], [told(401, "unauthorized", ""), told(401, "unauthorized", "")]);
    assert!(heard[2..].contains(&told(429, "too_many_requests", "1")), "{heard:?}");
    assert_eq!(send(site.post("/mcp").body(PING)).await.0, 200);
}

#[tokio::test]
async fn thirty_two_callers_at_once_are_all_served() {
    let site = Site::start().await;
    let calls = (0..32).map(|_| tokio::spawn(send(wait_on(&site, WAYS[0], 20)))).collect::<Vec<_>>();
    for call in calls {
        assert_eq!(call.await.unwrap().0, 200);
    }
}

#[tokio::test]
async fn nothing_is_no_limit_of_size() {
    let site = Site::with_limits(Limits { body_bytes: 0, answer_bytes: 0, ..Limits::default() }).await;
    let call = json!({"name": "big", "arguments": {"text": "x".repeat(1 << 21)}});
    let (status, body) = site.legacy("2025-11-25", "tools/call", call).await;
    assert_eq!((status, &body["result"]["isError"]), (200, &json!(false)));
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
