//! From the JSON of a caller to checked values. Everything that is wrong is told at once.

use std::fmt;
use std::sync::OnceLock;

use pvegate_generated::model::{Kind, Operation, Parameter, Place, Text};
use pvegate_generated::patterns::PATTERNS;
use pvegate_generated::terms::{Release, Role, Value as Grammar};
use regex::Regex;
use serde_json::{Map, Value as Json};

use super::property::PropertyText;
use super::{Arg, Args, Value};
use crate::untrusted::shown;
use crate::values::{
    Cidr, CidrOrAlias, ConfigId, DiskSource, DnsName, EncodedText, Growth, Held, Iface, Mac, NodeName, NodePriority,
    PathSegment, PoolId, Secret, Size, SnapshotName, StorageId, Tag, Tags, Upid, UserId, ValueError, Vmid, VolumeId,
    encoded, list, scalar,
};

/// Largest number of elements in one list.
const LONGEST_LIST: usize = 1000;

/// Most problems that one message tells: who sends thousands of arguments gets no answer of megabytes.
const MOST_TOLD: usize = 20;

/// Arguments that an operation does not take as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the arguments of {operation} are not valid: {}", list(problems))]
pub struct InvalidArguments {
    /// The operation's name.
    pub operation: &'static str,
    /// Argument and what is wrong with it.
    pub problems: Vec<(String, String)>,
}

fn list(problems: &[(String, String)]) -> String {
    let mut told: Vec<String> =
        problems.iter().take(MOST_TOLD).map(|(name, problem)| format!("`{name}` {problem}")).collect();
    if problems.len() > MOST_TOLD {
        told.push(format!("and {} more", problems.len() - MOST_TOLD));
    }
    told.join("; ")
}

/// Decodes the arguments of a call. `release` is the cluster's: what it does not have is refused here.
pub fn decode(
    operation: &'static Operation,
    given: &Map<String, Json>,
    release: Release,
) -> Result<Args, InvalidArguments> {
    let mut problems = Vec::new();
    let mut list = Vec::new();
    for (name, json) in given {
        match argument(operation, name, json, release) {
            Ok(arg) => list.push(arg),
            Err(problem) => problems.push((shown(name, 80), problem)),
        }
    }
    fix(operation, operation.fixed, &mut list, &mut problems);
    list.sort_by_key(|arg| (position(operation, arg.parameter), arg.index));
    relations(operation, &list, &mut problems);
    if problems.is_empty() {
        Ok(Args { operation, list })
    } else {
        Err(InvalidArguments { operation: operation.name, problems })
    }
}

/// For tests that look at the path alone: each argument by itself, whatever is missing.
#[cfg(test)]
pub(super) fn decode_lenient(operation: &'static Operation, given: &Map<String, Json>) -> Vec<Arg> {
    given.iter().filter_map(|(name, json)| argument(operation, name, json, Release::NEWEST).ok()).collect()
}

/// Adds an argument from text that the overlay gives, such as a tool's fixed ones.
pub fn decode_text(args: &mut Args, pairs: &[(&'static str, &'static str)]) -> Result<(), InvalidArguments> {
    let operation = args.operation;
    let mut problems = Vec::new();
    fix(operation, pairs, &mut args.list, &mut problems);
    args.list.sort_by_key(|arg| (position(operation, arg.parameter), arg.index));
    if problems.is_empty() { Ok(()) } else { Err(InvalidArguments { operation: operation.name, problems }) }
}

fn position(operation: &Operation, parameter: &Parameter) -> usize {
    operation.params.iter().position(|known| known.name == parameter.name).unwrap_or(usize::MAX)
}

fn fix(
    operation: &'static Operation,
    pairs: &[(&str, &str)],
    list: &mut Vec<Arg>,
    problems: &mut Vec<(String, String)>,
) {
    for (name, text) in pairs {
        if list.iter().any(|arg| arg.name() == *name) {
            problems.push(((*name).to_owned(), "is set by the server; leave it out".to_owned()));
            continue;
        }
        match argument(operation, name, &Json::from(*text), Release::NEWEST) {
            Ok(arg) => list.push(arg),
            Err(problem) => problems.push(((*name).to_owned(), problem)),
        }
    }
}

fn argument(operation: &'static Operation, name: &str, json: &Json, release: Release) -> Result<Arg, String> {
    let Some((parameter, index)) = operation.params.iter().find_map(|known| Some((known, known.index_of(name)?)))
    else {
        return Err(unknown(operation, name));
    };
    if parameter.index.is_some() && index.is_none() {
        return Err(format!(
            "stands for a family; name one of its members, such as `{}`",
            parameter.name.replace("[n]", "0")
        ));
    }
    if parameter.role == Role::Digest {
        return Err("is PVE's lock, which the server supplies itself; leave it out".to_owned());
    }
    if !parameter.releases.contains(release) {
        return Err(format!(
            "does not exist on PVE {release}, which this cluster runs; it came with {}",
            parameter.releases.first
        ));
    }
    let value = value(&parameter.kind, parameter, json)?;
    Ok(Arg { parameter, index, value })
}

