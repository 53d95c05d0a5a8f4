//! From a schema of the apidoc to the type of a value: bounds, formats, lists, property strings.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::apidoc::{self, Schema};
use crate::decide::{Roles, Subject};
use crate::formats::{self, Format};
use crate::model::{Key, Kind, PropertyString};
use crate::problem::Problems;
use crate::terms::{Role, Value};

/// Collects what values refer to: patterns and shapes of property strings.
pub struct Kinds<'a> {
    patterns: Vec<String>,
    shapes: Vec<(String, PropertyString)>,
    key_roles: Roles<'a>,
}

/// Whose type is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// `VERB /path`.
    pub operation: &'a str,
    /// The parameter.
    pub parameter: &'a str,
}

impl Place<'_> {
    fn text(self) -> String {
        format!("{} {}", self.operation, self.parameter)
    }
}

impl<'a> Kinds<'a> {
    /// With the rules about keys of property strings.
    pub fn new(key_roles: Roles<'a>) -> Self {
        Self { patterns: Vec::new(), shapes: Vec::new(), key_roles }
    }

    /// The type of the values that `schema` allows. `role` decides where the format does not.
    pub fn kind(&mut self, place: Place<'_>, schema: &Schema, role: Role, problems: &mut Problems) -> Kind {
        match schema.kind {
            Some(apidoc::Kind::Boolean) => Kind::Boolean,
            // The one integer that names something: its bounds are those of the typed value.
            Some(apidoc::Kind::Integer) if schema.format == Some(apidoc::Format::Named("pve-vmid".to_owned())) => {
                Kind::Text { value: Value::Vmid, pattern: None, min_length: None, max_length: None }
            }
            Some(apidoc::Kind::Integer) => {
                Kind::Integer(whole(schema.minimum.as_ref()), whole(schema.maximum.as_ref()))
            }
            Some(apidoc::Kind::Number) => Kind::Number(real(schema.minimum.as_ref()), real(schema.maximum.as_ref())),
            Some(apidoc::Kind::Array) => Kind::Array(Box::new(self.element(place, schema, role, problems))),
            Some(apidoc::Kind::String) => {
                if let Some(pattern) = &schema.pattern
                    && let Some(why) = refused(pattern)
                {
                    problems.push(place.text(), format!("the pattern `{pattern}` is not understood ({why}): teach codegen/src/kinds.rs, or repair it in fixups.toml"));
                }
                self.string(place, schema, role, problems)
            }
            Some(other) => {
                problems.push(
                    place.text(),
                    format!("a parameter of type {other:?}: teach the generator what callers may give"),
                );
                plain()
            }
            None => {
                problems.push(place.text(), "a parameter without a type: repair it in fixups.toml");
                plain()
            }
        }
    }

    fn element(&mut self, place: Place<'_>, schema: &Schema, role: Role, problems: &mut Problems) -> Kind {
        if let Some(items) = &schema.items {
            return self.kind(place, items, role, problems);
        }
        // The variants of a `oneOf` differ in their items; what they have in common is that each is a string.
        plain()
    }

    fn string(&mut self, place: Place<'_>, schema: &Schema, role: Role, problems: &mut Problems) -> Kind {
        if let Some(choices) = &schema.enum_values {
            return Kind::Choice(choices.clone());
        }
        match &schema.format {
            Some(apidoc::Format::Nested(keys)) => Kind::Property(self.property_string(place, keys, problems)),
            Some(apidoc::Format::Named(name)) => match formats::format(name) {
                Some(Format::One(value)) => self.text(by_role(value, role), schema),
                Some(Format::Many(value)) => Kind::List(Box::new(self.text(by_role(value, role), &Schema::default()))),
                // The volume of a container's mount point has the format of the path beside it.
                Some(Format::Opaque) if role == Role::Volume => self.text(Value::Mount, schema),
                Some(Format::Opaque) => Kind::Property(self.opaque(place, name)),
                None => {
                    problems.push(
                        place.text(),
                        format!("format `{name}` is not known: register it in codegen/src/formats.rs"),
                    );
                    plain()
                }
            },
            None => {
                let value = schema.pattern.as_deref().map_or(Value::Plain, by_pattern);
                self.text(by_role(value, role), schema)
            }
        }
    }

    fn text(&mut self, value: Value, schema: &Schema) -> Kind {
        let pattern = schema.pattern.as_ref().map(|pattern| self.pattern(pattern));
        Kind::Text { value, pattern, min_length: schema.min_length, max_length: schema.max_length }
    }

    fn pattern(&mut self, perl: &str) -> usize {
        let translated = rust_pattern(perl);
        self.patterns.iter().position(|known| *known == translated).unwrap_or_else(|| {
            self.patterns.push(translated);
            self.patterns.len() - 1
        })
    }

    fn property_string(
        &mut self,
        place: Place<'_>,
        keys: &BTreeMap<String, Schema>,
        problems: &mut Problems,
    ) -> String {
        let keys = keys.iter().map(|(name, schema)| (name.clone(), self.key(place, name, schema, problems))).collect();
        self.shape(place, &shape_name(place), keys)
    }

    fn key(&mut self, place: Place<'_>, name: &str, schema: &Schema, problems: &mut Problems) -> Key {
        let format = match &schema.format {
            Some(apidoc::Format::Named(format)) => Some(format.as_str()),
            _ => None,
        };
        let roles = self.key_roles.deciding(Subject { within: place.parameter, name, format, place: "" });
        if let [(_, one), (_, other), ..] = roles.as_slice() {
            problems.push(format!("{} {name}", place.text()), format!("its role is decided twice: {one}, {other}"));
        }
        let role = roles.first().map_or(Role::Plain, |(role, _)| *role);
        let kind = schema.alias.is_none().then(|| self.kind(place, schema, role, problems));
        Key {
            kind,
            required: schema.alias.is_none() && !schema.optional.unwrap_or(false),
            is_default: schema.default_key,
            alias: schema.alias.clone(),
            key_alias: schema.key_alias.clone(),
            role,
        }
    }

