//! A guest's configuration as the file it is: its text, from which its digest comes, and the texts of single options.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::guest::{Guest, Kind, Snapshot};
use super::sha1;

/// The text of an option's value.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl Guest {
    /// The text of an option, whatever its type.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        self.config.get(key).map(text)
    }

    /// SHA-1 of the configuration file, with all its sections.
    pub(crate) fn digest(&self) -> String {
        sha1::digest(&self.file())
    }

    /// The configuration file.
    pub(crate) fn file(&self) -> String {
        let mut config = self.config.clone();
        if let Some(parent) = &self.parent {
            config.insert("parent".to_owned(), Value::from(parent.as_str()));
        }
        if let Some(lock) = &self.lock {
            config.insert("lock".to_owned(), Value::from(lock.as_str()));
        }
        let mut file = section(self.kind, &config, false);
        if !self.pending.is_empty() || !self.leaving.is_empty() {
            let mut pending = self.pending.clone();
            if !self.leaving.is_empty() {
                pending.insert("delete".to_owned(), Value::from(self.leaving.join(",")));
            }
            let head = if self.kind == Kind::Qemu { "[PENDING]" } else { "[pve:pending]" };
            file = file + "\n" + head + "\n" + &section(self.kind, &pending, true);
        }
        let mut snapshots: Vec<&Snapshot> = self.snapshots.iter().collect();
        snapshots.sort_by(|a, b| a.name.cmp(&b.name));
        for snapshot in snapshots {
            file = file + "\n[" + &snapshot.name + "]\n" + &section(self.kind, &snapshot.file(), false);
        }
        file
    }
}

impl Snapshot {
    /// What the snapshot's section of the file holds.
    pub(crate) fn file(&self) -> Map<String, Value> {
        let mut config = self.config.clone();
        if !self.description.is_empty() {
            config.insert("description".to_owned(), Value::from(self.description.as_str()));
        }
        if let Some(parent) = &self.parent {
            config.insert("parent".to_owned(), Value::from(parent.as_str()));
        }
        if let Some(state) = &self.state {
            config.insert("snapstate".to_owned(), Value::from(state.as_str()));
        }
        config.insert("snaptime".to_owned(), Value::from(self.time));
        config
    }
}

/// One section: notes as comments, then the options in order.
fn section(kind: Kind, config: &Map<String, Value>, pending: bool) -> String {
    let mut out = String::new();
    if let Some(notes) = config.get("description").map(text) {
        let mut lines: Vec<&str> = notes.split('\n').collect();
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        if lines.is_empty() && pending {
            lines.push("");
        }
        for line in lines {
            let _written = writeln!(out, "#{}", encode(line));
        }
    }
    let mut keys: Vec<&String> = config.keys().collect();
    keys.sort();
    for key in keys {
        if key == "description" || (key == "lxc" && kind == Kind::Lxc) {
            continue;
        }
        let _written = writeln!(out, "{key}: {}", config.get(key).map(text).unwrap_or_default());
    }
    for pair in config.get("lxc").and_then(Value::as_array).into_iter().flatten() {
        let part = |at: usize| pair.get(at).map(text).unwrap_or_default();
        let _written = writeln!(out, "{}: {}", part(0), part(1));
    }
    out
}

/// Notes are percent-encoded where they are not plain ASCII.
fn encode(line: &str) -> String {
    let mut out = String::new();
    for byte in line.bytes() {
        if (b' '..0x7f).contains(&byte) && !b":%".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _written = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::state::guest::{Guest, Kind, object};

    #[test]
    fn the_digest_is_that_of_the_file() {
        let config = object(json!({"name": "a", "memory": "512", "cores": 2, "description": "one:\nzwei ä"}));
        let guest = Guest::new(100, Kind::Qemu, "pve1", config);
        assert_eq!(guest.file(), "#one%3A\n#zwei %C3%A4\ncores: 2\nmemory: 512\nname: a\n");
    }
}
