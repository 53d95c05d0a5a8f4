//! The named reads of tasks: lists, states and logs as PVE pages them.

use lab::Arrange;
use serde_json::{Value, json};
use tests::site::{CLUSTER, Site};

use super::{put, upid};

/// All rows of a list, page by page, and what each page says of the total.
async fn pages(site: &Site, tool: &str, mut arguments: Value) -> (Vec<Value>, Vec<Value>) {
    let (mut rows, mut totals) = (Vec::new(), Vec::new());
    loop {
        let page = site.client.tool(tool, arguments.clone()).await.unwrap();
        rows.extend(page["items"].as_array().unwrap().clone());
        totals.push(page["total"].clone());
        assert!(page.get("partial").is_none(), "{page}");
        match page.get("next_cursor") {
            Some(cursor) => arguments["cursor"] = cursor.clone(),
            None => return (rows, totals),
        }
    }
}

#[tokio::test]
async fn a_log_is_read_in_pages_of_pve() {
    let site = Site::start().await;
    let upid = upid("01665026", "vzdump", "100");
    let lines: Vec<String> = (1..=1200).map(|n| format!("INFO: line {n}")).collect();
    put(&site.lab, &upid, Some("OK"), &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let expected: Vec<Value> = lines.iter().enumerate().map(|(at, line)| json!({"n": at + 1, "t": line})).collect();
    let arguments = json!({"cluster": CLUSTER, "node": "pve1", "upid": upid});
    let (rows, totals) = pages(&site, "get_task_log", arguments.clone()).await;
    assert_eq!(rows, expected);
    assert_eq!(totals, vec![json!(1200); 3]);
    site.lab.clear_journal();
    let mut page = arguments;
    page["limit"] = json!(7);
    let first = site.client.tool("get_task_log", page.clone()).await.unwrap();
    assert_eq!((&first["items"], &first["total"]), (&Value::from(&expected[..7]), &json!(1200)));
    assert_eq!(first["untrusted"], json!(["t"]));
    page["cursor"] = first["next_cursor"].clone();
    let second = site.client.tool("get_task_log", page).await.unwrap();
    assert_eq!(second["items"], Value::from(&expected[7..14]));
    let asked: Vec<(Value, Value)> =
        site.sent().iter().map(|entry| (entry.params["start"].clone(), entry.params["limit"].clone())).collect();
    assert_eq!(asked, [(json!("0"), json!("7")), (json!("7"), json!("7"))], "PVE reads no more than what is shown");
}

#[tokio::test]
async fn lines_that_pve_makes_up_are_no_log() {
    let site = Site::start().await;
    let quiet = upid("01665026", "qmstart", "100");
    put(&site.lab, &quiet, None, &[]);
    let log = |upid: &str| json!({"cluster": CLUSTER, "node": "pve1", "upid": upid});
    let page = site.client.tool("get_task_log", log(&quiet)).await.unwrap();
    assert_eq!((&page["items"], &page["total"]), (&json!([]), &json!(0)));
    let ghost = upid("0BADBAD0", "qmstart", "100");
    for tool in ["get_task_log", "get_task_status"] {
        assert_eq!(site.client.tool(tool, log(&ghost)).await.unwrap_err().code, "not_found", "{tool}");
    }
    // Through the gateway it is the same read.
    let read = site.client.read(CLUSTER, "GET /nodes/{node}/tasks/{upid}/log", json!({"node": "pve1", "upid": ghost}));
    assert_eq!(read.await.unwrap_err().code, "not_found");
}

#[tokio::test]
async fn a_task_is_asked_for_on_its_own_node() {
    let site = Site::start().await;
    let upid = upid("01665026", "qmstart", "100");
    put(&site.lab, &upid, Some("OK"), &[]);
    for tool in ["get_task_log", "get_task_status"] {
        let refused = site.client.tool(tool, json!({"node": "pve2", "upid": upid})).await.unwrap_err();
        assert_eq!(refused.code, "invalid_arguments", "{tool}");
        assert!(refused.message.contains("pve1"), "{refused:?}");
    }
    site.nothing_sent();
}

#[tokio::test]
async fn a_status_says_how_it_ended_once_it_has() {
    let site = Site::start().await;
    let upid = upid("01665026", "qmstart", "100");
    let arguments = json!({"node": "pve1", "upid": upid});
    put(&site.lab, &upid, None, &[]);
    let running = site.client.tool("get_task_status", arguments.clone()).await.unwrap();
    assert_eq!((&running["status"], running.get("exitstatus")), (&json!("running"), None));
    put(&site.lab, &upid, Some("WARNINGS: 1"), &[]);
    let stopped = site.client.tool("get_task_status", arguments).await.unwrap();
    assert_eq!((&stopped["status"], &stopped["exitstatus"]), (&json!("stopped"), &json!("WARNINGS: 1")));
    assert_eq!((&stopped["user"], &stopped["tokenid"]), (&json!("svc@pve"), &json!("tok")));
}

#[tokio::test]
async fn lists_of_tasks_join_and_filter() {
    let site = Site::start().await;
    site.lab.arrange(Arrange::NoTasks);
    let statuses = ["OK", "WARNINGS: 2", "VM is locked (backup)", "unexpected status"];
    let mut all = Vec::new();
    for n in 0..40_u32 {
        let upid = format!("UPID:pve1:0008366C:01665026:{:08X}:qmstart:{}:svc@pve!tok:", 0x6380_0000 + n, 100 + n % 2);
        put(&site.lab, &upid, Some(statuses[n as usize % 4]), &[]);
        all.insert(0, Value::from(upid));
    }
    let (rows, totals) = pages(&site, "list_tasks", json!({"node": "pve1", "limit": 7})).await;
    let upids: Vec<Value> = rows.iter().map(|row| row["upid"].clone()).collect();
    assert_eq!(upids, all, "newest first, each once");
    assert_eq!(totals, vec![json!(40); 6]);
    for (filter, total) in [
        (json!({"statusfilter": ["ok"]}), 10),
        (json!({"statusfilter": ["warning"]}), 10),
        (json!({"statusfilter": ["error"]}), 10),
        (json!({"statusfilter": ["unknown"]}), 10),
        (json!({"statusfilter": ["error", "warning"]}), 20),
        // Everything but OK, and the other filter does not count.
        (json!({"errors": true}), 30),
        (json!({"errors": true, "statusfilter": ["ok"]}), 30),
        (json!({"vmid": 101}), 20),
        (json!({"vmid": 4711}), 0),
        (json!({"typefilter": "vzdump"}), 0),
        (json!({"since": 0x6380_0000_u32 + 30}), 10),
        (json!({"until": 0x6380_0000_u32 + 9, "statusfilter": ["ok"]}), 3),
    ] {
        let mut arguments = filter.clone();
        arguments["node"] = json!("pve1");
        let page = site.client.tool("list_tasks", arguments).await.unwrap();
        assert_eq!((&page["total"], page["items"].as_array().unwrap().len()), (&json!(total), total), "{filter}");
    }
}
