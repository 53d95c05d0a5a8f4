//! `requests/` of the generated crate: one struct for each operation that changes something, one for
//! each shape of property string, enums for choices. All are typed views of arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::catalog::group;
use super::names::{field, type_name, unique, variant};
use super::rust::{constant, header, release, string};
use crate::model::{Key, Kind, Model, Operation, Parameter, PropertyString};
use crate::terms::{Role, Value};

const VIEW: &str = include_str!("../../templates/request.rs");

/// Names that generated types cannot have in their files.
const TAKEN: &[&str] = &[
    "BTreeMap",
    "Box",
    "Default",
    "Deserialize",
    "None",
    "Option",
    "Property",
    "Secret",
    "Self",
    "Serialize",
    "Some",
    "String",
    "Vec",
];

/// Writes them.
pub fn emit(model: &Model, files: &mut BTreeMap<String, String>) {
    let names = struct_names(model);
    let mut groups: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in model.operations.iter().filter(|operation| operation.mutates()) {
        groups.entry(group(&operation.path)).or_default().push(operation);
    }
    let mut shapes = BTreeSet::new();
    for (name, operations) in &groups {
        let views: Vec<View> = operations
            .iter()
            .filter_map(|operation| Some(View::of_operation(model, operation, names.get(operation.name.as_str())?)))
            .collect();
        shapes.extend(
            views
                .iter()
                .flat_map(|view| &view.fields)
                .filter(|member| !member.secret)
                .filter_map(|member| shapes_of(model, member.kind)),
        );
        files.insert(
            format!("generated/src/requests/{name}.rs"),
            file(model, &format!("Requests of `{name}`."), &views),
        );
    }
    files.insert("generated/src/requests/property_strings.rs".to_owned(), shapes_file(model, shapes));
    files.insert(
        "generated/src/requests/view.rs".to_owned(),
        format!("// Written by `cargo codegen` from codegen/templates/request.rs; edit it there.\n{VIEW}"),
    );
    files.insert("generated/src/requests/mod.rs".to_owned(), index_file(model, groups.keys()));
}

fn index_file<'a>(model: &Model, groups: impl Iterator<Item = &'a &'a str>) -> String {
    let mut text = header(model, "Typed views of the arguments of every operation that changes something.");
    text.push_str("#![allow(clippy::too_many_arguments, clippy::too_many_lines, reason = \"a constructor takes what PVE requires\")]\n\n#[macro_use]\nmod view;\n\n");
    for name in groups {
        let _ = writeln!(text, "pub mod {name};");
    }
    text.push_str("pub mod property_strings;\n\npub use view::{Property, Request, Secret};\n");
    text
}

/// `POST /nodes/{node}/qemu/{vmid}/status/start` becomes `PostNodesQemuStatusStart`; a placeholder at the end stays.
fn struct_names(model: &Model) -> BTreeMap<&str, String> {
    let mut taken = BTreeSet::new();
    let mut names = BTreeMap::new();
    for operation in model.operations.iter().filter(|operation| operation.mutates()) {
        let steps: Vec<&str> = operation.path.split('/').filter(|step| !step.is_empty()).collect();
        let kept = |(at, step): (usize, &&str)| !step.starts_with('{') || at + 1 == steps.len();
        let short: Vec<&str> =
            steps.iter().enumerate().filter(|(at, step)| kept((*at, step))).map(|(_, step)| *step).collect();
        let of = |steps: &[&str]| type_name(&format!("{} {}", operation.verb.to_lowercase(), steps.join(" ")));
        let name = if taken.contains(&of(&short)) { unique(of(&steps), &taken) } else { of(&short) };
        taken.insert(name.clone());
        names.insert(operation.name.as_str(), name);
    }
    names
}

/// A struct to be written.
struct View<'a> {
    name: String,
    docs: Vec<String>,
    fields: Vec<Member<'a>>,
    tie: String,
}

