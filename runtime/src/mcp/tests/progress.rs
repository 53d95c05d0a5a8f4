//! Clients that want to be told how far a call is.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Site, send};
use crate::mcp::Limits;

/// The revisions that are served, and whether their requests carry what the newer one asks for.
const VERSIONS: [(&str, bool); 2] = [("2025-11-25", false), ("2026-07-28", true)];

fn request(
    site: &Site,
    (version, modern): (&str, bool),
    tool: &str,
    ms: u64,
    token: Option<Value>,
) -> reqwest::RequestBuilder {
    let mut params = json!({"name": tool, "arguments": {"ms": ms}, "_meta": {}});
    let mut request = site.post("/mcp").header("mcp-protocol-version", version);
    if modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        request = request.header("mcp-method", "tools/call").header("mcp-name", tool);
    }
    if let Some(token) = token {
        params["_meta"]["progressToken"] = token;
    }
    request.body(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string())
}

fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    data.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn who_wants_to_know_is_told_on_the_stream_of_the_call() {
    let site = Site::start().await;
    for version in VERSIONS {
        for token in [json!(41), json!("a token")] {
            let response = request(&site, version, "wait", 10, Some(token.clone())).send().await.unwrap();
            assert_eq!(response.headers()["content-type"], "text/event-stream", "{version:?}");
            let messages = events(&response.text().await.unwrap());
            let [first, second, answer] = messages.as_slice() else { panic!("{messages:#?}") };
            for notification in [first, second] {
                assert_eq!(notification["method"], "notifications/progress");
                assert_eq!(notification["params"]["progressToken"], token);
            }
            assert_eq!((&first["params"]["progress"], &first["params"]["total"]), (&json!(10.0), &json!(100.0)));
            assert_eq!((&first["params"]["message"], &second["params"]["message"]), (&json!("begun"), &json!("at it")));
            assert!(second["params"]["progress"].as_f64() > first["params"]["progress"].as_f64());
            assert_eq!(answer["id"], 7);
            assert_eq!(answer["result"]["structuredContent"], json!({"waited": true}));
            assert_eq!(answer["result"]["content"][0]["text"], r#"{"waited":true}"#);
        }
    }
}

#[tokio::test]
async fn who_does_not_ask_gets_one_answer() {
    let site = Site::start().await;
    for version in VERSIONS {
        let (status, answer) = send(request(&site, version, "wait", 10, None)).await;
        assert_eq!((status, &answer["result"]["structuredContent"]), (200, &json!({"waited": true})));
        // Neither does a tool that never tells anything.
        let (status, answer) = send(request(&site, version, "show", 10, Some(json!(1)))).await;
        assert_eq!((status, &answer["result"]["structuredContent"]["who"]), (200, &json!("ann")));
    }
}

#[tokio::test]
async fn a_stream_is_in_flight_until_its_end() {
    let site = Site::with_limits(Limits { in_flight_per_token: 1, wait: Duration::ZERO, ..Limits::default() }).await;
    let mut stream = request(&site, VERSIONS[0], "wait", 60_000, Some(json!(1))).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    let (status, refusal) = send(request(&site, VERSIONS[0], "show", 0, None)).await;
    assert_eq!((status, &refusal["code"]), (429, &json!("too_many_requests")));
    drop(stream);
    let start = Instant::now();
    while send(request(&site, VERSIONS[0], "show", 0, None)).await.0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(5), "a stream that was dropped counts for ever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn hanging_up_in_the_middle_of_a_stream_ends_the_call() {
    for version in VERSIONS {
        let site = Site::start().await;
        let mut stream = request(&site, version, "wait", 60_000, Some(json!(1))).send().await.unwrap();
        assert!(stream.chunk().await.unwrap().is_some());
        assert_eq!(site.surface.dropped.load(Ordering::SeqCst), 0);
        drop(stream);
        let start = Instant::now();
        while site.surface.dropped.load(Ordering::SeqCst) == 0 {
            assert!(
                start.elapsed() < Duration::from_secs(5),
                "the call went on after its client was gone: {version:?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn odd_tokens_harm_nobody() {
    let site = Site::start().await;
    for version in VERSIONS {
        for token in
            [json!(1.5), json!(true), json!(null), json!({"a": 1}), json!([1]), json!(-1), json!(u64::MAX), json!("")]
        {
            let response = request(&site, version, "wait", 10, Some(token.clone())).send().await.unwrap();
            let status = response.status().as_u16();
            let body = response.text().await.unwrap();
            let text = if body.starts_with('{') { body } else { events(&body).pop().unwrap().to_string() };
            assert!(
                matches!(status, 200 | 400) && (text.contains("\"waited\":true") || text.contains("\"error\"")),
                "{version:?} {token}: {status} {text}"
            );
            assert_eq!(send(request(&site, version, "show", 10, None)).await.0, 200);
        }
    }
}
