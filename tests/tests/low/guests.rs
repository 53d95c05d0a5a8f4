//! Guests that are locked, that move, whose number passes to another, and that the HA manager looks after.

use lab::{Arrange, Fault, Front, FrontOptions, Lab};
use serde_json::{Value, json};
use tests::client::Client;
use tests::site::{CLUSTER, Site, low_token, quick};

use super::{CONFIG, SNAPSHOT, START, run, until};

const READ: &str = "GET /nodes/{node}/qemu/{vmid}/config";

/// C067: what is locked stays locked, and whoever asks learns by what.
#[tokio::test]
async fn a_lock_is_told_and_left_alone() {
    let site = Site::low().await;
    site.lab.set_fault(Fault::LockedGuest(112, "backup".to_owned())).await;
    let refused = run(&site, CONFIG, json!({"vmid": 112, "cores": 3})).await.unwrap_err();
    assert_eq!(refused.code, "locked");
    assert!(refused.message.contains("backup") && refused.next.contains("get_change"), "{refused:?}");
    let answer = run(&site, SNAPSHOT, json!({"vmid": 112, "snapname": "snap"})).await.unwrap();
    assert_eq!((&answer["outcome"], &answer["state"]), (&json!("failed"), &json!("failed")), "{answer:#}");
    assert!(answer["says"].as_str().unwrap().contains("VM is locked (backup)"), "{answer:#}");
    let writes = site.writes();
    assert_eq!(writes.len(), 2);
    assert!(writes.iter().all(|write| !write.params.contains_key("skiplock")), "{writes:?}");
}

#[tokio::test]
async fn a_guest_that_moves_is_found_again() {
    let site = Site::low().await;
    site.lab.set_fault(Fault::MovedGuest(118).on(READ).times(1)).await;
    let answer = run(&site, START, json!({"vmid": 118})).await.unwrap();
    assert_eq!(answer["outcome"], "ok", "{answer:#}");
    let writes = site.writes();
    assert!(writes.len() == 1 && writes[0].params["node"] != "pve1", "{writes:?}");
}

/// What arrived where the guest is no more is not sent after it.
#[tokio::test]
async fn a_write_does_not_follow_a_guest() {
    let site = Site::low().await;
    site.lab.set_fault(Fault::MovedGuest(118).on(CONFIG).times(1)).await;
    let refused = run(&site, CONFIG, json!({"vmid": 118, "cores": 3})).await.unwrap_err();
    assert!(refused.message.contains("PVE refused it"), "{refused:?}");
    assert_eq!(site.writes().len(), 1);
}

/// C039: while a call waits for its turn, the guest is removed and another made under its number.
#[tokio::test]
async fn another_guest_of_the_same_number_is_not_the_one() {
    let site = Site::low().await;
    let held = Fault::HoldBefore.on(CONFIG);
    site.lab.set_fault(held.clone()).await;
    let call = |cores: u32| {
        let client = site.client.clone();
        let arguments = json!({"cluster": CLUSTER, "vmid": 112, "cores": cores});
        tokio::spawn(async move { client.tool("update_vm_config", arguments).await })
    };
    let first = call(2);
    until("the first is on its way", async || site.lab.held() == 1).await;
    site.lab.clear_journal();
    let second = call(3);
    until("the second looked at the guest", async || {
        site.lab.journal().iter().any(|entry| entry.operation.as_deref() == Some(READ))
    })
    .await;
    let config = json!({
        "name": "app-112", "memory": "512", "smbios1": "uuid=99999999-0000-4000-8000-000000000112",
        "meta": "creation-qemu=10.1.2,ctime=1799999999",
    });
    site.lab.arrange(Arrange::Guest { vmid: 112, kind: "qemu".to_owned(), config });
    site.lab.clear_fault(&held).await.unwrap();
    let refused = second.await.unwrap().unwrap_err();
    assert_eq!(refused.code, "conflict", "{refused:?}");
    assert!(refused.message.contains("112"), "{refused:?}");
    // The first was held on its way: PVE's own lock is with it, and does not fit the other guest.
    let refused = first.await.unwrap().unwrap_err();
    assert_eq!(refused.code, "conflict", "{refused:?}");
    assert_eq!(site.writes().len(), 1);
}

/// C052: the HA manager's task ends at once; the answer is what the guest came to.
#[tokio::test]
async fn the_ha_manager_is_waited_for() {
    let site = Site::low().await;
    // As it is, but not protected.
    let config = json!({"name": "app-107", "memory": "512"});
    site.lab.arrange(Arrange::Guest { vmid: 107, kind: "qemu".to_owned(), config });
    site.lab.arrange(Arrange::Running { vmid: 107, running: true });
    for (tool, status, worker) in [("stop_vm", "stopped", ":hastop:"), ("start_vm", "running", ":hastart:")] {
        let answer = site.client.tool(tool, json!({"cluster": CLUSTER, "vmid": 107})).await.unwrap();
        assert!(answer["upid"].as_str().unwrap().contains(worker), "{answer:#}");
        let mut whole = answer.clone();
        until("it has ended", async || {
            let id = json!({"change_id": answer["change_id"]});
            whole = site.client.tool("get_change", id).await.unwrap();
            whole["state"] != "applying"
        })
        .await;
        assert_eq!((&whole["outcome"], &whole["guest"]["status"]), (&json!("ok"), &json!(status)), "{whole:#}");
    }
}

