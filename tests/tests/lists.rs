//! Lists of guests: filters, pages, fields, their size, and one request however many ask.

use std::collections::BTreeSet;

use lab::{Fault, FrontOptions, Options};
use serde_json::{Map, Value, json};
use tests::site::{CLUSTER, Site, quick};

const BUDGET: usize = 64 * 1024;

/// Whether a row is to stay.
type Keeps<'a> = Box<dyn Fn(&Value) -> bool + 'a>;

async fn guests(site: &Site, arguments: Value) -> Vec<Value> {
    let answer = site.client.tool("list_guests", arguments).await.unwrap();
    let items = answer["items"].as_array().unwrap().clone();
    assert_eq!(answer["total"], items.len(), "one page");
    items
}

/// All pages of a list, joined; each is within the budget.
async fn pages(site: &Site, tool: &str, arguments: &Value) -> (Vec<Value>, usize) {
    let (mut items, mut count, mut cursor) = (Vec::new(), 0, None);
    loop {
        let mut arguments = arguments.clone();
        if let Some(cursor) = cursor.take() {
            arguments["cursor"] = cursor;
        }
        let page = site.client.tool(tool, arguments).await.unwrap();
        assert!(page.to_string().len() <= BUDGET, "{} bytes", page.to_string().len());
        items.extend(page["items"].as_array().unwrap().clone());
        count += 1;
        cursor = page.get("next_cursor").cloned();
        if cursor.is_none() {
            assert_eq!(page["total"], items.len());
            return (items, count);
        }
    }
}

