//! Tasks belong to the guest that they work on, else to their node; those over several guests to who reaches all.

use lab::{Arrange, FrontOptions};
use serde_json::{Value, json};
use tests::client::Client;
use tests::site::{CLUSTER, Site, quick};
use tests::token::Token;

const TASKS: &str = "GET /nodes/{node}/tasks";

fn upids(answer: &Value) -> Vec<String> {
    answer["items"].as_array().unwrap().iter().map(|row| row["upid"].as_str().unwrap().to_owned()).collect()
}

async fn list(client: &Client, more: Value) -> Value {
    let mut arguments = json!({"cluster": CLUSTER, "node": "pve1", "source": "all"});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.tool("list_tasks", arguments).await.unwrap()
}

#[tokio::test]
async fn a_list_of_tasks_is_filtered_and_counted_anew() {
    let (site, [hundred, two, none]) = Site::granting([
        json!({"guests": ["vmid:100"], "nodes": ["pve1"]}),
        json!({"guests": ["tag:legacy_x", "vmid:100"], "nodes": ["pve1"]}),
        json!({"nodes": ["pve1"]}),
    ])
    .await;
    let all = list(&site.client, json!({})).await;
    let of = |ids: &[&str]| -> Vec<String> {
        let rows = all["items"].as_array().unwrap().iter();
        let rows = rows.filter(|row| ids.contains(&row["id"].as_str().unwrap()));
        rows.map(|row| row["upid"].as_str().unwrap().to_owned()).collect()
    };
    assert!(of(&["100"]).len() == 2 && of(&["105"]).len() == 1 && upids(&all).len() > 6, "{all}");
    for (client, ids) in [(&hundred, &["100"][..]), (&two, &["100", "105"]), (&none, &[])] {
        let expected = of(ids);
        let seen = list(client, json!({})).await;
        assert_eq!((upids(&seen), &seen["total"]), (expected.clone(), &json!(expected.len())));
        // Pages are of what is shown, and PVE's own numbers tell of nothing else.
        let (mut joined, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let more = if cursor.is_null() { json!({"limit": 1}) } else { json!({"limit": 1, "cursor": cursor}) };
            let page = list(client, more).await;
            assert_eq!(page["total"], seen["total"]);
            joined.extend(upids(&page));
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(joined, expected);
        for start in 0..expected.len() + 2 {
            let arguments = json!({"node": "pve1", "source": "all", "start": start, "limit": 1});
            let seen = client.read(CLUSTER, TASKS, arguments).await.unwrap();
            assert_eq!(upids(&seen), expected.iter().skip(start).take(1).cloned().collect::<Vec<_>>());
            assert_eq!(seen["total"], expected.len());
        }
    }
}

/// A token of one guest follows its tasks wherever they run, and no other's.
#[tokio::test]
async fn the_tasks_of_a_guest_need_nothing_but_the_guest() {
    let (site, [hundred, pool, node]) = Site::granting([
        json!({"guests": ["vmid:100"]}),
        json!({"guests": ["pool:ci"]}),
        json!({"guests": ["vmid:999"], "nodes": ["*"]}),
    ])
    .await;
    let all = list(&site.client, json!({})).await;
    for task in all["items"].as_array().unwrap() {
        let (upid, id) = (task["upid"].as_str().unwrap(), task["id"].as_str().unwrap());
        for (client, may) in
            [(&hundred, id == "100"), (&pool, ["100", "101"].contains(&id)), (&node, false), (&site.client, true)]
        {
            for (tool, more) in [
                ("wait_task", json!({})),
                ("get_task_status", json!({"node": "pve1"})),
                ("get_task_log", json!({"node": "pve1"})),
            ] {
                let mut arguments = json!({"cluster": CLUSTER, "upid": upid});
                arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let answer = client.tool(tool, arguments).await;
                match answer {
                    Ok(_) => assert!(may, "{tool} {upid}"),
                    Err(refused) => assert!(!may && refused.code == "not_found", "{tool} {upid}: {refused:?}"),
                }
            }
        }
    }
}

/// A task of a node itself is for who reaches the node.
#[tokio::test]
async fn the_tasks_of_a_node_are_its_own() {
    let tokens = [
        Token::new("node", &json!({"nodes": ["pve1"]})),
        Token::new("other", &json!({"nodes": ["pve2"], "guests": ["vmid:100-139"]})),
    ];
    let more_tokens = tokens.iter().map(|token| token.entry.clone()).collect();
    let site = Site::with(quick(), FrontOptions { more_tokens, ..FrontOptions::default() }).await;
    let upid = "UPID:pve1:0008366C:01665026:638071CE:aptupdate::root@pam:";
    let over_guests = "UPID:pve1:0008366C:01665026:638071CE:startall::root@pam:";
    for (token, upid, may) in [(0, upid, true), (1, upid, false), (0, over_guests, false), (1, over_guests, false)] {
        let client = site.client.with_token(&tokens[token].secret);
        site.lab.clear_journal();
        let refused = client.tool("wait_task", json!({"upid": upid, "timeout": 0})).await.unwrap_err();
        // Neither was ever run, which only those learn who might have.
        assert_eq!(refused.code, "not_found");
        assert_eq!(site.sent().len(), usize::from(may), "{upid}");
    }
}

/// What a principal started it may follow, also when its grant does not tell any more; others with the same grant may
/// not.
#[tokio::test]
async fn who_started_a_task_sees_it_through() {
    let keys = json!({"tools": ["gateway", "tasks"], "tiers": ["low"], "guests": ["tag:linux"]});
    let (site, [starter, other]) = Site::granting([keys.clone(), keys]).await;
    let call = json!({
        "cluster": CLUSTER,
        "operation": "POST /nodes/{node}/qemu/{vmid}/snapshot",
        "arguments": {"vmid": 101, "snapname": "seen"},
    });
    let snapshot = starter.tool("run_operation", call).await.unwrap();
    let upid = snapshot["upid"].as_str().unwrap();
    let ask = async |client: &Client, tool: &str| {
        let mut arguments = json!({"cluster": CLUSTER, "upid": upid});
        if tool != "wait_task" {
            arguments["node"] = json!("pve1");
        }
        client.tool(tool, arguments).await
    };
    assert!(ask(&other, "wait_task").await.is_ok(), "both reach the guest");
    // It loses its tag, and what was known of it is dropped with the end of its task.
    site.lab.arrange(Arrange::Guest { vmid: 101, kind: "qemu".to_owned(), config: json!({"name": "plain"}) });
    ask(&starter, "wait_task").await.unwrap();
    for tool in ["wait_task", "get_task_status", "get_task_log"] {
        assert!(ask(&starter, tool).await.is_ok(), "{tool}");
        let refused = ask(&other, tool).await.unwrap_err();
        assert_eq!(refused.code, "not_found", "{tool}: {refused:?}");
    }
}
