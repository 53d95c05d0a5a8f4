//! Both eras of the protocol over HTTP, and what clients see of lists and results.

use serde_json::{Value, json};

use super::{Site, send};

fn names(list: &Value) -> Vec<&str> {
    list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn discover_names_the_server_and_tells_how_to_use_it() {
    let site = Site::start().await;
    let (status, body) = site.modern("/mcp", "server/discover", json!({})).await;
    assert_eq!(status, 200, "{body}");
    let result = &body["result"];
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "pvegate");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(result["supportedVersions"], json!(["2025-06-18", "2025-11-25", "2026-07-28"]));
    assert_eq!(result["cacheScope"], "private");
    assert!(result["ttlMs"].as_u64().unwrap() > 0);
    assert_eq!(result["capabilities"], json!({"tools": {}}));
    let instructions = result["instructions"].as_str().unwrap();
    assert!(instructions.contains("search_operations") && instructions.contains("describe_operation"));
    assert!(instructions.len() < 1000, "models read this every time: {}", instructions.len());
}

#[tokio::test]
async fn both_eras_list_the_same_tools() {
    let site = Site::start().await;
    let (status, modern) = site.modern("/mcp", "tools/list", json!({})).await;
    assert_eq!(status, 200, "{modern}");
    assert_eq!(names(&modern), ["show", "refuse", "wait", "big"]);
    assert_eq!(modern["id"], 7);
    assert_eq!(modern["result"]["cacheScope"], "private");
    assert!(modern["result"]["ttlMs"].as_u64().unwrap() > 0);
    assert_eq!(modern["result"]["resultType"], "complete");
    for version in ["2025-06-18", "2025-11-25"] {
        let (status, legacy) = site.legacy(version, "tools/list", json!({})).await;
        assert_eq!(status, 200, "{legacy}");
        assert_eq!(legacy["result"]["tools"], modern["result"]["tools"]);
        assert_eq!(legacy["result"].as_object().unwrap().len(), 1, "an older client gets what it knows: {legacy}");
        assert_eq!(legacy["id"], "seven");
    }
}

#[tokio::test]
async fn an_older_client_initializes_without_getting_a_session() {
    let site = Site::start().await;
    for (asked, agreed) in [("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("2024-11-05", "2025-11-25")] {
        let params =
            json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
        let response = site.post("/mcp").body(body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("mcp-session-id"));
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["result"]["protocolVersion"], agreed);
        assert_eq!(body["result"]["serverInfo"]["name"], "pvegate");
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(send(site.post("/mcp").body(notification)).await.0, 202);
}

#[tokio::test]
async fn results_are_text_and_structured_content() {
    let site = Site::start().await;
    let params = json!({"name": "show", "arguments": {"text": "a \"b\" \\ ü\n"}});
    let (status, modern) = site.modern("/mcp", "tools/call", params.clone()).await;
    assert_eq!(status, 200, "{modern}");
    let shown = &modern["result"]["structuredContent"];
    assert_eq!(shown["who"], "ann");
    assert_eq!(shown["id"], "7");
    assert_eq!(shown["arguments"]["text"], "a \"b\" \\ ü\n");
    assert_eq!(modern["result"]["isError"], false);
    let text: Value = serde_json::from_str(modern["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(&text, shown);

    let (status, legacy) = site.legacy("2025-11-25", "tools/call", params).await;
    assert_eq!(status, 200, "{legacy}");
    assert_eq!(legacy["result"]["structuredContent"]["arguments"], shown["arguments"]);
    assert!(legacy["result"].get("resultType").is_none());
}

#[tokio::test]
async fn a_refusal_is_an_error_that_models_can_read() {
    let site = Site::start().await;
    for (_, body) in [
        site.modern("/mcp", "tools/call", json!({"name": "refuse"})).await,
        site.legacy("2025-06-18", "tools/call", json!({"name": "refuse"})).await,
    ] {
        let result = &body["result"];
        assert_eq!(result["isError"], true, "{body}");
        assert!(result.get("structuredContent").is_none());
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, json!({"code": "not_granted", "message": "no grant for guest 100", "next": "Ask for one."}));
    }
}

#[tokio::test]
async fn what_no_model_can_put_right_is_a_protocol_error() {
    let site = Site::start().await;
    let (_, body) = site.modern("/mcp", "tools/call", json!({"name": "no_such_tool"})).await;
    assert_eq!(body["error"]["code"], -32602);
    assert!(body["error"]["message"].as_str().unwrap().contains("no_such_tool"));
    let (_, body) = site.legacy("2025-11-25", "tools/call", json!({"name": "show", "arguments": [1]})).await;
    assert_eq!(body["error"]["code"], -32602, "{body}");
    let (_, body) = site.modern("/mcp", "tools/list", json!({"cursor": "x"})).await;
    assert_eq!(body["error"]["code"], -32602);
    let (status, body) = site.modern("/mcp", "resources/list", json!({})).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!(-32601)));
    let (status, body) = site.modern("/mcp", "no/such/method", json!({})).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!(-32601)));
}

#[tokio::test]
async fn the_path_picks_the_list_and_nothing_else_does() {
    let site = Site::start().await;
    let (_, before) = site.modern("/mcp", "tools/list", json!({})).await;
    let (_, toolset) = site.modern("/mcp/x/snapshots", "tools/list", json!({})).await;
    assert_eq!(names(&toolset), ["list_snapshots"]);
    for (path, view) in
        [("/mcp", "Gateway"), ("/mcp/readonly", "ReadOnly"), ("/mcp/x/snapshots", "Toolset(\"snapshots\")")]
    {
        let (_, body) = site.modern(path, "tools/call", json!({"name": "show"})).await;
        assert_eq!(body["result"]["structuredContent"]["view"], view);
    }
    let (_, after) = site.modern("/mcp", "tools/list", json!({})).await;
    assert_eq!(before, after);
    let (status, body) = site.modern("/mcp/x/nothing", "tools/list", json!({})).await;
    assert_eq!((status, &body["code"]), (404, &json!("no_such_toolset")));
    let (status, body) = site.modern("/elsewhere", "tools/list", json!({})).await;
    assert_eq!((status, &body["code"]), (404, &json!("no_such_path")));
}

#[tokio::test]
async fn an_answer_beyond_all_bounds_is_refused_whole() {
    let site = Site::start().await;
    let (_, body) = site.modern("/mcp", "tools/call", json!({"name": "big"})).await;
    assert_eq!(body["result"]["isError"], true);
    assert!(body["result"]["content"][0]["text"].as_str().unwrap().contains("answer_too_large"));
}
