//! The store as it is used: races, leases, freezes, and what happens when the file cannot take any more or is not there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod broken;
mod killed;

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tempfile::TempDir;

use super::SqliteStore;
use crate::store::{
    Begun, ChangeId, Claim, Event, Filter, Identified, Intent, NewChange, State, Step, StepOutcome, Store, StoreError,
};

const LEASE: Duration = Duration::from_secs(90);
const NEEDS: Duration = Duration::from_secs(30);
/// What a lease has more than one sending needs.
const SPARE: Duration = Duration::from_mins(1);

thread_local! {
    /// How far the clock of this test's stores is ahead.
    static AHEAD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn clock() -> SystemTime {
    SystemTime::now() + AHEAD.get()
}

fn later(by: Duration) {
    AHEAD.set(AHEAD.get() + by);
}

/// A folder for one test, and where its store is.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pvegate.db");
    (folder, path)
}

async fn store() -> (TempDir, SqliteStore) {
    let (folder, path) = place();
    let mut store = SqliteStore::serve(&path, "a test").await.unwrap();
    store.clock = clock;
    (folder, store)
}

fn wish(principal: &str, key: Option<&str>, fingerprint: &str) -> NewChange {
    let step = Step {
        operation: "POST /nodes/{node}/qemu/{vmid}/status/start".to_owned(),
        arguments: json!({"vmid": 100}),
        target: Some(json!({"name": "web"})),
    };
    NewChange {
        principal: principal.to_owned(),
        person_or_owner: Some("ada".to_owned()),
        cluster: "lab".to_owned(),
        cluster_identity: None,
        steps: vec![step],
        reason: Some("it is down".to_owned()),
        idempotency_key: key.map(str::to_owned),
        request_fingerprint: fingerprint.to_owned(),
        approved_by_policy: true,
    }
}

fn intent() -> Intent {
    Intent {
        operation: "POST /nodes/{node}/qemu/{vmid}/status/start".to_owned(),
        node: Some("pve1".to_owned()),
        vmid: Some(100),
        decided: json!({"tier": "low"}),
        needs: NEEDS,
    }
}

