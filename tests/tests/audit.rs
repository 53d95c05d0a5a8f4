//! The trail: what it holds of calls and refusals, and that it is written whatever the log is set to.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab::{Fault, FrontOptions};
use pvegate::audit::Audit;
use pvegate::mcp::Limits;
use serde_json::{Value, json};
use tests::client::{Client, Era};
use tests::program;
use tests::site::{CLUSTER, Site, quick};

/// A file that a server writes its trail to.
struct Trail {
    folder: tempfile::TempDir,
}

impl Trail {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("audit.jsonl")
    }

    async fn site(&self, options: FrontOptions) -> Site {
        Site::with(quick(), FrontOptions { audit: Some(Audit::file(&self.path()).unwrap()), ..options }).await
    }

    /// Every line, and each is JSON of its own.
    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
    }

    /// The last line, without what differs from run to run.
    fn last(&self) -> Value {
        let mut line = self.lines().pop().unwrap();
        let entries = line.as_object_mut().unwrap();
        assert!(entries.remove("time").is_some());
        if entries.contains_key("tool") {
            assert!(entries.remove("duration_ms").is_some_and(|took| took.is_u64()));
        }
        assert!(entries.remove("request_id").is_some_and(|id| !id.as_str().unwrap().is_empty()));
        line
    }
}

fn expected(event: &str, outcome: &str, more: Value) -> Value {
    let mut line = json!({
        "event": event, "principal": "reader", "actor": "agent", "outcome": outcome,
        "asserted": {"verified": false, "client": "test", "client_version": "1", "request_id": "1"},
    });
    let Value::Object(more) = more else { panic!() };
    line.as_object_mut().unwrap().extend(more);
    line
}

#[tokio::test]
async fn every_call_and_refusal_leaves_one_line() {
    let trail = Trail::new();
    let site = trail.site(FrontOptions::default()).await;
    let client = site.client.of(Era::Newer);
    assert_eq!(trail.lines().len(), 1);
    assert_eq!(trail.lines()[0]["event"], "start");
    let (qemu, lxc) = ("GET /nodes/{node}/qemu/{vmid}/config", "GET /nodes/{node}/lxc/{vmid}/config");
    let status = "GET /nodes/{node}/status";
    let read = |operation: &str, arguments: Value| json!({"operation": operation, "arguments": arguments});
    let mut count = 1;
    for (tool, arguments, event, outcome, more) in [
        ("list_guests", json!({}), "call", "ok", json!({})),
        (
            "get_guest",
            json!({"cluster": CLUSTER, "vmid": 100}),
            "call",
            "ok",
            json!({"cluster": CLUSTER, "target": {"vmid": 100}}),
        ),
        (
            "get_vm_config",
            json!({"cluster": CLUSTER, "vmid": 100, "fields": ["cores"]}),
            "call",
            "ok",
            json!({"cluster": CLUSTER, "operation": qemu, "tier": "read", "target": {"vmid": 100}}),
        ),
        (
            "get_node_status",
            json!({"cluster": CLUSTER, "node": "no-such-node"}),
            "refused",
            "not_found",
            json!({"cluster": CLUSTER, "operation": status, "tier": "read", "target": {"node": "no-such-node"}}),
        ),
        (
            "read",
            json!({"cluster": CLUSTER, "reads": [
                read(qemu, json!({"vmid": 100, "current": 1})),
                read(lxc, json!({"vmid": 4711})),
                read("GET /no/such/operation", json!({"vmid": 1})),
                read("POST /nodes/{node}/qemu/{vmid}/status/stop", json!({"vmid": 100})),
            ]}),
            "call",
            "ok",
            json!({"cluster": CLUSTER, "operations": [
                {"operation": qemu, "tier": "read", "target": {"vmid": 100}, "outcome": "ok"},
                {"operation": lxc, "tier": "read", "target": {"vmid": 4711}, "outcome": "not_found"},
                {"operation": "GET /no/such/operation", "outcome": "no_such_operation"},
                {"operation": "POST /nodes/{node}/qemu/{vmid}/status/stop", "tier": "low", "target": {"vmid": 100}, "outcome": "not_a_read"},
            ]}),
        ),
        (
            "describe_operation",
            json!({"operation": status}),
            "call",
            "ok",
            json!({"operation": status, "tier": "read"}),
        ),
        ("list_guests", json!({"cluster": "elsewhere"}), "refused", "no_such_cluster", json!({"cluster": "elsewhere"})),
        ("no_such_tool", json!({"vmid": 1}), "refused", "unknown_tool", json!({})),
    ] {
        let _ = client.tool(tool, arguments).await;
        count += 1;
        assert_eq!(trail.lines().len(), count, "{tool}");
        let mut line = expected(event, outcome, more);
        line["tool"] = Value::from(tool);
        assert_eq!(trail.last(), line);
    }
    let ids: std::collections::BTreeSet<String> =
        trail.lines().iter().filter_map(|line| line["request_id"].as_str().map(str::to_owned)).collect();
    assert_eq!(ids.len(), count - 1, "every request has a number of its own");
}

