//! Files that are full, read-only, gone, replaced, another's, or held: mutations are refused, and nothing is lost.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::{LEASE, begun, claimed, clock, intent, outcome, place, store, wish};
use crate::store::sqlite::SqliteStore;
use crate::store::{Event, State, StepOutcome, Store, StoreError};

#[tokio::test]
async fn a_full_disk_refuses_and_loses_nothing() {
    let (_folder, store) = store().await;
    let claim = claimed(&store).await;
    let writer = store.writer.as_ref().unwrap();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(writer).await.unwrap();
    let limit = |pages: i64| sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    sqlx::query(limit(pages)).execute(writer).await.unwrap();
    // Some room is left in the pages that are there; then there is none.
    let mut kept = 0;
    let error = loop {
        match store.begin(wish("bot", None, &"f".repeat(1000))).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 100, "the limit does not hold");
    };
    assert!(matches!(error, StoreError::Full(_)), "{error:?}");
    assert!(error.to_string().contains("full") && error.to_string().contains("pvegate.db"), "{error}");
    let mut large = intent();
    large.decided = "x".repeat(20_000).into();
    let refused = store.record_intent(&claim, 0, large).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    assert_eq!(store.change(claim.change()).await.unwrap().unwrap().state, State::Claimed, "reads go on");
    sqlx::query(limit(pages + 1000)).execute(writer).await.unwrap();
    let _sent = store.record_intent(&claim, 0, intent()).await.unwrap();
    let all = store.changes(crate::store::Filter { limit: 500, ..Default::default() }).await.unwrap();
    assert_eq!(all.len(), kept + 1, "what was refused left nothing behind");
}