async fn begun(store: &dyn Store) -> ChangeId {
    match store.begin(wish("bot", None, "f")).await.unwrap() {
        Begun::New(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn claimed(store: &dyn Store) -> Claim {
    let change = begun(store).await;
    store.claim(&change, "one", LEASE).await.unwrap()
}

fn outcome(outcome: StepOutcome) -> Event {
    Event::Outcome { step: 0, outcome, message: "done".to_owned(), upid: Some("UPID:one".to_owned()) }
}

#[tokio::test]
async fn a_change_from_its_wish_to_its_end() {
    let (_folder, store) = store().await;
    let change = begun(&store).await;
    let read = |store: Arc<SqliteStore>| {
        let change = change.clone();
        async move { store.change(&change).await.unwrap().unwrap() }
    };
    let store = Arc::new(store);
    assert_eq!(read(store.clone()).await.state, State::Approved);
    let claim = store.claim(&change, "one", LEASE).await.unwrap();
    let recorded = store.record_intent(&claim, 0, intent()).await.unwrap();
    assert_eq!((recorded.change(), recorded.step(), recorded.value()), (&change, 0, &intent()));
    store.append(&claim, Event::Sent { step: 0, upid: Some("UPID:one".to_owned()) }).await.unwrap();
    assert_eq!(store.started_by("UPID:one").await.unwrap().as_deref(), Some("bot"));
    assert_eq!(store.started_by("UPID:two").await.unwrap(), None);
    let open: Vec<ChangeId> = store.open().await.unwrap().into_iter().map(|change| change.id).collect();
    assert_eq!(open, std::slice::from_ref(&change));
    store.append(&claim, outcome(StepOutcome::Ok)).await.unwrap();
    store.append(&claim, Event::ReadBack { step: 0, data: json!({"status": "running"}) }).await.unwrap();
    store.append(&claim, Event::Applied).await.unwrap();
    let whole = read(store.clone()).await;
    assert_eq!((whole.state, &whole.new), (State::Applied, &wish("bot", None, "f")));
    let names: Vec<&str> = whole.events.iter().map(|happened| happened.event.name()).collect();
    assert_eq!(
        names,
        ["planned", "approved", "claimed", "intent", "sent", "outcome", "read_back", "applied"],
        "in order"
    );
    let places: Vec<u32> = whole.events.iter().map(|happened| happened.sequence).collect();
    assert_eq!(places, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(store.open().await.unwrap(), []);
    let after_the_end = store.append(&claim, outcome(StepOutcome::Failed)).await;
    assert!(matches!(after_the_end, Err(StoreError::Conflict(_))), "{after_the_end:?}");
}

#[tokio::test]
async fn a_key_stands_for_one_wish_of_one_principal() {
    let (_folder, store) = store().await;
    let store = Arc::new(store);
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.begin(wish("bot", Some("k"), "f")).await.unwrap() })
        })
        .collect();
    let (mut new, mut same) = (Vec::new(), Vec::new());
    for one in racing {
        match one.await.unwrap() {
            Begun::New(id) => new.push(id),
            Begun::Same(id) => same.push(id),
            other @ Begun::OtherArguments(_) => panic!("{other:?}"),
        }
    }
    assert_eq!((new.len(), same.len()), (1, 7));
    assert!(same.iter().all(|id| *id == new[0]));
    assert_eq!(store.begin(wish("bot", Some("k"), "g")).await.unwrap(), Begun::OtherArguments(new[0].clone()));
    assert!(matches!(store.begin(wish("other", Some("k"), "g")).await.unwrap(), Begun::New(_)));
    assert!(matches!(store.begin(wish("bot", None, "f")).await.unwrap(), Begun::New(_)), "without a key it is another");
    assert_eq!(store.changes(Filter { limit: 100, ..Filter::default() }).await.unwrap().len(), 3);
    assert_eq!(store.keyed("bot", "k").await.unwrap().unwrap().id, new[0]);
    for (principal, key) in [("bot", "K"), ("nobody", "k")] {
        assert_eq!(store.keyed(principal, key).await.unwrap(), None);
    }
}

#[tokio::test]
async fn one_of_many_gets_a_claim() {
    let (_folder, store) = store().await;
    let store = Arc::new(store);
    let change = begun(&*store).await;
    let racing: Vec<_> = (0..8)
        .map(|number| {
            let (store, change) = (Arc::clone(&store), change.clone());
            tokio::spawn(async move { store.claim(&change, &format!("holder {number}"), LEASE).await })
        })
        .collect();
    let mut claims = Vec::new();
    for one in racing {
        match one.await.unwrap() {
            Ok(claim) => claims.push(claim),
            Err(StoreError::Claimed { holder, .. }) => assert!(holder.starts_with("holder "), "{holder}"),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(claims.len(), 1);
    // And one claim is good for one intent, however many ask.
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let (store, claim) = (Arc::clone(&store), claims[0].clone());
            tokio::spawn(async move { store.record_intent(&claim, 0, intent()).await.is_ok() })
        })
        .collect();
    let mut recorded = 0;
    for one in racing {
        recorded += u32::from(one.await.unwrap());
    }
    assert_eq!(recorded, 1);
}

#[tokio::test]
async fn a_lease_that_is_over_or_too_short_sends_nothing() {
    let (_folder, store) = store().await;
    let claim = claimed(&store).await;
    later(SPARE + Duration::from_secs(1));
    let short = store.record_intent(&claim, 0, intent()).await;
    assert!(matches!(short, Err(StoreError::LeaseLost(_))), "{short:?}");
    let claim = store.renew(&claim, LEASE).await.unwrap();
    later(LEASE + Duration::from_secs(1));
    let over = store.renew(&claim, LEASE).await;
    assert!(matches!(over, Err(StoreError::LeaseLost(_))), "{over:?}");
    let over = store.record_intent(&claim, 0, intent()).await;
    assert!(matches!(over, Err(StoreError::LeaseLost(_))), "{over:?}");
    let change = store.change(claim.change()).await.unwrap().unwrap();
    assert_eq!(change.state, State::Claimed, "nothing of it is on record");
}

