//! The error table against genuine answers, where the recordings are at hand, and against their gist anywhere.

use crate::pve::{Answered, Kind, Lane, PveError, Request, Sent, error_from};
use serde_json::{Value, json};
use std::path::PathBuf;

fn told(status: u16, reason: &str, body: &Value) -> PveError {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    error_from("lab", &Request::new("GET /x", "/x", ""), Answered { status, reason: reason.as_bytes(), content_type: "", body: &body })
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
        assert_eq!(error.sent() == Sent::Unknown, kind == Kind::Agent, "{message}");
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

/// What each recorded failure has to be, by its name's ending or its text where the table is most easily wrong.
#[test]
fn every_recorded_failure_has_a_kind() {
    let folder = std::env::var_os("PVEGATE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures"), PathBuf::from);
    let Ok(files) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: no recordings at {}", folder.display());
        return;
    };
    let (mut seen, mut other) = (0, Vec::new());
    for file in
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
    {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let recording: Value = serde_json::from_str(line).unwrap();
            let (name, response) =
                (recording.get("name").unwrap().as_str().unwrap(), recording.get("response").unwrap());
            let status = u16::try_from(response.get("status").unwrap().as_u64().unwrap()).unwrap();
            if matches!(status, 0 | 200..400) {
                continue;
            }
            seen += 1;
            let reason = response.get("reason").and_then(Value::as_str).unwrap_or_default();
            let body = response
                .get("json")
                .map(Value::to_string)
                .or_else(|| response.get("text").and_then(Value::as_str).map(str::to_owned))
                .unwrap_or_default();
            let error = error_from(
                "lab",
                &Request::new("GET /x", "/x", ""),
                Answered { status, reason: reason.as_bytes(), content_type: "", body: body.as_bytes() },
            );
            let expected = match status {
                401 => Some(Kind::Unauthorized),
                403 => Some(Kind::Forbidden),
                _ if reason.starts_with("Method '") => Some(Kind::NotImplemented),
                _ if name.ends_with("_dup") => Some(Kind::Exists),
                _ if reason.contains("already exists") => Some(Kind::Exists),
                _ => None,
            };
            if let Some(expected) = expected {
                assert_eq!(error.kind(), expected, "{name}: {reason}");
            }
            assert!(!error.message().contains('\n') && error.message().len() < 6000, "{name}");
            if error.kind() == Kind::Other {
                other.push(format!("{name}: {status} {reason}"));
            }
        }
    }
    assert!(seen > 100 || seen == 0, "{seen}");
    assert!(other.len() * 20 <= seen, "too many without a kind:\n{}", other.join("\n"));
}
