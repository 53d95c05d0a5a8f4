//! Every field of the lab that may hold a secret is marked, every read is called, and the mark shows up nowhere.

use std::collections::{BTreeMap, BTreeSet};

use lab::{Fault, FrontOptions, Lab, Options};
use pvegate_generated::catalog::{self, OPERATIONS};
use pvegate_generated::model::Offered;
use pvegate_generated::terms::Role;
use pvegate_generated::tools::TOOLS;
use serde_json::{Value, json};
use tests::call::{self, Call};
use tests::client::{Era, outcome};
use tests::log;
use tests::site::{CLUSTER, Site, all_opt_in, quick};

use crate::named;

const CANARY: &str = "zebra-canary-5150";

/// Reads whose answers may hold a secret that no list of names can mask.
const MAY_HOLD_A_SECRET: [&str; 19] = [
    "GET /access/domains/{realm}",
    "GET /access/users",
    "GET /access/users/{userid}",
    "GET /cluster/acme/plugins",
    "GET /cluster/acme/plugins/{id}",
    "GET /cluster/config/join",
    "GET /cluster/metrics/server",
    "GET /cluster/metrics/server/{id}",
    "GET /cluster/sdn/dns",
    "GET /cluster/sdn/dns/{dns}",
    "GET /cluster/sdn/ipams",
    "GET /cluster/sdn/ipams/{ipam}",
    "GET /nodes/{node}/journal",
    "GET /nodes/{node}/qemu/{vmid}/agent/exec-status",
    "GET /nodes/{node}/qemu/{vmid}/cloudinit/dump",
    "GET /nodes/{node}/report",
    "GET /nodes/{node}/subscription",
    "GET /nodes/{node}/syslog",
    "GET /nodes/{node}/vzdump/extractconfig",
];

/// Other answers in which secrets stand among harmless things, or in text.
const MASKED: [&str; 8] = [
    "GET /nodes/{node}/qemu/{vmid}/config",
    "GET /nodes/{node}/lxc/{vmid}/config",
    "GET /nodes/{node}/qemu/{vmid}/pending",
    "GET /nodes/{node}/lxc/{vmid}/pending",
    "GET /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config",
    "GET /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config",
    "GET /cluster/options",
    "GET /nodes/{node}/tasks/{upid}/log",
];

