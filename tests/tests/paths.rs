//! Whatever text stands in a path argument, no request ever goes to another operation or to other values.

use lab::{Entry, FrontOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use pvegate_generated::model::Place;
use serde_json::{Value, json};
use tests::call::{self, Call};
use tests::client::Client;
use tests::journal;
use tests::site::{CLUSTER, Site, all_opt_in, quick};

/// Most reads of one call.
const BATCH: usize = 20;

/// Texts that mean something to a path, to a URL, to PVE or to a terminal.
const HOSTILE: &[&str] = &[
    "",
    ".",
    "..",
    "...",
    "../..",
    "%2e%2e",
    "%2E%2e%2F",
    "..%2f..",
    "a/b",
    "/",
    "//",
    "/etc/passwd",
    "%2F",
    "%252F",
    "pve1/qemu/999",
    "pve1%2Fqemu%2F999",
    "100/config",
    "100/../101",
    "localhost",
    "LOCALHOST",
    "PVE1",
    "pve1.",
    "pve2",
    "127.0.0.1",
    "?x=1",
    "100?x=1",
    "x#fragment",
    "#",
    ";",
    "a;b",
    "&",
    "a&node=pve2",
    "a=b",
    "+",
    "a b",
    "\0",
    "a\0b",
    "\r\n",
    "a\r\nHost: evil.test\r\n\r\nGET /api2/json/version",
    "\u{2215}",
    "a\u{2044}b",
    "\u{ff0f}",
    "\u{ff0e}\u{ff0e}",
    "\u{202e}abc",
    "\\..\\",
    "0100",
    "+100",
    "1e2",
    "-1",
    "99999999999999999999",
    "local:iso/../../../nodes",
    "local:../x",
    "local:iso/..",
    "local:iso/a?b",
    "nas:backup/%2e%2e/x",
    "10.0.0.0/24/..",
    "10.0.0.0/24",
    "::/0",
    "ci/..",
    "ci/../x",
    "ci/a",
    "a/b/c/d",
    "root@pam",
    "root@pam!x",
    "root@pam/token",
    "UPID:pve1:00000001:00000001:00000001:x:y/../z:root@pam:",
    "UPID:pve2:00000001:00000001:00000001:qmstart:100:root@pam:",
    "UPID:localhost:00000001:00000001:00000001:qmstart:100:root@pam:",
];

/// Parts of which random texts are made, so that many are almost right.
const PIECES: &[&str] = &[
    "/", "..", ".", "%", "%2f", "%2e", ":", ",", "@", "!", "-", "_", "~", "0", "100", "pve1", "qemu", "lxc", "config",
    "local", "iso", "nas", "10.0.0.0", "24", "ci", "UPID:", "root@pam", "a", "Z", " ", "\t", "\u{e9}",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        vec(select(PIECES), 1..7).prop_map(|pieces| pieces.concat()),
        "[a-zA-Z0-9./%:@!_-]{1,16}",
        vec(select(PIECES), 60..90).prop_map(|pieces| pieces.concat())
    ]
}

/// A valid call, and the path parameter whose value is exchanged.
struct Target {
    call: Call,
    name: &'static str,
}

struct Range {
    site: Site,
    targets: Vec<Target>,
}

impl Range {
    async fn start() -> Self {
        let site = Site::with(quick(), FrontOptions { opt_in: all_opt_in(), ..FrontOptions::default() }).await;
        let mut targets = Vec::new();
        for call in call::offered_reads(&site.lab) {
            for parameter in call.operation.params.iter().filter(|parameter| parameter.place == Place::Path) {
                targets.push(Target { call: call.clone(), name: parameter.name });
            }
        }
        Self { site, targets }
    }

    /// Tries all texts in all path parameters. How many requests arrived, or what arrived that must not.
    async fn try_all(&self, texts: &[String]) -> Result<usize, String> {
        let mut arrived = 0;
        for target in &self.targets {
            let calls: Vec<Call> = texts.iter().map(|text| target.call.with(target.name, text)).collect();
            for calls in calls.chunks(BATCH) {
                arrived += self
                    .try_some(calls)
                    .await
                    .map_err(|what| format!("{} `{}`: {what}", target.call.operation.name, target.name))?;
            }
        }
        Ok(arrived)
    }

