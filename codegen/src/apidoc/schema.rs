//! The schema of one value: a parameter, a key of a property string, a part of an answer.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::reader::{PROSE, Reader, describe};

/// What PVE's schema language calls `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `boolean`: 0 or 1
    Boolean,
    /// `number`
    Number,
    /// `array`
    Array,
    /// `object`
    Object,
    /// `null`
    Null,
    /// `any`
    Any,
}

impl Kind {
    /// The word that the apidoc uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::Array => "array",
            Self::Object => "object",
            Self::Null => "null",
            Self::Any => "any",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::String, Self::Integer, Self::Boolean, Self::Number, Self::Array, Self::Object, Self::Null, Self::Any]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// The grammar of a string.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// A name of PVE's format registry, which the apidoc does not contain.
    Named(String),
    /// A property string with these keys.
    Nested(BTreeMap<String, Schema>),
}

/// Whether an object may have properties that are not described.
#[derive(Clone, Debug, PartialEq)]
pub enum Additional {
    /// No.
    Denied,
    /// Yes.
    Allowed,
    /// Yes, and they look like this.
    Schema(Box<Schema>),
}

/// Where the elements of a listing are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The relation; always `child` so far.
    pub rel: String,
    /// A template over the element's properties.
    pub href: String,
}

/// The schema of one value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Its type, where the apidoc says it.
    pub kind: Option<Kind>,
    /// Its grammar.
    pub format: Option<Format>,
    /// An object's properties.
    pub properties: BTreeMap<String, Schema>,
    /// An array's elements.
    pub items: Option<Box<Schema>>,
    /// Whether there may be more properties; PVE takes absence for yes.
    pub additional_properties: Option<Additional>,
    /// As written; see [`Schema::required`].
    pub optional: Option<bool>,
    /// As written: often documentation rather than a value of the type.
    pub default: Option<Value>,
    /// Smallest value.
    pub minimum: Option<Number>,
    /// Largest value.
    pub maximum: Option<Number>,
    /// Shortest text.
    pub min_length: Option<u64>,
    /// Longest text.
    pub max_length: Option<u64>,
    /// A Perl pattern for the whole value.
    pub pattern: Option<String>,
    /// The values there are.
    pub enum_values: Option<Vec<String>>,
    /// The grammar in words, where it cannot be derived from the rest.
    pub typetext: Option<String>,
    /// This key is another spelling of that one.
    pub alias: Option<String>,
    /// With `alias`: this key's name is the value of that one.
    pub key_alias: Option<String>,
    /// In a property string, the key that may be given without `key=`.
    pub default_key: bool,
    /// Another parameter that has to be given with this one.
    pub requires: Option<String>,
    /// How PVE's tools print the value (`bytes`, `timestamp`, ...).
    pub renderer: Option<String>,
    /// Where the elements of a listing are found.
    pub links: Vec<Link>,
    /// Valid only where the property named by `type_property` has one of these values. Empty: always.
    pub instance_types: Vec<String>,
    /// The property that `instance_types` speaks about.
    pub type_property: Option<String>,
    /// Variants that differ by `instance_types`.
    pub one_of: Vec<Schema>,
}

impl Schema {
    /// Whether the value has to be given: `optional` says so; a wrapper that has only variants is
    /// required only if every one of them is, and another spelling of a key never is.
    pub fn required(&self) -> bool {
        if self.alias.is_some() {
            return false;
        }
        match self.optional {
            Some(optional) => !optional,
            None => self.one_of.iter().all(Schema::required),
        }
    }
}

impl Reader {
    /// A schema that stands for itself.
    pub(super) fn schema(&mut self, value: &Value) -> Schema {
        self.schema_in(value, None)
    }

    /// A schema; `variant_of` is the type property of the `oneOf` it stands in.
    fn schema_in(&mut self, value: &Value, variant_of: Option<&str>) -> Schema {
        let mut schema = Schema::default();
        let Some(object) = self.object(value) else { return schema };
        for (key, value) in object {
            self.at(key, |reader| reader.key(&mut schema, key, value));
        }
        for (key, value) in object {
            let typo = ["min", "max"].contains(&key.as_str()) && value.is_number();
            if !typo && !KEYS.contains(&key.as_str()) {
                self.unread(key, value, &PROSE);
            }
        }
        if schema.type_property.is_none() {
            schema.type_property = variant_of.filter(|_| !schema.instance_types.is_empty()).map(str::to_owned);
        }
        self.variants(&mut schema, object);
        if schema.type_property.is_none() && !schema.instance_types.is_empty() {
            self.problem("has `instance-types`, but no `type-property` says of what");
        }
        if schema.key_alias.is_some() && schema.alias.is_none() {
            self.problem("has `keyAlias` without `alias`");
        }
        schema
    }