/// Asks the lab without pvegate.
pub(crate) async fn direct(lab: &Lab, path: &str) -> (u16, String) {
    pvegate::serve::install_crypto();
    let ca = reqwest::Certificate::from_pem(lab.ca_pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap();
    let token = format!("PVEAPIToken={}", lab.full_token());
    let response = client.get(format!("{}{path}", lab.url())).header("authorization", token).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// The path and query of a call, written without pvegate.
fn path(call: &Call) -> String {
    let encode = |text: &str| {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        text.bytes().map(byte).collect::<String>()
    };
    let mut path = format!("/api2/json{}", call.operation.path);
    let mut query = Vec::new();
    let mut arguments = call.arguments.clone();
    if call::by_vmid(call.operation) {
        arguments.insert("node".to_owned(), Value::from("pve1"));
    }
    for (name, value) in &arguments {
        let value = encode(value.as_str().unwrap());
        let place = format!("{{{name}}}");
        if path.contains(&place) {
            path = path.replace(&place, &value);
        } else {
            query.push(format!("{}={value}", encode(name)));
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// The samples, and further calls that show secrets elsewhere.
fn calls(lab: &Lab) -> Vec<Call> {
    let mut calls = call::every_read(lab);
    for (operation, name, value) in [
        ("GET /nodes/{node}/storage/{storage}/content", "storage", "nas-old"),
        ("GET /nodes/{node}/qemu/{vmid}/config", "vmid", "101"),
        ("GET /nodes/{node}/qemu/{vmid}/config", "snapshot", "before-upgrade"),
        ("GET /nodes/{node}/qemu/{vmid}/config", "current", "1"),
        ("GET /nodes/{node}/lxc/{vmid}/config", "snapshot", "clean"),
        ("GET /access/domains/{realm}", "realm", "corp"),
        ("GET /access/users", "full", "1"),
    ] {
        let base = calls.iter().find(|call| call.operation.name == operation).unwrap();
        calls.push(base.with(name, value));
    }
    calls
}

/// Every answer of every kind, by what brought it.
struct Heard {
    site: Site,
    bodies: Vec<(String, String)>,
}

impl Heard {
    async fn ask(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        let (_, body) = self.site.client.raw("tools/call", params.clone()).await;
        let (_, newer) = self.site.client.of(Era::Newer).raw("tools/call", params.clone()).await;
        self.bodies.push((format!("{params} (newer)"), newer));
        self.bodies.push((params.to_string(), body.clone()));
        body
    }

    async fn read(&mut self, call: &Call) -> Value {
        let body = self.ask("read", json!({"cluster": CLUSTER, "reads": [call.as_read()]})).await;
        outcome(&body).unwrap()["results"][0].clone()
    }
}

async fn site() -> Site {
    let options = Options { canary: Some(CANARY.to_owned()), ..quick() };
    Site::with(options, FrontOptions { opt_in: all_opt_in(), ..FrontOptions::default() }).await
}

/// What the server itself holds.
fn own_secrets(site: &Site) -> [String; 2] {
    let token = site.lab.full_token();
    [token.split_once('=').unwrap().1.to_owned(), site.front.reader().to_owned()]
}

/// The fields, by operation.
fn fields(lab: &Lab) -> BTreeMap<String, Vec<String>> {
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for field in lab.canary_fields() {
        let (operation, place) = field.split_once(": ").unwrap();
        fields.entry(operation.to_owned()).or_default().push(place.to_owned());
    }
    fields
}

#[tokio::test]
async fn the_lab_marks_the_fields_that_may_hold_secrets() {
    let site = site().await;
    let fields = fields(&site.lab);
    for (operation, places) in &fields {
        println!("{operation}: {}", places.join(", "));
    }
    let count: usize = fields.values().map(Vec::len).sum();
    assert!(count >= 50, "{count} fields");
    for operation in MASKED {
        assert!(fields.contains_key(operation), "no field of {operation} is marked");
    }
    for operation in MAY_HOLD_A_SECRET {
        let never = matches!(catalog::operation(operation).unwrap().offered, Offered::Never(_));
        assert!(never || fields.contains_key(operation), "no field of {operation} is marked");
    }
    assert!(fields.values().flatten().any(|place| place == "message"), "no error text is marked");
    // The marks are really in what the lab answers.
    let mut shown = BTreeSet::new();
    for call in calls(&site.lab) {
        let (_, body) = direct(&site.lab, &path(&call)).await;
        if body.contains(CANARY) {
            shown.insert(call.operation.name.to_owned());
        }
    }
    let unseen: Vec<&String> = fields.keys().filter(|operation| !shown.contains(*operation)).collect();
    assert!(unseen.is_empty(), "marked, but not answered by the lab: {unseen:?}");
}

#[tokio::test]
async fn no_marked_value_leaves() {
    let capture = log::capture();
    capture.log.look_for(CANARY);
    let mut heard = Heard { site: site().await, bodies: Vec::new() };
    for secret in own_secrets(&heard.site) {
        capture.log.look_for(&secret);
    }
    let fields = fields(&heard.site.lab);
    let (mut called, mut closed) = (BTreeSet::new(), BTreeMap::new());
    for call in calls(&heard.site.lab) {
        heard.site.lab.clear_journal();
        let result = heard.read(&call).await;
        let name = call.operation.name;
        if result["error"]["code"] == "not_offered" {
            heard.site.nothing_sent();
            closed.insert(name, result["error"]["message"].as_str().unwrap().to_owned());
        } else {
            assert!(
                heard.site.lab.journal().iter().any(|entry| entry.operation.as_deref() == Some(name)),
                "{name}: {result}"
            );
            called.insert(name);
        }
    }
    for (name, why) in &closed {
        println!("closed: {name}: {why}");
    }
    for operation in fields.keys() {
        let never = matches!(catalog::operation(operation).unwrap().offered, Offered::Never(_));
        assert_eq!(never, !called.contains(operation.as_str()), "{operation}: {:?}", closed.get(operation.as_str()));
    }
    for operation in MASKED {
        assert!(called.contains(operation), "{operation} was not read");
    }

    let definitions = heard.site.client.tools().await;
    assert!(!definitions.is_empty());
    for (tool, arguments) in named::calls(CLUSTER, &call::every_read(&heard.site.lab)) {
        heard.ask(tool.name, arguments).await;
    }
    for vmid in 100..140 {
        heard.ask("get_guest", json!({"cluster": CLUSTER, "vmid": vmid})).await;
    }
    heard.ask("list_guests", json!({})).await;
    heard.ask("list_clusters", json!({})).await;
    errors(&mut heard).await;

    let [token, reader] = own_secrets(&heard.site);
    assert!(heard.bodies.len() > 800, "{} answers", heard.bodies.len());
    for (asked, body) in &heard.bodies {
        for secret in [CANARY, &token, &reader] {
            assert!(!body.contains(secret), "{asked} let a secret out: {body}");
        }
    }
    let trail = std::fs::read_to_string(heard.site.front.audit_file()).unwrap();
    for secret in [CANARY, &token, &reader] {
        assert!(!trail.contains(secret), "a secret is in the audit log");
    }
    let log = &capture.log;
    assert!(log.ours() > 300, "the log was not captured: {} lines", log.ours());
    assert!(log.found().is_empty(), "secrets were logged: {:#?}", log.found());
}

/// A secret that a caller gives.
const GIVEN: &str = "walrus-given-6021";

/// A token that may call every tool, on everything, as far as calls act at once.
fn writer() -> (String, Value) {
    let (secret, hash) = pvegate::tokens::generate().unwrap();
    let tools: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    let all = ["*"];
    let entry = json!({
        "name": "writer", "hash": hash, "tools": tools, "clusters": all, "guests": all, "nodes": all, "storages": all, "pools": all,
        "networks": ["vmbr0"], "tiers": ["read", "low"], "owner": "ada",
    });
    (secret.expose().to_owned(), entry)
}

#[tokio::test]
async fn no_secret_that_is_given_is_told_to_anybody() {
    let capture = log::capture();
    let (secret, entry) = writer();
    let site = Site::with(quick(), FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() }).await;
    let client = site.client.with_token(&secret);
    let [token, reader] = own_secrets(&site);
    for needle in [GIVEN, &token, &reader, &secret] {
        capture.log.look_for(needle);
    }
    let mut bodies = Vec::new();
    // Under the name of every argument that holds a secret, to what takes it and to what does not.
    let mut places = 0;
    for operation in OPERATIONS {
        for parameter in operation.params.iter().filter(|parameter| parameter.role == Role::Secret) {
            places += 1;
            let named = json!({"vmid": 100, "node": "pve1", parameter.name: GIVEN});
            let one = json!({"operation": operation.name, "arguments": named});
            let run = json!({"cluster": CLUSTER, "operation": operation.name, "arguments": named});
            let read = json!({"cluster": CLUSTER, "reads": [one]});
            for (tool, arguments) in [("read", read), ("run_operation", run)] {
                bodies.push(client.raw("tools/call", json!({"name": tool, "arguments": arguments})).await.1);
            }
        }
    }
    assert!(places > 50, "{places} arguments hold secrets");
    for tool in &TOOLS {
        for name in ["password", "cipassword"] {
            let arguments = json!({"cluster": CLUSTER, "node": "pve1", "vmid": 999, "storage": "local", name: GIVEN});
            bodies.push(client.raw("tools/call", json!({"name": tool.name, "arguments": arguments})).await.1);
        }
    }
    for body in &bodies {
        assert!(!body.contains(GIVEN), "{body}");
    }
    // In place of whatever the audit log repeats.
    for held in [&token, &reader, &secret] {
        let named = json!({"vmid": held, "node": held, "upid": held, "storage": held});
        let reads = json!([{"operation": "GET /nodes/{node}/storage/{storage}/status", "arguments": named}, {"operation": held}]);
        for (tool, arguments) in [
            ("read", json!({"cluster": CLUSTER, "reads": reads})),
            ("get_guest", json!({"cluster": held, "vmid": held})),
            ("wait_task", json!({"cluster": CLUSTER, "upid": held})),
            (held.as_str(), named.clone()),
        ] {
            client.raw("tools/call", json!({"name": tool, "arguments": arguments})).await;
        }
        let known = site.client.with_token(&format!("{held}x"));
        assert_eq!(known.raw("tools/list", json!({})).await.0, 401);
    }
    let trail = std::fs::read_to_string(site.front.audit_file()).unwrap();
    assert!(trail.lines().count() > bodies.len(), "the audit log has a line for every call");
    assert!(trail.contains("(hidden)"), "what was masked shows that it was");
    for needle in [GIVEN, &token, &reader, &secret] {
        let found = trail.lines().find(|line| line.contains(needle));
        assert!(found.is_none(), "{found:?}");
        // The store, with what stands beside it.
        for file in kept(&site) {
            let bytes = std::fs::read(&file).unwrap();
            assert!(!bytes.windows(needle.len()).any(|part| part == needle.as_bytes()), "{}", file.display());
        }
    }
    assert!(capture.log.found().is_empty(), "secrets were logged: {:#?}", capture.log.found());
}

/// Files that the server wrote: all but those that an operator or the lab did.
fn kept(site: &Site) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(site.lab.directory()).unwrap().map(|entry| entry.unwrap().path());
    let by_server = |path: &std::path::PathBuf| {
        path.file_name()
            .is_some_and(|name| ["pvegate.db", "audit."].iter().any(|own| name.to_string_lossy().starts_with(own)))
    };
    files.filter(by_server).collect()
}

/// Answers that are no answers.
async fn errors(heard: &mut Heard) {
    let all = calls(&heard.site.lab);
    let some: Vec<Call> = all
        .iter()
        .filter(|call| MASKED.contains(&call.operation.name) || MAY_HOLD_A_SECRET.contains(&call.operation.name))
        .cloned()
        .collect();
    for fault in [Fault::HtmlInsteadOfJson, Fault::CutBefore] {
        heard.site.lab.set_fault(fault.clone()).await;
        for call in &some {
            heard.read(call).await;
        }
        heard.site.lab.clear_fault(&fault).await.unwrap();
    }
    for (name, value) in [
        ("node", "pve2"),
        ("node", "pve9"),
        ("vmid", "999"),
        ("snapname", "nothing"),
        ("realm", "nothing"),
        ("id", "nothing"),
        ("storage", "nas-old"),
        ("storage", "nothing"),
        ("nonsense", "1"),
    ] {
        for call in all.iter().filter(|call| name == "nonsense" || call.arguments.contains_key(name)) {
            heard.read(&call.with(name, value)).await;
        }
    }
    // Whoever got hold of the server's own secret does not get it back as an argument that is wrong.
    let [token, _] = own_secrets(&heard.site);
    let reads = json!([{"operation": "GET /nodes/{node}/status", "arguments": {"node": token, token.as_str(): 1}}]);
    heard.ask("read", json!({"cluster": CLUSTER, "reads": reads})).await;
}

#[tokio::test]
async fn closed_reads_are_refused_without_a_request() {
    let site = Site::start().await;
    site.client.tool("list_guests", json!({})).await.unwrap();
    let closed: Vec<Call> =
        call::every_read(&site.lab).into_iter().filter(|call| call.operation.offered != Offered::Yes).collect();
    assert!(closed.len() > 40, "{}", closed.len());
    for call in closed {
        let refused = site.client.read(CLUSTER, call.operation.name, Value::Object(call.arguments)).await.unwrap_err();
        assert_eq!(refused.code, "not_offered", "{refused:?}");
        assert!(refused.message.contains(call.operation.name), "{refused:?}");
        let opt_in = matches!(call.operation.offered, Offered::OptIn(_));
        assert_eq!(opt_in, refused.next.contains("opt_in"), "{refused:?}");
        assert!(!refused.next.is_empty());
    }
    site.nothing_sent();
}
