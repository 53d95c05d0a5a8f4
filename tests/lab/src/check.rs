//! Whether a request's parameters are what the schema declares, with PVE's own words where they are not.

mod format;
mod property;

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use regex::Regex;
use serde_json::{Map, Value};

use crate::answer::Refusal;
use crate::params::Params;
use crate::schema::{Operation, number, truthy};

const UNDECLARED: &str = "property is not defined in schema and the schema does not allow additional properties";
const MISSING: &str = "property is missing and it is not optional";

pub(crate) use format::userid as is_userid;

pub(crate) type Errors = BTreeMap<String, String>;

/// Checks all parameters of a call, and turns single values of array parameters into arrays as PVE does.
pub(crate) fn check(operation: &Operation, params: &mut Params) -> Result<(), Refusal> {
    let mut errors = Errors::new();
    for (name, value) in params.iter_mut() {
        match declared(&operation.parameters, name) {
            Some(_) if value.is_null() => {}
            Some(schema) => check_value(name, schema, value, &mut errors),
            None if operation.lenient || operation.in_path(name) => {}
            None => {
                errors.insert(name.clone(), UNDECLARED.to_owned());
            }
        }
    }
    // What a guest's configuration is to do about a name without a value is for its handler to say.
    if !operation.path.ends_with("/config") {
        params.retain(|_, value| !value.is_null());
    }
    for (name, schema) in &operation.parameters {
        if name.ends_with("[n]") {
            continue;
        }
        if !params.contains_key(name) && required(schema) && !operation.in_path(name) {
            errors.entry(name.clone()).or_insert_with(|| MISSING.to_owned());
        }
        if let Some(other) = schema.get("requires").and_then(Value::as_str)
            && params.contains_key(name)
            && !params.contains_key(other)
        {
            errors.insert(other.to_owned(), format!("missing property - '{name}' requires this property"));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::parameters(errors)) }
}

/// A `oneOf` wrapper is required only where every variant is.
fn required(schema: &Value) -> bool {
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        return variants.iter().all(required);
    }
    !schema.get("optional").is_some_and(truthy)
}

/// The schema of a parameter, also of one member of an indexed family such as `net[n]`.
pub(crate) fn declared<'a>(parameters: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if name.ends_with("[n]") {
        return None;
    }
    if let Some(schema) = parameters.get(name) {
        return Some(schema);
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = name.get(stem.len()..)?;
    let schema = parameters.get(&format!("{stem}[n]"))?;
    let index: u32 = digits.parse().ok()?;
    let canonical = digits.len() == 1 || !digits.starts_with('0');
    (canonical && index <= last_index(stem)).then_some(schema)
}

/// The highest index of a family; the apidoc folds the members into one and loses it.
fn last_index(stem: &str) -> u32 {
    match stem {
        "net" | "ipconfig" => 31,
        "scsi" => 30,
        "ide" | "serial" => 3,
        "sata" | "acmedomain" => 5,
        "virtio" | "hostpci" => 15,
        "unused" | "mp" | "dev" => 255,
        "usb" => 13,
        "parallel" => 2,
        "numa" | "link" => 7,
        "virtiofs" => 9,
        _ => 0,
    }
}

/// One value against its schema. Only the first complaint about a value is kept.
fn check_value(at: &str, schema: &Value, value: &mut Value, errors: &mut Errors) {
    let variants = schema.get("oneOf").and_then(Value::as_array);
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
    let format = schema.get("format");
    if kind == "array" {
        if !value.is_array() {
            *value = Value::Array(vec![value.take()]);
        }
        let items = schema.get("items").or_else(|| variants?.iter().find_map(|variant| variant.get("items")));
        if let (Some(items), Value::Array(values)) = (items, value) {
            for (index, value) in values.iter_mut().enumerate() {
                check_value(&format!("{at}[{index}]"), items, value, errors);
            }
        }
        return;
    }
    if let (Value::Array(values), Some(Value::String(name))) = (&*value, format)
        && name.ends_with("-list")
    {
        let joined: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        *value = Value::String(joined.join("\0"));
    }
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Array(_) => return add(errors, at, type_failed(kind, "ARRAY")),
        Value::Object(_) => return add(errors, at, type_failed(kind, "HASH")),
        _ => return add(errors, at, MISSING.to_owned()),
    };
    if let Err(error) = check_scalar(at, kind, schema, text) {
        add(errors, at, error);
    }
}

