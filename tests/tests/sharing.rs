//! One store and several processes: clients on standard input that go through one server, a second server, and the
//! operator's commands beside it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use lab::FrontOptions;
use serde_json::{Value, json};
use tests::client::{Client, Refused};
use tests::program;
use tests::site::{CLUSTER, Site, low_token, quick};

use super::programs::{answer, talk};

const START: &str = "POST /nodes/{node}/qemu/{vmid}/status/start";

/// A site, the secret of a token that may do what acts at once, and a file that holds it.
async fn site() -> (Site, String, String) {
    let (secret, entry) = low_token("operator");
    let site = Site::with(quick(), FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() }).await;
    let file = site.lab.directory().join("operator.token");
    let mut written = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).unwrap();
    writeln!(written, "{secret}").unwrap();
    (site, secret, file.to_str().unwrap().to_owned())
}

fn start(key: &str) -> Value {
    json!({"cluster": CLUSTER, "operation": START, "arguments": {"vmid": 118}, "idempotency_key": key})
}

/// Runs a command of pvegate to its end: what it printed, what it said, and whether it succeeded.
async fn pvegate(arguments: &[&str]) -> (String, String, bool) {
    let mut command = Command::new(program::built("pvegate"));
    command.args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clients_on_standard_input_beside_one_over_http() {
    let (site, secret, file) = site().await;
    let url = site.front.url();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let newer = json!({"name": "run_operation", "arguments": start("the same wish"), "_meta": meta});
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let older = json!({"name": "run_operation", "arguments": start("the same wish")});
    let one = vec![json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": newer})];
    let other = vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": older}),
    ];
    let through = |lines: Vec<Value>| {
        let (url, file) = (url.clone(), file.clone());
        tokio::task::spawn_blocking(move || talk(&["serve", "--stdio", "--via", &url, "--token-file", &file], &lines))
    };
    let (one, other) = tokio::join!(through(one), through(other));
    let over_http = site.client.with_token(&secret).tool("run_operation", start("the same wish")).await.unwrap();
    let mut changes = vec![over_http["change_id"].clone()];
    for (answers, said, success) in [one.unwrap(), other.unwrap()] {
        assert!(success, "{said}");
        assert!(!said.contains(&secret), "{said}");
        changes.push(answer(&answers, 3)["result"]["structuredContent"]["change_id"].clone());
    }
    assert!(changes[0].is_string() && changes.iter().all(|change| *change == changes[0]), "{changes:?}");
    assert_eq!(site.writes().len(), 1, "one wish of one principal is done once, whichever way it comes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_by_command_while_the_server_runs() {
    let (site, secret, _) = site().await;
    let operator = site.client.with_token(&secret);
    let clusters = site.front.clusters_file().to_str().unwrap().to_owned();
    let trail = site.lab.directory().join("operator.jsonl").to_str().unwrap().to_owned();
    let place = ["--clusters", &clusters, "--audit-log", &trail];
    let run = async |command: &[&str]| pvegate(&[command, &place[..]].concat()).await;

    let (shown, _, success) = run(&["freeze", "--show"]).await;
    assert!(success && shown.trim() == "not frozen", "{shown}");
    let (_, said, success) = run(&["freeze", "--reason", "the storage is moved", "--for", "2h"]).await;
    assert!(success && said.contains("the storage is moved") && said.contains("until 2"), "{said}");
    let refused: Refused = operator.tool("run_operation", start("k")).await.unwrap_err();
    assert_eq!(refused.code, "frozen");
    assert!(refused.message.contains("the storage is moved") && refused.message.contains("uid "), "{refused:?}");
    assert!(site.writes().is_empty());
    let read = json!({"cluster": CLUSTER, "limit": 1});
    assert!(operator.tool("list_guests", read).await.is_ok(), "reads go on");
    let (shown, _, _) = run(&["freeze", "--show"]).await;
    assert!(shown.contains("the storage is moved"), "{shown}");
    let (_, said, success) = run(&["unfreeze"]).await;
    assert!(success && said.contains("possible again"), "{said}");
    let (_, said, success) = run(&["unfreeze"]).await;
    assert!(success && said.contains("was not frozen"), "{said}");
    operator.tool("run_operation", start("another")).await.unwrap();
    assert_eq!(site.writes().len(), 1);
    let lines = std::fs::read_to_string(&trail).unwrap();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&Value> = events.iter().map(|line| &line["event"]).collect();
    assert_eq!(names, ["freeze", "unfreeze"], "{lines}");
    assert!(events[0]["message"].as_str().unwrap().contains("the storage is moved"), "{lines}");

    // Where no store is, nothing would be frozen.
    let nowhere = site.lab.directory().join("nowhere.db").to_str().unwrap().to_owned();
    let (_, said, success) = run(&["freeze", "--reason", "why", "--store", &nowhere]).await;
    assert!(!success && said.contains("does not exist") && !Path::new(&nowhere).exists(), "{said}");
}

/// A server in a process of its own, which ends with its input.
struct Process {
    child: Child,
    input: ChildStdin,
    url: String,
    /// What it said before it served.
    said: String,
}

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(program::built("pvegate"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (mut said, mut line) = (String::new(), String::new());
        let url = loop {
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "it ended: {said}");
            said.push_str(&line);
            if let Some(url) = line.trim().strip_prefix("pvegate serves MCP at ") {
                break url.to_owned();
            }
        };
        // What it says from now on has to go somewhere.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        let input = child.stdin.take().unwrap();
        Self { child, input, url, said }
    }

    fn end(mut self) {
        drop(self.input);
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn files(site: &Site) -> (String, String, PathBuf) {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    (text(site.front.clusters_file()), text(site.front.tokens_file()), site.lab.directory().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_reads_and_names_the_first() {
    let (site, secret, _) = site().await;
    let (clusters, tokens, _) = files(&site);
    let serve = ["serve", "--clusters", &clusters, "--tokens", &tokens, "--listen", "127.0.0.1:0"];
    let second = Process::start(&serve);
    assert!(second.said.contains("pvegate only reads") && second.said.contains("of a lab"), "{}", second.said);
    let client = Client::new(&second.url, &secret);
    assert!(client.tool("list_guests", json!({"cluster": CLUSTER, "limit": 1})).await.is_ok());
    let refused = client.tool("run_operation", start("k")).await.unwrap_err();
    assert!(refused.message.contains("of a lab"), "the holder is named: {refused:?}");
    assert!(site.writes().is_empty());
    second.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alone_on_standard_input_it_listens_for_those_who_have_a_token() {
    let (site, secret, _) = site().await;
    let (clusters, tokens, folder) = files(&site);
    let store = folder.join("alone.db").to_str().unwrap().to_owned();
    let serve = ["serve", "--stdio", "--clusters", &clusters, "--tokens", &tokens, "--store", &store];
    let alone = Process::start(&[&serve[..], &["--listen", "127.0.0.1:0"]].concat());
    assert!(!alone.said.contains("only reads"), "{}", alone.said);
    let client = Client::new(&alone.url, &secret);
    client.tool("run_operation", start("k")).await.unwrap();
    assert_eq!(site.writes().len(), 1);
    alone.end();
}
