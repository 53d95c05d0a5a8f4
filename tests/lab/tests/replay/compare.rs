//! Whether an answer is what was recorded: status, reason phrase, content type, connection handling, body.
//!
//! Lists are sets; what is in [`IGNORED`] has to be there in the same form. Task ids, and numbers that differ by nature
//! inside texts, are masked in both.

use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use crate::recording::Recording;
use crate::wire::Answer;

/// Fields whose values differ by nature: times, ids made by chance, digests, figures of use. Their form counts.
pub const IGNORED: &[&str] = &[
    "CSRFPreventionToken",
    "avail",
    "available",
    "cpu",
    "ctime",
    "digest",
    "disk",
    "diskread",
    "diskwrite",
    "endtime",
    "flags",
    "free",
    "iowait",
    "loadavg",
    "localtime",
    "mem",
    "memhost",
    "memused",
    "mhz",
    "model",
    "netin",
    "netout",
    "next-run",
    "pid",
    "pressurecpufull",
    "pressurecpusome",
    "pressureiofull",
    "pressureiosome",
    "pressurememoryfull",
    "pressurememorysome",
    "pstart",
    "repoid",
    "rootused",
    "snaptime",
    "ssl_fingerprint",
    "starttime",
    "swapused",
    "ticket",
    "time",
    "timestamp",
    "uid",
    "uptime",
    "used",
    "used_fraction",
    "utc",
    "uuid",
    "vmgenid",
    "wait",
];

/// The first difference, if there is one.
pub fn compare(recording: &Recording, answer: &Answer) -> Result<(), String> {
    let expected = &recording.response;
    let status = recording.question.status;
    if answer.status != status {
        return Err(format!("status {} {} instead of {status} {}", answer.status, answer.reason, expected["reason"]));
    }
    if status == 0 {
        return Ok(());
    }
    let reason = mask(expected["reason"].as_str().unwrap_or_default());
    if !recording.question.limited && mask(&answer.reason) != reason {
        return Err(format!("reason `{}` instead of `{reason}`", mask(&answer.reason)));
    }
    // Requests that were sent as raw bytes were recorded without the content type of the answer.
    if !recording.question.request["method"].is_null() {
        let content_type = answer.all("content-type").first().map_or(Value::Null, |kind| Value::from(*kind));
        if content_type != expected["content_type"] {
            return Err(format!("content type {content_type} instead of {}", expected["content_type"]));
        }
    }
    // Two lines or one with a comma say the same.
    let connection: Vec<&str> = answer.all("connection").iter().flat_map(|line| line.split(", ")).collect();
    let connection = Value::from(connection);
    if connection != expected["connection"] && !expected["connection"].is_null() {
        return Err(format!("connection {connection} instead of {}", expected["connection"]));
    }
    let encoding = answer.all("content-encoding").first().map_or(Value::Null, |kind| Value::from(*kind));
    if encoding != expected["content_encoding"] {
        return Err(format!("content encoding {encoding} instead of {}", expected["content_encoding"]));
    }
    body(recording, answer)
}

fn body(recording: &Recording, answer: &Answer) -> Result<(), String> {
    let expected = &recording.response;
    if expected["content_encoding"] == "gzip" {
        return if answer.body.starts_with(&[0x1f, 0x8b]) { Ok(()) } else { Err("the body is not packed".to_owned()) };
    }
    let parsed = serde_json::from_slice::<Value>(&answer.body);
    if !expected["json"].is_null() {
        let got = parsed.map_err(|_| format!("no JSON: {}", String::from_utf8_lossy(&answer.body)))?;
        return same(recording.question.limited, "", &expected["json"], &got);
    }
    let text = expected["text"].as_str().unwrap_or_default();
    if let Ok(json) = serde_json::from_str::<Value>(text)
        && json.is_object()
    {
        let got = parsed.map_err(|_| format!("no JSON: {}", String::from_utf8_lossy(&answer.body)))?;
        return same(recording.question.limited, "", &json, &got);
    }
    // A page is compared by what it begins with: the rest is a user interface.
    let got = String::from_utf8_lossy(&answer.body);
    let page = |text: &str| text.starts_with("<!DOCTYPE html>");
    if (page(text) && page(&got)) || mask(&got) == mask(text) {
        Ok(())
    } else {
        Err(format!("body `{got}` instead of `{text}`"))
    }
}

