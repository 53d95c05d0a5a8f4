//! Repairs of the newest pinned apidoc, before it is read: PVE's typos and gaps, each with a reason
//! in `fixups.toml`. One that finds nothing, or changes nothing any more, is an error.

use serde_json::{Map, Value};

use crate::overlay::{Entry, Fixup, Synthetic};
use crate::problem::Problems;

/// Applies all fixups to the apidoc's JSON.
pub fn apply(apidoc: &mut Value, fixups: &[Entry<Fixup>], problems: &mut Problems) {
    for Entry { place, value: fixup } in fixups {
        if fixup.reason.trim().is_empty() {
            problems.push(place, "a fixup needs a reason");
        }
        let Some((operation, steps)) = split(&fixup.at) else {
            problems.push(place, format!("`{}` is not `VERB /path parameter …`", fixup.at));
            continue;
        };
        let Some(schema) = method(apidoc, operation).and_then(|method| descend(method, &steps)) else {
            problems.push(
                place,
                format!("`{}` is not in the newest pinned release: remove the fixup, or correct it", fixup.at),
            );
            continue;
        };
        for key in &fixup.remove {
            if schema.remove(key).is_none() {
                problems
                    .push(place, format!("`{}` has no `{key}` to remove: PVE repaired it, remove the fixup", fixup.at));
            }
        }
        for (key, wanted) in &fixup.set {
            let wanted = json(wanted);
            if schema.insert(key.clone(), wanted.clone()).as_ref() == Some(&wanted) {
                problems
                    .push(place, format!("`{}` has this `{key}` already: PVE repaired it, remove the fixup", fixup.at));
            }
        }
    }
}

/// Declares path parameters that the schema does not.
pub fn declare(apidoc: &mut Value, synthetic: &[Entry<Synthetic>], problems: &mut Problems) {
    for Entry { place, value } in synthetic {
        if value.reason.trim().is_empty() {
            problems.push(place, "a synthetic parameter needs a reason");
        }
        if !value.at.contains(&format!("{{{}}}", value.name)) {
            problems.push(place, format!("`{}` is not a path parameter of {}", value.name, value.at));
        }
        let Some(method) = method(apidoc, &value.at) else {
            problems.push(
                place,
                format!("{} is not in the newest pinned release: remove the entry, or correct it", value.at),
            );
            continue;
        };
        let parameters = method.entry("parameters").or_insert_with(|| Value::Object(Map::new()));
        let properties = parameters
            .as_object_mut()
            .map(|parameters| parameters.entry("properties").or_insert_with(|| Value::Object(Map::new())));
        let Some(properties) = properties.and_then(Value::as_object_mut) else {
            problems.push(place, format!("{} has parameters of an unknown form", value.at));
            continue;
        };
        let schema: Map<String, Value> = value.schema.iter().map(|(key, value)| (key.clone(), json(value))).collect();
        if properties.insert(value.name.clone(), Value::Object(schema)).is_some() {
            problems.push(place, format!("{} declares `{}` now: remove the entry", value.at, value.name));
        }
    }
}

fn split(at: &str) -> Option<(&str, Vec<&str>)> {
    let mut words = at.split(' ');
    let verb = words.next()?;
    let path = words.next()?;
    let operation = at.get(..verb.len() + 1 + path.len())?;
    let steps: Vec<&str> = words.collect();
    (!steps.is_empty()).then_some((operation, steps))
}

fn method<'a>(apidoc: &'a mut Value, operation: &str) -> Option<&'a mut Map<String, Value>> {
    let (verb, path) = operation.split_once(' ')?;
    let node = node(apidoc.as_array_mut()?, path)?;
    node.get_mut("info")?.get_mut(verb)?.as_object_mut()
}

fn node<'a>(nodes: &'a mut [Value], path: &str) -> Option<&'a mut Value> {
    for node in nodes {
        let own = node.get("path")?.as_str()?;
        if own == path {
            return Some(node);
        }
        if path.strip_prefix(own).is_some_and(|rest| rest.starts_with('/')) {
            let below = node.get_mut("children").and_then(Value::as_array_mut);
            if let Some(found) = below.and_then(|children| self::node(children, path)) {
                return Some(found);
            }
        }
    }
    None
}

/// A parameter, or `returns` and a property of the answer; then keys of its property string.
fn descend<'a>(method: &'a mut Map<String, Value>, steps: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let (root, steps) = match steps {
        ["returns", below @ ..] => ("returns", below),
        _ => ("parameters", steps),
    };
    let mut schema = method.get_mut(root)?.as_object_mut()?;
    for (depth, step) in steps.iter().enumerate() {
        let inside = if depth == 0 { "properties" } else { "format" };
        schema = schema.get_mut(inside)?.get_mut(*step)?.as_object_mut()?;
    }
    Some(schema)
}

fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => Value::from(*number),
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Array(items) => items.iter().map(json).collect(),
        toml::Value::Table(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.clone(), json(value))).collect())
        }
    }
}
