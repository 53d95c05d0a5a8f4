//! Answers that are lost, and servers that die: what came of a write is found out, and it is never sent again.

use std::time::Duration;

use lab::{Fault, Front, FrontOptions, Lab};
use pvegate::store::{Begun, Event, Intent, NewChange, SqliteStore, Step, Store as _};
use serde_json::{Value, json};
use tests::client::Client;
use tests::site::{CLUSTER, Site, low_token, quick};

use super::{CONFIG, SNAPSHOT, START, run, until};

/// How a change stands when it has ended.
async fn ended(client: &Client, id: &Value) -> Value {
    let mut change = Value::Null;
    until("the change has ended", async || {
        change = client.tool("get_change", json!({"change_id": id})).await.unwrap();
        !["approved", "applying"].contains(&change["state"].as_str().unwrap())
    })
    .await;
    change
}

/// The change of a call, whatever it was answered with.
async fn outcome(site: &Site, operation: &str, arguments: Value) -> Value {
    let id = match run(site, operation, arguments).await {
        Ok(answer) => answer["change_id"].clone(),
        Err(refused) => {
            let at = refused.next.find("chg_").unwrap_or_else(|| panic!("{refused:?}"));
            json!(&refused.next[at..at + 30])
        }
    };
    ended(&site.client, &id).await
}

#[tokio::test]
async fn a_lost_task_is_found() {
    for fault in [Fault::CutAfter, Fault::Late599, Fault::EmptyBody] {
        let site = Site::low().await;
        site.lab.set_fault(fault.clone().on(SNAPSHOT).times(1)).await;
        let change = outcome(&site, SNAPSHOT, json!({"vmid": 112, "snapname": "one"})).await;
        assert_eq!((&change["state"], &change["outcome"]), (&json!("applied"), &json!("ok")), "{fault}: {change:#}");
        assert!(change["upid"].as_str().is_some_and(|upid| upid.contains(":qmsnapshot:112:")), "{fault}: {change:#}");
        assert_eq!(site.writes().len(), 1, "{fault}: a write is sent once");
    }
}

#[tokio::test]
async fn a_lost_setting_is_read_back() {
    for fault in [Fault::CutAfter, Fault::Late599] {
        let site = Site::low().await;
        site.lab.set_fault(fault.clone().on(CONFIG).times(1)).await;
        let change = outcome(&site, CONFIG, json!({"vmid": 118, "description": "a=b;c", "cores": 3})).await;
        assert_eq!((&change["state"], &change["outcome"]), (&json!("applied"), &json!("ok")), "{fault}: {change:#}");
        assert!(change["says"].as_str().unwrap().contains("lost"), "{fault}: {change:#}");
        assert_eq!(site.writes().len(), 1, "{fault}: a write is sent once");
    }
}

/// What never reached PVE is known not to have been done as soon as nothing can begin any more, and not before.
#[tokio::test]
async fn what_did_not_arrive_is_found_out() {
    let site = Site::low().await;
    for operation in [SNAPSHOT, CONFIG] {
        site.lab.set_fault(Fault::CutBefore.on(operation).times(1)).await;
    }
    let (task, setting) = tokio::join!(
        outcome(&site, SNAPSHOT, json!({"vmid": 112, "snapname": "one"})),
        outcome(&site, CONFIG, json!({"vmid": 118, "cores": 3})),
    );
    for change in [task, setting] {
        assert_eq!((&change["state"], &change["outcome"]), (&json!("failed"), &json!("not_sent")), "{change:#}");
        assert!(change["says"].as_str().unwrap().contains("lost"), "{change:#}");
    }
    assert_eq!(site.writes().len(), 2, "a write is sent once");
}

