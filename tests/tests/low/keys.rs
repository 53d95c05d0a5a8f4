//! Keys, clients that hang up, and whose change is whose.

use std::time::Duration;

use lab::{Fault, FrontOptions};
use pvegate::store::{SqliteStore, Store as _};
use serde_json::{Value, json};
use tests::client::Client;
use tests::site::{CLUSTER, Site, low_token, quick};

use super::{SNAPSHOT, START, run, until};

fn start(vmid: u32, key: &str) -> Value {
    json!({"cluster": CLUSTER, "vmid": vmid, "idempotency_key": key})
}

async fn change(client: &Client, id: &Value) -> Value {
    client.tool("get_change", json!({"change_id": id})).await.unwrap()
}

#[tokio::test]
async fn a_key_is_one_wish() {
    let (other, entry) = low_token("other");
    let site = Site::low_with(quick(), FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() }).await;
    let first = site.client.tool("start_vm", start(118, "k")).await.unwrap();
    assert_eq!(first["outcome"], "ok", "{first:#}");
    for again in [
        site.client.tool("start_vm", start(118, "k")).await,
        // The same wish, written down otherwise.
        site.client
            .tool(
                "run_operation",
                json!({"cluster": CLUSTER, "operation": START, "arguments": {"vmid": "118"}, "idempotency_key": "k"}),
            )
            .await,
    ] {
        assert_eq!(again.unwrap(), first);
    }
    for refused in [
        site.client.tool("start_vm", start(113, "k")).await.unwrap_err(),
        site.client.tool("stop_vm", start(118, "k")).await.unwrap_err(),
    ] {
        assert_eq!(refused.code, "conflict");
        assert!(refused.text().contains(first["change_id"].as_str().unwrap()), "{refused:?}");
    }
    assert_eq!(site.writes().len(), 1);
    // The key of another principal is another key.
    let theirs = site.client.with_token(&other).tool("start_vm", start(118, "k")).await.unwrap();
    assert_ne!(theirs["change_id"], first["change_id"]);
    assert_eq!(site.writes().len(), 2);
}

/// What the first call made is in the way of making it again, and that is no reason to refuse the second.
#[tokio::test]
async fn a_retry_of_what_is_done_is_answered() {
    let site = Site::low().await;
    let make = json!({
        "cluster": CLUSTER, "node": "pve1", "vmid": 900, "name": "new", "memory": "512", "scsi0": "local-lvm:4",
        "idempotency_key": "make",
    });
    let first = site.client.tool("create_vm", make.clone()).await.unwrap();
    assert_eq!((&first["outcome"], &first["vmid"]), (&json!("ok"), &json!(900)), "{first:#}");
    assert_eq!(first["guest"]["vmid"], 900, "it is read back: {first:#}");
    assert_eq!(site.client.tool("create_vm", make).await.unwrap(), first);
    assert_eq!(site.writes().len(), 1);
}

/// C040: a number that is taken is a refusal, and the guest that has it is left alone.
#[tokio::test]
async fn a_number_that_is_taken_adopts_nobody() {
    let site = Site::low().await;
    let make = json!({"cluster": CLUSTER, "node": "pve1", "vmid": 112, "name": "new", "memory": "512"});
    let refused = site.client.tool("create_vm", make).await.unwrap_err();
    assert!(["exists", "not_found"].contains(&refused.code.as_str()), "{refused:?}");
    let guest = site.client.tool("get_guest", json!({"cluster": CLUSTER, "vmid": 112})).await.unwrap();
    assert_eq!(guest["name"], "app-112");
}

#[tokio::test]
async fn many_calls_with_one_key_send_once() {
    let site = Site::low().await;
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let client = site.client.clone();
            tokio::spawn(async move { client.tool("start_vm", start(118, "k")).await.unwrap() })
        })
        .collect();
    let mut ids = Vec::new();
    for call in calls {
        ids.push(call.await.unwrap()["change_id"].clone());
    }
    ids.dedup();
    assert_eq!((ids.len(), site.writes().len()), (1, 1), "{ids:?}");
}

