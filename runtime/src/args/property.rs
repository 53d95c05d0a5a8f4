//! Property strings as arguments: `key=value,key=value`, with one key that may be given bare.
//! A caller may give an object instead. The text that was checked is the text that is sent.

use std::fmt;

use pvegate_generated::model::{Key, PropertyString};
use serde_json::{Map, Value as Json};

use super::decode::check_key;
use crate::untrusted::shown;
use crate::values::{Part, Properties};

/// A checked property string.
#[derive(Clone, PartialEq, Eq)]
pub struct PropertyText(Properties);

impl PropertyText {
    /// Checks a string against its grammar. Where the apidoc has none, anything without control characters passes.
    pub fn from_text(shape: &'static PropertyString, text: &str) -> Result<Self, String> {
        let properties = Properties::parse(shape, text).map_err(|_| "has control characters in it".to_owned())?;
        if !shape.keys.is_empty() {
            let mut given = Vec::new();
            for part in properties.parts() {
                check_part(shape, &part, &mut given)?;
            }
            check_required(shape, &given)?;
        }
        Self::not_empty(properties)
    }

    /// Writes an object as a property string, and checks it.
    pub fn from_object(shape: &'static PropertyString, object: &Map<String, Json>) -> Result<Self, String> {
        if shape.keys.is_empty() {
            return Err("has to be a text: the grammar of this property string is not known".to_owned());
        }
        let mut pieces = Vec::new();
        for (name, value) in object {
            let value = scalar(name, value)?;
            let is_default = shape.default_key == Some(name.as_str()) && !value.contains('=');
            // PVE takes the bare key only at the front for some of its formats.
            if is_default { pieces.insert(0, value) } else { pieces.push(format!("{name}={value}")) }
        }
        Self::from_text(shape, &pieces.join(","))
    }

    /// What PVE has, with some keys changed; null takes one out. Only what is changed is checked: the rest is PVE's own,
    /// of another release perhaps, and stays as it is.
    pub fn edited(shape: &'static PropertyString, current: &str, changes: &Map<String, Json>) -> Result<Self, String> {
        let mut properties = Properties::parse(shape, current).map_err(|error| error.to_string())?;
        for (name, value) in changes {
            if value.is_null() {
                properties.remove(name);
                continue;
            }
            let value = scalar(name, value)?;
            if !shape.keys.is_empty() {
                check_value(shape, name, &value)?;
            }
            properties.set(name, &value).map_err(|error| format!("key `{}` {error}", shown(name, 80)))?;
        }
        let given: Vec<&str> = properties.parts().flat_map(|part| [part.key, part.also]).flatten().collect();
        check_required(shape, &given)?;
        Self::not_empty(properties)
    }

    fn not_empty(properties: Properties) -> Result<Self, String> {
        if properties.parts().next().is_none() {
            return Err("is empty; leave it out, or name it in `delete` to unset it".to_owned());
        }
        Ok(Self(properties))
    }

    /// The string as it is sent.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The value of a key, under whichever spelling it was given.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)
    }

    /// The elements of a value that is a list inside (`order=scsi0;net0`).
    pub fn list(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.list(key)
    }
}

impl fmt::Debug for PropertyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value of an object, as it stands in the string.
fn scalar(name: &str, value: &Json) -> Result<String, String> {
    let text = match value {
        Json::Bool(flag) => u8::from(*flag).to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => text.clone(),
        Json::Array(items) => items
            .iter()
            .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(";"),
        Json::Null | Json::Object(_) => {
            return Err(format!("key `{}` has to be a text, a number or true or false", shown(name, 80)));
        }
    };
    if text.contains(',') || text.trim().is_empty() {
        return Err(format!("key `{}` is empty or has a comma, which would end it", shown(name, 80)));
    }
    Ok(text)
}

fn find(shape: &'static PropertyString, name: &str) -> Option<&'static Key> {
    shape.keys.iter().find(|key| key.name == name)
}

fn keys(shape: &PropertyString) -> String {
    shape.keys.iter().filter(|key| key.alias.is_none()).map(|key| key.name).collect::<Vec<_>>().join(", ")
}

fn check_part(shape: &'static PropertyString, part: &Part<'_>, given: &mut Vec<&'static str>) -> Result<(), String> {
    let Some(name) = part.name.or(shape.default_key) else {
        return Err(format!("has `{}` without a key", shown(part.written, 80)));
    };
    if find(shape, name).is_some() && part.key.is_none() {
        return Err(format!("key `{name}` is empty; leave it out"));
    }
    let key = check_value(shape, name, part.value)?;
    // `virtio=MAC` says that the model is virtio, and gives the MAC.
    for key in part.also.into_iter().chain([key.name]) {
        if given.contains(&key) {
            return Err(format!("gives `{key}` twice"));
        }
        given.push(key);
    }
    Ok(())
}

/// Checks a value by the key that its name means.
fn check_value(shape: &'static PropertyString, name: &str, value: &str) -> Result<&'static Key, String> {
    let Some(spelled) = find(shape, name) else {
        return Err(format!("has the unknown key `{}`; keys are {}", shown(name, 80), keys(shape)));
    };
    let key = spelled.alias.and_then(|alias| find(shape, alias)).unwrap_or(spelled);
    check_key(key, value).map_err(|problem| format!("key `{name}` {problem}"))?;
    Ok(key)
}

fn check_required(shape: &PropertyString, given: &[&str]) -> Result<(), String> {
    let missing: Vec<&str> =
        shape.keys.iter().filter(|key| key.required && !given.contains(&key.name)).map(|key| key.name).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("lacks {}", missing.join(", "))) }
}
