//! Theme M: what comes with a 200 and is no answer of PVE's (C113).

use serde_json::json;
use tests::upstream::{Script, Upstream, answer};

#[tokio::test]
async fn a_success_that_is_none() {
    let html = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<html>x</html>\n".to_vec();
    for bytes in [answer("200 OK", ""), html, answer("200 OK", "{\"data\":[{"), answer("200 OK", "[1,2]")] {
        let upstream = Upstream::start(Script::new(&json!([])).on("GET /pools", bytes.clone())).await;
        let refused = upstream.client.read("lab", "GET /pools", json!({})).await.unwrap_err();
        assert_eq!(refused.code, "not_json", "{}", String::from_utf8_lossy(&bytes));
        assert!(refused.message.contains("lab") && !refused.message.contains('<'), "{refused:?}");
    }
    // An object without `data` is none either.
    let upstream = Upstream::start(Script::new(&json!([])).on("GET /pools", answer("200 OK", r#"{"ok":true}"#))).await;
    assert_eq!(upstream.client.read("lab", "GET /pools", json!({})).await.unwrap_err().code, "not_json");
}
