// Written by `cargo codegen` from codegen/templates/request.rs; edit it there.
//! What all request views share: how they become arguments, secrets that do not print, property strings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::catalog;
use crate::model::{Kind, Operation, PropertyString, Text};
use crate::terms::{self, Role};

/// A typed view of one operation's arguments, the path's included.
///
/// `serde` reads and writes a view with an indexed family as one key (`"net[n]": {"0": …}`);
/// [`Request::arguments`] spells the members out (`"net0": …`), which is what PVE and `Args` know.
pub trait Request: Serialize + DeserializeOwned {
    /// The operation that it calls, as `VERB /path`.
    const OPERATION: &'static str;

    /// The arguments by PVE's names. What is not given is left out.
    fn arguments(&self) -> serde_json::Result<Map<String, Value>> {
        let Value::Object(fields) = serde_json::to_value(self)? else { return Ok(Map::new()) };
        let mut arguments = Map::new();
        for (name, value) in fields {
            match (name.strip_suffix("[n]"), value) {
                (Some(family), Value::Object(members)) => {
                    arguments.extend(members.into_iter().map(|(index, value)| (format!("{family}{index}"), value)));
                }
                (_, value) => {
                    arguments.insert(name, value);
                }
            }
        }
        Ok(arguments)
    }

    /// The view of these arguments. An argument that the operation does not have is an error, and so is `digest`, which the server supplies.
    fn from_arguments(arguments: Map<String, Value>) -> serde_json::Result<Self> {
        let operation = catalog::operation(Self::OPERATION);
        let mut fields = Map::new();
        let mut families: BTreeMap<&'static str, Map<String, Value>> = BTreeMap::new();
        for (name, value) in arguments {
            let parameter = operation.and_then(|operation| operation.parameter(&name));
            match parameter.and_then(|parameter| Some((parameter.name, parameter.index_of(&name)??))) {
                Some((family, index)) => {
                    families.entry(family).or_default().insert(index.to_string(), value);
                }
                None if name.ends_with("[n]") => {
                    return Err(serde_json::Error::custom(format!(
                        "`{name}` names a family of parameters: name its members"
                    )));
                }
                None => {
                    fields.insert(name, value);
                }
            }
        }
        fields.extend(families.into_iter().map(|(family, members)| (family.to_owned(), Value::Object(members))));
        serde_json::from_value(Value::Object(fields))
    }
}

/// A password, key or token. It is sent, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps it.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The value itself, to be sent.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

/// A property string, by its keys or as PVE writes it.
#[derive(Clone, PartialEq)]
pub enum Property<T> {
    /// By its keys; sent as a JSON object.
    Keys(T),
    /// `key=value,key=value`, for example as read from a configuration.
    Written(String),
}

impl<T> From<T> for Property<T> {
    fn from(keys: T) -> Self {
        Self::Keys(keys)
    }
}

impl<T: fmt::Debug> fmt::Debug for Property<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys(keys) => keys.fmt(f),
            // A key of it may be a secret, and only `Args` can tell.
            Self::Written(_) => f.write_str("(written)"),
        }
    }
}

impl<T: Serialize> Serialize for Property<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keys(keys) => keys.serialize(serializer),
            Self::Written(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Property<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Written(text)),
            keys => serde_json::from_value(keys).map(Self::Keys).map_err(D::Error::custom),
        }
    }
}

/// Declares an enum of fixed strings: `Variant = "string"`.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`.")] $variant,)*
        }

        impl $name {
            /// All of them, in PVE's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As PVE spells it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::requests::view::one_of(deserializer, Self::ALL, |choice| choice.as_str())
            }
        }
    };
}

/// Ties a struct to its operation.
macro_rules! view {
    ($name:ident = $operation:literal) => {
        impl crate::requests::view::Request for $name {
            const OPERATION: &'static str = $operation;
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                crate::requests::view::schema_of_operation($operation)
            }
        }
    };
}