/// What lifted protection is told to the caller, and stands in the trail before anything is sent.
#[tokio::test]
async fn a_waiver_is_told_in_the_answer_and_in_the_trail() {
    let waiver = json!({
        "cluster": CLUSTER, "vmid": 107, "until": "2099-01-01T00:00:00Z", "reason": "moving house", "ticket": "CHG-1",
        "ops": ["stop_vm"], "principal": "operator",
    });
    let site = Site::low_with(quick(), FrontOptions { waivers: vec![waiver], ..FrontOptions::default() }).await;
    let answer = site.client.tool("stop_vm", json!({"cluster": CLUSTER, "vmid": 107})).await.unwrap();
    let told = answer["protection"][0].as_str().unwrap();
    assert!(told.contains("PROTECTED") && told.contains("moving house"), "{answer:#}");
    let trail = std::fs::read_to_string(site.front.audit_file()).unwrap();
    let lines: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let intent = lines.iter().find(|line| line["event"] == "intent").unwrap();
    assert!(intent["protection"].as_str().unwrap().contains("moving house"), "{intent:#}");
}

/// All privileges that the server's own token lacks are told at once, where PVE names one.
#[tokio::test]
async fn every_missing_privilege_is_told() {
    let lab = Lab::start(quick()).await.unwrap();
    let (secret, entry) = low_token("operator");
    let options =
        FrontOptions { pve_token: Some(lab.audit_token()), more_tokens: vec![entry], ..FrontOptions::default() };
    let front = Front::start(&[(CLUSTER, &lab)], options).await.unwrap();
    let client = Client::new(&front.url(), &secret);
    let refused = client.tool("start_vm", json!({"cluster": CLUSTER, "vmid": 118})).await.unwrap_err();
    assert!(refused.message.contains("lack VM.PowerMgmt on /vms/118"), "{refused:?}");
}

/// PVE writes no configuration without quorum, and says so; that is an answer, and nothing is done.
#[tokio::test]
async fn without_quorum_it_is_refused() {
    let site = Site::low().await;
    site.lab.set_fault(Fault::NoQuorum).await;
    let refused = run(&site, CONFIG, json!({"vmid": 118, "description": "x"})).await.unwrap_err();
    assert!(refused.message.contains("quorum"), "{refused:?}");
    site.lab.clear_fault(&Fault::NoQuorum).await.unwrap();
    let config = site.client.tool("get_vm_config", json!({"cluster": CLUSTER, "vmid": 118})).await.unwrap();
    assert_ne!(config["data"]["description"], "x");
}

/// A guest whose node is down is not written to, and the node is named.
#[tokio::test]
async fn a_guest_on_a_node_that_is_down_is_left_alone() {
    let site = Site::low().await;
    let guests = json!({"cluster": CLUSTER, "node": "pve2", "type": "qemu", "limit": 1});
    let guests = site.client.tool("list_guests", guests).await.unwrap();
    let vmid = guests["items"].as_array().unwrap().first().unwrap()["vmid"].clone();
    site.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    let refused = run(&site, START, json!({"vmid": vmid})).await.unwrap_err();
    assert!(refused.message.contains("pve2"), "{refused:?}");
    assert!(site.writes().is_empty());
}

/// C062, C078: what takes effect at the next start is said, and nobody starts anything.
#[tokio::test]
async fn what_waits_for_a_restart_is_listed() {
    let site = Site::low().await;
    let answer = run(&site, CONFIG, json!({"vmid": 112, "cores": 7, "description": "new"})).await.unwrap();
    assert_eq!(answer["pending"].as_object().unwrap().keys().collect::<Vec<_>>(), ["cores"], "{answer:#}");
    assert_eq!(answer["pending"]["cores"]["pending"].to_string().trim_matches('"'), "7", "{answer:#}");
    let stopped = run(&site, CONFIG, json!({"vmid": 118, "cores": 7})).await.unwrap();
    assert!(stopped.get("pending").is_none(), "{stopped:#}");
    let writes: Vec<String> = site.writes().into_iter().filter_map(|write| write.operation).collect();
    assert_eq!(writes, [CONFIG, CONFIG]);
}

/// C110: how a guest went down is said.
#[tokio::test]
async fn a_shutdown_says_how_it_went() {
    let site = Site::low().await;
    let answer =
        site.client.tool("shutdown_vm", json!({"cluster": CLUSTER, "vmid": 112, "timeout": 30})).await.unwrap();
    assert_eq!(
        (&answer["says"], &answer["guest"]["status"]),
        (&json!("the guest went down by itself"), &json!("stopped"))
    );
}

/// C046: the kind of a guest is known before anything is sent.
#[tokio::test]
async fn an_operation_of_the_other_kind_is_refused() {
    let site = Site::low().await;
    let refused = run(&site, START, json!({"vmid": 114})).await.unwrap_err();
    assert_eq!(refused.code, "wrong_kind", "{refused:?}");
    assert!(site.writes().is_empty());
}
