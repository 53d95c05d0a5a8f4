//! What statuses and lines mean, without a cluster.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::log::Log;
use super::{GuestState, Outcome, Wanted, clean, outcome::judge, signs};
use crate::redact::Redactor;
use crate::values::{Secret, Vmid};

fn log(worker: &str, lines: &[&str]) -> Log {
    let rows: Vec<Value> = lines.iter().enumerate().map(|(at, line)| json!({"n": at + 1, "t": line})).collect();
    let mut log = Log::default();
    assert!(!log.take(worker, &Redactor::default(), &rows, Some(rows.len() as u64)), "there is one page");
    log
}

fn outcome(worker: &str, status: &str, lines: &[&str]) -> Outcome {
    judge(worker, status, &log(worker, lines)).0
}

/// Every exit status that PVE is known to give.
#[test]
fn statuses_are_told_apart() {
    for (status, expected) in [
        ("OK", Outcome::Ok),
        ("WARNINGS: 1", Outcome::OkWithWarnings),
        ("WARNINGS: 12", Outcome::OkWithWarnings),
        ("WARNINGS: ", Outcome::Failed),
        ("WARNINGS: many", Outcome::Failed),
        ("unexpected status", Outcome::Unknown),
        ("received interrupt", Outcome::Failed),
        ("interrupted by signal", Outcome::Failed),
        ("job errors", Outcome::Failed),
        ("connection timed out", Outcome::Failed),
        ("VM is locked (backup)", Outcome::Failed),
        ("ok", Outcome::Failed),
        ("", Outcome::Unknown),
    ] {
        assert_eq!(outcome("qmstart", status, &[]), expected, "{status}");
    }
    for status in ["received interrupt", "job errors", "connection timed out", "unexpected status"] {
        assert!(judge("vzdump", status, &Log::default()).1.is_some(), "{status} is explained");
    }
}

#[test]
fn what_the_log_says_counts_by_type() {
    let failed = "ERROR: Backup of VM 101 failed - job aborted";
    let finished = "INFO: Finished Backup of VM 100 (00:00:07)";
    let efi = "WARN: EFI disk without certificates";
    assert_eq!(outcome("vzdump", "WARNINGS: 3", &[efi, finished]), Outcome::OkWithWarnings);
    assert_eq!(outcome("vzdump", "WARNINGS: 3", &[efi, failed, finished]), Outcome::Failed);
    assert_eq!(outcome("vzdump", "OK", &[failed]), Outcome::Failed);
    assert_eq!(log("vzdump", &[efi, failed]).failures(), [failed]);
    assert_eq!(log("vzdump", &[efi, failed]).warnings(), [efi]);
    // The same line means nothing where another program may have written it.
    assert_eq!(outcome("qmstart", "OK", &[failed]), Outcome::Ok);
    let reload = "command 'pvesh set /nodes/pve1/network --regenerate-frr 0' failed: exit code 255";
    assert_eq!(outcome("reloadnetworkall", "OK", &["pve1: reloading network config", reload]), Outcome::Failed);
    assert_eq!(outcome("startall", "OK", &["Starting VM 100 failed: start failed"]), Outcome::Failed);
    assert_eq!(
        outcome("bulk-start", "WARNINGS: 1", &["WARN: Skipping VM 100, already running."]),
        Outcome::OkWithWarnings
    );
    assert_eq!(outcome("aptupdate", "OK", &["Err:1 http://mirror.example/ stable InRelease"]), Outcome::OkWithWarnings);
    assert_eq!(outcome("aptupdate", "OK", &["Hit:1 http://mirror.example/ stable InRelease"]), Outcome::Ok);
}

#[test]
fn what_ok_does_not_say_is_said() {
    let says = |worker: &str, lines: &[&str]| judge(worker, "OK", &log(worker, lines)).1;
    assert!(says("imgdel", &[]).unwrap().contains("did not exist"));
    let forced = says("qmshutdown", &["VM quit/powerdown failed - terminating now with SIGTERM"]);
    assert!(forced.unwrap().contains("by force"));
    assert_eq!(says("qmshutdown", &[]), None);
}