fn add(errors: &mut Errors, at: &str, error: String) {
    errors.entry(at.to_owned()).or_insert(error);
}

fn type_failed(kind: &str, got: &str) -> String {
    format!("type check ('{kind}') failed - got {got}")
}

/// A scalar: type, then format, then pattern, lengths, bounds, enumeration, each as PVE words it.
fn check_scalar(at: &str, kind: &str, schema: &Value, text: &str) -> Result<(), String> {
    if !is_of_type(kind, text) {
        return Err(type_failed(kind, &format!("'{text}'")));
    }
    match schema.get("format") {
        Some(Value::String(name)) => {
            if let Some(properties) = property::named(name) {
                property::check(at, properties, text)
                    .map_err(|error| format!("invalid format - format error\n{error}"))?;
            }
            format::check(name, text).map_err(|error| format!("invalid format - {error}\n"))?;
        }
        Some(Value::Object(properties)) => {
            property::check(at, properties, text).map_err(|error| format!("invalid format - format error\n{error}"))?;
        }
        _ => {}
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && !matches(pattern, text)
    {
        return Err("value does not match the regex pattern".to_owned());
    }
    let length = text.chars().count();
    if let Some(max) = number(schema.get("maxLength"))
        && length > cut(max)
    {
        return Err(format!("value may only be {max} characters long"));
    }
    if let Some(min) = number(schema.get("minLength"))
        && length < cut(min)
    {
        return Err(format!("value must be at least {min} characters long"));
    }
    if matches!(kind, "integer" | "number")
        && let Ok(value) = text.parse::<f64>()
    {
        if let Some(max) = number(schema.get("maximum"))
            && value > max
        {
            return Err(format!("value must have a maximum value of {max}"));
        }
        if let Some(min) = number(schema.get("minimum"))
            && value < min
        {
            return Err(format!("value must have a minimum value of {min}"));
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        let allowed: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        if !allowed.contains(&text) {
            return Err(format!("value '{text}' does not have a value in the enumeration '{}'", allowed.join(", ")));
        }
    }
    Ok(())
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lengths in the schema are small and positive"
)]
fn cut(length: f64) -> usize {
    length as usize
}

fn is_of_type(kind: &str, text: &str) -> bool {
    match kind {
        "integer" => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        "number" => {
            !text.is_empty()
                && text.parse::<f64>().is_ok_and(f64::is_finite)
                && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
        }
        "boolean" => matches!(text, "0" | "1"),
        _ => true,
    }
}

/// A Perl pattern, anchored. What the regex crate cannot read passes: the apidoc has no such pattern today. Patterns are
/// compiled once, since that takes longer than all the rest of a request.
fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: RwLock<BTreeMap<String, Option<Regex>>> = RwLock::new(BTreeMap::new());
    let fits = |regex: &Option<Regex>| regex.as_ref().is_none_or(|regex| regex.is_match(text));
    if let Some(regex) = COMPILED.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return fits(regex);
    }
    let regex = Regex::new(&format!("^(?:{})$", perl(pattern))).ok();
    let fit = fits(&regex);
    COMPILED.write().unwrap_or_else(PoisonError::into_inner).insert(pattern.to_owned(), regex);
    fit
}

/// Turns the wrapper that Perl prints around compiled patterns into what the regex crate reads.
fn perl(pattern: &str) -> String {
    pattern
        .replace("(?^:", "(?:")
        .replace("(?^u:", "(?:")
        .replace("(?^i:", "(?i-u:")
        .replace("{,", "{0,")
        .replace("\\0", "\\x00")
}

#[cfg(test)]
mod tests;
