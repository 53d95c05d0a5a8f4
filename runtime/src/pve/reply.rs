//! Decides whether an answer is a success, and what of it is kept: the data and the few things that stand beside it.

use super::{Kind, PveError, Request, error_from};
use serde::Deserialize;
use serde_json::Value;

/// A successful answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What PVE answered.
    pub data: Value,
    /// How many there are in all, where PVE says so (task lists and logs).
    pub total: Option<u64>,
    /// A pending difference, where PVE says so (node network).
    pub changes: Option<String>,
    /// What is not in the data and could have been, in sentences. PVE says nothing of the kind.
    pub missing: Vec<String>,
}

/// What came back, as it came.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The status code.
    pub status: u16,
    /// The reason phrase as sent: UTF-8 or Latin-1.
    pub reason: &'a [u8],
    /// The content type; empty where there is none.
    pub content_type: &'a str,
    /// The body, unpacked, which may be empty or anything.
    pub body: &'a [u8],
}

impl Answered<'_> {
    /// Reads the answer to a request. `cluster` is what messages call it.
    pub fn judge(self, cluster: &str, request: &Request) -> Result<Reply, PveError> {
        let Self { status, content_type, body, .. } = self;
        if (300..400).contains(&status) {
            let message = format!(
                "cluster {cluster} answered {request} with a redirect ({status}); name the API address itself as endpoint"
            );
            return Err(PveError::new(Kind::NotJson, message).with_status(status).refused());
        }
        if (201..300).contains(&status) {
            // A success, but not PVE's: whether it did a write is not known.
            let message = format!(
                "cluster {cluster} answered {request} with status {status}, which PVE never does; check that the endpoint is a PVE node's API and not another web server"
            );
            return Err(PveError::new(Kind::NotJson, message).with_status(status));
        }
        if status != 200 {
            return Err(error_from(cluster, request, self));
        }
        // A log may be asked for as text; no write answers so.
        if request.is_read() && content_type.starts_with("text/plain") {
            let text = String::from_utf8_lossy(body).into_owned();
            return Ok(Reply { data: Value::String(text), total: None, changes: None, missing: Vec::new() });
        }
        Envelope::read(body).and_then(Envelope::into_reply).map_err(|error| {
            let what = match body {
                [] => "nothing at all",
                _ if error.is_data() => "JSON that is not an answer of PVE's",
                _ if content_type.starts_with("application/json") => "an answer that is not complete JSON",
                _ => "something that is not JSON",
            };
            let message = format!("cluster {cluster} answered {request} with {what}; check that the endpoint is a PVE node's API and not another web server");
            PveError::new(Kind::NotJson, message).with_status(status).context(format!("{:?} at line {}", error.classify(), error.line()))
        })
    }
}

/// PVE's envelope. Everything but the data is read leniently: none of it may lose the data.
#[derive(Deserialize)]
pub(super) struct Envelope {
    /// Always there in a success, also where it is null.
    #[serde(default, deserialize_with = "present")]
    data: Option<Value>,
    #[serde(default)]
    total: Value,
    #[serde(default)]
    changes: Value,
    #[serde(default)]
    pub(super) message: Value,
    #[serde(default)]
    pub(super) errors: Value,
}

impl Envelope {
    /// Reads a body; PVE sometimes lets bytes through that are not UTF-8.
    pub(super) fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return Err(serde::de::Error::custom("a list"));
        }
        serde_json::from_slice(body).or_else(|error| match std::str::from_utf8(body) {
            Ok(_) => Err(error),
            Err(_) => serde_json::from_str(&String::from_utf8_lossy(body)),
        })
    }

    fn into_reply(self) -> Result<Reply, serde_json::Error> {
        let data = self.data.ok_or_else(|| <serde_json::Error as serde::de::Error>::missing_field("data"))?;
        Ok(Reply {
            total: self.total.as_u64().or_else(|| self.total.as_str()?.parse().ok()),
            changes: self.changes.as_str().map(str::to_owned),
            missing: Vec::new(),
            data,
        })
    }
}

fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}
