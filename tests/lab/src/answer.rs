//! What an answer is made of, and how PVE puts it on the wire.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};

const JSON: &str = "application/json;charset=UTF-8";

/// What a handler answers with when it succeeds: the data, and what stands beside it (`total`, `changes`).
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) data: Value,
    pub(crate) beside: Map<String, Value>,
    /// What is answered instead as plain text, if anything is.
    pub(crate) text: Option<String>,
    /// Whether it is packed whatever the client takes.
    pub(crate) packed: bool,
}

impl From<Value> for Reply {
    fn from(data: Value) -> Self {
        Self { data, beside: Map::new(), text: None, packed: false }
    }
}

impl Reply {
    /// Lines of a log from `start`, at most `limit` (0: all), with the total beside them.
    pub(crate) fn lines(lines: &[String], start: usize, limit: usize) -> Self {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let data: Vec<Value> = lines
            .iter()
            .enumerate()
            .skip(start)
            .take(limit)
            .map(|(at, text)| json!({"n": at + 1, "t": text}))
            .collect();
        Self::counted(Value::Array(data), lines.len())
    }

    /// A file to download.
    pub(crate) fn file(text: String) -> Self {
        Self { text: Some(text), ..Self::from(Value::Null) }
    }

    pub(crate) fn counted(data: Value, total: usize) -> Self {
        let mut beside = Map::new();
        // A total of nothing is not told.
        if total > 0 {
            beside.insert("total".to_owned(), json!(total));
        }
        Self { data, beside, text: None, packed: false }
    }
}

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) errors: BTreeMap<String, String>,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), errors: BTreeMap::new() }
    }

    /// PVE's word for nearly everything that goes wrong: 500 and a sentence.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(500, message)
    }

    pub(crate) fn parameters(errors: BTreeMap<String, String>) -> Self {
        Self { status: 400, message: "Parameter verification failed.".to_owned(), errors }
    }

    pub(crate) fn parameter(name: &str, error: impl Into<String>) -> Self {
        Self::parameters(BTreeMap::from([(name.to_owned(), error.into())]))
    }

    pub(crate) fn forbidden(what: &str) -> Self {
        if what.is_empty() {
            Self::new(403, "Permission check failed")
        } else {
            Self::new(403, format!("Permission check failed ({what})"))
        }
    }
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) body: Bytes,
    /// Whom the connection's fate is told by.
    pub(crate) connection: Connection,
    /// `gzip`, where the body is packed.
    pub(crate) packed: bool,
    /// Where else to ask.
    pub(crate) location: Option<String>,
    /// Whether a part of the request was not read.
    pub(crate) unread: bool,
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Keep,
    Close,
}

/// What the answer says of the connection where the status is below 400. From there on it is always closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Connection {
    /// The proxy answered by itself.
    #[default]
    Own,
    /// The daemon answered, which closes its own connection; the proxy passes that on beside its own word.
    Daemon,
    /// An upload: the proxy closes.
    Closed,
}

