//! pvegate is killed between any two steps of a write, and started again over the same files: what came of the write is
//! found out, and it is sent at most once.
//!
//! The points are made from outside: the lab holds a request, an answer or a task, or another process holds the store.

use std::time::{Duration, Instant};

use lab::{Fault, Lab};
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};
use tests::client::{Client, Refused};
use tests::server::{Files, Server};
use tests::site::quick;

const SNAPSHOT: &str = "POST /nodes/{node}/qemu/{vmid}/snapshot";
const CONFIG: &str = "PUT /nodes/{node}/qemu/{vmid}/config";
const TASKS: &str = "GET /nodes/{node}/tasks";
const KEY: &str = "the-one";

/// How long anything may take before something is wrong.
const LIMIT: Duration = Duration::from_mins(4);

struct Cell {
    lab: Lab,
    files: Files,
}

impl Cell {
    async fn start() -> (Self, Server) {
        let lab = Lab::start(quick()).await.unwrap();
        let keys = json!({
            "tools": ["gateway", "snapshots"], "clusters": ["*"], "guests": ["vmid:100-199"], "tiers": ["read", "low"],
        });
        let files = Files::new(&lab, &keys);
        let server = Server::start(&files).await;
        // Everything that is learned once is known from here on, so that the points below are those of the write.
        server.client().tool("get_guest", json!({"cluster": "lab", "vmid": 101})).await.unwrap();
        (Self { lab, files }, server)
    }

    /// Begins a write that will not be answered: the server is killed while it goes on.
    fn begin(server: &Server, operation: &str) -> tokio::task::JoinHandle<Result<Value, String>> {
        let (client, call) = (server.client(), call(operation));
        tokio::spawn(async move {
            // A server that is killed breaks the connection off.
            let request = client.request("tools/call", json!({"name": "run_operation", "arguments": call}));
            let answer = request.send().await.map_err(|error| error.to_string())?;
            let text = answer.text().await.map_err(|error| error.to_string())?;
            tests::client::outcome(&text).map_err(|refused| refused.text())
        })
    }

    /// The requests of an operation that arrived.
    fn sent(&self, operation: &str) -> usize {
        self.lab.journal().iter().filter(|entry| entry.operation.as_deref() == Some(operation)).count()
    }

