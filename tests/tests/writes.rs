//! Writes against a cluster that answers, refuses, breaks off, or answers too late: what is known afterwards.

use lab::{Entry, Fault, Lab};
use pvegate::args::{Args, decode};
use pvegate::config::{ApiToken, Cluster, ClusterName, Endpoint, Trust};
use pvegate::connection::Connection;
use pvegate::pve::Kind;
use pvegate::values::{Secret, TokenId};
use pvegate::write::{Outcome, ReadBack, Written};
use pvegate_generated::catalog;
use pvegate_generated::terms::Release;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tests::site::quick;

pub(crate) struct Cell {
    pub(crate) lab: Lab,
    pub(crate) connection: Arc<Connection>,
}

impl Cell {
    pub(crate) async fn start() -> Self {
        pvegate::serve::install_crypto();
        let lab = Lab::start(quick()).await.unwrap();
        let token = lab.full_token();
        let (id, secret) = token.split_once('=').unwrap();
        let cluster = Cluster {
            name: ClusterName::parse("lab").unwrap(),
            endpoints: vec![Endpoint::parse(&lab.url()).unwrap()],
            trust: Trust { ca_pem: Some(lab.ca_pem().as_bytes().into()), ..Trust::default() },
            token: ApiToken { id: TokenId::parse(id).unwrap(), secret: Secret::new(secret.to_owned()) },
            protected_vmids: [].into(),
            protected_tags: [].into(),
            resource_ttl: Duration::from_secs(10),
            replicas: NonZeroUsize::MIN,
            lab: false,
        };
        Self { connection: Arc::new(Connection::new(&cluster).unwrap()), lab }
    }

    pub(crate) async fn write(&self, operation: &str, arguments: Value) -> Written {
        self.connection.write(&args(operation, &arguments)).await
    }

    /// The writes that arrived.
    fn writes(&self) -> Vec<Entry> {
        self.lab.journal().into_iter().filter(|entry| entry.method != "GET").collect()
    }
}

fn args(operation: &str, arguments: &Value) -> Args {
    let operation = catalog::operation(operation).unwrap();
    decode(operation, arguments.as_object().unwrap(), Release::NEWEST).unwrap()
}

const CONFIG: &str = "PUT /nodes/{node}/qemu/{vmid}/config";
const START: &str = "POST /nodes/{node}/qemu/{vmid}/status/start";

#[tokio::test]
async fn a_write_that_is_done() {
    let cell = Cell::start().await;
    let written = cell.write(CONFIG, json!({"node": "pve1", "vmid": 100, "description": "a=b;c&d\n100 %"})).await;
    assert_eq!(written.outcome(), Outcome::Done, "{:?}", written.answer);
    assert!(matches!(written.read_back, ReadBack::NotNeeded));
    let looked = cell.connection.read_back(&args(CONFIG, &json!({"node": "pve1", "vmid": 100}))).await;
    let ReadBack::Object { operation, data } = looked else { panic!("{looked:?}") };
    assert_eq!(operation.name, "GET /nodes/{node}/qemu/{vmid}/config");
    assert_eq!(data["description"], "a=b;c&d\n100 %");
    assert_eq!(cell.writes().len(), 1);
}

#[tokio::test]
async fn a_task_is_known_by_its_id() {
    let cell = Cell::start().await;
    let written = cell
        .write("POST /nodes/{node}/qemu/{vmid}/snapshot", json!({"node": "pve1", "vmid": 100, "snapname": "one"}))
        .await;
    let upid = written.task().unwrap_or_else(|| panic!("{written:?}"));
    assert_eq!((upid.worker(), upid.subject(), upid.user()), ("qmsnapshot", "100", "pvegate@pve!full"));
}

#[tokio::test]
async fn a_refusal_is_looked_at_too() {
    let cell = Cell::start().await;
    let written = cell.write("DELETE /pools", json!({"poolid": "nope"})).await;
    assert_eq!((written.outcome(), written.answer.unwrap_err().kind()), (Outcome::Refused, Kind::NotFound));
    assert!(matches!(written.read_back, ReadBack::Object { operation, .. } if operation.name == "GET /pools"));
    // A guest that is gone is gone, and not an error of the look.
    let written = cell.write(CONFIG, json!({"node": "pve1", "vmid": 4711, "cores": 2})).await;
    assert_eq!(written.outcome(), Outcome::Refused);
    assert!(matches!(written.read_back, ReadBack::Gone(_)), "{:?}", written.read_back);
}