/// Compares two values. `form`: only keys and kinds count.
fn same(form: bool, at: &str, expected: &Value, got: &Value) -> Result<(), String> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (key, value) in expected {
                let Some(other) = got.get(key) else { return Err(format!("{at}.{key} is missing; it is {value}")) };
                let form = form || IGNORED.contains(&key.as_str());
                same(form, &format!("{at}.{key}"), value, other)?;
            }
            match got.iter().find(|(key, _)| !expected.contains_key(*key)) {
                Some((key, value)) => Err(format!("{at}.{key} is too much: {value}")),
                None => Ok(()),
            }
        }
        (Value::Array(expected), Value::Array(got)) => lists(form, at, expected, got),
        _ if form => {
            if kind(expected) == kind(got) {
                Ok(())
            } else {
                Err(format!("{at} is {got} instead of the like of {expected}"))
            }
        }
        (Value::String(one), Value::String(other)) => {
            let (one, other) = (&shuffled(at, one), &shuffled(at, other));
            if mask(one) == mask(other) {
                Ok(())
            } else {
                Err(format!("{at} is `{}` instead of `{}`", mask(other), mask(one)))
            }
        }
        _ if expected == got => Ok(()),
        _ => Err(format!("{at} is {got} instead of {expected}")),
    }
}

/// As sets. Where only the form counts, one element stands for all.
fn lists(form: bool, at: &str, expected: &[Value], got: &[Value]) -> Result<(), String> {
    if form {
        return match (expected.first(), got.first()) {
            (Some(expected), Some(got)) => same(true, &format!("{at}[]"), expected, got),
            (None, None) => Ok(()),
            _ => Err(format!("{at} has {} elements instead of {}", got.len(), expected.len())),
        };
    }
    let mut left: Vec<&Value> = got.iter().collect();
    for value in expected {
        if let Some(found) = left.iter().position(|other| same(false, at, value, other).is_ok()) {
            left.remove(found);
            continue;
        }
        // The closest one tells more than the whole list: the one with the same id, or the one at the same place.
        let id = |value: &Value| {
            ["id", "vmid", "userid", "name", "n", "upid", "key", "storage", "volid"]
                .iter()
                .find_map(|key| value.get(key))
                .cloned()
        };
        let close = left.iter().find(|other| id(value).is_some() && id(other) == id(value)).or(left.first());
        return Err(match close {
            Some(close) if value.is_object() => {
                let why = same(false, &format!("{at}[]"), value, close).err().unwrap_or_default();
                format!("{why} ({} elements instead of {})", got.len(), expected.len())
            }
            _ => format!("{at}[] lacks {value}; left are {left:?}"),
        });
    }
    match left.first() {
        Some(more) => Err(format!("{at}[] has {} too many: {more}", left.len())),
        None => Ok(()),
    }
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) => 1,
        Value::String(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
    }
}

/// Texts that PVE puts together from a hash have their parts in any order: they are sorted.
fn shuffled(at: &str, text: &str) -> String {
    let by = if at.ends_with(".content") {
        ","
    } else if text.starts_with("INFO: starting new backup job:") {
        " --"
    } else {
        return text.to_owned();
    };
    let mut parts: Vec<&str> = text.split(by).collect();
    parts.sort_unstable();
    parts.join(by)
}

/// A text without what differs by nature: ids of tasks, digests, times, process ids.
fn mask(text: &str) -> String {
    static MASKS: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
    let masks = MASKS.get_or_init(|| {
        [
            (r"UPID:([^:]+):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:[0-9A-Fa-f]{8}:", "UPID:$1:P:S:T:"),
            (r"PVE(VNC)?:[^:]+:[0-9A-Fa-f]{8}::[A-Za-z0-9+/=]+", "TICKET"),
            (r"\b[0-9a-f]{64}\b", "SHA256"),
            (r"\b[0-9a-f]{40}\b", "SHA1"),
            (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
            (r"\b(BC|bc):24:11(:[0-9A-Fa-f]{2}){3}", "MAC"),
            (r"ctime=\d+", "ctime=T"),
            // The cluster log counts its lines.
            (r"^\d+:([a-z][a-z0-9-]*)$", "N:$1"),
            (r"pveupload-[0-9a-f]+", "pveupload-ID"),
            (r"tmp_dwnl\.\d+", "tmp_dwnl.P"),
            (r"Total bytes (read|written): \d+ \([^)]*\)", "Total bytes $1: N"),
            (r"archive file size: \S+", "archive file size: N"),
            (r"\b\d{4}[-_]\d{2}[-_]\d{2}[-_ T]\d{2}[-_:]\d{2}[-_:]\d{2}Z?", "TIME"),
            (r"\b\d{2}:\d{2}:\d{2}\b", "CLOCK"),
            (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d CLOCK \d{4}", "DATE"),
            (r"pid( of [a-z]+)?:? \d+", "pid P"),
            (r"\(\d+(\.\d+)? ?([KMGT]i?B/s|seconds?)\)", "(RATE)"),
        ]
        .into_iter()
        .map(|(pattern, mask)| (Regex::new(pattern).unwrap(), mask))
        .collect()
    });
    masks.iter().fold(text.to_owned(), |text, (pattern, mask)| pattern.replace_all(&text, *mask).into_owned())
}