/// What no read shows is left to a person, and its key sends nothing more.
#[tokio::test]
async fn what_nothing_shows_stays_open() {
    const TRIM: &str = "POST /nodes/{node}/qemu/{vmid}/agent/fstrim";
    let site = Site::low().await;
    site.lab.set_fault(Fault::CutAfter.on(TRIM).times(1)).await;
    let change = outcome(&site, TRIM, json!({"vmid": 100})).await;
    assert_eq!((&change["state"], &change["outcome"]), (&json!("indeterminate"), &json!("unknown")), "{change:#}");
    assert!(change["next"].as_str().unwrap().contains("do not repeat"), "{change:#}");
    let keyed = json!({"cluster": CLUSTER, "vmid": 100, "idempotency_key": "trim"});
    site.lab.set_fault(Fault::CutAfter.on(TRIM).times(1)).await;
    let first = site.client.tool("vm_agent_fstrim", keyed.clone()).await.unwrap();
    ended(&site.client, &first["change_id"]).await;
    let again = site.client.tool("vm_agent_fstrim", keyed).await.unwrap();
    assert_eq!((&again["state"], &again["change_id"]), (&json!("indeterminate"), &first["change_id"]));
    assert_eq!(site.writes().len(), 2, "one for each call without a key of its own");
}

/// A wish as a server puts it down.
fn wish(operation: &str, arguments: &Value) -> NewChange {
    NewChange {
        principal: "operator".to_owned(),
        person_or_owner: Some("ada".to_owned()),
        cluster: CLUSTER.to_owned(),
        cluster_identity: None,
        steps: vec![Step {
            operation: operation.to_owned(),
            arguments: arguments.clone(),
            target: Some(json!({"vmid": 118, "node": "pve1"})),
        }],
        reason: None,
        idempotency_key: None,
        request_fingerprint: "f".to_owned(),
        approved_by_policy: true,
    }
}

/// How far a server came before it died.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Until {
    Claim,
    Intent,
    Sent,
    Answer,
}

async fn left(store: &SqliteStore, lab: &Lab, until: Until, vmid: u32) -> Value {
    let arguments = json!({"node": "pve1", "vmid": vmid.to_string()});
    let Begun::New(id) = store.begin(wish(START, &arguments)).await.unwrap() else { panic!("it is new") };
    let claim = store.claim(&id, "a server that died", Duration::from_millis(500)).await.unwrap();
    if until == Until::Claim {
        return json!(id.as_str());
    }
    let intent = Intent {
        operation: START.to_owned(),
        node: Some("pve1".to_owned()),
        vmid: Some(vmid),
        decided: json!({"before": {"tasks": [], "digest": null}}),
        needs: Duration::ZERO,
    };
    let _recorded = store.record_intent(&claim, 0, intent).await.unwrap();
    if until == Until::Intent {
        return json!(id.as_str());
    }
    let upid = crate::tasks::write(lab, &format!("/nodes/pve1/qemu/{vmid}/status/start"), "").await;
    if until == Until::Answer {
        let upid = upid.as_str().map(str::to_owned);
        store.append(&claim, Event::Sent { step: 0, upid }).await.unwrap();
    }
    json!(id.as_str())
}

#[tokio::test]
async fn what_a_server_left_behind_is_found_out() {
    let lab = Lab::start(quick()).await.unwrap();
    let (secret, entry) = low_token("operator");
    let path = lab.directory().join("pvegate.db");
    let store = SqliteStore::serve(&path, "a server that died").await.unwrap();
    let claimed = left(&store, &lab, Until::Claim, 118).await;
    let intended = left(&store, &lab, Until::Intent, 118).await;
    let sent = left(&store, &lab, Until::Sent, 109).await;
    // In the lab's list of guests this one is off, and on the same node.
    let answered = left(&store, &lab, Until::Answer, 124).await;
    drop(store);
    // So that their claims are over.
    tokio::time::sleep(Duration::from_secs(1)).await;
    lab.clear_journal();
    let front = FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() };
    let front = Front::start(&[(CLUSTER, &lab)], front).await.unwrap();
    let client = Client::new(&front.url(), &secret);
    for (id, state, outcome) in [
        (claimed, "void", "not_sent"),
        (intended, "failed", "not_sent"),
        (sent, "applied", "ok"),
        (answered, "applied", "ok"),
    ] {
        let change = ended(&client, &id).await;
        assert_eq!((&change["state"], &change["outcome"]), (&json!(state), &json!(outcome)), "{change:#}");
    }
    assert!(lab.journal().iter().all(|entry| entry.method == "GET"), "nothing is sent again");
}
