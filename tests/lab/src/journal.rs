//! The record of every request that arrived, as it arrived.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The node whose listener it came to.
    pub node: String,
    /// Which connection it came by, counted from the lab's start.
    pub connection: u64,
    /// The HTTP method on the request line.
    pub method: String,
    /// The path and query on the request line, undecoded.
    pub raw_path: String,
    /// The path after percent-decoding, without `/api2/json`.
    pub decoded_path: String,
    /// The schema's operation that it was routed to (`GET /nodes/{node}/qemu`), if any.
    pub operation: Option<String>,
    /// Parameters of path, query and body together, as PVE merges them.
    pub params: BTreeMap<String, Value>,
    /// The status that was answered; 0 where the connection was cut or left hanging.
    pub status: u16,
}

/// Entries in the order in which requests were answered.
#[derive(Debug, Default)]
pub(crate) struct Journal(Mutex<Vec<Entry>>);

impl Journal {
    pub(crate) fn push(&self, entry: Entry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