#[tokio::test]
async fn what_is_on_record_says_until_when_it_is_good() {
    let (_folder, store) = store().await;
    let before = std::time::Instant::now();
    let claim = claimed(&store).await;
    let recorded = store.record_intent(&claim, 0, intent()).await.unwrap();
    let until = recorded.good_until();
    // A second for what rounding and two clocks differ by.
    let (least, most) = (before + SPARE, std::time::Instant::now() + SPARE + Duration::from_secs(1));
    assert!(until + Duration::from_secs(1) >= least && until <= most, "{:?}", until.duration_since(before));
}

#[tokio::test]
async fn who_takes_over_finds_out_and_sends_nothing() {
    let (_folder, store) = store().await;
    let first = claimed(&store).await;
    let early = store.claim(first.change(), "two", LEASE).await;
    assert!(matches!(early, Err(StoreError::Claimed { ref holder, .. }) if holder == "one"), "{early:?}");
    let _sent = store.record_intent(&first, 0, intent()).await.unwrap();
    later(LEASE + Duration::from_secs(1));
    // Late, but nobody took over: the answer is not lost.
    store.append(&first, Event::Sent { step: 0, upid: None }).await.unwrap();
    let second = store.claim(first.change(), "two", LEASE).await.unwrap();
    assert!(first.may_send() && !second.may_send());
    let late = store.append(&first, outcome(StepOutcome::Ok)).await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{late:?}");
    assert!(matches!(store.renew(&first, LEASE).await, Err(StoreError::LeaseLost(_))));
    store.append(&second, outcome(StepOutcome::Unknown)).await.unwrap();
    store.append(&second, outcome(StepOutcome::Ok)).await.unwrap();
    store.append(&second, Event::Applied).await.unwrap();
    let change = store.change(first.change()).await.unwrap().unwrap();
    assert_eq!(change.state, State::Applied);
    // A claim that was left before anything was sent is not a second chance.
    let left = claimed(&store).await;
    later(LEASE + Duration::from_secs(1));
    let taken = store.claim(left.change(), "two", LEASE).await.unwrap();
    let sent = store.record_intent(&taken, 0, intent()).await;
    assert!(matches!(sent, Err(StoreError::Conflict(_))), "{sent:?}");
    store.append(&taken, Event::Void { reason: "the server ended".to_owned() }).await.unwrap();
}

#[tokio::test]
async fn a_freeze_stops_every_intent_until_it_ends() {
    let (_folder, store) = store().await;
    let claim = claimed(&store).await;
    assert_eq!(store.frozen().await.unwrap(), None);
    let until = clock() + Duration::from_secs(20);
    let freeze = store.freeze("ada", "the storage is moved", Some(until)).await.unwrap();
    assert_eq!((freeze.by.as_str(), freeze.reason.as_str()), ("ada", "the storage is moved"));
    let refused = store.record_intent(&claim, 0, intent()).await.unwrap_err();
    let said = refused.to_string();
    assert!(matches!(refused, StoreError::Frozen(_)) && said.contains("ada") && said.contains("storage"), "{said}");
    // Reads, wishes and claims go on; only nothing is sent.
    let other = claimed(&store).await;
    later(Duration::from_secs(21));
    assert_eq!(store.frozen().await.unwrap(), None, "it ends by itself");
    let _sent = store.record_intent(&claim, 0, intent()).await.unwrap();
    store.freeze("ada", "again", None).await.unwrap();
    assert!(matches!(store.record_intent(&other, 0, intent()).await, Err(StoreError::Frozen(_))));
    // What was sent already is recorded whatever is frozen.
    store.append(&claim, outcome(StepOutcome::Ok)).await.unwrap();
    assert_eq!(store.unfreeze("bob").await.unwrap().map(|freeze| freeze.reason).as_deref(), Some("again"));
    assert_eq!(store.unfreeze("bob").await.unwrap(), None);
    let _sent = store.record_intent(&other, 0, intent()).await.unwrap();
}

