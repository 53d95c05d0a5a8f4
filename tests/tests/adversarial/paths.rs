//! Texts that mean something to a path, a URL or a line, in every argument of every low operation.

use std::collections::BTreeSet;

use lab::{Arrange, Entry, FrontOptions};
use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::Operation;
use pvegate_generated::terms::Tier;
use serde_json::{Map, Value, json};
use tests::site::{Site, low_token};
use tests::token::Token;

use super::{guests, run, with};
use crate::low::each;

/// What is tried in the place of a value.
fn hostile(value: &Value) -> Vec<Value> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let wide: String =
        text.chars().map(|one| one.to_digit(10).map_or(one, |digit| char::from_u32(0xff10 + digit).unwrap())).collect();
    let mut tried: Vec<Value> = [
        format!("{text}/../101"),
        format!("../{text}"),
        format!("{text}%2F..%2F101"),
        format!("%2e%2e%2f{text}"),
        format!("{text}?vmid=101"),
        format!("{text}&vmid=101"),
        format!("{text}#"),
        format!("{text};101"),
        format!("{text} 101"),
        format!("{text}\n101"),
        format!("{text}\u{0}101"),
        format!("0{text}"),
        format!("+{text}"),
        wide,
        "..".to_owned(),
        "101".to_owned(),
        String::new(),
    ]
    .into_iter()
    .filter(|tried| *tried != text)
    .map(Value::from)
    .collect();
    tried.extend([json!([value, 101]), json!({"vmid": 101}), json!(101), Value::Null]);
    tried
}

/// Guests that are in the arguments, each exactly.
fn own(arguments: &Map<String, Value>) -> BTreeSet<String> {
    let mut own: BTreeSet<String> =
        ["vmid", "newid"].iter().filter_map(|name| arguments.get(*name)).map(Value::to_string).collect();
    if arguments.contains_key("volume") {
        own.insert("102".to_owned());
    }
    own
}

/// Whether the request line is this operation's, segment for segment.
fn is_of(entry: &Entry, operation: &str) -> bool {
    let (method, template) = operation.split_once(' ').unwrap();
    let path = entry.raw_path.strip_prefix("/api2/json").unwrap().split('?').next().unwrap();
    let fits =
        |(sent, meant): (&str, &str)| sent == meant || meant.starts_with('{') && !["", ".", ".."].contains(&sent);
    let as_long = path.split('/').count() == template.split('/').count();
    entry.method == method && as_long && path.split('/').zip(template.split('/')).all(fits)
}

#[tokio::test]
async fn in_every_argument_of_every_low_operation() {
    let (mut tried, mut written) = (0, 0);
    for operation in OPERATIONS.iter().copied().filter(|operation| operation.tier == Tier::Low) {
        let (more_tried, more_written) = in_every_argument(operation).await;
        tried += more_tried;
        written += more_written;
    }
    assert!(tried > 2500 && written > 50, "{tried} {written}");
}

/// How many calls of it were tried, and how many requests that write came of them.
async fn in_every_argument(operation: &'static Operation) -> (usize, usize) {
    let (mut tried, mut written) = (0, 0);
    let (secret, entry) = low_token("operator");
    let all = json!({"nodes": ["pve1"], "storages": ["local", "local-lvm", "nas"], "networks": ["vmbr0"]});
    let needed: &[&str] = match operation.name {
        name if name.contains("{volume}") => &["vmid:102"],
        name if name.contains("{upid}") => &["vmid:115"],
        _ => &["vmid:100", "vmid:102", "vmid:111", "vmid:112", "vmid:114", "vmid:118", "vmid:900-903"],
    };
    let narrow = Token::new("narrow", &with(guests(needed), all));
    let more_tokens = vec![entry, narrow.entry];
    let url_allow = vec!["internal:images.lab.test".to_owned()];
    let front = FrontOptions { more_tokens, url_allow, ..FrontOptions::default() };
    let mut site = Site::with(each::options(operation), front).await;
    site.client = site.client.with_token(&secret);
    each::arrange(&site, operation);
    let Value::Object(sample) = each::sample(&site, operation).await else { panic!("{}", operation.name) };
    let client = site.client.with_token(&narrow.secret);
    let own = own(&sample);
    let names: BTreeSet<&str> = sample.keys().map(String::as_str).chain(["node"]).collect();
    for name in names {
        let value = sample.get(name).cloned().unwrap_or_else(|| json!("pve1"));
        for hostile in hostile(&value) {
            let mut arguments = sample.clone();
            arguments.insert(name.to_owned(), hostile);
            let what = format!("{} {}", operation.name, Value::Object(arguments.clone()));
            site.lab.clear_journal();
            // Whether it is done is another question: what arrives is asked here.
            let _ = run(&client, operation.name, &Value::Object(arguments)).await;
            tried += 1;
            let mut changed = false;
            for entry in site.lab.journal() {
                // What the lab has no route for is refused there, and still has to be this operation's request.
                let unrouted = format!("{} {}", entry.method, operation.path);
                let known = match entry.operation.as_deref() {
                    Some(known) => known,
                    None if entry.method == "GET" => unrouted.as_str(),
                    None => operation.name,
                };
                assert!(entry.method == "GET" || known == operation.name, "{what}: {entry:?}");
                assert!(is_of(&entry, known), "{what}: {entry:?}");
                if entry.method == "GET" {
                    continue;
                }
                changed = true;
                written += 1;
                for vmid in ["vmid", "newid"].iter().filter_map(|name| entry.params.get(*name)) {
                    let vmid = vmid.as_str().map_or_else(|| vmid.to_string(), str::to_owned);
                    assert!(own.contains(&vmid), "{what}: {entry:?}");
                }
            }
            if changed {
                site.lab.arrange(Arrange::Baseline);
                each::arrange(&site, operation);
            }
        }
    }
    (tried, written)
}
