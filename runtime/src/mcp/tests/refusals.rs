//! Requests that never reach a tool.

use serde_json::{Value, json};

use super::{Site, send};
use crate::mcp::{HttpConfig, ServeError, serve_http};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[tokio::test]
async fn without_a_valid_token_nothing_is_told() {
    let site = Site::start().await;
    let long = format!("Bearer {}", "a".repeat(5000));
    for value in
        [None, Some("Bearer wrong"), Some("Bearer "), Some("Basic token-of-ann"), Some("token-of-ann"), Some(&*long)]
    {
        for path in ["/mcp", "/mcp/x/snapshots", "/mcp/x/nothing", "/elsewhere"] {
            let mut request = site.bare_post(path).body(PING);
            if let Some(value) = value {
                request = request.header("authorization", value);
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 401, "{value:?} {path}");
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["code"], "unauthorized");
            assert!(!body.to_string().contains("wrong"), "the token is not repeated");
        }
    }
    let twice = site.post("/mcp").header("authorization", "Bearer token-of-bob").body(PING);
    assert_eq!(send(twice).await.0, 401);
}

#[tokio::test]
async fn only_requests_from_this_machine_are_heard() {
    let site = Site::start().await;
    for host in ["evil.example", "evil.example:8006", "localhost.evil.example"] {
        let (status, body) = send(site.post("/mcp").header("host", host).body(PING)).await;
        assert_eq!((status, &body["code"]), (403, &json!("host_not_allowed")), "{host}");
    }
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        let (status, body) = send(site.post("/mcp").header("origin", origin).body(PING)).await;
        assert_eq!((status, &body["code"]), (403, &json!("origin_not_allowed")), "{origin}");
    }
    for origin in ["http://localhost:6274", "https://console.example"] {
        assert_eq!(send(site.post("/mcp").header("origin", origin).body(PING)).await.0, 200, "{origin}");
    }
    assert_eq!(send(site.post("/mcp").header("host", "localhost:1").body(PING)).await.0, 200);
}

#[tokio::test]
async fn health_needs_no_token() {
    let site = Site::start().await;
    let response = site.client.get(site.url("/healthz")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.text().await.unwrap(), r#"{"status":"ok"}"#);
    let rebound = site.client.get(site.url("/healthz")).header("host", "evil.example");
    assert_eq!(send(rebound).await.0, 403);
}

#[tokio::test]
async fn there_is_no_stream_to_get_and_no_session_to_delete() {
    let site = Site::start().await;
    for method in [reqwest::Method::GET, reqwest::Method::DELETE, reqwest::Method::PUT] {
        let request = site
            .client
            .request(method, site.url("/mcp"))
            .bearer_auth("token-of-ann")
            .header("accept", "text/event-stream");
        assert_eq!(send(request).await.0, 405);
    }
}

#[tokio::test]
async fn malformed_messages_are_told_apart() {
    let site = Site::start().await;
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
        ("\u{0}", -32700),
    ] {
        let (status, answer) = send(site.post("/mcp").body(body)).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{body:?} {answer}");
    }
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(send(site.post("/mcp").body(deep)).await.0, 400);
    let form =
        site.client.post(site.url("/mcp")).bearer_auth("token-of-ann").header("content-type", "text/plain").body(PING);
    let (status, body) = send(form).await;
    assert_eq!((status, &body["code"]), (415, &json!("not_json")));
    let header_lies = site.post("/mcp").header("mcp-protocol-version", "1999-01-01").body(PING);
    assert_eq!(send(header_lies).await.0, 400);
}

#[tokio::test]
async fn only_loopback_is_listened_on() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let config = HttpConfig { listen: listen.parse().unwrap(), ..HttpConfig::default() };
        let error = serve_http(config, super::Mirror::new(), super::Book.into()).await.unwrap_err();
        assert!(matches!(error, ServeError::NotLoopback(_)));
        assert!(error.to_string().contains("unencrypted") && error.to_string().contains(listen));
    }
    let site = Site::start().await;
    let config = HttpConfig { listen: site.server.address(), ..HttpConfig::default() };
    let error = serve_http(config, super::Mirror::new(), super::Book.into()).await.unwrap_err();
    assert!(matches!(error, ServeError::Bind { .. }), "{error}");
}