    async fn snapshots(&self) -> usize {
        let (_, text) = crate::canary::direct(&self.lab, "/api2/json/nodes/pve1/qemu/101/snapshot").await;
        text.matches(r#""name":"crash""#).count()
    }

    /// What the change of the write came to, once it has an end.
    async fn end(&self, client: &Client, operation: &str) -> Result<Value, Refused> {
        let since = Instant::now();
        // The same key and the same arguments never send again: they ask for the same change.
        let asked = client.tool("run_operation", call(operation)).await?;
        loop {
            let change = client.tool("get_change", json!({"change_id": asked["change_id"]})).await?;
            let state = change["state"].as_str().unwrap().to_owned();
            if !["planned", "approved", "applying"].contains(&&*state) {
                return Ok(change);
            }
            assert!(since.elapsed() < LIMIT, "no end: {change}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// A connection that nobody else writes past.
    async fn pause_store(&self) -> SqliteConnection {
        let path = self.files.path("pvegate.db");
        let mut store = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut store).await.unwrap();
        store
    }
}

fn call(operation: &str) -> Value {
    let arguments = match operation {
        SNAPSHOT => json!({"vmid": 101, "snapname": "crash"}),
        _ => json!({"vmid": 101, "description": "crash"}),
    };
    json!({"cluster": "lab", "operation": operation, "arguments": arguments, "idempotency_key": KEY})
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !done().await {
        assert!(since.elapsed() < LIMIT, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Kills the server at a point, ends what held it there, and starts it again.
async fn killed_where_held(fault: Fault, operation: &str) -> (Cell, Server) {
    let (cell, server) = Cell::start().await;
    cell.lab.set_fault(fault.clone()).await;
    let asked = Cell::begin(&server, operation);
    until("the request arrives", async || {
        assert!(!asked.is_finished(), "it was answered without that request");
        cell.lab.held() > 0
    })
    .await;
    server.kill();
    let _ = asked.await;
    until("the lab notices", async || cell.lab.held() == 0 || matches!(fault, Fault::Limited { .. })).await;
    cell.lab.clear_fault(&fault).await.unwrap();
    let server = Server::start(&cell.files).await;
    (cell, server)
}

/// Before the intent: nothing was sent, and the key may be used for the same wish.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_intent() {
    let (cell, server) = Cell::start().await;
    let mut store = cell.pause_store().await;
    let asked = Cell::begin(&server, SNAPSHOT);
    // It cannot record that it is wanted, so it asks PVE for nothing more.
    until("the call is under way", async || {
        cell.sent("GET /nodes/{node}/qemu/{vmid}/config") > 0 || asked.is_finished()
    })
    .await;
    server.kill();
    let _ = asked.await;
    sqlx::query("ROLLBACK").execute(&mut store).await.unwrap();
    store.close().await.unwrap();
    assert_eq!((cell.sent(SNAPSHOT), cell.snapshots().await), (0, 0));
    let server = Server::start(&cell.files).await;
    let end = cell.end(&server.client(), SNAPSHOT).await.unwrap();
    // Nothing was recorded of the first call, so the second is a call of its own; or something was, and it ended unsent.
    assert!(cell.sent(SNAPSHOT) <= 1, "{end}");
    assert_eq!(end["state"] == "applied", cell.snapshots().await == 1, "{end}");
}

/// C149: after the intent and before the first byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_intent() {
    let (cell, server) = killed_where_held(Fault::HoldBefore.on(TASKS), SNAPSHOT).await;
    let end = cell.end(&server.client(), SNAPSHOT).await.unwrap();
    assert_eq!((cell.sent(SNAPSHOT), cell.snapshots().await), (0, 0), "{end}");
    assert!(["failed", "indeterminate", "void"].contains(&end["state"].as_str().unwrap()), "{end}");
}

/// The request has arrived, and nothing is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_first_byte() {
    for operation in [SNAPSHOT, CONFIG] {
        let (cell, server) = killed_where_held(Fault::HoldBefore.on(operation), operation).await;
        let end = cell.end(&server.client(), operation).await.unwrap();
        assert_eq!((cell.sent(operation), cell.snapshots().await), (1, 0), "{end}");
        assert!(["failed", "indeterminate"].contains(&end["state"].as_str().unwrap()), "{operation}: {end}");
    }
}

/// It is done, and the answer never came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_answer() {
    let (cell, server) = killed_where_held(Fault::HoldAfter.on(SNAPSHOT), SNAPSHOT).await;
    let end = cell.end(&server.client(), SNAPSHOT).await.unwrap();
    assert_eq!((cell.sent(SNAPSHOT), cell.snapshots().await), (1, 1), "{end}");
    assert_eq!(end["state"], "applied", "{end}");
    assert!(end["upid"].as_str().unwrap().contains(":qmsnapshot:101:"), "{end}");

    let (cell, server) = killed_where_held(Fault::HoldAfter.on(CONFIG), CONFIG).await;
    let end = cell.end(&server.client(), CONFIG).await.unwrap();
    assert_eq!(cell.sent(CONFIG), 1, "{end}");
    assert_eq!(end["state"], "applied", "{end}");
}

/// The answer came, and the task goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_task_ends() {
    let (cell, server) = Cell::start().await;
    cell.lab.set_fault(Fault::HoldTasks).await;
    let asked = Cell::begin(&server, SNAPSHOT);
    until("the task is followed", async || cell.sent("GET /nodes/{node}/tasks/{upid}/status") > 0).await;
    server.kill();
    let _ = asked.await;
    let server = Server::start(&cell.files).await;
    cell.lab.clear_fault(&Fault::HoldTasks).await.unwrap();
    let end = cell.end(&server.client(), SNAPSHOT).await.unwrap();
    assert_eq!((cell.sent(SNAPSHOT), cell.snapshots().await), (1, 1), "{end}");
    assert_eq!(end["state"], "applied", "{end}");
}

/// The task has ended, and that is not recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_outcome() {
    let (cell, server) = Cell::start().await;
    cell.lab.set_fault(Fault::HoldTasks).await;
    let asked = Cell::begin(&server, SNAPSHOT);
    let followed = || cell.sent("GET /nodes/{node}/tasks/{upid}/status");
    until("the task is followed", async || followed() > 0).await;
    let mut store = cell.pause_store().await;
    cell.lab.clear_fault(&Fault::HoldTasks).await.unwrap();
    // It sees the end of the task, and can record nothing of it.
    let seen = followed();
    until("the end is seen", async || followed() > seen + 1 || asked.is_finished()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.kill();
    let _ = asked.await;
    sqlx::query("ROLLBACK").execute(&mut store).await.unwrap();
    store.close().await.unwrap();
    let server = Server::start(&cell.files).await;
    let end = cell.end(&server.client(), SNAPSHOT).await.unwrap();
    assert_eq!((cell.sent(SNAPSHOT), cell.snapshots().await), (1, 1), "{end}");
    assert_eq!(end["state"], "applied", "{end}");
}

/// A server that was killed twice settles what the first left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_it_settles() {
    let (cell, server) = killed_where_held(Fault::HoldAfter.on(SNAPSHOT), SNAPSHOT).await;
    server.kill();
    let server = Server::start(&cell.files).await;
    let end = cell.end(&server.client(), SNAPSHOT).await.unwrap();
    assert_eq!((end["state"].as_str(), cell.sent(SNAPSHOT)), (Some("applied"), 1), "{end}");
}
