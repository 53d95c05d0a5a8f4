//! Single values of a schema. Numbers and switches may be written as strings, as PVE's Perl
//! sometimes does; nothing else is lenient.

use serde_json::{Number, Value};

use super::reader::{Reader, describe};

impl Reader {
    /// A text.
    pub(super) fn text(&mut self, value: &Value) -> Option<String> {
        let text = value.as_str();
        if text.is_none() {
            self.problem(format!("is {}, not a text", describe(value)));
        }
        text.map(str::to_owned)
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, value: &Value) -> Vec<String> {
        let list = self.list(value).unwrap_or_default();
        list.iter()
            .enumerate()
            .filter_map(|(index, element)| self.at(index.to_string(), |reader| reader.text(element)))
            .collect()
    }

    /// A switch: 0 or 1.
    pub(super) fn flag(&mut self, value: &Value) -> Option<bool> {
        let flag = match value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        match flag {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => {
                self.problem(format!("is {}, not 0 or 1", describe(value)));
                None
            }
        }
    }

    /// A number, kept as exactly as it is written.
    pub(super) fn number(&mut self, value: &Value) -> Option<Number> {
        let number = match value {
            Value::Number(number) => Some(number.clone()),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.problem(format!("is {}, not a number", describe(value)));
        }
        number
    }

    /// A length.
    pub(super) fn length(&mut self, value: &Value) -> Option<u64> {
        let length = self.number(value)?.as_u64();
        if length.is_none() {
            self.problem(format!("is {}, not a length", describe(value)));
        }
        length
    }
}