fn unknown(operation: &Operation, name: &str) -> String {
    let lower = name.to_lowercase().replace('_', "-");
    let near: Vec<&str> = operation
        .params
        .iter()
        .map(|parameter| parameter.name)
        .filter(|known| known.contains(lower.as_str()) || lower.contains(known.trim_end_matches("[n]")))
        .take(3)
        .collect();
    let hint = if near.is_empty() {
        "describe_operation lists them".to_owned()
    } else {
        format!("near to it: {}", near.join(", "))
    };
    format!("is not an argument of this operation; {hint}")
}

/// What one argument says about others.
fn relations(operation: &Operation, list: &[Arg], problems: &mut Vec<(String, String)>) {
    let given = |name: &str| list.iter().find(|arg| arg.parameter.name == name);
    for parameter in operation.params.iter().filter(|parameter| parameter.required) {
        if given(parameter.name).is_none() && !problems.iter().any(|(name, _)| name == parameter.name) {
            problems.push((parameter.name.to_owned(), "is needed and missing".to_owned()));
        }
    }
    for arg in list {
        if let Some(other) = arg.parameter.requires.filter(|other| given(other).is_none()) {
            problems.push((arg.name(), format!("goes only together with `{other}`")));
        }
        if let Some((other, values)) = arg.parameter.only_with
            && let Some(found) = given(other)
            && !values.contains(&&*found.value.wire())
        {
            problems.push((arg.name(), format!("goes only where `{other}` is {}", values.join(" or "))));
        }
    }
    let unset = list.iter().filter(|arg| arg.parameter.role == Role::Unset);
    for name in unset.flat_map(|arg| elements(&arg.value)) {
        if list.iter().any(|arg| arg.name() == name) {
            problems.push((name, "is set and unset at once; decide for one".to_owned()));
        }
    }
    storages(list, problems);
}

fn elements(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) | Value::Array(items) => items.iter().map(|item| item.wire().into_owned()).collect(),
        single => vec![single.wire().into_owned()],
    }
}

/// A volume in the path belongs to the storage in the path, and a task to the node.
fn storages(list: &[Arg], problems: &mut Vec<(String, String)>) {
    let in_path = |role: Role| list.iter().find(|arg| arg.parameter.place == Place::Path && arg.parameter.role == role);
    if let (Some(storage), Some(Value::Volume(volume))) =
        (in_path(Role::Storage), in_path(Role::Volume).map(|arg| &arg.value))
        && storage.value.wire() != volume.storage()
    {
        problems.push((storage.name(), format!("is not the storage of the volume, which is `{}`", volume.storage())));
    }
    if let (Some(node), Some(Value::Upid(upid))) = (in_path(Role::Node), in_path(Role::Task).map(|arg| &arg.value))
        && node.value.wire() != upid.node().as_str()
    {
        problems.push((node.name(), format!("is not the node that the task ran on, which is `{}`", upid.node())));
    }
}

fn value(kind: &'static Kind, parameter: &'static Parameter, json: &Json) -> Result<Value, String> {
    if parameter.role == Role::Secret {
        return match json {
            Json::String(text) if !text.is_empty() && !text.contains('\0') => {
                Ok(Value::Secret(Secret::new(text.clone())))
            }
            _ => Err("has to be a text that is not empty".to_owned()),
        };
    }
    match (kind, json) {
        (Kind::List(element), Json::String(text)) => list_value(element, parameter, list::split(text).map(Json::from)),
        (Kind::List(element), Json::Array(items)) => list_value(element, parameter, items.iter().cloned()),
        (Kind::List(element), single @ Json::Number(_)) => list_value(element, parameter, [single.clone()]),
        (Kind::Array(element), Json::Array(items)) => {
            let items = items.iter().map(|item| value(element, parameter, item)).collect::<Result<Vec<_>, _>>()?;
            bounded_list(items).map(Value::Array)
        }
        (Kind::Array(element), single) => Ok(Value::Array(vec![value(element, parameter, single)?])),
        (Kind::Property(shape), Json::Object(object)) => PropertyText::from_object(shape, object).map(Value::Property),
        (_, json) => {
            let text = scalar(kind, json)?;
            from_text(kind, parameter, &text)
        }
    }
}

