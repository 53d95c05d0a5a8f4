//! Following: which ids are followed at all, for how long, and what a client learns meanwhile.

use lab::{Arrange, Fault, FrontOptions, Options};
use serde_json::{Value, json};
use tests::client::outcome;
use tests::site::{CLUSTER, Site, quick};

use super::{looks, now, put, until, upid, wait};

/// C002: an exit status is there only when the task has ended.
#[tokio::test]
async fn a_task_is_followed_to_its_end() {
    let site = Site::start().await;
    let upid = upid("01665026", "qmclone", "9000");
    put(&site.lab, &upid, None, &["create full clone of drive scsi0 (local-lvm:vm-9000-disk-0)"]);
    let (told, ()) = tokio::join!(wait(&site, &upid, 20), async {
        until("it is looked at more than once", || looks(&site).len() > 2).await;
        put(&site.lab, &upid, Some("OK"), &["create full clone of drive scsi0 (local-lvm:vm-9000-disk-0)", "TASK OK"]);
    });
    let told = told.unwrap();
    assert_eq!((&told["outcome"], &told["exitstatus"]), (&json!("ok"), &json!("OK")));
    assert_eq!(told["log_tail"].as_array().unwrap().last().unwrap(), "TASK OK");
}

/// C010, C013: time that is up is no failure; nothing is sent but looks, and the next call goes on.
#[tokio::test]
async fn a_task_that_goes_on_is_told_as_running() {
    let site = Site::start().await;
    let upid = upid("01665026", "qmclone", "9000");
    put(&site.lab, &upid, None, &["transferred 1.2 GiB of 10.0 GiB (12.00%)"]);
    let told = wait(&site, &upid, 1).await.unwrap();
    assert_eq!((&told["outcome"], &told["upid"]), (&json!("running"), &json!(upid)));
    assert_eq!((&told["percent"], told.get("exitstatus")), (&json!(12.0), None));
    assert!(told["next"].as_str().unwrap().contains("wait_task"), "{told}");
    assert!(looks(&site).len() > 1);
    site.lab.clear_journal();
    assert_eq!(now(&site, &upid).await.unwrap()["outcome"], "running");
    assert_eq!(looks(&site).len(), 1, "0 asks once");
    put(&site.lab, &upid, Some("OK"), &["TASK OK"]);
    assert_eq!(wait(&site, &upid, 20).await.unwrap()["outcome"], "ok");
    assert!(site.lab.journal().iter().all(|entry| entry.method == "GET"));
}

/// What a task made is found at once: the list of guests is read anew after it, and only then.
#[tokio::test]
async fn guests_are_listed_anew_after_a_task() {
    let site = Site::start().await;
    let upid = upid("01665026", "qmclone", "9000");
    put(&site.lab, &upid, None, &[]);
    let guests = async || site.client.tool("list_guests", json!({"cluster": CLUSTER, "limit": 1})).await.unwrap();
    let list = Some("GET /cluster/resources");
    let lists = || site.lab.journal().iter().filter(|entry| entry.operation.as_deref() == list).count();
    guests().await;
    site.lab.clear_journal();
    now(&site, &upid).await.unwrap();
    guests().await;
    assert_eq!(lists(), 0, "it goes on");
    put(&site.lab, &upid, Some("OK"), &["TASK OK"]);
    now(&site, &upid).await.unwrap();
    guests().await;
    assert_eq!(lists(), 1, "it has ended");
}

