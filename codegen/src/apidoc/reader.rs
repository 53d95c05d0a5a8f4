//! Walks an apidoc and remembers where it stands, so that every problem is noted with its place.

use serde_json::{Map, Value};

use super::errors::Place;

/// What is allowed beside the facts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// Descriptions; only in PVE's own files.
    pub(super) prose: bool,
    /// Known mistakes of PVE's schema: noted apart instead of failing.
    pub(super) defects: bool,
}

/// Keys that hold prose in a schema.
pub(super) const PROSE: [&str; 4] = ["description", "format_description", "title", "verbose_description"];

pub(super) struct Reader {
    mode: Mode,
    operation: String,
    path: Vec<String>,
    pub(super) problems: Vec<Place>,
    pub(super) defects: Vec<Place>,
}

impl Reader {
    pub(super) fn new(mode: Mode) -> Self {
        Self { mode, operation: String::new(), path: Vec::new(), problems: Vec::new(), defects: Vec::new() }
    }

    /// Reads something of this operation (or node), from its root.
    pub(super) fn within<T>(&mut self, operation: String, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (std::mem::replace(&mut self.operation, operation), std::mem::take(&mut self.path));
        let value = read(self);
        (self.operation, self.path) = outer;
        value
    }

    /// Reads something one step further in.
    pub(super) fn at<T>(&mut self, step: impl Into<String>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step.into());
        let value = read(self);
        self.path.pop();
        value
    }

    /// Notes a problem here.
    pub(super) fn problem(&mut self, problem: impl Into<String>) {
        let place = self.place(problem.into());
        self.problems.push(place);
    }

    /// Notes a mistake that PVE is known to make, and that a fixup has to repair.
    pub(super) fn defect(&mut self, problem: &str) {
        if self.mode.defects {
            let place = self.place(problem.to_owned());
            self.defects.push(place);
        } else {
            self.problem(format!("{problem}; repair it in fixups.toml"));
        }
    }

    fn place(&self, problem: String) -> Place {
        Place { operation: self.operation.clone(), path: self.path.join("."), problem }
    }

    /// Notes a key that nobody reads; prose is fine where the mode allows it.
    pub(super) fn unread(&mut self, key: &str, value: &Value, prose: &[&str]) {
        if !prose.contains(&key) {
            self.problem(format!("unknown key `{key}`"));
        } else if !self.mode.prose {
            self.problem(format!(
                "`{key}` is prose, which a pinned file does not hold; write it with `cargo codegen pin`"
            ));
        } else if !value.is_string() {
            self.at(key, |reader| reader.problem("is not a text"));
        }
    }

    /// `value` as an object.
    pub(super) fn object<'v>(&mut self, value: &'v Value) -> Option<&'v Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.problem(format!("is {}, not an object", describe(value)));
        }
        object
    }

    /// `value` as a list.
    pub(super) fn list<'v>(&mut self, value: &'v Value) -> Option<&'v [Value]> {
        let list = value.as_array();
        if list.is_none() {
            self.problem(format!("is {}, not a list", describe(value)));
        }
        list.map(Vec::as_slice)
    }

    /// `key` of `object`, which has to be there.
    pub(super) fn required<'v>(&mut self, object: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
        let value = object.get(key);
        if value.is_none() {
            self.problem(format!("has no `{key}`"));
        }
        value
    }
}

/// A value in a few words, never longer than a line.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
        other => other.to_string(),
    }
}