    fn opaque(&mut self, place: Place<'_>, format: &str) -> String {
        self.shape(place, &camel(format), BTreeMap::new())
    }

    /// Shapes with the same keys are one; a name that another shape has gets a number.
    fn shape(&mut self, place: Place<'_>, wanted: &str, keys: BTreeMap<String, Key>) -> String {
        let alike = |known: &str, shape: &PropertyString| shape.keys == keys && (!keys.is_empty() || known == wanted);
        if let Some((name, shape)) = self.shapes.iter_mut().find(|(known, shape)| alike(known, shape)) {
            shape.used_by.push(place.text());
            return name.clone();
        }
        let taken = |name: &str| self.shapes.iter().any(|(known, _)| known == name);
        let name = (2..).map(|number| format!("{wanted}{number}")).fold_first_free(wanted.to_owned(), taken);
        self.shapes.push((name.clone(), PropertyString { keys, used_by: vec![place.text()] }));
        name
    }

    /// The collected patterns and shapes, after a report of key rules that never mattered.
    pub fn finish(self, problems: &mut Problems) -> (Vec<String>, BTreeMap<String, PropertyString>) {
        self.key_roles.finish(problems);
        (self.patterns, self.shapes.into_iter().collect())
    }
}

trait FirstFree: Iterator<Item = String> + Sized {
    fn fold_first_free(mut self, first: String, taken: impl Fn(&str) -> bool) -> String {
        let mut name = first;
        while taken(&name) {
            match self.next() {
                Some(next) => name = next,
                None => return name,
            }
        }
        name
    }
}

impl<I: Iterator<Item = String>> FirstFree for I {}

fn plain() -> Kind {
    Kind::Text { value: Value::Plain, pattern: None, min_length: None, max_length: None }
}

/// Where the format says nothing, or less than the role.
fn by_role(value: Value, role: Role) -> Value {
    match (value, role) {
        (Value::Plain | Value::ConfigId, Role::Snapshot) => Value::Snapshot,
        (Value::Plain, Role::Task) => Value::Upid,
        (Value::Plain, Role::Node | Role::NodeList) => Value::Node,
        (Value::Plain, Role::Storage) => Value::Storage,
        (Value::Plain, Role::Pool) => Value::Pool,
        (Value::Plain, Role::Volume) => Value::Volume,
        _ => value,
    }
}

fn whole(number: Option<&serde_json::Number>) -> Option<i64> {
    number.and_then(serde_json::Number::as_i64)
}

fn real(number: Option<&serde_json::Number>) -> Option<f64> {
    number.and_then(serde_json::Number::as_f64)
}

/// Grammars that the apidoc writes out as a pattern where it could name a format.
fn by_pattern(perl: &str) -> Value {
    match perl {
        r"\+?\d+(\.\d+)?[KMGT]?" => Value::Growth,
        r"^(\d+(\.\d+)?)([KMGT])?$" => Value::Size,
        _ => Value::Plain,
    }
}

/// PVE anchors its patterns itself; `(?^FLAGS:…)` is Perl's way to print a compiled one, which starts from
/// Perl's defaults.
pub fn rust_pattern(perl: &str) -> String {
    let mut parts = perl.split("(?^");
    let mut inner = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (flags, rest) = part.split_once(':').unwrap_or((part, ""));
        inner.push_str(if flags.contains('i') { "(?i:" } else { "(?:" });
        inner.push_str(rest);
    }
    // Two spellings that only Perl has: an open lower bound, and NUL as an octal escape.
    let inner = inner.replace("{,", "{0,").replace("\\0", "\\x00");
    format!("^(?:{inner})$")
}

/// Why a pattern cannot be compiled. Hundreds of parameters share a few patterns, and every join asks about all:
/// each is compiled once in a process.
fn refused(perl: &str) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    // What a thread that panicked has noted is as true as before.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = known.get(perl) {
        return why.clone();
    }
    let why = regex::Regex::new(&rust_pattern(perl))
        .err()
        .map(|error| error.to_string().lines().last().unwrap_or_default().to_owned());
    known.insert(perl.to_owned(), why.clone());
    why
}

/// `net[n]` of a VM becomes `QemuNet`, `bwlimit` of the cluster options `ClusterBwlimit`.
fn shape_name(place: Place<'_>) -> String {
    let path = place.operation;
    let owner = if path.contains("/qemu") {
        "qemu"
    } else if path.contains("/lxc") {
        "lxc"
    } else if path.contains("/sdn") {
        "sdn"
    } else if path.contains("/nodes") {
        "node"
    } else {
        "cluster"
    };
    camel(&format!("{owner}-{}", place.parameter.trim_end_matches("[n]")))
}

/// `pve-qm-boot` becomes `PveQmBoot`.
pub fn camel(text: &str) -> String {
    text.split(|character: char| !character.is_ascii_alphanumeric())
        .map(|word| {
            word.chars()
                .enumerate()
                .map(|(at, character)| if at == 0 { character.to_ascii_uppercase() } else { character })
                .collect::<String>()
        })
        .collect()
}

/// `pve-qm-boot` becomes `pve_qm_boot`, `net[n]` becomes `net_n`.
pub fn snake(text: &str) -> String {
    let mut snake = String::new();
    for character in text.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        match character.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() => snake.push(letter),
            ']' => {}
            _ if snake.ends_with('_') => {}
            _ => snake.push('_'),
        }
    }
    snake
}
