//! Decides how a property string (`virtio=MAC,bridge=vmbr0`) is taken apart and edited. What is not edited stays
//! as it is, byte for byte, known to the catalog or not: another release or person may have written it.
//!
//! PVE splits at commas and has no quoting: no value can hold one. A part without `=` is the value of the default
//! key; a part without anything is skipped.

use super::ValueError;
use pvegate_generated::model::{Key, PropertyString};
use std::fmt;

/// A property string, and the grammar that tells its keys.
#[derive(Clone)]
pub struct Properties {
    grammar: &'static PropertyString,
    text: Box<str>,
}

/// One part of a property string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The part as it is written.
    pub written: &'a str,
    /// The key as it is written; `None`: the part has no `=`.
    pub name: Option<&'a str>,
    /// The key that is meant, whatever its spelling; `None`: there is none, or the part is not well-formed.
    pub key: Option<&'a str>,
    /// Its value.
    pub value: &'a str,
    /// `virtio=MAC` gives `macaddr`, and its spelling gives `model`: the second key. Its value is the name.
    pub also: Option<&'static str>,
}

impl Properties {
    /// Takes any text of one line.
    pub fn parse(grammar: &'static PropertyString, text: &str) -> Result<Self, ValueError> {
        if text.chars().any(char::is_control) {
            return Err(ValueError::new("a property string", text, "`key=value,key=value` without control characters"));
        }
        Ok(Self { grammar, text: text.into() })
    }

    /// The text, unchanged but for what was edited.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it is made of, in its order.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.text.split(',').filter_map(|written| part(self.grammar, written))
    }

    /// The value of a key, under whichever spelling it stands.
    pub fn get(&self, key: &str) -> Option<&str> {
        let key = self.meant(key);
        self.parts().find_map(|part| match part {
            Part { key: Some(found), value, .. } if found == key => Some(value),
            Part { also: Some(found), name, .. } if found == key => name,
            _ => None,
        })
    }

    /// The elements of a value that is a list (`order=scsi0;net0`).
    pub fn list(&self, key: &str) -> impl Iterator<Item = &str> {
        self.get(key).into_iter().flat_map(|value| value.split(';')).filter(|element| !element.is_empty())
    }

    /// Gives a key this value: where it stands, in the spelling that it has there; at the end where it is new.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ValueError> {
        if key.trim().is_empty()
            || key.chars().any(|character| matches!(character, ',' | '=') || character.is_control())
        {
            return Err(ValueError::new("a key of a property string", key, "not empty, without `,` and `=`"));
        }
        if value.trim().is_empty() || value.chars().any(|character| character == ',' || character.is_control()) {
            return Err(ValueError::new("a value in a property string", value, "not empty, without commas"));
        }
        if let Some(Key { alias: Some(alias), key_alias: Some(also), .. }) = find(self.grammar, key) {
            self.put(also, key);
            self.put(alias, value);
        } else {
            let key = self.meant(key).to_owned();
            self.put(&key, value);
        }
        Ok(())
    }

    /// Takes a key out. Whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        let key = self.meant(key).to_owned();
        let mut found = false;
        let rest: Vec<String> = self
            .text
            .split(',')
            .filter_map(|written| {
                let kept = match part(self.grammar, written) {
                    Some(Part { key: Some(own), also, name, .. }) if own == key => {
                        // What the spelling says besides stays.
                        Some(also.zip(name).map(|(also, name)| self.write(also, name)))
                    }
                    Some(Part { key: Some(own), value, also: Some(also), .. }) if also == key => {
                        Some(Some(format!("{own}={value}")))
                    }
                    _ => None,
                };
                found |= kept.is_some();
                kept.unwrap_or_else(|| Some(written.to_owned()))
            })
            .collect();
        self.text = rest.join(",").into();
        found
    }

    fn put(&mut self, key: &str, value: &str) {
        let mut done = false;
        let mut parts: Vec<String> = self
            .text
            .split(',')
            .map(|written| match part(self.grammar, written).and_then(|part| self.changed(part, key, value)) {
                Some(changed) if !done => {
                    done = true;
                    changed
                }
                _ => written.to_owned(),
            })
            .collect();
        if !done {
            if self.text.is_empty() {
                parts.clear();
            }
            parts.push(format!("{key}={value}"));
        }
        self.text = parts.join(",").into();
    }

    /// The part with the new value, if it is the one that has the key.
    fn changed(&self, part: Part<'_>, key: &str, value: &str) -> Option<String> {
        match part {
            Part { key: Some(own), name, .. } if own == key => {
                Some(name.map_or_else(|| self.write(key, value), |name| format!("{name}={value}")))
            }
            Part { key: Some(own), value: other, also: Some(also), .. } if also == key => {
                let spells = |key: &Key| key.name == value && key.alias == Some(own) && key.key_alias == Some(also);
                let spelled = self.grammar.keys.iter().any(spells);
                Some(if spelled { format!("{value}={other}") } else { format!("{also}={value},{own}={other}") })
            }
            _ => None,
        }
    }

    /// A part of its own: bare where the key is the default one.
    fn write(&self, key: &str, value: &str) -> String {
        let bare = self.grammar.default_key == Some(key) && !value.contains('=');
        if bare { value.to_owned() } else { format!("{key}={value}") }
    }

    /// The key that another spelling stands for.
    fn meant<'k>(&self, key: &'k str) -> &'k str {
        match find(self.grammar, key) {
            Some(Key { alias: Some(alias), .. }) => alias,
            _ => key,
        }
    }
}

fn find(grammar: &'static PropertyString, name: &str) -> Option<&'static Key> {
    grammar.keys.iter().find(|key| key.name == name)
}

fn part<'a>(grammar: &'static PropertyString, written: &'a str) -> Option<Part<'a>> {
    if written.trim().is_empty() {
        return None;
    }
    Some(match written.split_once('=') {
        None => Part { written, name: None, key: grammar.default_key, value: written, also: None },
        Some((name, value)) => {
            let known = find(grammar, name);
            let key = known.and_then(|key| key.alias).unwrap_or(name);
            let well_formed = !name.is_empty() && !value.is_empty();
            let also = known.and_then(|key| key.key_alias).filter(|_| well_formed);
            Part { written, name: Some(name), key: well_formed.then_some(key), value, also }
        }
    })
}

impl PartialEq for Properties {
    fn eq(&self, other: &Self) -> bool {
        self.grammar.name == other.grammar.name && self.text == other.text
    }
}

impl Eq for Properties {}

impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Properties {
    /// A value inside may be a secret, so only keys are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts().filter_map(|part| part.key)).finish()
    }
}