    async fn try_some(&self, calls: &[Call]) -> Result<usize, String> {
        self.site.lab.clear_journal();
        let results = batch(&self.site.client, calls).await;
        let journal = self.site.lab.journal();
        let strays = journal::strays(&journal, calls);
        if !strays.is_empty() {
            return Err(format!("nobody asked for {strays:?}"));
        }
        for (call, result) in calls.iter().zip(&results) {
            // What is refused as an argument was not sent.
            let refused = result["error"]["code"] == "invalid_arguments";
            if refused
                && let Some(entry) =
                    journal.iter().find(|entry| !journal::is_internal(entry) && journal::is_of(entry, call))
            {
                return Err(format!("refused with {}, and yet sent: {entry:?}", result["error"]));
            }
        }
        Ok(journal.iter().filter(|entry| !journal::is_internal(entry)).count())
    }
}

async fn batch(client: &Client, calls: &[Call]) -> Vec<Value> {
    let reads: Vec<Value> = calls.iter().map(Call::as_read).collect();
    let answer = client.tool("read", json!({"cluster": CLUSTER, "reads": reads})).await.unwrap();
    let results = answer["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), calls.len());
    results
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_text_reaches_no_other_operation() {
    let range = Range::start().await;
    assert!(range.targets.len() > 300, "{} path parameters", range.targets.len());
    let mut texts: Vec<String> = HOSTILE.iter().map(|text| (*text).to_owned()).collect();
    texts.push("a".repeat(300));
    texts.push("../".repeat(5000));
    let arrived = range.try_all(&texts).await.unwrap();
    println!(
        "{} texts in {} path parameters: {arrived} requests, each the one that was asked for",
        texts.len(),
        range.targets.len()
    );
    assert!(arrived > 100, "values that are valid have to arrive, or nothing was tried: {arrived}");
}

#[test]
fn arbitrary_text_reaches_no_other_operation() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let range = runtime.block_on(Range::start());
    let config = Config { cases: 3, max_shrink_iters: 40, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&vec(text(), 10), |texts| match runtime.block_on(range.try_all(&texts)) {
        Ok(_) => Ok(()),
        Err(what) => Err(TestCaseError::fail(what)),
    });
    match outcome {
        // The texts would fill pages; the reason has the one that matters.
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        other => other.unwrap(),
    }
}

#[tokio::test]
async fn every_offered_read_arrives_where_it_should() {
    let site = Site::with(quick(), FrontOptions { opt_in: all_opt_in(), ..FrontOptions::default() }).await;
    for call in call::offered_reads(&site.lab) {
        site.lab.clear_journal();
        let result = &batch(&site.client, std::slice::from_ref(&call)).await[0];
        let journal = site.lab.journal();
        assert!(
            journal::strays(&journal, std::slice::from_ref(&call)).is_empty(),
            "{}: {journal:?}",
            call.operation.name
        );
        let arrived = journal.iter().any(|entry| journal::is_of(entry, &call));
        let needs_a_policy = result["error"]["code"] == "not_offered";
        assert!(arrived || needs_a_policy, "{}: {result}", call.operation.name);
        if needs_a_policy {
            println!("not sent: {}: {}", call.operation.name, result["error"]["message"]);
        }
    }
}

#[tokio::test]
async fn the_check_would_notice() {
    let site = Site::start().await;
    let calls: Vec<Call> = call::offered_reads(&site.lab)
        .into_iter()
        .filter(|call| call.operation.name == "GET /nodes/{node}/status")
        .collect();
    let entry = |operation: &str, params: &[(&str, &str)]| Entry {
        node: "pve1".to_owned(),
        connection: 0,
        method: "GET".to_owned(),
        raw_path: String::new(),
        decoded_path: String::new(),
        operation: Some(operation.to_owned()),
        params: params.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect(),
        status: 200,
    };
    let right = entry("GET /nodes/{node}/status", &[("node", "pve1")]);
    assert!(journal::strays(&[right], &calls).is_empty());
    for wrong in [
        entry("GET /nodes/{node}/qemu/{vmid}/config", &[("node", "pve1"), ("vmid", "999")]),
        entry("GET /nodes/{node}/status", &[("node", "pve2")]),
        entry("GET /nodes/{node}/status", &[("node", "pve1"), ("x", "1")]),
        entry("GET /cluster/resources", &[("type", "vm")]),
    ] {
        assert_eq!(journal::strays(std::slice::from_ref(&wrong), &calls).len(), 1, "{wrong:?}");
    }
    // The lab itself routes an encoded slash as PVE does: to another operation.
    let path = "/api2/json/nodes/pve1%2Fqemu%2F100/config";
    let (status, _) = crate::canary::direct(&site.lab, path).await;
    let journal = site.lab.journal();
    assert_eq!((status, journal::strays(&journal, &calls).len()), (200, 1), "{journal:?}");
}