fn list_value(
    element: &'static Kind,
    parameter: &'static Parameter,
    items: impl IntoIterator<Item = Json>,
) -> Result<Value, String> {
    let mut values = Vec::new();
    for item in items {
        let text = scalar(element, &item)?;
        if !list::is_element(&text) {
            return Err(format!("has an element that PVE would split: `{}`", shown(&text, 80)));
        }
        values.push(from_text(element, parameter, &text)?);
    }
    let values = bounded_list(values)?;
    let tags: Option<Vec<Tag>> =
        values.iter().map(|value| if let Value::Tag(tag) = value { Some(tag.clone()) } else { None }).collect();
    Ok(tags.map_or(Value::List(values), |tags| Value::Tags(Tags::new(tags))))
}

fn bounded_list(values: Vec<Value>) -> Result<Vec<Value>, String> {
    match values.len() {
        0 => Err("is an empty list; leave it out, or name it in `delete` to unset it".to_owned()),
        1..=LONGEST_LIST => Ok(values),
        many => Err(format!("has {many} elements, and at most {LONGEST_LIST} are taken")),
    }
}

/// The text of a scalar.
fn scalar(kind: &Kind, json: &Json) -> Result<String, String> {
    match (kind, json) {
        (Kind::Boolean, Json::Bool(flag)) => Ok(u8::from(*flag).to_string()),
        (_, Json::String(text)) if text.is_empty() => {
            Err("is empty; leave it out, or name it in `delete` to unset it".to_owned())
        }
        (_, Json::String(text)) => Ok(text.clone()),
        // Some clients write 2.0 for 2, which is the same number.
        (Kind::Integer(..) | Kind::Text(Text { value: Grammar::Vmid, .. }), Json::Number(number)) => {
            Ok(scalar::integer(json).map_or_else(|| number.to_string(), |number| number.to_string()))
        }
        (_, Json::Number(number)) => Ok(number.to_string()),
        (kind, json) => Err(format!("has to be {}, not {}", expected(kind), name_of(json))),
    }
}

fn name_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null; leave it out, or name it in `delete` to unset it",
        Json::Bool(_) => "true or false",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// What a value of this type is, in words.
pub fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Boolean => "true or false".to_owned(),
        Kind::Integer(least, most) => bounds("a whole number", least.as_ref(), most.as_ref()),
        Kind::Number(least, most) => bounds("a number", least.as_ref(), most.as_ref()),
        Kind::Text(Text { value: Grammar::Vmid, .. }) => "a guest's number, 100 to 999999999".to_owned(),
        Kind::Text(Text { value: Grammar::Plain, .. }) => "a text".to_owned(),
        Kind::Text(Text { value, .. }) => format!("a text ({value})"),
        Kind::Choice(choices) => format!("one of {}", choices.join(", ")),
        Kind::List(element) | Kind::Array(element) => format!("a list, each element {}", expected(element)),
        Kind::Property(shape) if shape.keys.is_empty() => {
            "a text (a property string, `key=value,key=value`)".to_owned()
        }
        Kind::Property(shape) => {
            let keys: Vec<&str> = shape.keys.iter().filter(|key| key.alias.is_none()).map(|key| key.name).collect();
            format!("a property string or an object with keys {}", keys.join(", "))
        }
    }
}

fn bounds<T: fmt::Display>(what: &str, least: Option<&T>, most: Option<&T>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{what} from {least} to {most}"),
        (Some(least), None) => format!("{what}, at least {least}"),
        (None, Some(most)) => format!("{what}, at most {most}"),
        (None, None) => what.to_owned(),
    }
}

fn from_text(kind: &'static Kind, parameter: &'static Parameter, text: &str) -> Result<Value, String> {
    let wrong = || format!("has to be {}, not `{}`", expected(kind), shown(text, 80));
    match kind {
        Kind::Boolean => match text {
            "1" => Ok(Value::Boolean(true)),
            "0" => Ok(Value::Boolean(false)),
            _ => Err(wrong()),
        },
        Kind::Integer(least, most) => {
            let number: i64 = text.parse().map_err(|_| wrong())?;
            let fits = least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most);
            fits.then_some(Value::Integer(number)).ok_or_else(wrong)
        }
        Kind::Number(least, most) => {
            let number: f64 = text.parse().map_err(|_| wrong())?;
            let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
            let fits = plain && least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most);
            fits.then(|| Value::Number(text.into())).ok_or_else(wrong)
        }
        Kind::Choice(choices) => {
            choices.iter().find(|choice| **choice == text).map(|choice| Value::Choice(choice)).ok_or_else(wrong)
        }
        Kind::Text(bounds) => self::text(bounds, parameter, text),
        Kind::Property(shape) => PropertyText::from_text(shape, text).map(Value::Property),
        Kind::List(_) | Kind::Array(_) => Err(wrong()),
    }
}

