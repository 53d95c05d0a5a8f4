//! The same surface over a pair of streams.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use super::{Mirror, Person};
use crate::mcp::{StdioError, View, stdio::serve_streams};

/// Sends all lines, ends the input, and returns every line that came back.
async fn talk(lines: &[Value]) -> (Vec<Value>, Result<(), StdioError>) {
    talk_until(lines, None).await
}

/// The same, ending the input only when the request with this id is answered.
async fn talk_until(lines: &[Value], last: Option<u64>) -> (Vec<Value>, Result<(), StdioError>) {
    let (mut to_server, server_in) = tokio::io::duplex(1 << 16);
    let (server_out, from_server) = tokio::io::duplex(1 << 16);
    let serve = tokio::spawn(serve_streams(
        Mirror::new(),
        Arc::new(Person("local")),
        View::Gateway,
        CancellationToken::new(),
        (server_in, server_out),
    ));
    for line in lines {
        to_server.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    let mut input = last.is_some().then_some(to_server);
    let read = async {
        let (mut answers, mut lines) = (Vec::<Value>::new(), BufReader::new(from_server).lines());
        while let Some(line) = lines.next_line().await.unwrap() {
            answers.push(serde_json::from_str(&line).unwrap());
            if answers.last().unwrap()["id"].as_u64() == last {
                drop(input.take());
            }
        }
        answers
    };
    let answers = tokio::time::timeout(Duration::from_secs(10), read).await.unwrap();
    (answers, serve.await.unwrap())
}

fn answer(answers: &[Value], id: u64) -> &Value {
    answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("no answer to {id} in {answers:?}"))
}

#[tokio::test]
async fn an_older_client() {
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let (answers, ended) = talk(&[
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "show", "arguments": {"text": "ü"}}}),
        json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "no_such_tool"}}),
    ])
    .await;
    ended.unwrap();
    assert_eq!(answer(&answers, 1)["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answer(&answers, 2)["result"]["tools"].as_array().unwrap().len(), 4);
    let result = &answer(&answers, 3)["result"];
    assert_eq!(result["structuredContent"]["who"], "local");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    assert_eq!(answer(&answers, 4)["error"]["code"], -32602);
}

#[tokio::test]
async fn a_client_without_a_handshake() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let (answers, ended) = talk(&[
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "refuse", "_meta": meta}}),
    ])
    .await;
    ended.unwrap();
    assert!(answer(&answers, 1)["result"]["instructions"].is_string());
    assert_eq!(answer(&answers, 2)["result"]["isError"], true);
}

#[tokio::test]
async fn the_end_of_input_does_not_swallow_an_answer() {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "wait", "arguments": {"ms": 300}, "_meta": meta});
    let (answers, ended) = talk(&[json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})]).await;
    ended.unwrap();
    assert_eq!(answer(&answers, 1)["result"]["structuredContent"]["waited"], true);
}

#[tokio::test]
async fn a_client_that_says_nothing() {
    let (answers, ended) = talk(&[]).await;
    assert!(answers.is_empty());
    ended.unwrap();
}

#[tokio::test]
async fn progress_comes_before_the_answer() {
    let params = json!({"name": "wait", "arguments": {"ms": 10}, "_meta": {"progressToken": "p"}});
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}),
    ];
    // With the end of its input a client takes answers still, and no news.
    let (answers, ended) = talk_until(&lines, Some(2)).await;
    ended.unwrap();
    let of_progress = |answer: &&Value| answer["method"] == "notifications/progress";
    let told: Vec<&Value> = answers.iter().filter(of_progress).map(|answer| &answer["params"]["message"]).collect();
    assert_eq!(told, ["begun", "at it"]);
    let place = |wanted: &dyn Fn(&Value) -> bool| answers.iter().position(wanted).unwrap();
    assert!(place(&|answer| answer["method"] == "notifications/progress") < place(&|answer| answer["id"] == 2));
    assert_eq!(answer(&answers, 2)["result"]["structuredContent"], json!({"waited": true}));
}
