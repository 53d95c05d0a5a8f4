//! Builds the bytes of a request from what its recording says, and of those whose recording keeps only the answer.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::question::Question;

/// What a form field may hold as it is.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/').remove(b'@');

/// A head without a body, for a method, a URL, and header lines.
fn head(method: &str, url: &str, lines: &[String]) -> Vec<u8> {
    let mut text = format!("{method} {url} HTTP/1.1\r\nHost: localhost:8006\r\n");
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// Requests that were sent as raw bytes: their recordings keep the answer alone, so what was sent is told by the name.
fn unwritten(name: &str, authorization: &str) -> Option<Vec<u8>> {
    let version = "/api2/json/version";
    let auth = format!("Authorization: {authorization}");
    let json = "Content-Type: application/json".to_owned();
    Some(match name {
        "absolute_uri" => head("GET", "https://localhost:8006/api2/json/version", &[auth]),
        "delete_content_length_0" => head("DELETE", "/api2/json/pools/nope", &[auth, "Content-Length: 0".to_owned()]),
        "delete_json_ct_no_body" => head("DELETE", "/api2/json/pools/nope", &[auth, json]),
        "get_json_ct" => head("GET", version, &[auth, json]),
        "header_case_insensitive" => head("GET", version, &[format!("aUTHORIZATION: {authorization}")]),
        "http2_upgrade_header" => {
            head("GET", version, &[auth, "Connection: Upgrade, HTTP2-Settings".to_owned(), "Upgrade: h2c".to_owned()])
        }
        "multiple_auth_headers" => head("GET", version, &["Authorization: Basic eDp5".to_owned(), auth]),
        "post_content_length_0_json" => {
            head("POST", "/api2/json/nodes/pve1/qemu/100/status/stop", &[auth, json, "Content-Length: 0".to_owned()])
        }
        "post_without_content_length" => head("POST", "/api2/json/nodes/pve1/qemu/100/status/stop", &[auth]),
        _ => return None,
    })
}

/// The request of a recording with another URL and credential; none if nothing tells what was sent.
pub fn request(
    question: &Question,
    url: &str,
    authorization: Option<&str>,
    ticket: Option<&(String, String)>,
) -> Option<Vec<u8>> {
    if question.request["method"].is_null() {
        return unwritten(&question.name, authorization?);
    }
    let content_type = question.request["content_type"].as_str();
    let body = body(question, content_type);
    let mut lines = Vec::new();
    if let Some(authorization) = authorization {
        lines.push(format!("Authorization: {authorization}"));
    }
    let mut chunked = false;
    for (name, value) in question.request["headers"].as_object().into_iter().flatten() {
        chunked |= name.eq_ignore_ascii_case("transfer-encoding");
        let value = value.as_str().unwrap_or_default();
        match (name.as_str(), ticket) {
            ("Cookie", Some((ticket, _))) => {
                lines.push(format!("Cookie: PVEAuthCookie={}", utf8_percent_encode(ticket, NON_ALPHANUMERIC)));
            }
            ("CSRFPreventionToken", Some((_, guard))) => lines.push(format!("{name}: {guard}")),
            _ => lines.push(format!("{name}: {value}")),
        }
    }
    if let Some(content_type) = content_type {
        lines.push(format!("Content-Type: {content_type}"));
    }
    if !chunked && (body.is_some() || matches!(question.method(), "POST" | "PUT")) {
        lines.push(format!("Content-Length: {}", body.as_ref().map_or(0, Vec::len)));
    }
    let mut bytes = head(question.method(), url, &lines);
    if chunked {
        bytes.extend_from_slice(b"0\r\n\r\n");
    }
    bytes.extend(body.unwrap_or_default());
    Some(bytes)
}

fn body(question: &Question, content_type: Option<&str>) -> Option<Vec<u8>> {
    if let Some(raw) = question.request["raw_body"].as_str() {
        // Each character of a raw body is one byte. A body that is only counted is made up in its length.
        return Some(match raw.strip_prefix('<').and_then(|rest| rest.strip_suffix(" bytes>")) {
            Some(count) => filler(count.parse().ok()?, content_type),
            None => raw.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect(),
        });
    }
    if !question.request["json"].is_null() {
        return Some(question.request["json"].to_string().into_bytes());
    }
    match &question.request["form"] {
        Value::Null => None,
        Value::String(raw) => Some(raw.clone().into_bytes()),
        form => Some(encode(form).into_bytes()),
    }
}

/// A form, from fields by name or from pairs.
pub fn encode(form: &Value) -> String {
    let mut pairs = Vec::new();
    let mut add = |name: &str, value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        pairs.push(format!("{}={}", utf8_percent_encode(name, &PLAIN), utf8_percent_encode(&text, &PLAIN)));
    };
    match form {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Array(values) => values.iter().for_each(|value| add(name, value)),
                    value => add(name, value),
                }
            }
        }
        Value::Array(fields) => fields.iter().for_each(|pair| add(pair[0].as_str().unwrap_or_default(), &pair[1])),
        _ => {}
    }
    pairs.join("&")
}

fn filler(length: usize, content_type: Option<&str>) -> Vec<u8> {
    let multipart = content_type.is_some_and(|kind| kind.starts_with("multipart/"));
    let (start, end) = if multipart {
        (
            "--B\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--B\r\nContent-Disposition: \
             form-data; name=\"filename\"; filename=\"big.iso\"\r\nContent-Type: application/octet-stream\r\n\r\n",
            "\r\n--B--\r\n",
        )
    } else {
        ("description=", "")
    };
    let mut body = start.as_bytes().to_vec();
    body.resize(length.saturating_sub(end.len()), b'x');
    body.extend_from_slice(end.as_bytes());
    body
}
