//! The programs as users start them: `pvegate serve --stdio`, and the lab with `--json`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::client::Client;
use tests::program;
use tests::site::Site;

/// Waits for a program to end by itself.
fn ended(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("the program did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Says these lines, closes standard input, and returns every line that came and the exit.
pub fn talk(arguments: &[&str], lines: &[Value]) -> (Vec<Value>, String, bool) {
    let mut command = Command::new(program::built("pvegate"));
    command.args(arguments).env_remove("PVEGATE_LOG");
    // A proxy that the environment names is not used: nothing listens there, and all the calls below succeed.
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1").env(name.to_lowercase(), "http://127.0.0.1:1");
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let (mut output, mut errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let said = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).unwrap();
        text
    });
    let heard = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    });
    for line in lines {
        // A program that refuses to start has closed its input already.
        let _ = writeln!(input, "{line}");
    }
    drop(input);
    let status = ended(&mut child);
    let answers = heard
        .join()
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not a line of the protocol: {line}")))
        .collect();
    (answers, said.join().unwrap(), status.success())
}

pub fn answer(answers: &[Value], id: u64) -> &Value {
    answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("no answer to {id} in {answers:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_standard_input_and_output() {
    let site = Site::start().await;
    let file = site.front.clusters_file().to_str().unwrap().to_owned();
    let (answers, said, success) = tokio::task::spawn_blocking(move || {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        talk(
            &["serve", "--stdio", "--clusters", &file],
            &[
                json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
                json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
                json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_guests", "arguments": {"limit": 3}}}),
                json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "get_guest", "arguments": {"cluster": "lab", "vmid": 4711}}}),
                json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "no_such_tool", "arguments": {}}}),
            ],
        )
    })
    .await
    .unwrap();
    assert!(success, "{said}");
    assert_eq!(answers.len(), 5, "{answers:?}");
    assert_eq!(answer(&answers, 1)["result"]["serverInfo"]["name"], "pvegate");
    assert_eq!(
        answer(&answers, 2)["result"]["tools"],
        Value::from(site.client.tools().await),
        "the same list as over HTTP"
    );
    let listed = &answer(&answers, 3)["result"]["structuredContent"];
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["total"]), (3, &json!(40)));
    assert_eq!(answer(&answers, 4)["result"]["isError"], true);
    assert_eq!(answer(&answers, 5)["error"]["code"], -32602);
    assert!(
        said.contains(r#""event":"call""#) && !said.contains('\u{1b}'),
        "the log of calls, without colors: {said:?}"
    );
    let token = site.lab.full_token();
    assert!(!said.contains(token.split_once('=').unwrap().1), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_toolset_over_standard_input_and_output() {
    let site = Site::start().await;
    let file = site.front.clusters_file().to_str().unwrap().to_owned();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let (answers, unknown) = tokio::task::spawn_blocking(move || {
        let serve = ["serve", "--stdio", "--clusters", &file, "--toolset"];
        let (answers, said, success) = talk(&[&serve[..], &["snapshots"]].concat(), &[list]);
        assert!(success, "{said}");
        (answers, talk(&[&serve[..], &["nothing"]].concat(), &[]))
    })
    .await
    .unwrap();
    assert_eq!(answer(&answers, 1)["result"]["tools"], Value::from(site.client.at("/mcp/x/snapshots").tools().await));
    let (answers, said, success) = unknown;
    assert!(!success && answers.is_empty() && said.contains("nothing"), "{said}");
}

#[test]
fn what_cannot_start_says_why_and_fails() {
    for (arguments, named) in [
        (&["serve", "--stdio", "--clusters", "no-such-file.json"][..], "no-such-file.json"),
        (&["serve", "--clusters", "no-such-file.json", "--tokens", "nor-this.json"], "nor-this.json"),
    ] {
        let (answers, said, success) = talk(arguments, &[]);
        assert!(!success && answers.is_empty() && said.contains(named), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn an_address_beyond_this_machine_is_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let site = runtime.block_on(Site::start());
    let (clusters, tokens) = (site.front.clusters_file().to_str().unwrap(), site.front.tokens_file().to_str().unwrap());
    let (_, said, success) = talk(&["serve", "--clusters", clusters, "--tokens", tokens, "--listen", "0.0.0.0:0"], &[]);
    assert!(!success && said.contains("0.0.0.0:0") && said.contains("loopback"), "{said}");
}

#[test]
fn the_lab_refuses_a_fault_of_a_node_that_it_does_not_have() {
    let mut child = Command::new(program::built("lab"))
        .args(["--fault", "dead-node:pve9"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = ended(&mut child);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!status.success(), "{said}");
    assert!(said.contains("no node `pve9`") && said.contains("pve1, pve2, pve3"), "{said}");
}

#[test]
fn the_lab_tells_programs_how_to_connect() {
    let mut child = Command::new(program::built("lab"))
        .arg("--json")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    // One object, on however many lines.
    let mut text = String::new();
    let json: Value = loop {
        assert!(output.read_line(&mut text).unwrap() > 0, "it ended after {text}");
        if let Ok(json) = serde_json::from_str(&text) {
            break json;
        }
    };
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    for key in ["mcp_url", "clusters", "tokens"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    let names: Vec<_> = json["clusters"].as_array().unwrap().iter().map(|cluster| &cluster["name"]).collect();
    assert_eq!(names, ["lab", "solo"]);
    let nodes = |at: usize| json["clusters"][at]["endpoints"].as_array().unwrap().len();
    assert_eq!((nodes(0), nodes(1)), (3, 1));
    let cluster = &json["clusters"][0];
    assert!(cluster["url"].as_str().unwrap().starts_with("https://127.0.0.1:"), "{json}");
    let ca = cluster["ca_path"].as_str().unwrap().to_owned();
    assert!(std::fs::read_to_string(&ca).unwrap().contains("BEGIN CERTIFICATE"));
    assert!(cluster["full_token"].as_str().unwrap().starts_with("pvegate@pve!full="), "{json}");
    assert_eq!(cluster["endpoints"][2]["fingerprint"].as_str().unwrap().split(':').count(), 32, "{json}");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    pvegate::serve::install_crypto();
    let client = Client::new(json["mcp_url"].as_str().unwrap(), json["tokens"]["reader"].as_str().unwrap());
    let guests = |arguments: Value| runtime.block_on(client.tool("list_guests", arguments)).unwrap();
    for (cluster, total) in [("lab", 40), ("solo", 6)] {
        assert_eq!(guests(json!({"cluster": cluster, "limit": 1}))["total"], total);
    }
    let both = guests(json!({}));
    let mut vmids: Vec<_> = both["items"].as_array().unwrap().iter().map(|row| row["vmid"].as_u64()).collect();
    vmids.sort_unstable();
    let listed = vmids.len();
    vmids.dedup();
    assert_eq!((listed, vmids.len()), (46, 43), "three ids are those of a guest in each cluster");

    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = ended(&mut child);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(status.success(), "{status}: {said}");
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.trim(), "", "one object and nothing else");
    assert!(!std::path::Path::new(&ca).exists(), "its files go away with it");
}
