//! What changed in an operation's parameters, sorted by what it means for a call that worked before.

use std::collections::BTreeMap;

use serde_json::Number;

use crate::apidoc::{Additional, Format, Schema};

/// What a change means for callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Added,
    Removed,
    /// A call that was accepted may now be refused.
    Tightened,
    /// A call that was refused may now be accepted.
    Loosened,
    /// Means something else, or cannot be judged by a program.
    Otherwise,
}

/// One change of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) effect: Effect,
    /// The parameter, or a key inside of it (`net[n].bridge`).
    pub(super) place: String,
    pub(super) text: String,
}

/// The changes between two parameter schemas.
pub(super) fn parameters(old: &Schema, new: &Schema) -> Vec<Change> {
    let mut changes = Changes(Vec::new());
    changes.maps(&old.properties, &new.properties, "");
    changes.additional(old, new, "");
    changes.0
}

struct Changes(Vec<Change>);

impl Changes {
    fn push(&mut self, effect: Effect, place: &str, text: impl Into<String>) {
        self.0.push(Change { effect, place: place.to_owned(), text: text.into() });
    }

    fn maps(&mut self, old: &BTreeMap<String, Schema>, new: &BTreeMap<String, Schema>, parent: &str) {
        let place = |name: &str| if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
        for (name, after) in new {
            if let Some(before) = old.get(name) {
                self.schemas(before, after, &place(name));
                continue;
            }
            self.push(Effect::Added, &place(name), in_short(after));
            if after.required() {
                self.push(Effect::Tightened, &place(name), "new and required");
            }
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            self.push(Effect::Removed, &place(name), "gone");
        }
    }

    fn schemas(&mut self, old: &Schema, new: &Schema, place: &str) {
        if old.alias != new.alias || old.key_alias != new.key_alias {
            // A spelling has no type or bounds to compare.
            self.push(Effect::Otherwise, place, format!("{} -> {}", in_short(old), in_short(new)));
            return;
        }
        match (old.required(), new.required()) {
            (false, true) => self.push(Effect::Tightened, place, "now required"),
            (true, false) => self.push(Effect::Loosened, place, "now optional"),
            _ => {}
        }
        if old.kind != new.kind {
            self.push(Effect::Tightened, place, format!("type {} -> {}", kind(old), kind(new)));
        }
        self.limit(old.minimum.as_ref(), new.minimum.as_ref(), place, "minimum", 1.0);
        self.limit(old.maximum.as_ref(), new.maximum.as_ref(), place, "maximum", -1.0);
        let lengths = |length: Option<u64>| length.map(Number::from);
        self.limit(lengths(old.min_length).as_ref(), lengths(new.min_length).as_ref(), place, "minLength", 1.0);
        self.limit(lengths(old.max_length).as_ref(), lengths(new.max_length).as_ref(), place, "maxLength", -1.0);
        self.restriction(old.pattern.as_ref(), new.pattern.as_ref(), place, "pattern");
        self.restriction(old.requires.as_ref(), new.requires.as_ref(), place, "requires");
        self.choices(old.enum_values.as_deref(), new.enum_values.as_deref(), place, "value");
        self.condition(old, new, place);
        self.formats(old.format.as_ref(), new.format.as_ref(), place);
        self.additional(old, new, place);
        self.otherwise(old.default.as_ref(), new.default.as_ref(), place, "default");
        self.otherwise(old.typetext.as_ref(), new.typetext.as_ref(), place, "grammar");
        self.otherwise(old.default_key.then_some(true), new.default_key.then_some(true), place, "default_key");
        self.maps(&old.properties, &new.properties, place);
        match (&old.items, &new.items) {
            (Some(before), Some(after)) => self.schemas(before, after, &format!("{place}[]")),
            (None, Some(_)) => self.push(Effect::Tightened, place, "its elements are now described"),
            // Where variants describe them instead, those are reported.
            (Some(_), None) if new.one_of.is_empty() => {
                self.push(Effect::Loosened, place, "its elements are no longer described");
            }
            (_, None) => {}
        }
        self.variants(old, new, place);
    }

    /// A bound; `sign` is 1 where a larger one is tighter.
    fn limit(&mut self, old: Option<&Number>, new: Option<&Number>, place: &str, what: &str, sign: f64) {
        if old == new {
            return;
        }
        let value =
            |number: Option<&Number>| number.and_then(Number::as_f64).map_or(f64::NEG_INFINITY, |value| value * sign);
        let (before, after) = (value(old), value(new));
        let effect = if after > before {
            Effect::Tightened
        } else if after < before {
            Effect::Loosened
        } else {
            // Only written differently.
            return;
        };
        self.push(effect, place, format!("{what} {} -> {}", shown(old), shown(new)));
    }

