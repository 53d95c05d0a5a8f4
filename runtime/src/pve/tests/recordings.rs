//! The error table against genuine answers, where the recordings are at hand, and against their gist anywhere.

use crate::args::arrival;
use crate::pve::{Answered, Kind, Lane, PveError, Request, Sent, error_from};
use crate::values::Upid;
use http::Method;
use pvegate_generated::model::{Lane as CatalogLane, Verb};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn told(status: u16, reason: &str, body: &Value) -> PveError {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    error_from(
        "lab",
        &Request::new("GET /x", "/x", ""),
        Answered { status, reason: reason.as_bytes(), content_type: "", body: &body },
    )
}

fn said(message: &str) -> PveError {
    told(500, message.lines().next().unwrap_or_default(), &json!({"data": null, "message": format!("{message}\n")}))
}

#[test]
fn texts_decide_the_kind() {
    for (message, kind) in [
        ("Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist", Kind::NotFound),
        ("hostname lookup 'nope' failed - failed to get address info for: nope", Kind::NotFound),
        ("unable to create VM 100 - VM 100 already exists on node 'pve1'", Kind::Exists),
        ("create storage failed: storage ID 'lab1' already defined", Kind::Exists),
        ("VM is locked (backup)", Kind::Locked),
        ("can't lock file '/var/lock/qemu-server/lock-200.conf' - got timeout", Kind::Locked),
        ("VM 100 not running", Kind::NotRunning),
        ("CT 300 not running", Kind::NotRunning),
        ("VM 200 is running - destroy failed", Kind::Running),
        ("VM 100 already running", Kind::Running),
        ("checksum mismatch (file change by other user?)", Kind::Conflict),
        (
            "update storage failed: detected modified configuration - file changed by other user? Try again.",
            Kind::Conflict,
        ),
        ("QEMU guest agent is not running", Kind::Agent),
        ("Agent error: PID ld does not exist", Kind::Agent),
        ("No QEMU guest agent configured", Kind::Agent),
        ("can't remove VM 100 - protection mode enabled", Kind::Protected),
        ("only root can set 'args' config", Kind::Forbidden),
        ("value 'root@pam!lab' does not look like a valid user name", Kind::Forbidden),
        ("value 'bob' does not look like a valid user name", Kind::Invalid),
        (
            "create storage failed: unable to activate storage 'nopath' - directory '/srv/missing' does not exist or is unreachable",
            Kind::Unavailable,
        ),
        ("unable to create image: Could not write zeros for preallocation: No space left on device", Kind::NoSpace),
        ("delete pool failed: pool 'p1' is not empty (contains pool 'p1/sub')", Kind::InUse),
        ("cluster not ready - no quorum?", Kind::NoQuorum),
        ("something that nobody has seen", Kind::Other),
    ] {
        let error = said(message);
        assert_eq!(error.kind(), kind, "{message}");
        assert!(error.message().contains("/x") || error.message().contains(message), "{error}");
        assert_eq!(error.sent(), Sent::Refused, "{message}");
    }
}

#[test]
fn arguments_are_named_also_when_wrapped() {
    let error = told(
        400,
        "Parameter verification failed.",
        &json!({"data": null, "message": "Parameter verification failed.\n", "errors": {"memory": "value must have a minimum value of 16", "vms[0]": "bad\nworse\n"}}),
    );
    assert_eq!(error.kind(), Kind::Invalid);
    assert_eq!(error.parameters().get("vms[0]").unwrap(), "bad; worse");
    assert!(error.message().contains("memory: value must have a minimum value of 16"), "{error}");
    let error = said("400 Parameter verification failed.\nall: option conflicts with option 'vmid'");
    assert_eq!(error.kind(), Kind::Invalid);
    assert_eq!(error.parameters().get("all").unwrap(), "option conflicts with option 'vmid'");
    let error = told(
        400,
        "Parameter verification failed.",
        &json!({"message": "Parameter verification failed.\n", "errors": {"upid": "no such task"}}),
    );
    assert_eq!(error.kind(), Kind::NotFound);
    assert!(error.message().contains("upid: no such task"), "{error}");
}

#[test]
fn statuses_of_the_proxy() {
    let at = |status, reason, lane| {
        error_from(
            "lab",
            &Request::new("GET /x", "/x", "").in_lane(lane),
            Answered { status, reason: str::as_bytes(reason), content_type: "", body: b"" },
        )
    };
    for (status, reason, lane, kind, sent) in [
        (595, "Connection refused", Lane::Daemon, Kind::NodeDown, Sent::No),
        (595, "No route to host", Lane::Proxy, Kind::NodeDown, Sent::No),
        (595, "Connection timed out", Lane::Proxy, Kind::Timeout, Sent::Unknown),
        (596, "Connection timed out", Lane::Daemon, Kind::Timeout, Sent::Unknown),
        (596, "Broken pipe", Lane::Slow, Kind::Agent, Sent::Unknown),
        (596, "Broken pipe", Lane::Daemon, Kind::NodeDown, Sent::Unknown),
        (501, "Method 'GET /nosuchpath' not implemented", Lane::Proxy, Kind::NotImplemented, Sent::Refused),
        (501, "for data too large", Lane::Proxy, Kind::Invalid, Sent::Refused),
        (424, "node is not in a cluster, no join info available!", Lane::Proxy, Kind::Unavailable, Sent::Refused),
    ] {
        let error = at(status, reason, lane);
        assert_eq!((error.kind(), error.sent()), (kind, sent), "{status} {reason}");
        assert!(error.message().contains(reason), "{error}");
    }
}

