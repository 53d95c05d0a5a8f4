//! Decides how a configuration file is read: JSON or TOML by its ending, no key twice, every key known.

use super::credential_file::{DOCUMENT_LIMIT, examine};
use super::{ConfigError, Problems};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::path::Path;

/// A file's content and what was found wrong so far.
pub(crate) struct Document {
    pub(crate) root: Table,
    pub(crate) problems: Problems,
}

impl Document {
    /// Reads and parses a file with secrets in it.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let mut problems = Problems::new(path);
        let text = match examine(path, DOCUMENT_LIMIT) {
            Ok((text, loose)) => {
                if let Some(loose) = loose {
                    problems.at("", loose);
                }
                text
            }
            Err(message) => {
                problems.at("", message);
                return problems.fail();
            }
        };
        let parsed = if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml")) {
            // The full message would show the line, and the line may hold a secret.
            toml::from_str::<Unique>(&text).map_err(|error| {
                let line = error
                    .span()
                    .and_then(|span| text.get(..span.start))
                    .map_or(0, |before| before.matches('\n').count() + 1);
                format!("is not valid TOML: {} (line {line})", error.message())
            })
        } else {
            serde_json::from_str::<Unique>(&text).map_err(|error| format!("is not valid JSON: {error}"))
        };
        match parsed {
            Ok(Unique(Value::Object(keys))) => Ok(Self { root: Table { place: String::new(), keys }, problems }),
            Ok(_) => {
                problems.at("", "has to be an object (a table) at the top");
                problems.fail()
            }
            Err(message) => {
                problems.at("", message);
                problems.fail()
            }
        }
    }
}

/// An object whose keys are taken one by one; what is left over is unknown.
pub(crate) struct Table {
    place: String,
    keys: Map<String, Value>,
}

impl Table {
    /// `place` is how messages call it (`cluster pve1`).
    pub(crate) fn new(place: impl Into<String>, value: Value, problems: &mut Problems) -> Option<Self> {
        let place = place.into();
        if let Value::Object(keys) = value {
            return Some(Self { place, keys });
        }
        problems.at(place, "has to be an object (a table)");
        None
    }

    /// A key's place in words.
    pub(crate) fn place(&self, key: &str) -> String {
        if self.place.is_empty() { format!("key `{key}`") } else { format!("{}, key `{key}`", self.place) }
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// Takes a key out.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        self.keys.remove(key)
    }

    /// Takes text that is not empty.
    pub(crate) fn text(&mut self, key: &str, problems: &mut Problems) -> Option<String> {
        match self.take(key)? {
            Value::String(text) if !text.is_empty() => Some(text),
            _ => {
                problems.at(self.place(key), "has to be text that is not empty");
                None
            }
        }
    }

    /// Takes a whole number from 0.
    pub(crate) fn number(&mut self, key: &str, problems: &mut Problems) -> Option<u64> {
        let value = self.take(key)?;
        if value.as_u64().is_none() {
            problems.at(self.place(key), "has to be a whole number, 0 or more");
        }
        value.as_u64()
    }

    /// Takes a list.
    pub(crate) fn list(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<Value>> {
        if let Value::Array(items) = self.take(key)? {
            return Some(items);
        }
        problems.at(self.place(key), "has to be a list");
        None
    }

    /// Takes a list of texts, each given once.
    pub(crate) fn texts(&mut self, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
        let items = self.list(key, problems)?;
        let mut texts: Vec<String> = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Value::String(text) if texts.contains(&text) => {
                    problems.at(self.place(key), format!("`{}` is listed twice", crate::untrusted::shown(&text, 80)));
                }
                Value::String(text) if !text.is_empty() => texts.push(text),
                _ => problems.at(self.place(key), "has to hold texts that are not empty"),
            }
        }
        Some(texts)
    }

    /// Takes an object.
    pub(crate) fn table(&mut self, key: &str, problems: &mut Problems) -> Option<Self> {
        let value = self.take(key)?;
        Self::new(self.place(key), value, problems)
    }

    /// All entries, for an object whose keys are names.
    pub(crate) fn into_entries(self) -> Map<String, Value> {
        self.keys
    }

    /// Checks the version, which every file carries.
    pub(crate) fn version_one(&mut self, problems: &mut Problems) {
        match self.take("version") {
            Some(version) if version.as_u64() == Some(1) => {}
            Some(_) => problems.at("key `version`", "this server reads version 1"),
            None => problems.at("key `version`", "is missing; write 1"),
        }
    }

    /// Reports every key that nothing took.
    pub(crate) fn finish(self, known: &[&str], problems: &mut Problems) {
        for key in self.keys.keys() {
            let shown = crate::untrusted::shown(key, 60);
            problems.at(self.place.clone(), format!("unknown key `{shown}`; known are {}", known.join(", ")));
        }
    }
}

/// JSON data in which no object names a key twice.
struct Unique(Value);

/// How the TOML reader hands over a date without quotes.
const TOML_DATE: &str = "$__toml_private_datetime";

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("data")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut keys = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Unique(value) = entries.next_value()?;
            if key == TOML_DATE {
                return Ok(value);
            }
            if keys.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "the key `{}` is there twice",
                    crate::untrusted::shown(&key, 60)
                )));
            }
            keys.insert(key, value);
        }
        Ok(Value::Object(keys))
    }
}