    /// Something that either restricts or is absent; another one counts as tighter, which is the safe guess.
    fn restriction(&mut self, old: Option<&String>, new: Option<&String>, place: &str, what: &str) {
        if old != new {
            let effect = if new.is_some() { Effect::Tightened } else { Effect::Loosened };
            self.push(effect, place, format!("{what} {} -> {}", shown(old), shown(new)));
        }
    }

    fn choices(&mut self, old: Option<&[String]>, new: Option<&[String]>, place: &str, what: &str) {
        match (old, new) {
            (None, Some(values)) => self.push(Effect::Tightened, place, format!("only {} now", listed(values))),
            (Some(values), None) => self.push(Effect::Loosened, place, format!("no longer only {}", listed(values))),
            (Some(before), Some(after)) => {
                let missing = |from: &[String], other: &[String]| -> Vec<String> {
                    from.iter().filter(|value| !other.contains(value)).cloned().collect()
                };
                let (gone, fresh) = (missing(before, after), missing(after, before));
                if !gone.is_empty() {
                    self.push(Effect::Tightened, place, format!("{what} removed: {}", listed(&gone)));
                }
                if !fresh.is_empty() {
                    self.push(Effect::Loosened, place, format!("{what} added: {}", listed(&fresh)));
                }
            }
            (None, None) => {}
        }
    }

    /// When the parameter may be given at all.
    fn condition(&mut self, old: &Schema, new: &Schema, place: &str) {
        // Variants say it one by one.
        if !old.one_of.is_empty() || !new.one_of.is_empty() {
            return;
        }
        if old.type_property == new.type_property {
            let types = |schema: &'_ Schema| (!schema.instance_types.is_empty()).then(|| schema.instance_types.clone());
            let what = format!("with {}", new.type_property.as_deref().unwrap_or("type"));
            self.choices(types(old).as_deref(), types(new).as_deref(), place, &what);
        } else {
            self.restriction(old.type_property.as_ref(), new.type_property.as_ref(), place, "valid only by");
        }
    }

    fn formats(&mut self, old: Option<&Format>, new: Option<&Format>, place: &str) {
        match (old, new) {
            (Some(Format::Nested(before)), Some(Format::Nested(after))) => self.maps(before, after, place),
            (before, after) if before != after => {
                let effect = if after.is_some() { Effect::Tightened } else { Effect::Loosened };
                self.push(effect, place, format!("format {} -> {}", format_name(before), format_name(after)));
            }
            _ => {}
        }
    }

    fn additional(&mut self, old: &Schema, new: &Schema, place: &str) {
        let denied = |schema: &Schema| schema.additional_properties == Some(Additional::Denied);
        match (denied(old), denied(new)) {
            (false, true) => self.push(Effect::Tightened, place, "unknown ones are now refused"),
            (true, false) => self.push(Effect::Loosened, place, "unknown ones are now accepted"),
            _ => {}
        }
    }

    fn otherwise<T: PartialEq + ToString>(&mut self, old: Option<T>, new: Option<T>, place: &str, what: &str) {
        if old != new {
            self.push(Effect::Otherwise, place, format!("{what} {} -> {}", shown(old), shown(new)));
        }
    }

    fn variants(&mut self, old: &Schema, new: &Schema, place: &str) {
        let find = |schema: &Schema, types: &[String]| {
            schema.one_of.iter().find(|variant| variant.instance_types == types).cloned()
        };
        let inner = |types: &[String]| format!("{place}<{}>", types.join("|"));
        for after in &new.one_of {
            match find(old, &after.instance_types) {
                Some(before) => self.schemas(&before, after, &inner(&after.instance_types)),
                None => self.push(Effect::Added, &inner(&after.instance_types), in_short(after)),
            }
        }
        for before in &old.one_of {
            if find(new, &before.instance_types).is_none() {
                self.push(Effect::Removed, &inner(&before.instance_types), "gone");
            }
        }
    }
}

fn kind(schema: &Schema) -> &'static str {
    schema.kind.map_or("no type", |kind| kind.as_str())
}

fn in_short(schema: &Schema) -> String {
    if let Some(alias) = &schema.alias {
        return format!("another spelling of `{alias}`");
    }
    let format = match &schema.format {
        Some(Format::Named(name)) => format!(", format `{name}`"),
        Some(Format::Nested(_)) => ", a property string".to_owned(),
        None => String::new(),
    };
    let values = schema.enum_values.as_deref().map(|values| format!(", one of {}", listed(values))).unwrap_or_default();
    let required = if schema.required() { ", **required**" } else { "" };
    format!("{}{format}{values}{required}", kind(schema))
}

fn format_name(format: Option<&Format>) -> String {
    match format {
        None => "none".to_owned(),
        Some(Format::Named(name)) => format!("`{name}`"),
        Some(Format::Nested(_)) => "a property string".to_owned(),
    }
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| format!("`{}`", value.to_string()))
}

fn listed(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    quoted.join(", ")
}
