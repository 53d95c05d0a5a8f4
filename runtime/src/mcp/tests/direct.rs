//! The two ways that a tool call can take, held against each other: whatever is asked, both answer the same.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt, Full};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Book, Mirror};
use crate::mcp::{HttpConfig, Limits, direct::PlainCall, gate::Gate};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

struct Ways {
    direct: Gate<Mirror, Book>,
    sdk: Gate<Mirror, Book>,
}

/// Status, type and body; a body that is not JSON as text.
type Seen = (u16, Option<HeaderValue>, Value);

impl Ways {
    fn new() -> Self {
        let limits = Limits { requests_per_second: 0, in_flight: 0, in_flight_per_token: 0, ..Limits::default() };
        let config = HttpConfig { limits, ..HttpConfig::default() };
        let gate = || Gate::new(Mirror::new(), Book.into(), &config, CancellationToken::new());
        Self { direct: gate(), sdk: gate().without_direct() }
    }

    async fn ask(&self, headers: &HeaderMap, body: &Bytes) -> (Seen, Seen) {
        (seen(&self.direct, headers, body).await, seen(&self.sdk, headers, body).await)
    }
}

async fn seen(gate: &Gate<Mirror, Book>, headers: &HeaderMap, body: &Bytes) -> Seen {
    let mut request = http::Request::post("/mcp").body(Full::new(body.clone())).unwrap();
    *request.headers_mut() = headers.clone();
    let (parts, body) = gate.answer(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let read = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
    (parts.status.as_u16(), parts.headers.get("content-type").cloned(), read)
}

fn headers(version: &str, more: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let usual = [
        ("host", "localhost"),
        ("authorization", "Bearer token-of-ann"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", version),
    ];
    for (name, value) in usual.iter().chain(more) {
        headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn modern(name: &str) -> HeaderMap {
    headers("2026-07-28", &[("mcp-method", "tools/call"), ("mcp-name", name)])
}

fn modern_meta() -> Value {
    json!({VERSION: "2026-07-28", CAPABILITIES: {}, "progressToken": "p"})
}

fn call(id: impl Into<Value>, params: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params.into()})
}

/// What clients send: each is answered directly.
fn plain() -> Vec<(HeaderMap, Value)> {
    let mut cases = Vec::new();
    for id in [json!(0), json!(-7), json!(i64::MAX), json!(1.0), json!(""), json!("ü \"\\\n\u{1}"), json!("12")] {
        for params in [
            json!({"name": "show"}),
            json!({"name": "show", "arguments": null}),
            json!({"name": "show", "arguments": {}}),
            json!({"name": "show", "arguments": {"text": "é\u{2028}\"\\\u{7f}🦀", "n": [1, -0.0, 1e300, u64::MAX, null]}}),
            json!({"name": "refuse", "arguments": {"vmid": 100}}),
            json!({"name": "no_such_tool"}),
            json!({"name": ""}),
        ] {
            let name = params["name"].as_str().unwrap().to_owned();
            for version in ["2025-06-18", "2025-11-25"] {
                for meta in [None, Some(json!({})), Some(json!({"progressToken": 5})), Some(json!({VERSION: 5}))] {
                    let mut params = params.clone();
                    if let Some(meta) = meta {
                        params["_meta"] = meta;
                    }
                    cases.push((headers(version, &[]), call(id.clone(), params)));
                }
            }
            for capabilities in
                [json!({}), json!({"sampling": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})]
            {
                let mut params = params.clone();
                params["_meta"] = modern_meta();
                params["_meta"][CAPABILITIES] = capabilities;
                params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
                cases.push((modern(&name), call(id.clone(), params)));
            }
        }
    }
    // Answers of this size take long to make, so one of each kind has to do.
    cases.push((headers("2025-11-25", &[]), call(1, json!({"name": "big"}))));
    cases.push((modern("big"), call("b", json!({"name": "big", "_meta": modern_meta()}))));
    cases
}

/// What is left to the SDK, although some of it is accepted there.
fn not_plain() -> Vec<(HeaderMap, Value)> {
    let old = || headers("2025-11-25", &[]);
    let show = || call(1, json!({"name": "show"}));
    let shown = |meta: Value| call(1, json!({"name": "show", "_meta": meta}));
    let mut cases = vec![
        (headers("2025-03-26", &[]), show()),
        (headers("2024-11-05", &[]), show()),
        (headers("1999-01-01", &[]), show()),
        (headers("2025-11-25", &[("mcp-protocol-version", "2025-11-25")]), show()),
        (headers("2025-11-25", &[("mcp-session-id", "s")]), show()),
        (headers("2025-11-25", &[("last-event-id", "1")]), show()),
        (headers("2025-11-25", &[("accept", "text/html")]), show()),
        (old(), shown(json!({VERSION: "2025-11-25"}))),
        (old(), shown(modern_meta())),
        (old(), shown(json!("text"))),
        (old(), json!([show()])),
        (old(), json!(["2.0", 1, "tools/call", {"name": "show"}])),
        (old(), call(1, json!(["show", {}, {}]))),
        (old(), call(1, json!({"name": "show", "arguments": [1]}))),
        (old(), call(1, json!({"name": "show", "requestState": "x"}))),
        (old(), call(1, json!({"name": "show", "unknown": 1}))),
        (old(), call(1, json!({"name": 5}))),
        (old(), call(1, json!({}))),
        (old(), call(1, json!(null))),
        (old(), call(json!(null), json!({"name": "show"}))),
        (old(), call(json!(1.5), json!({"name": "show"}))),
        (old(), call(json!(u64::MAX), json!({"name": "show"}))),
        (old(), json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "show"}})),
        (old(), json!({"jsonrpc": "1.0", "id": 1, "method": "tools/call", "params": {"name": "show"}})),
        (old(), json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "show"}, "result": {}})),
        (old(), json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})),
        (old(), json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})),
        (modern("show"), show()),
        (modern("show"), shown(json!({VERSION: "2026-07-28"}))),
        (modern("show"), shown(json!({VERSION: "2026-07-28", CAPABILITIES: 5}))),
        (modern("show"), shown(json!({VERSION: "2025-11-25", CAPABILITIES: {}}))),
        (modern("refuse"), shown(modern_meta())),
        (modern("=?base64?c2hvdw==?="), shown(modern_meta())),
        (modern("ü"), call(1, json!({"name": "ü", "_meta": modern_meta()}))),
        (headers("2026-07-28", &[("mcp-method", "tools/call")]), shown(modern_meta())),
        (headers("2026-07-28", &[("mcp-name", "show")]), shown(modern_meta())),
        (headers("2026-07-28", &[("mcp-method", "tools/list"), ("mcp-name", "show")]), shown(modern_meta())),
        (headers("2027-01-01", &[("mcp-method", "tools/call"), ("mcp-name", "show")]), shown(modern_meta())),
    ];
    for accept in ["application/json", "*/*", "application/json, text/event-stream;q=0.5", "text/event-stream"] {
        let mut headers = old();
        headers.insert("accept", HeaderValue::from_static(accept));
        cases.push((headers, show()));
    }
    let mut without_version = old();
    without_version.remove("mcp-protocol-version");
    cases.push((without_version, show()));
    cases
}