/// A field to be written.
struct Member<'a> {
    name: &'a str,
    kind: &'a Kind,
    required: bool,
    indexed: bool,
    secret: bool,
    docs: Vec<String>,
}

impl<'a> View<'a> {
    fn of_operation(model: &Model, operation: &'a Operation, name: &str) -> Self {
        let member = |parameter: &'a Parameter| Member {
            name: &parameter.name,
            kind: &parameter.kind,
            required: parameter.required,
            indexed: parameter.index.is_some(),
            secret: parameter.role == Role::Secret,
            docs: about(model, parameter),
        };
        Self {
            name: name.to_owned(),
            docs: vec![format!("`{}`: {}.", operation.name, escaped(operation.keys.summary.trim_end_matches('.')))],
            fields: operation.params.iter().filter(|parameter| parameter.role != Role::Digest).map(member).collect(),
            tie: format!("view!({name} = {});", string(&operation.name)),
        }
    }

    fn of_shape(name: &'a str, shape: &'a PropertyString) -> Self {
        let member = |(name, key): (&'a String, &'a Key)| {
            let kind = key.kind.as_ref()?;
            let mut facts = facts(kind);
            if key.is_default {
                facts.push_str(" May stand without its key.");
            }
            Some(Member {
                name,
                kind,
                required: key.required,
                indexed: false,
                secret: key.role == Role::Secret,
                docs: vec![facts],
            })
        };
        let used = shape.used_by.first().map(String::as_str).unwrap_or_default();
        Self {
            name: name.to_owned(),
            docs: vec![format!("The property string of `{used}`.")],
            fields: shape.keys.iter().filter_map(member).collect(),
            tie: format!("shape!({name} = {});", constant(name)),
        }
    }

    fn text(&self, types: &Types) -> String {
        let mut taken = BTreeSet::new();
        let mut fields = String::new();
        let (mut arguments, mut values) = (Vec::new(), Vec::new());
        for member in &self.fields {
            let name = unique(field(member.name), &taken);
            taken.insert(name.clone());
            let of = if member.secret { secret(member.kind) } else { types.of(member.kind) };
            let (of, empty) = match member {
                Member { indexed: true, .. } => (format!("BTreeMap<u16, {of}>"), Some("BTreeMap::new()")),
                Member { required: false, .. } => (format!("Option<{of}>"), Some("None")),
                _ => (of, None),
            };
            for line in &member.docs {
                let _ = writeln!(fields, "    {}", format!("/// {line}").trim_end());
            }
            let mut serde = Vec::new();
            if name.trim_start_matches("r#") != member.name {
                serde.push(format!("rename = {}", string(member.name)));
            }
            if member.indexed {
                serde.push("default, skip_serializing_if = \"BTreeMap::is_empty\"".to_owned());
            } else if !member.required {
                serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
            }
            if !serde.is_empty() {
                let _ = writeln!(fields, "    #[serde({})]", serde.join(", "));
            }
            let _ = writeln!(fields, "    pub {name}: {of},");
            if let Some(empty) = empty {
                values.push(format!("{name}: {empty}"));
            } else {
                arguments.push(format!("{name}: {of}"));
                values.push(name);
            }
        }
        let docs = self.docs.iter().fold(String::new(), |docs, line| docs + "/// " + line + "\n");
        let name = &self.name;
        let default = if arguments.is_empty() { "Default, " } else { "" };
        let mut text = format!(
            "{docs}#[derive(Clone, Debug, {default}PartialEq, Serialize, Deserialize)]\n#[serde(deny_unknown_fields)]\npub struct {name} {{\n{fields}}}\n\n"
        );
        if !arguments.is_empty() {
            let _ = write!(
                text,
                "impl {name} {{\n    /// With what PVE requires.\n    pub const fn new({}) -> Self {{\n        Self {{ {} }}\n    }}\n}}\n\n",
                arguments.join(", "),
                values.join(", ")
            );
        }
        let _ = write!(text, "{}\n\n", self.tie);
        text
    }
}