fn text(bounds: &Text, parameter: &Parameter, text: &str) -> Result<Value, String> {
    check_text(bounds, text)?;
    let place = parameter.place;
    let value = match bounds.value {
        Grammar::Plain if place == Place::Path => PathSegment::parse(text).map(Value::Segment),
        Grammar::Plain => Ok(Value::Text(text.into())),
        Grammar::Vmid => Vmid::parse(text).map(Value::Vmid),
        Grammar::Node => NodeName::parse(text).map(Value::Node),
        Grammar::NodePriority => NodePriority::parse(text).map(Value::NodePriority),
        Grammar::Storage => StorageId::parse(text).map(Value::Storage),
        Grammar::Volume => VolumeId::parse(text).map(Value::Volume),
        Grammar::Snapshot => SnapshotName::parse(text).map(Value::Snapshot),
        Grammar::Pool => PoolId::parse(text).map(Value::Pool),
        Grammar::Upid => Upid::parse(text).map(Value::Upid),
        Grammar::User => UserId::parse(text).map(Value::User),
        Grammar::ConfigId => ConfigId::parse(text).map(Value::ConfigId),
        Grammar::Iface => Iface::parse(text).map(Value::Iface),
        Grammar::Cidr => Cidr::parse(text).map(Value::Cidr),
        Grammar::CidrOrAlias => CidrOrAlias::parse(text).map(Value::CidrOrAlias),
        Grammar::Mac => Mac::parse(text).map(Value::Mac),
        Grammar::Size => Size::parse(text).map(Value::Size),
        Grammar::Growth => Growth::parse(text).map(Value::Growth),
        Grammar::Drive => disk(text, |_| true),
        Grammar::Mount => disk(text, |held| matches!(held, Held::Path | Held::New { .. } | Held::Volume(_))),
        Grammar::VolumeOrPath => disk(text, |held| matches!(held, Held::Path | Held::Volume(_))),
        Grammar::DnsName => DnsName::parse(text).map(Value::DnsName),
        Grammar::Encoded => EncodedText::parse(text).map(Value::Encoded),
        Grammar::Tag => Tag::parse(text).map(Value::Tag),
    };
    value.map_err(|error: ValueError| format!("is not valid: {error}"))
}

/// What a disk holds, where not everything that a drive may hold goes.
fn disk(text: &str, goes: fn(&Held) -> bool) -> Result<Value, ValueError> {
    let disk = DiskSource::parse(text)?;
    if goes(disk.held()) {
        Ok(Value::Disk(disk))
    } else {
        Err(ValueError::new("what goes here", text, "a volume id or an absolute path of the node"))
    }
}

/// Length and pattern.
pub(super) fn check_text(bounds: &Text, text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err("has a NUL byte in it".to_owned());
    }
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    if bounds.min_length.is_some_and(|least| length < least) {
        return Err(format!("is too short: at least {} characters", bounds.min_length.unwrap_or_default()));
    }
    if bounds.max_length.is_some_and(|most| length > most) {
        return Err(format!("is too long: at most {} characters", bounds.max_length.unwrap_or_default()));
    }
    match bounds.pattern {
        Some(at) if !matches(at, text) => {
            let pattern = PATTERNS.get(usize::from(at)).copied().unwrap_or_default();
            Err(format!("has to match {pattern}, which `{}` does not", shown(text, 80)))
        }
        _ => Ok(()),
    }
}

/// Whether the text matches a pattern of the catalog. A pattern that does not compile matches nothing.
fn matches(at: u16, text: &str) -> bool {
    static COMPILED: [OnceLock<Option<Regex>>; PATTERNS.len()] = [const { OnceLock::new() }; PATTERNS.len()];
    let (Some(cell), Some(pattern)) = (COMPILED.get(usize::from(at)), PATTERNS.get(usize::from(at))) else {
        return false;
    };
    cell.get_or_init(|| Regex::new(pattern).ok()).as_ref().is_some_and(|regex| regex.is_match(text))
}

/// One value inside a property string.
pub(super) fn check_key(key: &'static pvegate_generated::model::Key, text: &str) -> Result<(), String> {
    static INSIDE: Parameter = Parameter::new("", Place::Body, Kind::Boolean, Role::Plain);
    match &key.kind {
        // PVE itself is generous here: yes, on, true and their opposites.
        Kind::Boolean if scalar::word(text).is_some() => Ok(()),
        // The text that is given is the text that is sent, so it has to be encoded already.
        Kind::Text(Text { value: Grammar::Encoded, .. }) if !encoded::is_encoded(text) => {
            Err("has to be percent-encoded".to_owned())
        }
        kind => from_text(kind, &INSIDE, text).map(|_| ()),
    }
}
