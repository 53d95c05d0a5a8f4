//! Property strings as arguments: `key=value,key=value`, with one key that may be given bare.
//! A caller may give an object instead. The text that was checked is the text that is sent.

use pvegate_generated::model::{Key, PropertyString};
use serde_json::{Map, Value as Json};

use super::decode::check_key;
use crate::untrusted::shown;

/// A checked property string.
#[derive(Clone, PartialEq, Eq)]
pub struct PropertyText {
    text: Box<str>,
    parts: Vec<(&'static str, Box<str>)>,
}

impl std::fmt::Debug for PropertyText {
    /// A value inside may be a secret, so only keys are shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|(key, _)| key)).finish()
    }
}

impl PropertyText {
    /// Checks a string against its grammar. Where the apidoc has none, anything without control characters passes.
    pub fn from_text(shape: &'static PropertyString, text: &str) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("has control characters in it".to_owned());
        }
        let mut parts = Vec::new();
        if !shape.keys.is_empty() {
            for part in text.split(',').filter(|part| !part.is_empty()) {
                let (name, value) = match part.split_once('=') {
                    Some((name, value)) if find(shape, name).is_some() => (name, value),
                    Some((name, _)) if shape.default_key.is_none() || is_word(name) => {
                        return Err(format!("has the unknown key `{}`; keys are {}", shown(name, 80), keys(shape)));
                    }
                    _ => (shape.default_key.ok_or_else(|| format!("has `{}` without a key", shown(part, 80)))?, part),
                };
                push(shape, &mut parts, name, value)?;
            }
            check_required(shape, &parts)?;
        }
        Ok(Self { text: text.into(), parts })
    }

    /// Writes an object as a property string, and checks it.
    pub fn from_object(shape: &'static PropertyString, object: &Map<String, Json>) -> Result<Self, String> {
        if shape.keys.is_empty() {
            return Err("has to be a text: the grammar of this property string is not known".to_owned());
        }
        let mut pieces = Vec::new();
        for (name, value) in object {
            let value = match value {
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
            if value.contains(',') || value.is_empty() {
                return Err(format!("key `{}` is empty or has a comma, which would end it", shown(name, 80)));
            }
            let is_default = shape.default_key == Some(name.as_str());
            // PVE takes the bare key only at the front for some of its formats.
            if is_default { pieces.insert(0, value) } else { pieces.push(format!("{name}={value}")) }
        }
        Self::from_text(shape, &pieces.join(","))
    }

    /// The string as it is sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value of a key, under whichever spelling it was given.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.parts.iter().find(|(name, _)| *name == key).map(|(_, value)| &**value)
    }
}

fn find(shape: &'static PropertyString, name: &str) -> Option<&'static Key> {
    shape.keys.iter().find(|key| key.name == name)
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn keys(shape: &PropertyString) -> String {
    shape.keys.iter().filter(|key| key.alias.is_none()).map(|key| key.name).collect::<Vec<_>>().join(", ")
}

fn push(
    shape: &'static PropertyString,
    parts: &mut Vec<(&'static str, Box<str>)>,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let Some(given) = find(shape, name) else { return Err(format!("has the unknown key `{}`", shown(name, 80))) };
    // `virtio=MAC` says that the model is virtio, and gives the MAC.
    if let Some(key) = given.key_alias {
        put(parts, find(shape, key).map_or(key, |key| key.name), given.name)?;
    }
    let key = given.alias.and_then(|alias| find(shape, alias)).unwrap_or(given);
    check_key(key, value).map_err(|problem| format!("key `{name}` {problem}"))?;
    put(parts, key.name, value)
}

fn put(parts: &mut Vec<(&'static str, Box<str>)>, key: &'static str, value: &str) -> Result<(), String> {
    if parts.iter().any(|(known, _)| *known == key) {
        return Err(format!("gives `{key}` twice"));
    }
    parts.push((key, value.into()));
    Ok(())
}

fn check_required(shape: &PropertyString, parts: &[(&'static str, Box<str>)]) -> Result<(), String> {
    let missing: Vec<&str> = shape
        .keys
        .iter()
        .filter(|key| key.required && !parts.iter().any(|(known, _)| *known == key.name))
        .map(|key| key.name)
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("lacks {}", missing.join(", "))) }
}

/// How PVE reads a boolean inside a property string.
pub(super) fn is_boolean(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "1" | "0" | "on" | "off" | "yes" | "no" | "true" | "false")
}