#[tokio::test]
async fn what_clients_send_is_answered_directly_and_as_the_sdk_does() {
    let ways = Ways::new();
    for (headers, body) in plain() {
        let bytes = Bytes::from(body.to_string());
        assert!(PlainCall::read(&headers, &bytes).is_some(), "{headers:?} {body}");
        let (direct, sdk) = ways.ask(&headers, &bytes).await;
        assert_eq!(direct, sdk, "{headers:?} {body}");
        assert_eq!(direct.0, 200, "{headers:?} {body}");
    }
}

#[tokio::test]
async fn what_is_not_plain_is_left_to_the_sdk() {
    let ways = Ways::new();
    for (headers, body) in not_plain() {
        let bytes = Bytes::from(body.to_string());
        assert!(PlainCall::read(&headers, &bytes).is_none(), "{headers:?} {body}");
        let (direct, sdk) = ways.ask(&headers, &bytes).await;
        assert_eq!(direct, sdk, "{headers:?} {body}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_quite_json_is_left_to_the_sdk() {
    let ways = Ways::new();
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for inside in [
        r#""arguments":{"a":"\ud800"}"#,
        r#""_meta":{"a":"\ud800"}"#,
        r#""_meta":{"a":1e999}"#,
        &format!(r#""_meta":{{"a":{deep}}}"#),
        &format!(r#""arguments":{{"a":{deep}}}"#),
        r#""name":"show""#,
        r#""_meta":{},"_meta":{}"#,
        r#""arguments":{},"arguments":{}"#,
        r#""arguments":{},"#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"show",{inside}}}}}"#);
        let (headers, bytes) = (headers("2025-11-25", &[]), Bytes::from(body));
        assert!(PlainCall::read(&headers, &bytes).is_none(), "{inside}");
        let (direct, sdk) = ways.ask(&headers, &bytes).await;
        assert_eq!(direct, sdk, "{inside}");
    }
}

/// Pieces that make a body something else when they are put into it.
const PIECES: &[&str] = &[
    "\"id\":2,",
    "\"name\":\"show\",",
    "\"x\":1,",
    "\"_meta\":{},",
    "\"result\":{},",
    "\"x\":\"\\ud800\",",
    "\\ud83e",
    "1e999",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "null",
    " ",
    "\u{feff}",
    "\\u0000",
    "-",
    "9",
    "[[[[[[[[",
    "\"method\":\"ping\",",
];

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        select(vec!["2026-07-28", "2025-11-25", "show", "refuse", "tools/call", "2.0"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,3}|name|arguments|_meta", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// One thing about the body's data, put in place of what is there, or taken away.
fn change() -> impl Strategy<Value = (Vec<&'static str>, Option<Value>)> {
    let path = select(vec![
        vec!["jsonrpc"],
        vec!["id"],
        vec!["method"],
        vec!["params"],
        vec!["extra"],
        vec!["params", "name"],
        vec!["params", "arguments"],
        vec!["params", "extra"],
        vec!["params", "_meta"],
        vec!["params", "_meta", VERSION],
        vec!["params", "_meta", CAPABILITIES],
        vec!["params", "_meta", "progressToken"],
    ]);
    (path, prop::option::of(data()))
}

fn changed(mut body: Value, changes: Vec<(Vec<&'static str>, Option<Value>)>) -> Value {
    for (path, value) in changes {
        let (last, parents) = path.split_last().unwrap();
        let parent = parents.iter().try_fold(&mut body, |at, key| at.get_mut(*key));
        if let Some(Value::Object(parent)) = parent {
            match value {
                Some(value) => parent.insert((*last).to_owned(), value),
                None => parent.remove(*last),
            };
        }
    }
    body
}

fn spliced(body: &str, splices: &[(prop::sample::Index, usize, &str)]) -> Vec<u8> {
    let mut body = body.as_bytes().to_vec();
    for (at, removed, piece) in splices {
        let at = at.index(body.len() + 1);
        let end = (at + removed).min(body.len());
        body.splice(at..end, piece.bytes());
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_is_asked_both_ways_answer_the_same(
        (era, name) in (0..3_usize, select(vec!["show", "refuse", "no_such_tool", "ü", " show"])),
        arguments in prop::option::of(data()),
        changes in prop::collection::vec(change(), 0..3),
        splices in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize, select(PIECES)), 0..3),
    ) {
        let version = ["2025-06-18", "2025-11-25", "2026-07-28"][era];
        let mut params = json!({"name": name});
        if let Some(arguments) = arguments {
            params["arguments"] = arguments;
        }
        let headers = if era == 2 {
            params["_meta"] = modern_meta();
            modern(name)
        } else {
            headers(version, &[])
        };
        let body = Bytes::from(spliced(&changed(call(1, params), changes).to_string(), &splices));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (direct, sdk) = runtime.block_on(Ways::new().ask(&headers, &body));
        prop_assert_eq!(direct, sdk);
    }

    #[test]
    fn arbitrary_bytes_are_never_a_call(body in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(PlainCall::read(&headers("2025-11-25", &[]), &body).is_none());
    }
}