/// C139, C140: the client is gone, and the change goes on to its end.
#[tokio::test]
async fn a_client_that_hangs_up_stops_nothing() {
    let site = Site::low().await;
    let held = Fault::HoldBefore.on(START);
    site.lab.set_fault(held.clone()).await;
    let call = site.client.request("tools/call", json!({"name": "start_vm", "arguments": start(118, "k")}));
    let call = tokio::spawn(call.timeout(Duration::from_mins(1)).send());
    until("the write is on its way", async || site.lab.held() == 1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    site.lab.clear_fault(&held).await.unwrap();
    let mut answer = Value::Null;
    until("it has ended", async || {
        answer = site.client.tool("start_vm", start(118, "k")).await.unwrap();
        answer["state"] == "applied"
    })
    .await;
    assert_eq!((&answer["outcome"], site.writes().len()), (&json!("ok"), 1), "{answer:#}");
    let whole = change(&site.client, &answer["change_id"]).await;
    let events: Vec<&str> =
        whole["events"].as_array().unwrap().iter().map(|one| one["event"].as_str().unwrap()).collect();
    assert_eq!(
        events,
        ["planned", "approved", "claimed", "intent", "sent", "read_back", "outcome", "applied"],
        "{whole:#}"
    );
}

/// Whoever stops the server waits for what is under way, and nothing of it is lost.
#[tokio::test]
async fn stopping_waits_for_what_is_under_way() {
    let site = Site::low().await;
    site.lab.set_fault(Fault::HoldTasks).await;
    let client = site.client.clone();
    let call = tokio::spawn(async move { client.tool("start_vm", start(118, "k")).await });
    until("it is sent", async || site.writes().len() == 1).await;
    let Site { lab, front, .. } = site;
    let stop = tokio::spawn(front.stop());
    lab.clear_fault(&Fault::HoldTasks).await.unwrap();
    stop.await.unwrap();
    // The answer may have come before the connection ended, or not.
    drop(call.await);
    let store = SqliteStore::operate(&lab.directory().join("pvegate.db")).await.unwrap();
    let change = store.keyed("operator", "k").await.unwrap().unwrap();
    assert_eq!(change.state.name(), "applied", "{change:#?}");
}

#[tokio::test]
async fn changes_of_others_are_as_if_they_were_not() {
    let (other, entry) = low_token("other");
    let site = Site::low_with(quick(), FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() }).await;
    let mine = run(&site, START, json!({"vmid": 118})).await.unwrap()["change_id"].as_str().unwrap().to_owned();
    let nobodys = "chg_01m8qak22x50qmq5h9xyv79rga";
    let theirs = site.client.with_token(&other);
    let ask = async |id: &str| theirs.tool("get_change", json!({"change_id": id})).await.unwrap_err();
    let (of_mine, of_nobody) = (ask(&mine).await, ask(nobodys).await);
    assert_eq!(of_mine.text().replace(&mine, "ID"), of_nobody.text().replace(nobodys, "ID"));
    assert_eq!((of_mine.code.as_str(), ask("100").await.code.as_str()), ("not_found", "invalid_arguments"));
    assert_eq!(change(&site.client, &json!(mine)).await["state"], "applied");
}

/// C056, C057: what destroys is refused by the server, whatever an agent was told.
#[tokio::test]
async fn what_is_not_low_needs_a_plan() {
    let site = Site::low().await;
    for (operation, arguments, named) in [
        ("PUT /nodes/{node}/qemu/{vmid}/config", json!({"vmid": 118, "cores": 2, "scsi1": "local-lvm:4"}), "scsi1"),
        ("PUT /nodes/{node}/qemu/{vmid}/config", json!({"vmid": 118, "delete": "net0"}), "delete"),
        (SNAPSHOT, json!({"vmid": 118, "snapname": "s", "skiplock": true}), "skiplock"),
        (START, json!({"vmid": 118, "skiplock": true}), "skiplock"),
        ("DELETE /nodes/{node}/qemu/{vmid}", json!({"vmid": 118}), "DELETE"),
        ("POST /nodes/{node}/vzdump", json!({"vmid": "118,113", "storage": "nas"}), "vzdump"),
    ] {
        let refused = run(&site, operation, arguments.clone()).await.unwrap_err();
        assert!(["needs_a_plan", "invalid_arguments"].contains(&refused.code.as_str()), "{operation}: {refused:?}");
        assert!(refused.text().contains(named), "{operation} {arguments}: {refused:?}");
    }
    let refused = run(&site, "GET /version", json!({})).await.unwrap_err();
    assert!(refused.text().contains("read"), "{refused:?}");
    assert!(site.writes().is_empty());
}

/// Nothing empty is sent.
#[tokio::test]
async fn a_change_of_nothing_is_refused() {
    let site = Site::low().await;
    for (tool, arguments) in [
        ("update_vm_config", json!({"cluster": CLUSTER, "vmid": 118})),
        ("update_container_resources", json!({"cluster": CLUSTER, "vmid": 114})),
        ("update_vm_config", json!({"cluster": CLUSTER, "vmid": 118, "description": ""})),
        ("update_snapshot", json!({"cluster": CLUSTER, "vmid": 102, "snapname": "clean"})),
        ("update_vm_config", json!({"cluster": CLUSTER, "vmid": 118, "cores": 2, "idempotency_key": ""})),
    ] {
        let refused = site.client.tool(tool, arguments.clone()).await.unwrap_err();
        assert_eq!(refused.code, "invalid_arguments", "{tool} {arguments}: {refused:?}");
    }
    assert!(site.writes().is_empty());
}

#[tokio::test]
async fn nothing_is_sent_while_all_is_frozen() {
    let site = Site::low().await;
    let store = SqliteStore::operate(&site.lab.directory().join("pvegate.db")).await.unwrap();
    store.freeze("ada", "a fire in the room", None).await.unwrap();
    let refused = site.client.tool("start_vm", start(118, "k")).await.unwrap_err();
    assert_eq!(refused.code, "frozen");
    assert!(refused.message.contains("ada") && refused.message.contains("a fire in the room"), "{refused:?}");
    assert!(site.writes().is_empty());
    store.unfreeze("ada").await.unwrap();
    let answer = site.client.tool("start_vm", start(118, "k")).await.unwrap();
    assert_eq!(answer["outcome"], "ok", "a key is not used up by a refusal: {answer:#}");
}
