//! Parameters that are composed of parts: `allOf` and `oneOf` at their top, as HA rules have them
//! from pve-manager 9.2.11 on.
//!
//! They are flattened, so that nobody downstream can overlook a part: all properties of all parts
//! in one map. What stands in some variants only keeps the condition (`type_property`,
//! `instance_types`), and is required only if every variant requires it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::reader::{PROSE, Reader};
use super::schema::{Additional, Kind, Schema};

/// Keys of plain parameters; anything else there is a shape that nobody has looked at.
const PLAIN: [&str; 3] = ["type", "properties", "additionalProperties"];

type Properties = BTreeMap<String, Schema>;

#[derive(Default)]
struct Part {
    properties: Properties,
    additional: Option<Additional>,
    instance_types: Vec<String>,
}

impl Reader {
    /// The value of `parameters`.
    pub(super) fn parameters(&mut self, value: &Value) -> Schema {
        let Some(object) = self.object(value) else { return Schema::default() };
        if object.contains_key("allOf") || object.contains_key("oneOf") {
            let part = self.part(object, false);
            return Schema {
                kind: Some(Kind::Object),
                properties: part.properties,
                additional_properties: part.additional,
                ..Schema::default()
            };
        }
        let schema = self.schema(value);
        for key in object.keys() {
            if !PLAIN.contains(&key.as_str()) && !PROSE.contains(&key.as_str()) {
                self.problem(format!("`{key}` is not known at the top of parameters"));
            }
        }
        self.object_kind(schema.kind);
        schema
    }

    fn object_kind(&mut self, kind: Option<Kind>) {
        if let Some(kind) = kind.filter(|kind| *kind != Kind::Object) {
            self.problem(format!("is of type {}, not object", kind.as_str()));
        }
    }

    /// One part; only variants may have instance types.
    fn part(&mut self, object: &Map<String, Value>, variant: bool) -> Part {
        let mut part = Part::default();
        for (key, value) in object {
            match key.as_str() {
                "type" => {
                    let kind = self.at("type", |reader| reader.kind(value));
                    self.object_kind(kind);
                }
                "properties" => part.properties = self.at("properties", |reader| reader.schemas(value)),
                "additionalProperties" => part.additional = self.at(key, |reader| reader.additional(value)),
                "instance-types" if variant => part.instance_types = self.at(key, |reader| reader.texts(value)),
                "instance-type" if variant => part.instance_types.extend(self.at(key, |reader| reader.text(value))),
                "allOf" | "oneOf" => {}
                "type-property" | "type-property-schema" if object.contains_key("oneOf") => {}
                _ => self.unread(key, value, &PROSE),
            }
        }
        if let Some(value) = object.get("allOf") {
            self.at("allOf", |reader| {
                for inner in reader.parts(value, false) {
                    part.take(reader, inner);
                }
            });
        }
        if let Some(value) = object.get("oneOf") {
            let inner = self.variants_of(object, value);
            part.take(self, inner);
        }
        part
    }

    fn parts(&mut self, value: &Value, variant: bool) -> Vec<Part> {
        let list = self.list(value).unwrap_or_default();
        if list.is_empty() {
            self.problem("holds no parts");
        }
        let mut parts = Vec::new();
        for (index, value) in list.iter().enumerate() {
            self.at(index.to_string(), |reader| {
                let Some(object) = reader.object(value) else { return };
                if !["properties", "allOf", "oneOf"].iter().any(|key| object.contains_key(*key)) {
                    reader.problem("has no `properties`");
                }
                let part = reader.part(object, variant);
                if variant && part.instance_types.is_empty() {
                    reader.problem("is a variant without `instance-types`");
                }
                parts.push(part);
            });
        }
        parts
    }

    /// All variants as one part.
    fn variants_of(&mut self, object: &Map<String, Value>, value: &Value) -> Part {
        let type_property = self.required(object, "type-property");
        let type_property = type_property.and_then(|value| self.at("type-property", |reader| reader.text(value)));
        let type_schema = object
            .get("type-property-schema")
            .map(|value| self.at("type-property-schema", |reader| reader.schema(value)));
        let variants = self.at("oneOf", |reader| reader.parts(value, true));
        let Some(type_property) = type_property else { return Part::default() };

        let total = variants.len();
        let mut additional = None;
        let mut occurrences: BTreeMap<String, Vec<Schema>> = BTreeMap::new();
        for variant in variants {
            additional = stricter(additional, variant.additional);
            for (name, mut schema) in variant.properties {
                if name != type_property {
                    if schema.type_property.is_some() {
                        self.problem(format!(
                            "`{name}` has a condition of its own inside a variant, which is not understood"
                        ));
                    }
                    schema.type_property = Some(type_property.clone());
                    schema.instance_types.clone_from(&variant.instance_types);
                }
                occurrences.entry(name).or_default().push(schema);
            }
        }
        let mut properties: Properties =
            occurrences.into_iter().filter_map(|(name, found)| Some((name, either(found, total)?))).collect();
        if let Some(schema) = type_schema {
            // It describes all variants; what a variant says about its own type is part of that.
            properties.insert(type_property, schema);
        } else if let Some(schema) = properties.get_mut(&type_property) {
            let choices = schema.one_of.iter().filter_map(|variant| variant.enum_values.clone()).flatten().collect();
            if let Some(first) = schema.one_of.first().cloned() {
                let optional = schema.optional;
                *schema = Schema { enum_values: Some(choices), optional, ..first };
            }
        } else {
            self.problem(format!("no part describes `{type_property}`, which tells the variants apart"));
        }
        Part { properties, additional, instance_types: Vec::new() }
    }
}

impl Part {
    /// Adds a part that holds as well.
    fn take(&mut self, reader: &mut Reader, other: Self) {
        self.additional = stricter(self.additional.take(), other.additional);
        for (name, schema) in other.properties {
            let Some(present) = self.properties.get_mut(&name) else {
                self.properties.insert(name, schema);
                continue;
            };
            if facts(present) != facts(&schema) {
                reader.problem(format!("`{name}` is described differently in two parts"));
            }
            present.optional = Some(!(present.required() || schema.required()));
            if present.instance_types.is_empty() || schema.instance_types.is_empty() {
                present.instance_types.clear();
                present.type_property = None;
            }
        }
    }
}

/// What a schema says besides when it applies.
fn facts(schema: &Schema) -> Schema {
    Schema { optional: None, instance_types: Vec::new(), type_property: None, ..schema.clone() }
}

/// One schema for a property that these variants have, out of so many.
fn either(found: Vec<Schema>, total: usize) -> Option<Schema> {
    let first = found.first()?;
    let optional = Some(found.len() < total || !found.iter().all(Schema::required));
    let mut instance_types: Vec<String> = Vec::new();
    for name in found.iter().flat_map(|schema| &schema.instance_types) {
        if !instance_types.contains(name) {
            instance_types.push(name.clone());
        }
    }
    if found.iter().all(|schema| facts(schema) == facts(first)) {
        return Some(Schema { optional, instance_types, ..first.clone() });
    }
    let kind = first.kind.filter(|kind| found.iter().all(|schema| schema.kind == Some(*kind)));
    Some(Schema {
        kind,
        optional,
        instance_types,
        type_property: first.type_property.clone(),
        one_of: found,
        ..Schema::default()
    })
}

/// Parts hold together, so one that denies unknown properties denies them for all.
fn stricter(one: Option<Additional>, other: Option<Additional>) -> Option<Additional> {
    if other == Some(Additional::Denied) { other } else { one.or(other) }
}
