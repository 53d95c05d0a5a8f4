//! Decides what of PVE's answer is kept: the data and the few things that stand beside it.

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
}

/// PVE's envelope. Everything but the data is read leniently: none of it may lose the data.
#[derive(Deserialize)]
pub(super) struct Envelope {
    #[serde(default)]
    pub(super) data: Value,
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
        serde_json::from_slice(body).or_else(|error| match std::str::from_utf8(body) {
            Ok(_) => Err(error),
            Err(_) => serde_json::from_str(&String::from_utf8_lossy(body)),
        })
    }

    pub(super) fn into_reply(self) -> Reply {
        Reply {
            total: self.total.as_u64().or_else(|| self.total.as_str()?.parse().ok()),
            changes: self.changes.as_str().map(str::to_owned),
            data: self.data,
        }
    }
}
