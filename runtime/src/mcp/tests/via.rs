//! Standard input that goes through a running server: the same answers as from that server itself, in every revision.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Site;
use crate::via::{ViaError, forward};

/// A client on standard input, as it sees the program.
struct Talk {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    ended: JoinHandle<Result<(), ViaError>>,
    _folder: TempDir,
}

fn token_file(token: &str) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, token).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    (folder, path)
}

impl Talk {
    fn start(url: &str, token: &str) -> Self {
        let (folder, path) = token_file(token);
        let (input, server_in) = tokio::io::duplex(1 << 16);
        let (output, server_out) = tokio::io::duplex(1 << 16);
        let url = url.to_owned();
        let ended =
            tokio::spawn(async move { forward(&url, &path, (server_in, server_out), CancellationToken::new()).await });
        Self { input: Some(input), output: BufReader::new(output).lines(), ended, _folder: folder }
    }

    async fn say(&mut self, line: &Value) {
        self.raw(&line.to_string()).await;
    }

    async fn raw(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.output.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line.unwrap_or_else(|| panic!("the program ended"))).unwrap()
    }

    async fn ask(&mut self, line: &Value) -> Value {
        self.say(line).await;
        self.hear().await
    }

    /// Hangs up, and returns what still came.
    async fn end(mut self) -> Vec<Value> {
        drop(self.input.take());
        let mut rest = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.ended.await.unwrap().unwrap();
        rest
    }
}

fn initialize(version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params})
}

fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[allow(clippy::needless_pass_by_value, reason = "calls read better with the value in place")]
fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[tokio::test]
async fn older_clients() {
    let site = Site::start().await;
    for version in ["2025-06-18", "2025-11-25"] {
        let mut talk = Talk::start(&site.url("/mcp"), "token-of-bob\n");
        // All at once, as nothing says that a client waits.
        talk.say(&initialize(version)).await;
        talk.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        talk.say(&call(2, "show", json!({"text": "ü\u{2028}"}))).await;
        assert_eq!(talk.hear().await["result"]["protocolVersion"], version);
        let shown = talk.hear().await;
        assert_eq!(shown["id"], 2);
        assert_eq!(shown["result"]["structuredContent"]["who"], "bob", "{shown}");
        assert_eq!(shown["result"]["structuredContent"]["arguments"], json!({"text": "ü\u{2028}"}));
        let listed = talk.ask(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})).await;
        let (_, direct) = site.legacy(version, "tools/list", json!({})).await;
        assert_eq!(listed["result"], direct["result"]);
        assert_eq!(talk.ask(&call(4, "refuse", json!({}))).await["result"]["isError"], true);
        assert_eq!(talk.ask(&call(5, "no_such_tool", json!({}))).await["error"]["code"], -32602);
        assert_eq!(talk.end().await, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn a_client_without_a_handshake() {
    let site = Site::start().await;
    let mut talk = Talk::start(&site.url("/"), "token-of-ann");
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "show", "arguments": {"text": "x"}})),
        // Not a name that a header can hold as it is.
        ("tools/call", json!({"name": " ü", "arguments": {}})),
        ("tools/call", json!({"name": "=?base64?eA==?=", "arguments": {}})),
        ("no/such_method", json!({})),
    ] {
        let (through, (_, direct)) =
            (talk.ask(&modern(7, method, params.clone())).await, site.modern("/mcp", method, params.clone()).await);
        assert_eq!(through["id"], 7, "{through}");
        if direct["error"]["code"] == -32020 || direct["error"].is_null() && !direct["result"].is_object() {
            // The test's own client cannot send that name; the server knows it as one that it does not have.
            assert_eq!(through["error"]["code"], -32602, "{method} {params}: {through}");
            continue;
        }
        assert_eq!((&through["result"], &through["error"]), (&direct["result"], &direct["error"]), "{method} {params}");
    }
    talk.end().await;
}

#[tokio::test]
async fn progress_comes_before_the_answer() {
    let site = Site::start().await;
    let mut talk = Talk::start(&site.url("/mcp"), "token-of-ann");
    let older = json!({"name": "wait", "arguments": {"ms": 10}, "_meta": {"progressToken": "p"}});
    talk.ask(&initialize("2025-11-25")).await;
    for request in [
        json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": older.clone()}),
        modern(8, "tools/call", older),
    ] {
        talk.say(&request).await;
        let told = [talk.hear().await, talk.hear().await];
        for (told, message) in told.iter().zip(["begun", "at it"]) {
            assert_eq!((&told["params"]["message"], &told["params"]["progressToken"]), (&json!(message), &json!("p")));
        }
        let answer = talk.hear().await;
        assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["waited"]), (&json!(8), &json!(true)));
    }
    talk.end().await;
}