impl Answer {
    /// A status and its reason phrase, nothing else.
    pub(crate) fn bare(status: u16, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            content_type: None,
            body: Bytes::new(),
            connection: Connection::Own,
            packed: false,
            location: None,
            unread: false,
        }
    }

    /// What PVE's proxy itself complains about: plain text without a content type.
    pub(crate) fn proxy(status: u16, reason: &str) -> Self {
        Self { body: Bytes::copy_from_slice(reason.as_bytes()), ..Self::bare(status, reason) }
    }

    /// What the proxy answers where its own program died: the same with a line end.
    pub(crate) fn died(reason: &str) -> Self {
        Self { body: Bytes::from(format!("{reason}\n")), ..Self::bare(500, reason) }
    }

    /// Where the same is to be had by TLS.
    pub(crate) fn moved(method: &Method, host: Option<&str>, target: &str) -> Self {
        let (status, reason) = if matches!(*method, Method::GET | Method::HEAD) {
            (301, "Moved Permanently")
        } else {
            (308, "Permanent Redirect")
        };
        let location = Some(format!("https://{}{target}", host.unwrap_or_default()));
        Self { location, ..Self::proxy(status, reason) }
    }

    /// Unknown path or method. The one message without a line end.
    pub(crate) fn not_implemented(method: &str, path: &str) -> Self {
        let message = format!("Method '{method} {path}' not implemented");
        let body = json!({"data": null, "message": message});
        Self { content_type: Some(JSON), body: Bytes::from(body.to_string()), ..Self::bare(501, message) }
    }

    pub(crate) fn html() -> Self {
        Self {
            content_type: Some("text/html"),
            body: Bytes::from_static(
                b"<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n",
            ),
            ..Self::bare(200, "OK")
        }
    }

    pub(crate) fn of(outcome: Result<Reply, Refusal>) -> Self {
        match outcome {
            Ok(Reply { text: Some(text), .. }) => {
                Self { content_type: Some("text/plain"), body: Bytes::from(text), ..Self::bare(200, "OK") }
            }
            Ok(reply) => {
                let mut body = reply.beside;
                body.insert("data".to_owned(), reply.data);
                Self {
                    content_type: Some(JSON),
                    body: Bytes::from(Value::Object(body).to_string()),
                    packed: reply.packed,
                    ..Self::bare(200, "OK")
                }
            }
            // The daemon dies on characters that are no bytes, and a carriage return ends the status line.
            Err(refusal) if refusal.message.chars().any(|c| u32::from(c) > 0xff) => Self::bare(596, "Broken pipe"),
            Err(refusal) if refusal.message.contains('\r') => {
                Self { content_type: Some(JSON), ..Self::bare(400, "Bad Request") }
            }
            Err(refusal) => {
                let reason = refusal.message.lines().next().unwrap_or_default().to_owned();
                // A refusal with a status of its own comes without the line end.
                let end = if matches!(refusal.status, 424 | 501) { "" } else { "\n" };
                let mut body = json!({"data": null, "message": format!("{}{end}", refusal.message.trim_end())});
                if let Some(body) = body.as_object_mut()
                    && !refusal.errors.is_empty()
                {
                    body.insert("errors".to_owned(), json!(refusal.errors));
                }
                Self {
                    content_type: Some(JSON),
                    body: Bytes::from(body.to_string()),
                    ..Self::bare(refusal.status, reason)
                }
            }
        }
    }

    /// Whether the daemon failed to say why.
    pub(crate) fn unspeakable(&self) -> bool {
        self.status == 596
    }

    pub(crate) fn is_json(&self) -> bool {
        self.content_type == Some(JSON)
    }

    /// What becomes of the connection: PVE closes it after every status of 400 and above.
    pub(crate) fn ending(&self, wished: Ending) -> Ending {
        let closes = self.status >= 400 || self.unread || self.connection == Connection::Closed;
        if closes { Ending::Close } else { wished }
    }

    /// The bytes of the answer.
    pub(crate) fn on_wire(&self, ending: Ending, with_body: bool) -> Vec<u8> {
        let mut head = Vec::with_capacity(512 + self.body.len());
        head.extend_from_slice(format!("HTTP/1.1 {} ", self.status).as_bytes());
        // Each character is one byte on the wire.
        let bytes = self.reason.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'));
        head.extend(bytes.filter(|byte| *byte >= b' ' && *byte != 0x7f));
        let mut line = |name: &str, value: &str| {
            head.extend_from_slice(b"\r\n");
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
        };
        let words: &[&str] = match (ending, self.connection) {
            (Ending::Close, _) => &["close"],
            (Ending::Keep, Connection::Daemon) => &["close", "Keep-Alive"],
            (Ending::Keep, _) => &["Keep-Alive"],
        };
        let now = httpdate::fmt_http_date(SystemTime::now());
        line("Cache-Control", "max-age=0");
        for word in words {
            line("Connection", word);
        }
        line("Date", &now);
        line("Pragma", "no-cache");
        if let Some(location) = &self.location {
            line("Location", location);
        }
        line("Server", "pve-api-daemon/3.0");
        if self.packed {
            line("Content-Encoding", "gzip");
        }
        line("Content-Length", &self.body.len().to_string());
        if let Some(content_type) = self.content_type {
            line("Content-Type", content_type);
        }
        line("Expires", &now);
        head.extend_from_slice(b"\r\n\r\n");
        if with_body {
            head.extend_from_slice(&self.body);
        }
        head
    }
}
