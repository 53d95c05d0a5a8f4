//! What was acknowledged is there after the process was killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::{begun, place};
use crate::store::sqlite::SqliteStore;
use crate::store::{ChangeId, Store};

/// Names the file to the child; the test below starts itself with it.
const CHILD: &str = "PVEGATE_TEST_KILLED_STORE";

/// Writes until it is killed, and says what it knows to be written.
async fn write_until_killed(path: &std::path::Path) {
    let store = SqliteStore::serve(path, "a child").await.unwrap();
    loop {
        let id = begun(&store).await;
        println!("\nacknowledged {id}");
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    if let Some(path) = std::env::var_os(CHILD) {
        return write_until_killed(path.as_ref()).await;
    }
    let (_folder, path) = place();
    let name = concat!(module_path!(), "::what_was_acknowledged_survives_a_kill");
    let name = name.split_once("::").unwrap().1;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let id = |line: &str| line.strip_prefix("acknowledged ").and_then(|id| ChangeId::parse(id).ok());
    while acknowledged.len() < 20 {
        let line = lines.next().expect("the child ended by itself").unwrap();
        acknowledged.extend(id(&line));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // It may have said more before it was killed.
    acknowledged.extend(lines.map_while(Result::ok).filter_map(|line| id(&line)));
    let store = SqliteStore::serve(&path, "the next").await.unwrap();
    assert_eq!(store.held_by(), None);
    for id in acknowledged {
        let change = store.change(&id).await.unwrap().unwrap_or_else(|| panic!("{id} was acknowledged and is lost"));
        assert_eq!(change.events.len(), 2);
    }
}