#[tokio::test]
async fn what_a_client_says_is_short_and_marked_and_no_argument_is_repeated() {
    let trail = Trail::new();
    let site = trail.site(FrontOptions::default()).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "c\u{1b}[2J".repeat(100), "version": "v".repeat(5000)},
    });
    let _ = site.client.tool("a\nb\u{202e}", json!({})).await;
    assert_eq!(trail.last()["tool"], "a\\nb\\u{202e}");
    let params = json!({"name": "list_guests", "arguments": {"query": "words-of-the-caller", "cluster": "x".repeat(5000)}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": "i".repeat(5000), "method": "tools/call", "params": params});
    let request = site.client.of(Era::Newer).request("tools/call", json!({"name": "list_guests"}));
    request.body(body.to_string()).send().await.unwrap();
    let line = trail.last();
    let asserted = &line["asserted"];
    assert_eq!(asserted["verified"], false);
    for text in [&asserted["client"], &asserted["client_version"], &asserted["request_id"], &line["cluster"]] {
        let text = text.as_str().unwrap();
        assert!(text.len() <= 128 && text.len() > 100 && text.ends_with('…'), "{text}");
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    assert!(!line.to_string().contains("words-of-the-caller"), "{line}");
}

#[tokio::test]
async fn what_reaches_no_tool_leaves_a_line_too() {
    let trail = Trail::new();
    let limits = Limits { body_bytes: 2000, ..Limits::default() };
    let site = trail.site(FrontOptions { limits, ..FrontOptions::default() }).await;
    let call = || site.client.request("tools/call", json!({"name": "list_guests", "arguments": {}}));
    let somebody = site.client.with_token("pvegate_not-a-token-of-this-server");
    for (request, status, code, known) in [
        (somebody.request("tools/list", json!({})), 401, "unauthorized", false),
        (call().header("host", "evil.test"), 403, "host_not_allowed", false),
        (call().header("origin", "https://evil.test"), 403, "origin_not_allowed", false),
        (site.client.at("/elsewhere").request("tools/list", json!({})), 404, "no_such_path", true),
        (site.client.at("/mcp/x/nothing").request("tools/list", json!({})), 404, "no_such_toolset", true),
        (call().body("x".repeat(3000)), 413, "body_too_large", true),
        (call().body("{"), 400, "protocol", true),
    ] {
        let before = trail.lines().len();
        assert_eq!(request.send().await.unwrap().status().as_u16(), status, "{code}");
        assert_eq!(trail.lines().len(), before + 1, "{code}");
        let mut line = json!({"event": "refused", "outcome": code, "status": status});
        if known {
            line["principal"] = "reader".into();
            line["actor"] = "agent".into();
        }
        assert_eq!(trail.last(), line);
    }
    // A method that does not exist, and parameters that are none.
    for (method, params) in [("no/such/method", json!({})), ("tools/call", json!({"name": 1}))] {
        let before = trail.lines().len();
        site.client.raw(method, params).await;
        assert_eq!(trail.lines().len(), before + 1, "{method}");
        assert_eq!((&trail.last()["event"], &trail.last()["principal"]), (&json!("refused"), &json!("reader")));
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_a_line() {
    let trail = Trail::new();
    let site = trail.site(FrontOptions::default()).await;
    site.lab.set_fault(Fault::Slow(Duration::from_mins(1))).await;
    let call = json!({"name": "get_node_status", "arguments": {"cluster": CLUSTER, "node": "pve1"}});
    let request = site.client.of(Era::Newer).request("tools/call", call).timeout(Duration::from_millis(300));
    request.send().await.unwrap_err();
    let start = Instant::now();
    while trail.lines().len() < 2 {
        assert!(start.elapsed() < Duration::from_secs(10), "no line for a call whose client is gone");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((&trail.last()["event"], &trail.last()["outcome"]), (&json!("call"), &json!("hung_up")));
}

/// A running program that stops with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(site: &Site, more: &[&str]) -> Self {
        let mut command = serve(site, more);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.find_map(|line| Some(line.strip_prefix("pvegate serves MCP at ")?.to_owned())).unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    fn hang_up(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::HUP).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `pvegate serve` with the files of a site and every log off.
fn serve(site: &Site, more: &[&str]) -> Command {
    let mut command = Command::new(program::built("pvegate"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--clusters"]).arg(site.front.clusters_file());
    command.arg("--tokens").arg(site.front.tokens_file()).args(more);
    command.env("PVEGATE_LOG", "off").env("RUST_LOG", "off").env_remove("PVEGATE_AUDIT_LOG");
    command
}

async fn wait_for(path: &Path, text: &str) {
    let start = Instant::now();
    while !std::fs::read_to_string(path).is_ok_and(|there| there.contains(text)) {
        assert!(start.elapsed() < Duration::from_secs(20), "{} has no {text}", path.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_is_written_with_every_log_off_and_opened_anew_at_sighup() {
    let (trail, site) = (Trail::new(), Site::start().await);
    let path = trail.path();
    let server = Server::start(&site, &["--audit-log", path.to_str().unwrap()]);
    let client = Client::new(&server.url, site.front.reader());
    client.tool("list_guests", json!({})).await.unwrap();
    let events: Vec<Value> = trail.lines().iter().map(|line| line["event"].clone()).collect();
    assert_eq!(events, ["start", "call"]);
    let moved = trail.folder.path().join("audit.jsonl.1");
    std::fs::rename(&path, &moved).unwrap();
    server.hang_up();
    wait_for(&path, r#""event":"reload""#).await;
    client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!(trail.last()["event"], "call");
    assert_eq!(std::fs::read_to_string(&moved).unwrap().lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_written_stops_the_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let (trail, site) = (Trail::new(), Site::start().await);
    std::fs::write(trail.path(), "").unwrap();
    std::fs::set_permissions(trail.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    for (path, why) in [(trail.path(), "chmod 600"), (trail.folder.path().join("no/folder"), "cannot be opened")] {
        let output = serve(&site, &["--audit-log", path.to_str().unwrap()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(path.to_str().unwrap()) && said.contains(why), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_file_it_is_on_standard_error() {
    let site = Site::start().await;
    let mut child = serve(&site, &[]).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut url = String::new();
    while !url.starts_with("pvegate serves MCP at ") {
        url.clear();
        assert!(errors.read_line(&mut url).unwrap() > 0);
    }
    let url = url.trim_end().strip_prefix("pvegate serves MCP at ").unwrap();
    Client::new(url, site.front.reader()).tool("list_clusters", json!({})).await.unwrap();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let mut said = String::new();
    errors.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&Value> = said.iter().map(|line| &line["event"]).collect();
    assert_eq!(events, ["call", "stop"], "{said:?}");
}