fn file(model: &Model, about: &str, views: &[View]) -> String {
    let types = Types { model, choices: choice_names(views) };
    let mut body = String::new();
    for view in views {
        body.push_str(&view.text(&types));
    }
    for (choices, name) in by_name(&types.choices) {
        body.push_str(&enumeration(name, choices));
    }
    let mut text = header(model, about);
    if body.contains("BTreeMap<") {
        text.push_str("use std::collections::BTreeMap;\n\n");
    }
    text.push_str("use serde::{Deserialize, Serialize};\n\n");
    let uses = |name: &str| {
        body.split(|character: char| !character.is_alphanumeric() && character != '_').any(|word| word == name)
    };
    for name in ["Property", "Secret", "property_strings"] {
        if uses(name) {
            let _ = writeln!(text, "use super::{name};");
        }
    }
    text.push('\n');
    text + body.trim_end() + "\n"
}

fn shapes_file<'a>(model: &'a Model, mut shapes: BTreeSet<&'a str>) -> String {
    loop {
        let keys =
            shapes.iter().filter_map(|name| model.property_strings.get(*name)).flat_map(|shape| shape.keys.values());
        let inside: Vec<&str> =
            keys.filter_map(|key| key.kind.as_ref()).filter_map(|kind| shapes_of(model, kind)).collect();
        let before = shapes.len();
        shapes.extend(inside);
        if shapes.len() == before {
            break;
        }
    }
    let views: Vec<View> =
        shapes.iter().filter_map(|name| Some(View::of_shape(name, model.property_strings.get(*name)?))).collect();
    file(model, "Property strings by their keys; other spellings of a key are left out.", &views)
}

/// The shape of a property string whose keys are known.
fn shapes_of<'a>(model: &Model, kind: &'a Kind) -> Option<&'a str> {
    match kind {
        Kind::Property(name) => {
            model.property_strings.get(name).filter(|shape| !shape.keys.is_empty()).map(|_| name.as_str())
        }
        Kind::List(element) | Kind::Array(element) => shapes_of(model, element),
        _ => None,
    }
}

/// Lists of choices are types by their parameter's name, and by the struct's too where a name has several lists.
fn choice_names<'a>(views: &'a [View]) -> BTreeMap<&'a [String], String> {
    let mut users: BTreeMap<&[String], (String, String)> = BTreeMap::new();
    for view in views {
        for member in view.fields.iter().filter(|member| !member.secret) {
            if let Some(choices) = choices_of(member.kind) {
                let name = type_name(member.name.trim_end_matches("[n]"));
                users.entry(choices).or_insert_with(|| (name.clone(), format!("{}{name}", view.name)));
            }
        }
    }
    let mut taken: BTreeSet<String> =
        TAKEN.iter().map(|name| (*name).to_owned()).chain(views.iter().map(|view| view.name.clone())).collect();
    let alone = |name: &str| users.values().filter(|(other, _)| other == name).count() == 1;
    let mut names = BTreeMap::new();
    for (choices, (short, long)) in &users {
        let name = if alone(short) && !taken.contains(short) { short.clone() } else { unique(long.clone(), &taken) };
        taken.insert(name.clone());
        names.insert(*choices, name);
    }
    names
}

fn choices_of(kind: &Kind) -> Option<&[String]> {
    match kind {
        Kind::Choice(choices) => Some(choices),
        Kind::List(element) | Kind::Array(element) => choices_of(element),
        _ => None,
    }
}

fn by_name<'a, 'b>(names: &'a BTreeMap<&'b [String], String>) -> Vec<(&'b [String], &'a str)> {
    let mut sorted: Vec<_> = names.iter().map(|(choices, name)| (*choices, name.as_str())).collect();
    sorted.sort_by_key(|(_, name)| *name);
    sorted
}

fn enumeration(name: &str, choices: &[String]) -> String {
    let mut taken = BTreeSet::new();
    let mut text = format!("choices! {{\n    /// The values of a choice.\n    {name} {{\n");
    for choice in choices {
        let variant = unique(variant(choice), &taken);
        let _ = writeln!(text, "        {variant} = {},", string(choice));
        taken.insert(variant);
    }
    text.push_str("    }\n}\n\n");
    text
}