#[test]
fn texts_are_made_harmless() {
    let error = said(
        "storage login failed: password=hunter2hunter2 at \u{1b}[31mhost\nAuthorization: PVEAPIToken=root@pam!x=aaaaaaaa",
    );
    let text = error.message();
    assert!(
        !text.contains("hunter2") && !text.contains("aaaaaaaa") && !text.contains('\u{1b}') && !text.contains('\n'),
        "{text}"
    );
    assert!(said(&"x".repeat(100_000)).message().len() < 5000);
}

/// What each recorded answer has to be read as, one `area name what` a line: the kind of a failure with what it means
/// for a write, or the form of the data. Written down after looking at each failure.
const KINDS: &str = include_str!("recorded.tsv");

/// A recording as the client would meet it: the request that was sent, with its lane.
fn request(recording: &Value) -> Request {
    let text = |key: &str| recording.pointer(&format!("/request/{key}")).and_then(Value::as_str).unwrap_or("GET");
    let method = text("method");
    let path = text("url").split('?').next().unwrap_or_default().trim_start_matches("/api2/json");
    let verb = match method {
        "POST" => Verb::Post,
        "PUT" => Verb::Put,
        "DELETE" => Verb::Delete,
        _ => Verb::Get,
    };
    let operation = arrival(verb, path).map(|arrival| arrival.operation);
    let lane = match operation.map(|operation| operation.lane) {
        Some(CatalogLane::Daemon) => Lane::Daemon,
        Some(CatalogLane::Slow) => Lane::Slow,
        _ => Lane::Proxy,
    };
    let request = Request::new(operation.map_or("GET /x", |operation| operation.name), path, "").in_lane(lane);
    match Method::from_bytes(method.as_bytes()) {
        Ok(method) if method != Method::GET => request.writing(method, ""),
        _ => request,
    }
}

/// What the client makes of a recorded answer.
fn read(recording: &Value) -> String {
    let response = recording.get("response").unwrap();
    let text = |key: &str| response.get(key).and_then(Value::as_str).unwrap_or_default();
    let status = u16::try_from(response.get("status").unwrap().as_u64().unwrap()).unwrap();
    if status == 0 {
        return "closed".to_owned();
    }
    if text("content_encoding") == "gzip" {
        // Kept as it came; the client unpacks before it reads, see `large_and_packed_answers`.
        return "packed".to_owned();
    }
    let body = response.get("json").map_or_else(|| text("text").to_owned(), Value::to_string);
    let answered = Answered {
        status,
        reason: text("reason").as_bytes(),
        content_type: text("content_type"),
        body: body.as_bytes(),
    };
    let error = match answered.judge("lab", &request(recording)) {
        Ok(reply) => {
            let form = match reply.data {
                Value::Null => "null",
                Value::Bool(_) | Value::Number(_) => "number",
                Value::String(text) if text.starts_with("UPID:") => {
                    Upid::parse(&text).unwrap();
                    "upid"
                }
                Value::String(_) => "text",
                Value::Array(_) => "list",
                Value::Object(_) => "object",
            };
            let total = if reply.total.is_some() { " of-total" } else { "" };
            return format!("ok {form}{total}");
        }
        Err(error) => error,
    };
    // What holds for every failure, whichever it is.
    assert!(!error.message().contains('\n') && error.message().len() < 6000, "{error}");
    assert_eq!(error.status(), Some(status));
    assert!(status != 403 || error.kind() == Kind::Forbidden, "{error}");
    if matches!(status, 400 | 401 | 403 | 404 | 424 | 501 | 506) {
        assert_eq!(error.sent(), Sent::Refused, "{error}");
    }
    let sent = match error.sent() {
        Sent::No => "not-sent",
        Sent::Refused => "refused",
        Sent::Unknown => "unknown",
    };
    format!("{} {sent}", error.kind())
}

#[test]
fn every_recorded_answer_is_read_as_what_it_is() {
    let folder = std::env::var_os("PVEGATE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures"), PathBuf::from);
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: no recordings at {}; PVEGATE_FIXTURES names their folder", folder.display());
        return;
    };
    let expected: BTreeMap<(&str, &str), &str> = KINDS
        .lines()
        .map(|line| {
            let mut columns = line.split('\t');
            let mut next = || columns.next().unwrap();
            ((next(), next()), next())
        })
        .collect();
    let (mut same, mut unknown, mut wrong) = (0, Vec::new(), Vec::new());
    for path in files.map(|file| file.unwrap().path()) {
        if path.extension().is_none_or(|ending| ending != "jsonl") {
            continue;
        }
        let area = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let recording: Value = serde_json::from_str(line).unwrap();
            let name = recording.get("name").and_then(Value::as_str).unwrap();
            let found = read(&recording);
            match expected.get(&(area.as_str(), name)) {
                Some(expected) if *expected == found => same += 1,
                Some(expected) => wrong.push(format!("{area}\t{name}\t{found}, and not {expected}")),
                None => unknown.push(format!("{area}\t{name}\t{found}")),
            }
        }
    }
    println!("{same} recorded answers are read as written down, {} are not written down", unknown.len());
    if std::env::var_os("PVEGATE_FIXTURES").is_none() {
        // Those that everybody has are all written down; others may have more.
        assert!(unknown.is_empty(), "not in recorded.tsv:\n{}", unknown.join("\n"));
    } else {
        println!("{}", unknown.join("\n"));
    }
    assert!(wrong.is_empty(), "read as something else:\n{}", wrong.join("\n"));
    let other = unknown.iter().filter(|line| line.ends_with("other refused")).count();
    assert!(other * 10 <= unknown.len(), "too many failures without a kind");
}