#[test]
fn percentages_are_read_where_a_type_has_them() {
    for (worker, line, expected) in [
        ("vzdump", "INFO:   7% (7.0 GiB of 100.0 GiB) in 3s, read: 100.0 MiB/s", Some(7.0)),
        ("vzdump", "INFO: 100% (10.0 GiB of 10.0 GiB) in 1m, read: 1.0 MiB/s", Some(100.0)),
        ("vzdump", "INFO: compression saved 40% of it", None),
        ("qmclone", "transferred 1.2 GiB of 10.0 GiB (12.34%)", Some(12.34)),
        ("qmmove", "drive-scsi0: transferred 1.0 GiB of 32.0 GiB (3.12%) in 5s", Some(3.12)),
        (
            "qmigrate",
            "2026-01-01 10:00:00 migration active, transferred 1.0 GiB of 4.0 GiB VM-state, 110 MiB/s",
            Some(25.0),
        ),
        ("qmigrate", "migration active, transferred 5.0 GiB of 4.0 GiB VM-state, 110 MiB/s", Some(99.0)),
        ("qmigrate", "migration active, transferred 512.0 MiB of 1.0 GiB VM-state, 110 MiB/s", Some(50.0)),
        ("qmrestore", "progress 42% (read 45097156 bytes, duration 3 sec)", Some(42.0)),
        ("download", " 32768K ........ ........ ........ ........  5%  117M 8s", Some(5.0)),
        ("qmclone", "transferred 1.2 GiB of 10.0 GiB (512.34%)", None),
        ("qmclone", "transferred things (nan%)", None),
        ("qmigrate", "transferred 1 PB of 0 B VM-state", None),
        ("qmstart", "42%", None),
    ] {
        assert_eq!(signs::percent(worker, line), expected, "{worker}: {line}");
    }
}

#[test]
fn a_log_is_read_on_and_its_end_kept() {
    let mut log = Log::default();
    let page = |first: u64, rows: u64| {
        (first..first + rows).map(|n| json!({"n": n, "t": format!("line {n}")})).collect::<Vec<_>>()
    };
    assert!(log.take("qmstart", &Redactor::default(), &page(1, 100), Some(150)));
    assert_eq!(log.next(), 100);
    assert!(!log.take("qmstart", &Redactor::default(), &page(101, 50), Some(150)));
    let tail: Vec<&str> = log.tail().collect();
    assert_eq!((tail.len(), tail.first(), tail.last()), (20, Some(&"line 131"), Some(&"line 150")));
    assert_eq!(log.skipped(), None);
    assert!(log.take("qmstart", &Redactor::default(), &page(151, 100), Some(1_000_000)), "there is more");
    let (before, last) = log.skipped().unwrap();
    assert_eq!(before, 250);
    assert_eq!((last, log.next()), (950_000, 950_000));
    assert!(!log.take("qmstart", &Redactor::default(), &[], Some(1_000_000)), "a page without lines is the last");
}

#[test]
fn secrets_in_a_log_are_masked_across_its_pages() {
    let redactor = Redactor::new([Secret::new("correct-horse-battery".to_owned())]);
    let mut log = Log::default();
    let lines = ["--password hunter2hunter2", "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBg", "correct-horse-battery"];
    for (at, line) in lines.iter().enumerate() {
        log.take("qmstart", &redactor, &[json!({"n": at + 1, "t": line})], Some(lines.len() as u64));
    }
    log.take(
        "qmstart",
        &redactor,
        &[json!({"n": 5, "t": "-----END PRIVATE KEY-----"}), json!({"n": 6, "t": "\u{1b}[2Jafter"})],
        Some(6),
    );
    let tail: Vec<&str> = log.tail().collect();
    assert!(
        !tail.iter().any(|line| line.contains("hunter2") || line.contains("MIIE") || line.contains("horse")),
        "{tail:?}"
    );
    assert_eq!(tail.last(), Some(&"\\u{1b}[2Jafter"), "what moves a cursor is shown as text");
}

/// A guest has a say in what stands in a log, and must not blind whoever reads it.
#[test]
fn what_looks_like_a_secret_hides_no_failure() {
    let failed = "Stopping VM 100 failed: it does not want to";
    let log = log("stopall", &["file: -----BEGIN RSA PRIVATE KEY-----", failed, "WARN: so it is"]);
    assert_eq!((log.failures().len(), log.warnings().len()), (1, 1));
    assert!(!log.tail().any(|line| line.contains("want")), "the lines themselves stay hidden");
    assert_eq!(judge("stopall", "OK", &log).0, Outcome::Failed);
}