/// What types of Rust are chosen by.
struct Types<'a> {
    model: &'a Model,
    choices: BTreeMap<&'a [String], String>,
}

impl Types<'_> {
    fn of(&self, kind: &Kind) -> String {
        match kind {
            Kind::Boolean => "bool".to_owned(),
            Kind::Integer(..) => "i64".to_owned(),
            Kind::Number(..) => "f64".to_owned(),
            Kind::Text { value: Value::Vmid, .. } => "u32".to_owned(),
            Kind::Choice(of) => self.choices.get(of.as_slice()).map_or("String", String::as_str).to_owned(),
            Kind::List(element) | Kind::Array(element) => format!("Vec<{}>", self.of(element)),
            // One whose grammar nobody gives is passed on as it is.
            Kind::Property(_) => shapes_of(self.model, kind)
                .map_or_else(|| "String".to_owned(), |name| format!("Property<property_strings::{name}>")),
            Kind::Text { .. } => "String".to_owned(),
        }
    }
}

/// Also of a secret property string: as PVE writes it.
fn secret(kind: &Kind) -> String {
    match kind {
        Kind::List(element) | Kind::Array(element) => format!("Vec<{}>", secret(element)),
        _ => "Secret".to_owned(),
    }
}

fn about(model: &Model, parameter: &Parameter) -> Vec<String> {
    let mut text = facts(&parameter.kind);
    if let Some((first, last)) = parameter.index {
        let _ = write!(text, " Numbered {first} to {last}.");
    }
    if let Some(default) = parameter.default.as_ref().filter(|default| !default.contains('\n')) {
        let _ = write!(text, " PVE's default: `{default}`.");
    }
    if let Some(other) = &parameter.requires {
        let _ = write!(text, " Goes with `{other}`.");
    }
    if let Some((other, values)) = &parameter.only_with {
        let _ = write!(
            text,
            " Only where `{other}` is {}.",
            values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ")
        );
    }
    if let Some(first) = model.releases.get(parameter.since).filter(|_| parameter.since > 0) {
        let _ = write!(text, " Since {first} ([`crate::terms::Release::{}`]).", release(first));
    }
    match &parameter.words {
        Some(words) => vec![escaped(&words.replace('\n', " ")), String::new(), text],
        None => vec![text],
    }
}

fn facts(kind: &Kind) -> String {
    fn range<T: std::fmt::Display>(least: Option<T>, most: Option<T>, unit: &str) -> String {
        match (least, most) {
            (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
            (Some(least), None) => format!(", at least {least}{unit}"),
            (None, Some(most)) => format!(", at most {most}{unit}"),
            (None, None) => String::new(),
        }
    }
    match kind {
        Kind::Boolean => "A switch.".to_owned(),
        Kind::Integer(least, most) => format!("A whole number{}.", range(*least, *most, "")),
        Kind::Number(least, most) => format!("A number{}.", range(*least, *most, "")),
        Kind::Text { value: Value::Plain, min_length, max_length, .. } => {
            format!("Text{}.", range(*min_length, *max_length, " characters"))
        }
        Kind::Text { value, min_length, max_length, .. } => {
            format!("Text of the form {}{}.", value.word(), range(*min_length, *max_length, " characters"))
        }
        Kind::Choice(_) => "A choice.".to_owned(),
        Kind::List(element) | Kind::Array(element) => format!("Several; each: {}", lowered(&facts(element))),
        Kind::Property(_) => "A property string.".to_owned(),
    }
}

fn lowered(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_lowercase().chain(characters).collect()).unwrap_or_default()
}

/// Brackets would be links in the documentation, angles HTML.
fn escaped(text: &str) -> String {
    text.replace('[', "\\[").replace(']', "\\]").replace('<', "\\<").replace('>', "\\>")
}