    fn key(&mut self, schema: &mut Schema, key: &str, value: &Value) {
        match key {
            "type" => schema.kind = self.kind(value),
            "format" => schema.format = self.format(value),
            "properties" => schema.properties = self.schemas(value),
            "items" => schema.items = Some(Box::new(self.schema(value))),
            "additionalProperties" => schema.additional_properties = self.additional(value),
            "optional" => schema.optional = self.flag(value),
            "default" => match value {
                Value::Null => self.defect("`default: null` is not a value"),
                Value::Array(_) | Value::Object(_) => {
                    self.problem(format!("is {}, not a single value", describe(value)));
                }
                single => schema.default = Some(single.clone()),
            },
            "minimum" => schema.minimum = self.number(value),
            "maximum" => schema.maximum = self.number(value),
            "min" | "max" if value.is_number() => self.defect(&format!("`{key}` is a typo of `{key}imum`")),
            "minLength" => schema.min_length = self.length(value),
            "maxLength" => schema.max_length = self.length(value),
            "pattern" => schema.pattern = self.text(value),
            "enum" if value.is_null() => self.defect("`enum: null` names no values"),
            "enum" => schema.enum_values = Some(self.texts(value)),
            "typetext" => schema.typetext = self.text(value),
            "alias" => schema.alias = self.text(value),
            "keyAlias" => schema.key_alias = self.text(value),
            "default_key" => schema.default_key = self.flag(value).unwrap_or_default(),
            "requires" => schema.requires = self.text(value),
            "renderer" => schema.renderer = self.text(value),
            "links" => schema.links = self.links(value),
            "instance-types" => schema.instance_types = self.texts(value),
            "type-property" => schema.type_property = self.text(value),
            // `oneOf` needs its siblings, and an unknown key is noted one step further out.
            _ => {}
        }
    }

    fn variants(&mut self, schema: &mut Schema, object: &Map<String, Value>) {
        let Some(value) = object.get("oneOf") else { return };
        let type_property = schema.type_property.clone();
        if type_property.is_none() {
            self.problem("has `oneOf` without `type-property`");
        }
        self.at("oneOf", |reader| {
            let list = reader.list(value).unwrap_or_default();
            if list.is_empty() {
                reader.problem("holds no variants");
            }
            for (index, variant) in list.iter().enumerate() {
                let variant = reader.at(index.to_string(), |reader| {
                    let variant = reader.schema_in(variant, type_property.as_deref());
                    if variant.instance_types.is_empty() {
                        reader.problem("is a variant without `instance-types`");
                    }
                    variant
                });
                schema.one_of.push(variant);
            }
        });
    }

    pub(super) fn kind(&mut self, value: &Value) -> Option<Kind> {
        let kind = value.as_str().and_then(Kind::parse);
        if kind.is_none() {
            self.problem(format!("unknown type {}", describe(value)));
        }
        kind
    }

    fn format(&mut self, value: &Value) -> Option<Format> {
        match value {
            Value::String(name) => Some(Format::Named(name.clone())),
            Value::Object(_) => Some(Format::Nested(self.schemas(value))),
            other => {
                self.problem(format!("is {}, neither the name of a format nor an object", describe(other)));
                None
            }
        }
    }

    pub(super) fn additional(&mut self, value: &Value) -> Option<Additional> {
        if value.is_object() {
            return Some(Additional::Schema(Box::new(self.schema(value))));
        }
        self.flag(value).map(|allowed| if allowed { Additional::Allowed } else { Additional::Denied })
    }

    pub(super) fn schemas(&mut self, value: &Value) -> BTreeMap<String, Schema> {
        let Some(object) = self.object(value) else { return BTreeMap::new() };
        object.iter().map(|(name, value)| (name.clone(), self.at(name, |reader| reader.schema(value)))).collect()
    }

    fn links(&mut self, value: &Value) -> Vec<Link> {
        let mut links = Vec::new();
        for (index, element) in self.list(value).unwrap_or_default().iter().enumerate() {
            self.at(index.to_string(), |reader| {
                let Some(object) = reader.object(element) else { return };
                for key in object.keys().filter(|key| !["rel", "href"].contains(&key.as_str())) {
                    reader.problem(format!("unknown key `{key}`"));
                }
                let rel = reader.required(object, "rel").and_then(|value| reader.text(value));
                let href = reader.required(object, "href").and_then(|value| reader.text(value));
                if let (Some(rel), Some(href)) = (rel, href) {
                    links.push(Link { rel, href });
                }
            });
        }
        links
    }
}

/// The keys of a schema that are read.
const KEYS: [&str; 23] = [
    "type",
    "format",
    "properties",
    "items",
    "additionalProperties",
    "optional",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "enum",
    "typetext",
    "alias",
    "keyAlias",
    "default_key",
    "requires",
    "renderer",
    "links",
    "instance-types",
    "type-property",
    "oneOf",
];