/// Ties a struct to the shape of its property string.
macro_rules! shape {
    ($name:ident = $shape:ident) => {
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                crate::requests::view::schema_of_shape(&crate::property_strings::$shape)
            }
        }
    };
}

/// Reads one of `all`; the error names what there is.
pub(crate) fn one_of<'de, D: Deserializer<'de>, T: Copy + 'static>(
    deserializer: D,
    all: &'static [T],
    as_str: fn(T) -> &'static str,
) -> Result<T, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    all.iter().copied().find(|choice| as_str(*choice) == text).ok_or_else(|| {
        let choices: Vec<&str> = all.iter().map(|choice| as_str(*choice)).collect();
        D::Error::custom(format!("`{text}` is none of {}", choices.join(", ")))
    })
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schema(json!({"type": "string", "writeOnly": true}))
    }
}

/// Schemas come from the catalog as it runs: derived ones would say the same and cost every build.
pub(crate) fn schema_of_operation(name: &str) -> schemars::Schema {
    schema(catalog::operation(name).map_or_else(|| json!(false), operation))
}

pub(crate) fn schema_of_shape(shape: &PropertyString) -> schemars::Schema {
    schema(keys(shape, &json!("object")))
}

fn schema(value: Value) -> schemars::Schema {
    schemars::Schema::try_from(value).unwrap_or_default()
}

fn operation(operation: &Operation) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in operation.params.iter().filter(|parameter| parameter.role != Role::Digest) {
        let mut value = kind(&parameter.kind);
        if parameter.index.is_some() {
            value =
                json!({"type": "object", "propertyNames": {"pattern": "^[0-9]{1,5}$"}, "additionalProperties": value});
        }
        if let (Some(value), Some(words)) = (value.as_object_mut(), parameter.words) {
            value.insert("description".to_owned(), json!(words));
        }
        if parameter.required {
            required.push(parameter.name);
        }
        properties.insert(parameter.name.to_owned(), value);
    }
    json!({"type": "object", "description": operation.summary, "properties": properties, "required": required, "additionalProperties": false})
}

fn keys(shape: &PropertyString, of: &Value) -> Value {
    let spelled: Vec<_> = shape.keys.iter().filter(|key| key.alias.is_none()).collect();
    let properties: Map<String, Value> = spelled.iter().map(|key| (key.name.to_owned(), kind(&key.kind))).collect();
    let required: Vec<&str> = spelled.iter().filter(|key| key.required).map(|key| key.name).collect();
    json!({"type": of, "properties": properties, "required": required, "additionalProperties": false})
}

fn kind(of: &Kind) -> Value {
    match of {
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Integer(least, most) => {
            bounds("integer", &[("minimum", least.map(Value::from)), ("maximum", most.map(Value::from))])
        }
        Kind::Number(least, most) => {
            bounds("number", &[("minimum", least.map(Value::from)), ("maximum", most.map(Value::from))])
        }
        Kind::Text(Text { value: terms::Value::Vmid, .. }) => {
            json!({"type": "integer", "minimum": 100, "maximum": 999_999_999})
        }
        Kind::Text(text) => bounds(
            "string",
            &[("minLength", text.min_length.map(Value::from)), ("maxLength", text.max_length.map(Value::from))],
        ),
        Kind::Choice(choices) => json!({"type": "string", "enum": choices}),
        Kind::List(element) | Kind::Array(element) => json!({"type": "array", "items": kind(element)}),
        Kind::Property(shape) if shape.keys.is_empty() => json!({"type": "string"}),
        Kind::Property(shape) => keys(shape, &json!(["object", "string"])),
    }
}

fn bounds(of: &str, bounds: &[(&str, Option<Value>)]) -> Value {
    let given = bounds.iter().filter_map(|(key, bound)| Some(((*key).to_owned(), bound.clone()?)));
    Value::Object([("type".to_owned(), json!(of))].into_iter().chain(given).collect())
}