#[tokio::test]
async fn what_never_leaves() {
    let cell = Cell::start().await;
    let written = cell.write(START, json!({"node": "pve9", "vmid": 100})).await;
    assert_eq!(written.outcome(), Outcome::NotSent);
    assert!(written.answer.unwrap_err().message().contains("no node `pve9`"));
    assert!(cell.writes().is_empty());
}

#[tokio::test]
async fn a_lost_answer_leaves_it_open_and_is_looked_for() {
    const SNAPSHOT: &str = "POST /nodes/{node}/qemu/{vmid}/snapshot";
    let cell = Cell::start().await;
    for (fault, begun) in [(Fault::CutBefore, 0), (Fault::CutAfter, 1), (Fault::Late599, 1), (Fault::EmptyBody, 1)] {
        cell.lab.set_fault(fault.clone().on(SNAPSHOT).times(1)).await;
        cell.lab.clear_journal();
        let arguments =
            json!({"node": "pve1", "vmid": 100, "snapname": format!("s{}", fault.to_string().replace('-', "_"))});
        let written = cell.write(SNAPSHOT, arguments).await;
        assert_eq!(written.outcome(), Outcome::Unknown, "{fault}: {:?}", written.answer);
        let ReadBack::Tasks(found) = &written.read_back else { panic!("{fault}: {:?}", written.read_back) };
        assert_eq!(found.len(), begun, "{fault}: {found:?}");
        assert_eq!(written.task().as_ref(), found.first());
        assert!(found.iter().all(|upid| upid.worker() == "qmsnapshot"), "{found:?}");
        assert_eq!(cell.writes().len(), 1, "{fault}: a write is sent once");
        settled(&cell).await;
    }
}

/// Waits until the guest is not locked by the task of the write before.
async fn settled(cell: &Cell) {
    let config = args(CONFIG, &json!({"node": "pve1", "vmid": 100}));
    while let ReadBack::Object { data, .. } = cell.connection.read_back(&config).await
        && data.get("lock").is_some()
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What is no task is looked at itself: a write whose answer was lost shows what it did.
#[tokio::test]
async fn a_lost_answer_of_what_is_no_task() {
    let cell = Cell::start().await;
    for (fault, saved) in [(Fault::CutBefore, false), (Fault::CutAfter, true), (Fault::Late599, true)] {
        cell.lab.set_fault(fault.clone().on(CONFIG).times(1)).await;
        let description = format!("after {fault}");
        let written = cell.write(CONFIG, json!({"node": "pve1", "vmid": 100, "description": description})).await;
        assert_eq!(written.outcome(), Outcome::Unknown, "{fault}: {:?}", written.answer);
        let ReadBack::Object { data, .. } = &written.read_back else { panic!("{fault}: {:?}", written.read_back) };
        assert_eq!(data["description"] == description.as_str(), saved, "{fault}: {data}");
    }
}

#[tokio::test]
async fn refusals_of_a_cluster_in_trouble() {
    let cell = Cell::start().await;
    for (fault, kind) in
        [(Fault::NoQuorum, Kind::NoQuorum), (Fault::LockedGuest(100, "backup".to_owned()), Kind::Locked)]
    {
        cell.lab.set_fault(fault.clone()).await;
        let written = cell.write(CONFIG, json!({"node": "pve1", "vmid": 100, "cores": 3})).await;
        assert_eq!(written.outcome(), Outcome::Refused, "{fault}");
        assert!(matches!(written.read_back, ReadBack::Object { .. }), "{fault}: {:?}", written.read_back);
        assert_eq!(written.answer.unwrap_err().kind(), kind, "{fault}");
        cell.lab.clear_fault(&fault).await.unwrap();
    }
    cell.lab.set_fault(Fault::DeadNode("pve2".to_owned())).await;
    let written = cell.write(CONFIG, json!({"node": "pve2", "vmid": 101, "cores": 3})).await;
    assert_eq!((written.outcome(), written.answer.unwrap_err().kind()), (Outcome::NotSent, Kind::NodeDown));
}