/// C004: users are tokens too, and numbers grow.
#[tokio::test]
async fn ids_of_every_form_are_followed() {
    let site = Site::start().await;
    for (upid, user, token, id) in [
        ("UPID:pve1:0008366C:01665026:638071CE:qmclone:1003:svc@pve!tok:", "svc@pve", json!("tok"), "1003"),
        ("UPID:pve1:0000A1B2:0100000A1:68000000:qmstart:100:root@pam:", "root@pam", Value::Null, "100"),
        ("UPID:pve1:FFFFFFFF:00000001:00000001:x::root@pam:", "root@pam", Value::Null, ""),
        (
            "UPID:pve1:0000A1B2:0000000B:68000000:imgcopy:100@local:a.b-c@ad.example!x_1:",
            "a.b-c@ad.example",
            json!("x_1"),
            "100@local",
        ),
    ] {
        put(&site.lab, upid, Some("OK"), &[]);
        let told = now(&site, upid).await.unwrap_or_else(|refused| panic!("{upid}: {refused:?}"));
        assert_eq!((&told["outcome"], &told["user"], &told["id"]), (&json!("ok"), &json!(user), &json!(id)), "{told}");
        assert_eq!(told["tokenid"], token, "{told}");
        assert_eq!(told["log_tail"], json!([]), "a task that has written nothing has no lines");
    }
}

/// C005 and hostile ids: refused before anything is sent about them.
#[tokio::test]
async fn other_ids_are_refused_unasked() {
    let site = Site::start().await;
    let pbs = "UPID:pve1:00000267:0011E1D7:00000009:6A48CA08:acme-register:test1:root@pam:";
    let refused = now(&site, pbs).await.unwrap_err();
    assert_eq!(refused.code, "invalid_arguments");
    assert!(refused.message.contains("Backup Server"), "{refused:?}");
    for hostile in [
        "",
        "garbage",
        "UPID:pve1:0008366C:01665026:638071CE:qmstart:100:root@pam",
        "UPID:pve1:0008366C:01665026:638071CE:qmstart:100:root@pam:/status",
        "UPID:pve1:0008366C:01665026:638071CE:qmstart:..%2F..:root@pam:",
        "UPID:pve1:0008366C:01665026:638071CE:../../qemu:100:root@pam:",
        "UPID:pve1:0008366C:01665026:638071CE:qmstart:100\u{0}:root@pam:",
        "UPID:pve1:0008366C:01665026:638071CE:qmstart:100:root@pam:\n",
        "UPID:../..:0008366C:01665026:638071CE:qmstart:100:root@pam:",
    ] {
        let refused = now(&site, hostile).await.unwrap_err();
        assert_eq!(refused.code, "invalid_arguments", "{hostile}: {refused:?}");
    }
    // Names of nodes are exact.
    for node in ["pve9", "PVE1", "localhost", "pve1.lab.test"] {
        let refused = now(&site, &format!("UPID:{node}:0008366C:01665026:638071CE:qmstart:100:root@pam:")).await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused.code.as_str(), "not_found" | "invalid_arguments"), "{node}: {refused:?}");
    }
    // C008: a write that answers with nothing has nothing to follow.
    for nothing in [json!({"upid": null}), json!({}), json!({"upid": 7}), json!({"upid": "x", "timeout": -1})] {
        assert_eq!(site.client.tool("wait_task", nothing).await.unwrap_err().code, "invalid_arguments");
    }
    site.nothing_sent();
}

#[tokio::test]
async fn a_task_that_nobody_knows_is_refused() {
    let site = Site::start().await;
    let refused = now(&site, &upid("0BADBAD0", "qmstart", "100")).await.unwrap_err();
    assert_eq!(refused.code, "not_found", "{refused:?}");
    let elsewhere = json!({"cluster": "other", "upid": upid("01665026", "qmstart", "100")});
    assert_eq!(site.client.tool("wait_task", elsewhere).await.unwrap_err().code, "no_such_cluster");
}

/// A task that was there, and is not any more.
#[tokio::test]
async fn a_task_that_is_forgotten_meanwhile_is_unknown() {
    let site = Site::start().await;
    let upid = upid("01665026", "qmclone", "9000");
    put(&site.lab, &upid, None, &[]);
    let (told, ()) = tokio::join!(wait(&site, &upid, 20), async {
        until("it is looked at", || !looks(&site).is_empty()).await;
        site.lab.arrange(Arrange::NoTasks);
    });
    let told = told.unwrap();
    assert_eq!(told["outcome"], "unknown", "{told}");
    assert!(told["says"].as_str().unwrap().contains("does not know this task any more"), "{told}");
}