#[tokio::test]
async fn what_is_cancelled_ends_and_is_not_answered() {
    let site = Site::start().await;
    let mut talk = Talk::start(&site.url("/mcp"), "token-of-ann");
    let params = json!({"name": "wait", "arguments": {"ms": 600_000}, "_meta": {"progressToken": 1}});
    talk.say(&modern(9, "tools/call", params)).await;
    assert_eq!(talk.hear().await["params"]["message"], "begun");
    assert_eq!(talk.hear().await["params"]["message"], "at it");
    talk.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})).await;
    // Others are answered meanwhile, and the server has let the call go.
    assert_eq!(talk.ask(&modern(10, "tools/list", json!({}))).await["id"], 10);
    let gone = async {
        while site.surface.dropped.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    assert_eq!(talk.end().await, Vec::<Value>::new());
}

#[tokio::test]
async fn calls_go_side_by_side_and_the_end_of_input_swallows_none() {
    let site = Site::start().await;
    let mut talk = Talk::start(&site.url("/mcp"), "token-of-ann");
    for (id, ms) in [(1, 400), (2, 1)] {
        talk.say(&modern(id, "tools/call", json!({"name": "wait", "arguments": {"ms": ms}}))).await;
    }
    let ids: Vec<Value> = talk.end().await.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [2, 1]);
}

#[tokio::test]
async fn lines_that_are_no_messages() {
    let site = Site::start().await;
    let mut talk = Talk::start(&site.url("/mcp"), "token-of-ann");
    for (line, code) in [("{", -32700), ("[]", -32600), ("7", -32600)] {
        talk.raw(line).await;
        let answer = talk.hear().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null), "{line}");
    }
    talk.raw("").await;
    talk.raw(&format!("\"{}\"", "x".repeat(9 << 20))).await;
    assert_eq!(talk.hear().await["error"]["code"], -32600);
    assert_eq!(talk.ask(&modern(1, "tools/list", json!({}))).await["id"], 1, "what follows is heard");
    talk.end().await;
}

#[tokio::test]
async fn refusals_of_the_server_are_errors_that_say_what_to_do() {
    let site = Site::start().await;
    for (path, token, said) in [
        ("/mcp", "token-of-nobody", "not known to this server"),
        ("/mcp/x/nothing", "token-of-ann", "no toolset of this name"),
        ("/elsewhere", "token-of-ann", "MCP is at /mcp"),
    ] {
        let mut talk = Talk::start(&site.url(path), token);
        talk.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let answer = talk.ask(&modern(3, "tools/list", json!({}))).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-32000)), "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(said) && message.contains(path) && !message.contains(token), "{message}");
        assert_eq!(talk.end().await, Vec::<Value>::new(), "a notification is not answered");
    }
}

#[tokio::test]
async fn a_server_that_is_away_or_goes_away() {
    let Site { server, surface: _surface, client: _ } = Site::start().await;
    let url = server.url();
    let mut talk = Talk::start(&url, "token-of-ann");
    assert_eq!(talk.ask(&modern(1, "tools/list", json!({}))).await["id"], 1);
    server.stop().await;
    let answer = talk.ask(&modern(2, "tools/list", json!({}))).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("nothing was sent") && message.contains(&url), "{message}");

    // One that takes a call and says nothing: it may have been done.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut talk = Talk::start(&url, "token-of-ann");
    talk.say(&modern(3, "tools/call", json!({"name": "show", "arguments": {}}))).await;
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = [0_u8; 1024];
    let taken = tokio::io::AsyncReadExt::read(&mut stream, &mut head).await.unwrap();
    assert!(taken > 0);
    drop(stream);
    let answer = talk.hear().await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(answer["id"] == 3 && message.contains("may have been done"), "{message}");
}

#[tokio::test]
async fn what_cannot_be_gone_through() {
    let (_folder, token) = token_file("token-of-ann");
    let through = async |url: &str, token: &std::path::Path| {
        let streams = (tokio::io::empty(), tokio::io::sink());
        forward(url, token, streams, CancellationToken::new()).await.unwrap_err().to_string()
    };
    for url in ["https://127.0.0.1:1/mcp", "http://192.0.2.1/mcp", "http://example.org", "http://127.0.0.1.example.org"]
    {
        let error = through(url, &token).await;
        assert!(error.contains(url) && error.contains("this machine only"), "{error}");
    }
    assert!(through("nonsense", &token).await.contains("not a URL"));
    let url = "http://127.0.0.1:1/mcp";
    for (text, said) in [("", "empty"), ("two tokens", "more than one")] {
        let (_folder, token) = token_file(text);
        assert!(through(url, &token).await.contains(said));
    }
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = through(url, &token).await;
    assert!(error.contains("chmod 600") && !error.contains("token-of-ann"), "{error}");
}
