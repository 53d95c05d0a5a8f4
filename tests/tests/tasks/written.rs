//! Tasks that a write began, followed by the library as whoever sends writes does.

use std::time::Duration;

use lab::Arrange;
use pvegate::redact::Redactor;
use pvegate::tasks::{Outcome, Report, Task};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::writes::Cell;

const SNAPSHOT: &str = "POST /nodes/{node}/qemu/{vmid}/snapshot";

async fn begin(cell: &Cell, operation: &str, arguments: Value) -> Option<Task> {
    let written = cell.write(operation, arguments).await;
    assert!(written.answer.is_ok(), "{:?}", written.answer);
    Task::of_write(&cell.connection, &written, Redactor::default())
}

async fn end(task: &mut Task) -> Report {
    let now = Instant::now();
    task.follow(now + Duration::from_secs(20), now + Duration::from_secs(24), &mut ()).await.unwrap()
}

/// C009: accepted is not done.
#[tokio::test]
async fn what_was_accepted_is_followed_to_what_came_of_it() {
    let cell = Cell::start().await;
    let mut fine = begin(&cell, SNAPSHOT, json!({"node": "pve1", "vmid": 100, "snapname": "before"})).await.unwrap();
    let report = end(&mut fine).await;
    assert_eq!((report.outcome, report.exit_status.as_deref()), (Outcome::Ok, Some("OK")), "{report:?}");
    assert!(report.ended.is_some() && report.is_final(), "{report:?}");
    // Guest 104 is locked by a backup.
    let mut locked = begin(&cell, SNAPSHOT, json!({"node": "pve1", "vmid": 104, "snapname": "before"})).await.unwrap();
    let report = end(&mut locked).await;
    assert_eq!((report.outcome, report.exit_status.as_deref()), (Outcome::Failed, Some("VM is locked (backup)")));
}

/// C008: what answers with nothing is done, and there is no task to wait for.
#[tokio::test]
async fn a_write_without_a_task_leaves_nothing_to_follow() {
    let cell = Cell::start().await;
    let config = json!({"node": "pve1", "vmid": 100, "description": "changed"});
    assert!(begin(&cell, "PUT /nodes/{node}/qemu/{vmid}/config", config).await.is_none());
}

#[tokio::test]
async fn a_task_that_was_accepted_is_never_taken_for_one_that_was_not_there() {
    let cell = Cell::start().await;
    let mut task = begin(&cell, SNAPSHOT, json!({"node": "pve1", "vmid": 100, "snapname": "before"})).await.unwrap();
    cell.lab.arrange(Arrange::NoTasks);
    let report = end(&mut task).await;
    assert_eq!((report.outcome, report.exit_status), (Outcome::Unknown, None));
    assert!(report.says.unwrap().contains("does not know this task any more"));
}