#[tokio::test]
async fn a_read_only_store_refuses_and_loses_nothing() {
    let (_folder, store) = store().await;
    let claim = claimed(&store).await;
    let writer = store.writer.as_ref().unwrap();
    sqlx::query("PRAGMA query_only = ON").execute(writer).await.unwrap();
    let refused = store.record_intent(&claim, 0, intent()).await;
    assert!(matches!(refused, Err(StoreError::ReadOnly(_))), "{refused:?}");
    assert_eq!(store.change(claim.change()).await.unwrap().unwrap().state, State::Claimed, "reads go on");
    sqlx::query("PRAGMA query_only = OFF").execute(writer).await.unwrap();
    let _sent = store.record_intent(&claim, 0, intent()).await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_gone_or_replaced_refuses() {
    for name in ["pvegate.db", "pvegate.db-wal", "pvegate.db.lock"] {
        for replaced in [false, true] {
            let (folder, store) = store().await;
            let claim = claimed(&store).await;
            let file = folder.path().join(name);
            let kept = folder.path().join("kept");
            fs::rename(&file, &kept).unwrap();
            if replaced {
                fs::copy(&kept, &file).unwrap();
            }
            let refused = store.record_intent(&claim, 0, intent()).await;
            assert!(matches!(refused, Err(StoreError::Gone(_))), "{name}: {refused:?}");
            let refused = store.begin(wish("bot", None, "f")).await;
            assert!(matches!(refused, Err(StoreError::Gone(_))), "{name}: {refused:?}");
            let read = store.change(claim.change()).await.unwrap().unwrap();
            assert_eq!(read.state, State::Claimed, "reads go on");
            fs::rename(&kept, &file).unwrap();
            let _sent = store.record_intent(&claim, 0, intent()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_second_process_reads_and_names_the_first() {
    let (folder, path) = place();
    let first = SqliteStore::serve(&path, "pvegate serve --listen 127.0.0.1:8790").await.unwrap();
    let claim = claimed(&first).await;
    let second = SqliteStore::serve(&path, "pvegate serve --stdio").await.unwrap();
    let holder = format!("pid {}, pvegate serve --listen 127.0.0.1:8790", std::process::id());
    assert_eq!(second.held_by(), Some(&*holder));
    let refusals = [
        second.begin(wish("bot", None, "f")).await.unwrap_err(),
        second.claim(claim.change(), "two", LEASE).await.unwrap_err(),
        second.renew(&claim, LEASE).await.unwrap_err(),
        second.record_intent(&claim, 0, intent()).await.unwrap_err(),
        second.append(&claim, Event::Failed).await.unwrap_err(),
        second.decide(claim.change(), Event::Expired).await.unwrap_err(),
        second.freeze("ada", "why", None).await.unwrap_err(),
        second.unfreeze("ada").await.unwrap_err(),
        second.set_identity("lab", "A").await.unwrap_err(),
        second.replace_identity("lab", "A").await.unwrap_err(),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, StoreError::Held { .. }) && refusal.to_string().contains(&holder), "{refusal}");
    }
    assert_eq!(second.change(claim.change()).await.unwrap().unwrap().state, State::Claimed);
    let _sent = first.record_intent(&claim, 0, intent()).await.unwrap();
    assert_eq!(second.change(claim.change()).await.unwrap().unwrap().state, State::Intended { step: 0 });
    drop(first);
    let third = SqliteStore::serve(&path, "the next").await.unwrap();
    assert_eq!(third.held_by(), None, "a lock ends with its process");
    third.append(&claim, outcome(StepOutcome::Ok)).await.unwrap();
    drop(folder);
}

#[tokio::test]
async fn an_operator_freezes_beside_the_server_and_without_one() {
    let (_folder, path) = place();
    let error = SqliteStore::operate(&path).await.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("does not exist") && !path.exists(), "{error}");
    let server = SqliteStore::serve(&path, "the server").await.unwrap();
    let claim = claimed(&server).await;
    let beside = SqliteStore::operate(&path).await.unwrap();
    beside.freeze("ada", "why", None).await.unwrap();
    assert!(matches!(server.record_intent(&claim, 0, intent()).await, Err(StoreError::Frozen(_))));
    drop(server);
    let next = SqliteStore::serve(&path, "the next server").await.unwrap();
    assert_eq!(next.held_by(), None, "a command does not keep a server from its store");
    assert!(matches!(next.record_intent(&claim, 0, intent()).await, Err(StoreError::Frozen(_))));
    assert!(beside.unfreeze("ada").await.unwrap().is_some());
    assert!(beside.begin(wish("bot", None, "f")).await.is_err(), "a command changes no cluster");
    let _sent = next.record_intent(&claim, 0, intent()).await.unwrap();
}

#[tokio::test]
async fn files_of_the_store_are_for_its_owner_alone() {
    let (folder, path) = place();
    let store = SqliteStore::serve(&path, "a test").await.unwrap();
    begun(&store).await;
    let mut seen = 0;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let facts = entry.unwrap().metadata().unwrap();
        assert_eq!(facts.mode() & 0o7777, 0o600);
        seen += 1;
    }
    assert_eq!(seen, 4, "the file, SQLite's two, and the lock");
}

#[tokio::test]
async fn what_others_could_have_put_there_is_not_opened() {
    let open = |path: std::path::PathBuf| async move {
        let error = SqliteStore::serve(&path, "a test").await.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(&*path.to_string_lossy()), "{error}");
        error
    };
    let (folder, path) = place();
    fs::write(folder.path().join("real"), "").unwrap();
    symlink(folder.path().join("real"), &path).unwrap();
    assert!(open(path).await.contains("symbolic link"));

    let (folder, path) = place();
    fs::write(folder.path().join("real"), "").unwrap();
    symlink(folder.path().join("real"), folder.path().join("pvegate.db.lock")).unwrap();
    assert!(open(path).await.contains("symbolic link"));

    let (_folder, path) = place();
    fs::create_dir(&path).unwrap();
    assert!(open(path).await.contains("regular file"));

    let (_folder, path) = place();
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(open(path).await.contains("chmod 600"));

    let (folder, path) = place();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o770)).unwrap();
    assert!(open(path).await.contains("go-w"));

    let (folder, path) = place();
    assert!(open(folder.path().join("nothing").join("pvegate.db")).await.contains("nothing"));
    // Only root can give a file away.
    if rustix::process::geteuid().is_root() {
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        assert!(open(path).await.contains("12345"));
    }
}

#[tokio::test]
async fn what_is_no_store_of_this_version_is_not_used() {
    let (_folder, path) = place();
    fs::write(&path, "this is a text of somebody, and not a database at all\n".repeat(100)).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let error = SqliteStore::serve(&path, "a test").await.unwrap_err().to_string();
    assert!(error.contains("not a database"), "{error}");

    let (_folder, store) = store().await;
    let writer = store.writer.as_ref().unwrap();
    sqlx::query("INSERT INTO _sqlx_migrations VALUES (99, 'of tomorrow', 0, 1, x'00', 0)")
        .execute(writer)
        .await
        .unwrap();
    for error in [
        SqliteStore::operate(store.path()).await.map(|_| ()).unwrap_err(),
        SqliteStore::serve(store.path(), "a test").await.map(|_| ()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("newer"), "{error}");
    }
    let path = store.path().to_owned();
    drop(store);
    let error = SqliteStore::serve(&path, "a test").await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("newer"), "{error}");
}

#[tokio::test]
async fn events_cannot_be_altered_in_the_file() {
    let (_folder, store) = store().await;
    begun(&store).await;
    let writer = store.writer.as_ref().unwrap();
    for statement in ["UPDATE events SET at = 0", "DELETE FROM events"] {
        assert!(sqlx::query(statement).execute(writer).await.is_err(), "{statement}");
    }
    let until = clock();
    assert!(
        store.changes(crate::store::Filter { limit: 1, ..Default::default() }).await.unwrap()[0].created_at <= until
    );
}