#[tokio::test]
async fn a_node_that_falls_silent_is_no_end() {
    let site = Site::start().await;
    let upid = upid("01665026", "qmclone", "9000");
    put(&site.lab, &upid, None, &[]);
    let (told, ()) = tokio::join!(wait(&site, &upid, 2), async {
        until("it is looked at", || !looks(&site).is_empty()).await;
        site.lab.set_fault(Fault::CutBefore).await;
    });
    let told = told.unwrap();
    assert_eq!(told["outcome"], "unknown", "{told}");
    assert!(told["next"].as_str().unwrap().contains("wait_task again"), "{told}");
    // Back before the time is up, nothing was lost.
    let (told, ()) = tokio::join!(
        async {
            site.lab.clear_fault(&Fault::CutBefore).await.unwrap();
            wait(&site, &upid, 20).await
        },
        async {
            site.lab.clear_journal();
            until("it is looked at", || !looks(&site).is_empty()).await;
            site.lab.set_fault(Fault::CutBefore).await;
            let seen = looks(&site).len();
            until("it is looked at in vain", || looks(&site).len() > seen).await;
            put(&site.lab, &upid, Some("OK"), &[]);
            site.lab.clear_fault(&Fault::CutBefore).await.unwrap();
        }
    );
    assert_eq!(told.unwrap()["outcome"], "ok");
}

#[tokio::test]
async fn a_dead_node_is_said_at_once() {
    let site = Site::start().await;
    site.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    let refused = now(&site, "UPID:pve2:0008366C:01665026:638071CE:qmstart:100:root@pam:").await.unwrap_err();
    assert_eq!(refused.code, "node_down", "{refused:?}");
    assert!(refused.message.contains("pve2"), "{refused:?}");
}

/// The call of a client that wants to be told, as its stream comes.
async fn told_on_the_way(site: &Site, upid: &str, meanwhile: impl AsyncFnOnce()) -> (Vec<Value>, Value) {
    let arguments = json!({"cluster": CLUSTER, "upid": upid, "timeout": 20});
    let params = json!({"name": "wait_task", "arguments": arguments, "_meta": {"progressToken": "of-this-call"}});
    let mut response = site.client.request("tools/call", params).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = String::new();
    let mut meanwhile = Some(meanwhile);
    while let Some(chunk) = response.chunk().await.unwrap() {
        body.push_str(std::str::from_utf8(&chunk).unwrap());
        if let Some(meanwhile) = meanwhile.take_if(|_| body.contains("notifications/progress")) {
            meanwhile().await;
        }
    }
    let data = body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    let mut messages: Vec<Value> =
        data.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).unwrap()).collect();
    let answer = messages.pop().unwrap();
    (messages, outcome(&answer.to_string()).unwrap())
}

#[tokio::test]
async fn who_asks_for_progress_gets_percent_and_the_last_line() {
    let site = Site::start().await;
    let upid = upid("01665026", "vzdump", "101");
    let line = "INFO:  12% (12.0 GiB of 100.0 GiB) in 3s, read: 100.0 MiB/s, write: 80.0 MiB/s";
    put(&site.lab, &upid, None, &["INFO: Starting Backup of VM 101 (qemu)", line]);
    let (notifications, told) = told_on_the_way(&site, &upid, async || {
        put(&site.lab, &upid, Some("OK"), &["INFO: Starting Backup of VM 101 (qemu)", line, "TASK OK"]);
    })
    .await;
    let [notification] = notifications.as_slice() else { panic!("{notifications:#?}") };
    assert_eq!(notification["method"], "notifications/progress");
    assert_eq!(
        notification["params"],
        json!({"progressToken": "of-this-call", "progress": 12.0, "total": 100.0, "message": line})
    );
    assert_eq!((&told["outcome"], told.get("percent")), (&json!("ok"), None), "{told}");
}