#[test]
fn lines_of_pve_are_not_lines_of_the_task() {
    let (mut rows, mut total) = (vec![json!({"n": 1, "t": "no content"})], Some(1));
    assert_eq!((clean(&mut rows, &mut total), rows.len(), total), (Some(()), 0, Some(0)));
    let mut rows = vec![json!({"n": 1, "t": "unable to open file - No such file or directory"})];
    assert_eq!(clean(&mut rows, &mut None), None);
    let (mut rows, mut total) = (vec![json!({"n": 1, "t": "TASK OK"})], Some(1));
    assert_eq!((clean(&mut rows, &mut total), rows.len(), total), (Some(()), 1, Some(1)));
}

#[test]
fn the_ha_manager_is_believed_when_the_guest_shows_it() {
    let state = |node: &str, status: Option<&str>, ha: &str| GuestState {
        vmid: Vmid::from_number(100).unwrap(),
        node: node.to_owned(),
        status: status.map(str::to_owned),
        ha: Some(ha.to_owned()),
    };
    let soon = Duration::from_secs(20);
    let late = Duration::from_hours(1);
    let on_b = Wanted::On(Some("b".to_owned()));
    for (wanted, guest, age, expected) in [
        (&Wanted::Stopped, state("a", Some("running"), "request_stop"), soon, Outcome::Running),
        (&Wanted::Stopped, state("a", Some("stopped"), "stopped"), soon, Outcome::Ok),
        (&Wanted::Stopped, state("a", Some("running"), "started"), late, Outcome::NotAchieved),
        (&Wanted::Stopped, state("a", Some("running"), "error"), soon, Outcome::NotAchieved),
        (&Wanted::Running, state("a", Some("running"), "started"), late, Outcome::Ok),
        (&Wanted::Running, state("a", Some("stopped"), "queued"), soon, Outcome::Running),
        (&on_b, state("a", Some("running"), "migrate"), soon, Outcome::Running),
        (&on_b, state("b", None, "migrate"), soon, Outcome::Running),
        (&on_b, state("b", Some("running"), "migrate"), soon, Outcome::Running),
        (&on_b, state("b", Some("running"), "started"), soon, Outcome::Ok),
        (&on_b, state("a", Some("running"), "started"), late, Outcome::NotAchieved),
        (&Wanted::On(None), state("a", Some("running"), "started"), soon, Outcome::Unknown),
    ] {
        let (outcome, says) = guest.judge(wanted, age);
        assert_eq!(outcome, expected, "{wanted:?} {guest:?}: {says}");
        assert!(outcome == Outcome::Unknown || says.contains("guest 100"), "{says}");
    }
    let asked = log("hamigrate", &["Requesting HA migration for VM 100 to node b"]);
    assert_eq!(Wanted::of("hamigrate", &asked), Some(on_b));
    assert_eq!(Wanted::of("hastop", &Log::default()), Some(Wanted::Stopped));
    assert_eq!(Wanted::of("qmstop", &Log::default()), None);
}

proptest! {
    /// Whatever a log holds: it is read, and what is kept stays small and on its line.
    #[test]
    fn any_line_can_stand_in_a_log(
        worker in "vzdump|qmigrate|download|hamigrate|bulk-start|aptupdate|[a-z]{1,8}",
        lines in prop::collection::vec("(INFO: +|transferred |progress |WARN: |ERROR: Backup of VM )?[0-9.%() a-zA-ZäÜ\u{0}-\u{1f}]{0,40}", 0..60),
        status in "OK|WARNINGS: [0-9]{0,3}|.{0,40}",
    ) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let log = log(&worker, &lines);
        prop_assert!(log.percent().is_none_or(|percent| (0.0..=100.0).contains(&percent)));
        prop_assert!(log.tail().count() <= 20 && log.tail().all(|line| !line.chars().any(char::is_control)));
        let (outcome, _) = judge(&worker, &status, &log);
        prop_assert!(!matches!(outcome, Outcome::Running | Outcome::NotAchieved), "an end is an end");
        prop_assert!(outcome != Outcome::Ok || status == "OK", "nothing but OK is ok");
    }
}