#[tokio::test]
async fn a_person_decides_about_what_nobody_works_on() {
    let (_folder, store) = store().await;
    let planned = NewChange { approved_by_policy: false, ..wish("bot", None, "f") };
    let Begun::New(change) = store.begin(planned.clone()).await.unwrap() else { panic!("it is new") };
    assert_eq!(store.open().await.unwrap(), [], "it waits for a person, not for a server");
    let early = store.claim(&change, "one", LEASE).await;
    assert!(matches!(early, Err(StoreError::Conflict(ref said)) if said.contains("planned")), "{early:?}");
    store.decide(&change, Event::Approved { by: "ada".to_owned() }).await.unwrap();
    let claim = store.claim(&change, "one", LEASE).await.unwrap();
    let meanwhile = store.decide(&change, Event::Cancelled { by: "ada".to_owned() }).await;
    assert!(matches!(meanwhile, Err(StoreError::Conflict(_))), "{meanwhile:?}");
    let forged = store.append(&claim, Event::Intent { step: 0, request: intent() }).await;
    assert!(matches!(forged, Err(StoreError::Conflict(_))), "{forged:?}");
    let _sent = store.record_intent(&claim, 0, intent()).await.unwrap();
    store.append(&claim, Event::Indeterminate { message: "no answer".to_owned() }).await.unwrap();
    assert_eq!(store.open().await.unwrap(), [], "it waits for a person");
    let settled = Event::Settled { by: "ada".to_owned(), outcome: StepOutcome::Ok, message: "I looked".to_owned() };
    store.decide(&change, settled).await.unwrap();
    assert_eq!(store.change(&change).await.unwrap().unwrap().state, State::Settled);
    let nothing = store.decide(&ChangeId::new(clock()).unwrap(), Event::Expired).await;
    assert!(matches!(nothing, Err(StoreError::Conflict(_))), "{nothing:?}");
}

#[tokio::test]
async fn lists_are_of_whom_they_are_asked_for_the_newest_first() {
    let (_folder, store) = store().await;
    for (number, principal) in [(0, "a"), (1, "b"), (2, "a"), (3, "a")] {
        later(Duration::from_millis(5));
        store.begin(wish(principal, None, &format!("f{number}"))).await.unwrap();
    }
    let filter = Filter { principal: Some("a".to_owned()), before: None, limit: 2 };
    let page = store.changes(filter.clone()).await.unwrap();
    let prints = |page: &[crate::store::Change]| -> Vec<String> {
        page.iter().map(|change| change.new.request_fingerprint.clone()).collect()
    };
    assert_eq!(prints(&page), ["f3", "f2"]);
    let rest = store.changes(Filter { before: Some(page[1].id.clone()), ..filter }).await.unwrap();
    assert_eq!(prints(&rest), ["f0"]);
}

#[tokio::test]
async fn a_name_stands_for_one_cluster() {
    let (_folder, store) = store().await;
    assert_eq!(store.identity("lab").await.unwrap(), None);
    assert_eq!(store.set_identity("lab", "A").await.unwrap(), Identified::New);
    assert_eq!(store.set_identity("lab", "A").await.unwrap(), Identified::Same);
    assert_eq!(store.set_identity("lab", "B").await.unwrap(), Identified::Changed { known: "A".to_owned() });
    assert_eq!(store.set_identity("other", "A").await.unwrap(), Identified::Twice { cluster: "lab".to_owned() });
    assert_eq!(store.identity("lab").await.unwrap().as_deref(), Some("A"));
    assert_eq!(store.set_identity("other", "B").await.unwrap(), Identified::New);
    let taken = store.replace_identity("lab", "B").await;
    assert!(matches!(taken, Err(StoreError::Conflict(ref said)) if said.contains("lab")), "{taken:?}");
    store.replace_identity("lab", "C").await.unwrap();
    assert_eq!(store.identity("lab").await.unwrap().as_deref(), Some("C"));
}
