//! Configuration that PVE keeps as entries with an id: jobs, HA, SDN, mappings, notification targets, plugins.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Entries of one kind, by id.
pub(crate) type Entries = BTreeMap<String, Map<String, Value>>;

/// All kinds, by the path of their list (`/cluster/backup`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections(BTreeMap<&'static str, Entries>);

impl Sections {
    pub(crate) fn put(&mut self, list: &'static str, id: &str, entry: Value) {
        let Value::Object(entry) = entry else { return };
        self.0.entry(list).or_default().insert(id.to_owned(), entry);
    }

    pub(crate) fn entries(&self, list: &str) -> Option<&Entries> {
        self.0.get(list)
    }

    pub(crate) fn get(&self, list: &str, id: &str) -> Option<&Map<String, Value>> {
        self.0.get(list)?.get(id)
    }

    pub(crate) fn get_mut(&mut self, list: &str, id: &str) -> Option<&mut Map<String, Value>> {
        self.0.get_mut(list)?.get_mut(id)
    }

    /// Removes an entry; whether there was one.
    pub(crate) fn remove(&mut self, list: &str, id: &str) -> bool {
        self.0.get_mut(list).is_some_and(|entries| entries.remove(id).is_some())
    }

    /// Replaces all entries of a kind.
    pub(crate) fn set(&mut self, list: &'static str, entries: Entries) {
        self.0.insert(list, entries);
    }
}
