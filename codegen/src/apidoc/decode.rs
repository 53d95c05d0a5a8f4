//! From bytes to a JSON value: finds the array in `apidoc.json` or `apidoc.js`, and refuses a key
//! that stands twice in one object, since the second would silently replace the first.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::errors::{ApidocErrors, Place};

/// Decodes one JSON document; anything after it but white space is an error.
pub fn decode(text: &str, source_name: &str) -> Result<Value, ApidocErrors> {
    decode_prefix(text, source_name, true)
}

/// Decodes what a PVE host has as `apidoc.js` or documentation builds have as `apidoc.json`.
///
/// The JavaScript is not executed: the array after the first `[` is decoded as JSON and the rest,
/// which is the API viewer's code, is ignored.
pub fn decode_source(bytes: &[u8], source_name: &str) -> Result<Value, ApidocErrors> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        ApidocErrors::whole(
            source_name,
            format!("is not text: byte {offset} is not UTF-8. Give the file as it is, unpacked"),
        )
    })?;
    let start = text.trim_start();
    if start.starts_with('[') {
        return decode(text, source_name);
    }
    match start.split_once('[') {
        Some((head, _)) if is_assignment(head) => {
            let offset = text.find('[').unwrap_or_default();
            decode_prefix(text.get(offset..).unwrap_or_default(), source_name, false)
        }
        _ => Err(ApidocErrors::whole(
            source_name,
            "is neither apidoc.json (an array) nor apidoc.js (`const apiSchema = [`). \
             A PVE host has it as /usr/share/pve-docs/api-viewer/apidoc.js",
        )),
    }
}

/// Whether this is `const apiSchema =` or the like.
fn is_assignment(head: &str) -> bool {
    let words: Vec<&str> = head.split_whitespace().collect();
    matches!(words.as_slice(), ["const" | "let" | "var", name, "="]
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

fn decode_prefix(text: &str, source_name: &str, whole: bool) -> Result<Value, ApidocErrors> {
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let seed = Seed { duplicates: &duplicates, path: None };
    let decoded = seed.deserialize(&mut deserializer).and_then(|value| {
        if whole {
            deserializer.end()?;
        }
        Ok(value)
    });
    let value = decoded.map_err(|error| {
        let what = if error.is_eof() { "ends too early; the file is truncated" } else { "is not valid JSON" };
        ApidocErrors::whole(source_name, format!("{what} ({error})"))
    })?;
    let places = duplicates.into_inner();
    if places.is_empty() { Ok(value) } else { Err(ApidocErrors { source_name: source_name.to_owned(), places }) }
}

/// Where the decoder stands, as a list towards the root.
#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

#[derive(Clone, Copy)]
struct Trail<'a> {
    step: Step<'a>,
    parent: Option<&'a Trail<'a>>,
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
        }
        match self.step {
            Step::Key(key) if self.parent.is_none() => f.write_str(key),
            Step::Key(key) => write!(f, ".{key}"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    duplicates: &'a RefCell<Vec<Place>>,
    path: Option<&'a Trail<'a>>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let trail = Trail { step: Step::Index(list.len()), parent: self.path };
            let seed = Seed { duplicates: self.duplicates, path: Some(&trail) };
            match elements.next_element_seed(seed)? {
                Some(element) => list.push(element),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let trail = Trail { step: Step::Key(&key), parent: self.path };
            let seed = Seed { duplicates: self.duplicates, path: Some(&trail) };
            let value = entries.next_value_seed(seed)?;
            if map.contains_key(&key) {
                let place = Place {
                    operation: String::new(),
                    path: trail.to_string(),
                    problem: "stands twice in one object".to_owned(),
                };
                self.duplicates.borrow_mut().push(place);
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
