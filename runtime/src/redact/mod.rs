//! Decides what never leaves the server: secrets by the name they stand under, by the form they have in
//! text, and by the values that the server itself holds.
//!
//! Everything that PVE answers and every text that an error repeats goes through here. What is masked
//! reads [`HIDDEN`]; masking twice changes nothing.

mod names;
mod patterns;

#[cfg(test)]
mod tests;

use crate::values::Secret;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

pub use names::is_secret;

/// What stands where a secret stood.
pub const HIDDEN: &str = "(hidden)";

/// Shortest value of the server's own that is looked for: shorter ones would mask ordinary words.
const SHORTEST: usize = 8;

/// Whether masking works in this build; a server that could not mask must not start.
pub fn is_ready() -> bool {
    patterns::are_ready()
}

/// Masks text: assignments, headers, tickets, user information in URLs, private keys.
pub fn text(text: &str) -> Cow<'_, str> {
    patterns::mask(text)
}

/// Masks data in place, by names and forms.
pub fn value(value: &mut Value) {
    Redactor::default().value(value);
}

/// Masks by names, by forms, and by the secrets that the server holds.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: Arc<[Secret]>,
}

impl Redactor {
    /// `known` are the secrets that the server holds; wherever they turn up they are masked.
    pub fn new(known: impl IntoIterator<Item = Secret>) -> Self {
        Self { known: known.into_iter().filter(|secret| secret.expose().len() >= SHORTEST).collect() }
    }

    /// Masks text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.without_known(text) {
            Cow::Borrowed(text) => patterns::mask(text),
            Cow::Owned(text) => Cow::Owned(patterns::mask(&text).into_owned()),
        }
    }

    /// Masks data in place.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => self.items(items),
            Value::Object(entries) => self.entries(entries),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    fn entries(&self, entries: &mut Map<String, Value>) {
        let dependent = names::dependent(entries);
        for (name, value) in entries.iter_mut() {
            if names::is_secret(name) || dependent.contains(&name.as_str()) {
                hide(value);
            } else if name == "lxc" {
                raw_lxc(value);
                self.value(value);
            } else {
                self.value(value);
            }
        }
        // A secret of ours as a name would be strange, but it would leave.
        if self.known.iter().any(|secret| entries.keys().any(|name| name.contains(secret.expose()))) {
            let renamed = std::mem::take(entries)
                .into_iter()
                .map(|(name, value)| (self.without_known(&name).into_owned(), value));
            entries.extend(renamed);
        }
    }

    fn items(&self, items: &mut [Value]) {
        let mut lines = Lines::default();
        for item in items {
            match log_line(item) {
                Some(line) => lines.mask(self, line),
                None => self.value(item),
            }
        }
    }

    fn without_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = Cow::Borrowed(text);
        for secret in self.known.iter() {
            if out.contains(secret.expose()) {
                out = Cow::Owned(out.replace(secret.expose(), HIDDEN));
            }
        }
        out
    }
}

/// Masks a log line by line, however many reads it comes in: a private key in it spans several lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines {
    inside_key: bool,
}

impl Lines {
    /// Masks the next line.
    pub fn mask(&mut self, redactor: &Redactor, line: &mut String) {
        let begins = patterns::begins_private_key(line);
        let ends = patterns::ends_private_key(line);
        if self.inside_key || begins {
            HIDDEN.clone_into(line);
        } else {
            redactor.string(line);
        }
        self.inside_key = (self.inside_key || begins) && !ends;
    }
}

/// Masks whatever a secret name holds. What says only that nothing or something is there stays.
fn hide(value: &mut Value) {
    let kept = match value {
        Value::Null | Value::Bool(_) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) | Value::Number(_) => false,
    };
    if !kept {
        *value = Value::String(HIDDEN.to_owned());
    }
}

/// Raw `lxc.*` lines of a container come as pairs; any of them can hold environment or command lines.
fn raw_lxc(value: &mut Value) {
    for pair in value.as_array_mut().into_iter().flatten() {
        if let Some(given) = pair.as_array_mut().and_then(|pair| pair.get_mut(1)) {
            hide(given);
        }
    }
}

/// The text of a log line as PVE gives it (`{"n": 1, "t": "…"}`), or of a plain list of lines.
fn log_line(item: &mut Value) -> Option<&mut String> {
    match item {
        Value::String(text) => Some(text),
        Value::Object(entries) if entries.contains_key("n") => match entries.get_mut("t") {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
