//! Lines are whole, masked and short; a trail that fails says so.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails may panic")]

use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use super::record::said;
use super::{Acted, Asserted, Audit, Event, Record, Who};
use crate::mcp::{Client, Refusal};
use crate::redact::Redactor;
use crate::values::Secret;

/// A place that can be made to fail.
#[derive(Clone, Default)]
struct Place {
    full: Arc<AtomicBool>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl io::Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Place {
    fn lines(&self) -> Vec<Json> {
        let written = self.written.lock().unwrap();
        String::from_utf8_lossy(&written).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_an_error_until_it_can_and_the_gap_is_told() {
    let place = Place::default();
    let audit = Audit::writer(Box::new(place.clone()));
    audit.record(Event::Start, &Record::default()).unwrap();
    audit.healthy().unwrap();
    place.full.store(true, Ordering::SeqCst);
    audit.record(Event::Call, &Record::default()).unwrap_err();
    let refusal = Refusal::from(audit.intent(Record::default()).await.unwrap_err());
    assert_eq!(refusal.code, "no_audit");
    assert_eq!(Refusal::from(audit.healthy().unwrap_err()), refusal);
    place.full.store(false, Ordering::SeqCst);
    audit.intent(Record::default()).await.unwrap();
    audit.healthy().unwrap();
    let told: Vec<_> = place.lines().iter().map(|line| (line["event"].clone(), line["lines"].clone())).collect();
    assert_eq!(told, [(json!("start"), Json::Null), (json!("lost"), json!(2)), (json!("intent"), Json::Null)]);
}

#[test]
fn a_file_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    Audit::file(&path).unwrap().record(Event::Start, &Record::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    // The next one goes on where the last one ended.
    Audit::file(&path).unwrap().record(Event::Stop, &Record::default()).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);

    let says = |name: &str, part: &str| {
        let error = Audit::file(&folder.path().join(name)).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(part), "{error}");
    };
    let open = folder.path().join("open.jsonl");
    std::fs::OpenOptions::new().create(true).append(true).mode(0o640).open(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o640)).unwrap();
    says("open.jsonl", "0640");
    symlink(&path, folder.path().join("link.jsonl")).unwrap();
    says("link.jsonl", "symbolic link");
    says("nowhere/audit.jsonl", "cannot be opened");
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    says("folder", "cannot be opened");
}

#[test]
fn a_file_that_was_moved_away_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("audit.jsonl"), folder.path().join("audit.jsonl.1"));
    let audit = Audit::file(&path).unwrap();
    std::fs::rename(&path, &old).unwrap();
    audit.record(Event::Call, &Record::default()).unwrap();
    audit.reopen().unwrap();
    audit.record(Event::Reload, &Record::default()).unwrap();
    assert!(std::fs::read_to_string(&old).unwrap().contains(r#""event":"call""#));
    assert!(std::fs::read_to_string(&path).unwrap().contains(r#""event":"reload""#));
    // A name that cannot be opened any more leaves the file that is open.
    std::fs::remove_file(&path).unwrap();
    symlink(&old, &path).unwrap();
    audit.reopen().unwrap_err();
    audit.record(Event::Stop, &Record::default()).unwrap();
}

#[test]
fn text_of_callers_is_short_visible_and_masked() {
    let redactor = Redactor::new([Secret::new("11111111-2222-3333-4444-555555555555".to_owned())]);
    assert_eq!(said("web-01", &redactor), "web-01");
    assert_eq!(said("a\nb\u{1b}[2J\u{202e}", &redactor), "a\\nb\\u{1b}[2J\\u{202e}");
    let (exact, long) = ("x".repeat(128), "ü".repeat(4000));
    assert_eq!(said(&exact, &redactor), exact);
    let cut = said(&long, &redactor);
    assert!(cut.len() <= 128 && cut.ends_with('…') && cut.starts_with('ü'), "{cut}");
    let escapes = said(&"\u{1b}".repeat(100), &redactor);
    assert!(escapes.len() <= 128 && escapes.ends_with('…'), "{escapes}");
    // A secret over the end of what is shown does not leave in part.
    let secret = format!("{}11111111-2222-3333-4444-555555555555", "x".repeat(120));
    assert!(!said(&secret, &redactor).contains("11111"));
    assert!(!said("PVEAPIToken=a@pve!b=c0ffee", &redactor).contains("c0ffee"));
}

#[test]
fn a_line_names_the_target_and_no_other_argument() {
    let operation = pvegate_generated::catalog::operation("POST /nodes/{node}/qemu").unwrap();
    let arguments = json!({
        "vmid": 600, "node": "pve1", "pool": "lab", "storage": "tank", "name": "secret-name", "cipassword": "hunter2",
        "memory": 4096, "description": "words", "archive": "tank:backup/x.vma",
    });
    let acted = Acted::new(operation, arguments.as_object().unwrap(), &Redactor::default());
    let who = Who { principal: "ci".to_owned(), actor: Some("agent"), owner: Some("ada".to_owned()), person: None };
    let client = Client { name: "evil\nclient".to_owned(), version: "1".to_owned() };
    let mut record = Record::of(who, "lab", acted);
    record.asserted = Some(Asserted::new(Some(&client), "7", &Redactor::default()));
    let place = Place::default();
    Audit::writer(Box::new(place.clone())).record(Event::Intent, &record).unwrap();
    let lines = place.lines();
    let [line] = lines.as_slice() else { unreachable!("{lines:?}") };
    let time = line["time"].as_str().unwrap();
    chrono::DateTime::parse_from_rfc3339(time).unwrap();
    assert!(time.ends_with('Z'), "{time}");
    let mut line = line.clone();
    line.as_object_mut().unwrap().remove("time");
    assert_eq!(
        line,
        json!({
            "event": "intent", "principal": "ci", "actor": "agent", "owner": "ada", "cluster": "lab",
            "operation": "POST /nodes/{node}/qemu", "tier": "low",
            "target": {"vmid": 600, "node": "pve1", "pool": "lab", "storage": "tank", "archive": "tank:backup/x.vma"},
            "asserted": {"verified": false, "client": "evil\\nclient", "client_version": "1", "request_id": "7"},
        })
    );
}