fn vmids(items: &[Value]) -> Vec<u64> {
    items.iter().map(|row| row["vmid"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn filters_keep_what_matches_and_only_that() {
    let site = Site::start().await;
    let all = guests(&site, json!({})).await;
    assert_eq!(all.len(), 40);
    let tagged = |row: &Value, tag: &str| {
        row["tags"].as_array().unwrap().iter().any(|known| known.as_str().unwrap().eq_ignore_ascii_case(tag))
    };
    let has = |row: &Value, text: &str| {
        let mut words = vec![row["vmid"].to_string(), row["name"].to_string(), row["pool"].to_string()];
        words.push(row["tags"].to_string());
        words.iter().any(|word| word.to_lowercase().contains(text))
    };
    let cases: Vec<(Value, Keeps<'_>)> = vec![
        (json!({"name": "DB.Primary"}), Box::new(|row| row["name"] == "DB.Primary")),
        (json!({"text": "runner"}), Box::new(|row| has(row, "runner"))),
        (json!({"text": "WEB"}), Box::new(|row| has(row, "web"))),
        (json!({"text": "11"}), Box::new(|row| has(row, "11"))),
        (json!({"status": "running"}), Box::new(|row| row["status"] == "running")),
        (json!({"status": "stopped"}), Box::new(|row| row["status"] == "stopped")),
        (json!({"node": "pve1"}), Box::new(|row| row["node"] == "pve1")),
        (json!({"node": "pve2"}), Box::new(|row| row["node"] == "pve2")),
        (json!({"tag": "ci"}), Box::new(|row| tagged(row, "ci"))),
        (json!({"tag": "PROD"}), Box::new(|row| tagged(row, "prod"))),
        (json!({"pool": "ci"}), Box::new(|row| row["pool"] == "ci")),
        (json!({"pool": "lab/inner"}), Box::new(|row| row["pool"] == "lab/inner")),
        (json!({"type": "lxc"}), Box::new(|row| row["type"] == "lxc")),
        (
            json!({"type": "qemu", "status": "running", "tag": "ci"}),
            Box::new(|row| row["type"] == "qemu" && row["status"] == "running" && tagged(row, "ci")),
        ),
        (json!({"name": "nobody"}), Box::new(|_| false)),
    ];
    for (filter, keeps) in cases {
        let expected: Vec<Value> = all.iter().filter(|row| keeps(row)).cloned().collect();
        let mut arguments = filter.clone();
        arguments["cluster"] = json!(CLUSTER);
        assert_eq!(guests(&site, arguments).await, expected, "{filter}");
        println!("{filter}: {}", expected.len());
    }
    let pool = guests(&site, json!({"pool": "ci"})).await;
    assert!(!pool.is_empty() && pool.len() < all.len());
}

#[tokio::test]
async fn pages_join_to_the_whole() {
    let site = Site::start().await;
    let all = guests(&site, json!({})).await;
    assert!(vmids(&all).is_sorted());
    for limit in [1, 7, 39, 40, 500] {
        let (joined, count) = pages(&site, "list_guests", &json!({"limit": limit})).await;
        assert_eq!(joined, all, "limit {limit}");
        assert_eq!(count, all.len().div_ceil(limit), "limit {limit}");
    }
    let running = guests(&site, json!({"status": "running"})).await;
    assert_eq!(pages(&site, "list_guests", &json!({"status": "running", "limit": 3})).await.0, running);
}

#[tokio::test]
async fn fields_keep_the_named_keys() {
    let site = Site::start().await;
    let all = guests(&site, json!({})).await;
    let narrow = guests(&site, json!({"fields": ["vmid", "name", "nonsense"]})).await;
    let expected: Vec<Value> = all.iter().map(|row| json!({"vmid": row["vmid"], "name": row["name"]})).collect();
    assert_eq!(narrow, expected);
    let (joined, _) = pages(&site, "list_guests", &json!({"fields": ["vmid", "name"], "limit": 9})).await;
    assert_eq!(joined, expected);
    let guest = site
        .client
        .tool("get_guest", json!({"cluster": CLUSTER, "vmid": 100, "fields": ["vmid", "status"]}))
        .await
        .unwrap();
    let keys: BTreeSet<&String> = guest.as_object().unwrap().keys().collect();
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["status", "vmid"]);
}

#[tokio::test]
async fn rows_name_what_grants_and_callers_go_by() {
    let site = Site::start().await;
    for row in guests(&site, json!({})).await {
        for key in ["cluster", "vmid", "name", "type", "status", "node", "tags", "template", "protected"] {
            assert!(row.get(key).is_some(), "{key} is missing: {row}");
        }
        assert_eq!(row["cluster"], CLUSTER);
    }
    let answer = site.client.tool("list_guests", json!({})).await.unwrap();
    assert_eq!(answer["untrusted"], json!(["name", "tags"]));
}

#[tokio::test]
async fn ten_thousand_guests_come_in_pages() {
    let site = Site::with(Options { guests: 10_000, ..quick() }, FrontOptions::default()).await;
    let (all, count) = pages(&site, "list_guests", &json!({})).await;
    println!("10000 guests in {count} pages");
    assert_eq!(vmids(&all), (100..10_100).collect::<Vec<u64>>());
    assert!(count > 10);
    let kinds = [("get_vms", "qemu"), ("get_containers", "lxc")];
    for (tool, kind) in kinds {
        let expected: Vec<u64> =
            all.iter().filter(|row| row["type"] == kind).map(|row| row["vmid"].as_u64().unwrap()).collect();
        let (rows, _) = pages(&site, tool, &json!({"cluster": CLUSTER, "fields": ["vmid"]})).await;
        assert_eq!(vmids(&rows), expected, "{tool}");
    }
    let narrow = site.client.tool("list_guests", json!({"fields": ["vmid"], "limit": 600})).await.unwrap();
    assert_eq!(narrow["items"].as_array().unwrap().len(), 600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_callers_make_one_request() {
    let site = Site::start().await;
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let client = site.client.clone();
            tokio::spawn(async move { client.tool("list_guests", json!({})).await.unwrap() })
        })
        .collect();
    let mut answers = BTreeSet::new();
    for caller in callers {
        answers.insert(caller.await.unwrap().to_string());
    }
    assert_eq!(answers.len(), 1);
    let asked: Vec<String> = site.lab.journal().into_iter().filter_map(|entry| entry.operation).collect();
    assert_eq!(asked, ["GET /cluster/resources"]);
}

#[tokio::test]
async fn one_guest_read_live() {
    let site = Site::start().await;
    site.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    for row in guests(&site, json!({})).await {
        let guest = site.client.tool("get_guest", json!({"cluster": CLUSTER, "vmid": row["vmid"]})).await;
        if row["node"] == "pve2" {
            assert_eq!(guest.unwrap_err().code, "node_down");
            continue;
        }
        let guest = guest.unwrap();
        for key in ["cluster", "vmid", "name", "type", "node", "tags", "template", "status"] {
            assert_eq!(guest[key], row[key], "{key} of {}", row["vmid"]);
        }
        let flag = &guest["config"]["protection"];
        assert_eq!(guest["protected"] == true, *flag == true || *flag == 1 || row["protected"] == true, "{guest}");
    }
}

#[tokio::test]
async fn search_finds_what_can_be_read() {
    let site = Site::start().await;
    let found = site.client.tool("search_operations", json!({"query": "list snapshots vm"})).await.unwrap();
    let names: Vec<&str> =
        found["items"].as_array().unwrap().iter().filter_map(|row| row["operation"].as_str()).collect();
    assert!(names.contains(&"GET /nodes/{node}/qemu/{vmid}/snapshot"), "{names:?}");
    for name in names {
        let described = site.client.tool("describe_operation", json!({"operation": name})).await.unwrap();
        assert_eq!(described["operation"], name);
        assert!(described["parameters"].is_object());
    }
    let nothing = site.client.tool("search_operations", json!({"query": "xyzzyplugh"})).await.unwrap();
    assert_eq!(nothing["items"], json!([]));
    site.nothing_sent();
    let keys: Map<String, Value> = found.as_object().unwrap().clone();
    assert!(keys.contains_key("total"), "{keys:?}");
}
