//! The shapes that an answer can be asked for in, by the second step of the path, and packing.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::ACCEPT_ENCODING;
use http::request::Parts;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::release::Release;

/// Answers shorter than this are not packed.
const WORTH_PACKING: usize = 1024;

/// How the data is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    /// For the web interface's library: every status is 200, and `success` tells.
    ExtJs,
    /// For people.
    Html,
}

/// Splits a path into format and the rest; none where it names no format.
pub(super) fn split(path: &str) -> Option<(Format, &str)> {
    let rest = path.strip_prefix("/api2/")?;
    let (name, rest) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let format = match name {
        "json" => Format::Json,
        "extjs" => Format::ExtJs,
        "html" => Format::Html,
        _ => return None,
    };
    Some((format, rest))
}

impl Format {
    /// Puts an answer into this shape, packed where the client takes that.
    pub(super) fn put(self, release: Release, mut answer: Answer, head: &Parts) -> Answer {
        if answer.is_json() {
            match self {
                Self::Json if release.tells_errors() => {}
                Self::Json => untold(&mut answer),
                Self::ExtJs => ext_js(&mut answer),
                Self::Html => html(&mut answer, head.uri.path()),
            }
        }
        let accepted = head.headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if answer.packed || (accepted.contains("gzip") && answer.body.len() > WORTH_PACKING) {
            pack(&mut answer);
        }
        answer
    }
}

/// Leaves the words of an error to the reason phrase.
fn untold(answer: &mut Answer) {
    let Ok(Value::Object(mut body)) = serde_json::from_slice(&answer.body) else { return };
    if answer.status >= 400 && body.remove("message").is_some() {
        answer.body = Bytes::from(Value::Object(body).to_string());
    }
}

fn ext_js(answer: &mut Answer) {
    let Ok(Value::Object(mut body)) = serde_json::from_slice(&answer.body) else { return };
    body.insert("success".to_owned(), json!(u8::from(answer.status < 400)));
    if answer.status >= 400 {
        body.insert("status".to_owned(), json!(answer.status));
        "OK".clone_into(&mut answer.reason);
        answer.status = 200;
    }
    answer.body = Bytes::from(Value::Object(body).to_string());
}

fn html(answer: &mut Answer, path: &str) {
    let shown = serde_json::from_slice::<Value>(&answer.body).map(|body| format!("{body:#}")).unwrap_or_default();
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n  <head>\n    <meta charset=\"utf-8\">\n    <title>Proxmox VE API</title>\n  \
         </head>\n  <body>\n    <h1>{}</h1>\n    <pre>{}</pre>\n  </body>\n</html>\n",
        escape(path),
        escape(&shown)
    );
    answer.body = Bytes::from(page);
    answer.content_type = Some("text/html;charset=UTF-8");
}

fn pack(answer: &mut Answer) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail; should it, the answer goes out as it is.
    let packed = encoder.write_all(&answer.body).and_then(|()| encoder.finish());
    if let Ok(packed) = packed {
        answer.body = Bytes::from(packed);
        answer.packed = true;
    }
}