#[tokio::test]
async fn progress_shows_no_secret() {
    let site = Site::start().await;
    let upid = upid("01665026", "qmstart", "100");
    let token = site.lab.full_token();
    let secret = token.split_once('=').unwrap().1;
    put(&site.lab, &upid, None, &[&format!("mount -o username=backup,password=hunter2hunter2 {secret}")]);
    let (notifications, told) = told_on_the_way(&site, &upid, async || {
        put(&site.lab, &upid, Some(&format!("cannot mount with password=hunter2hunter2 {secret}")), &[]);
    })
    .await;
    let all = format!("{notifications:?}{told}");
    assert!(all.contains("username=backup") && all.contains("(hidden)"), "{all}");
    assert!(!all.contains("hunter2") && !all.contains(secret), "{all}");
}

/// Every task of the lab's past, whose logs and statuses hold marked secrets.
#[tokio::test]
async fn no_task_of_the_past_tells_a_secret() {
    let canary = "zebra-canary-6161";
    let site = Site::with(Options { canary: Some(canary.to_owned()), ..quick() }, FrontOptions::default()).await;
    let past = site.client.tool("list_tasks", json!({"node": "pve1", "fields": ["upid"]})).await.unwrap();
    let mut seen = 0;
    for task in past["items"].as_array().unwrap() {
        let upid = &task["upid"];
        for tool in ["wait_task", "get_task_log"] {
            let mut arguments = json!({"upid": upid});
            if tool == "get_task_log" {
                arguments["node"] = json!("pve1");
            }
            let (status, body) = site.client.raw("tools/call", json!({"name": tool, "arguments": arguments})).await;
            assert_eq!(status, 200);
            assert!(!body.contains(canary), "{tool} {upid}: {body}");
            seen += usize::from(body.contains("(hidden)"));
        }
    }
    assert!(seen >= 4, "secrets stood in what was asked for: {seen}");
}

#[tokio::test]
async fn who_may_follow_is_who_has_the_tool_and_the_cluster() {
    let entry = |name: &str, tools: &[&str], clusters: &[&str]| {
        let (secret, hash) = pvegate::tokens::generate().unwrap();
        (secret, json!({"name": name, "hash": hash, "tools": tools, "clusters": clusters, "guests": ["*"]}))
    };
    let (tasks, tasks_entry) = entry("tasks", &["tasks"], &["*"]);
    let (alone, alone_entry) = entry("alone", &["wait_task"], &["*"]);
    let (others, others_entry) = entry("others", &["get_task_status", "snapshots"], &["*"]);
    let more_tokens = vec![tasks_entry, alone_entry, others_entry];
    let site = Site::with(quick(), FrontOptions { more_tokens, ..FrontOptions::default() }).await;
    let upid = upid("01665026", "qmstart", "100");
    put(&site.lab, &upid, Some("OK"), &[]);
    let arguments = json!({"cluster": CLUSTER, "upid": upid, "timeout": 0});
    for (secret, path, may) in [
        (&tasks, "/mcp/x/tasks", true),
        (&tasks, "/mcp", true),
        (&alone, "/mcp", true),
        (&alone, "/mcp/readonly", true),
        (&alone, "/mcp/x/snapshots", false),
        (&others, "/mcp", false),
        (&others, "/mcp/x/tasks", false),
    ] {
        let client = site.client.with_token(secret.expose()).at(path);
        let listed = client.tools().await.iter().any(|tool| tool["name"] == "wait_task");
        assert_eq!(listed, may, "{path}");
        let called = client.tool("wait_task", arguments.clone()).await;
        assert_eq!(called.is_ok(), may, "{path}: {called:?}");
    }
}
