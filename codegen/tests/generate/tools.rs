//! Tool definitions are JSON Schema that every client copes with.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::schema::real;

/// Every definition as it stands in `generated/json/tools/`.
fn definitions() -> BTreeMap<&'static str, Value> {
    let files =
        real().output.files.iter().filter_map(|(path, text)| {
            Some((path.strip_prefix("generated/json/tools/")?.strip_suffix(".json")?, text))
        });
    files.map(|(name, text)| (name, serde_json::from_str(text).unwrap())).collect()
}

/// Calls back for every schema inside a schema, itself included.
fn walk(path: &str, schema: &Value, see: &mut impl FnMut(&str, &serde_json::Map<String, Value>)) {
    let object = schema.as_object().unwrap_or_else(|| panic!("{path} is not an object"));
    see(path, object);
    if let Some(properties) = object.get("properties") {
        for (name, inner) in properties.as_object().unwrap() {
            walk(&format!("{path}.{name}"), inner, see);
        }
    }
    if let Some(items) = object.get("items") {
        walk(&format!("{path}[]"), items, see);
    }
}

#[test]
fn there_is_one_file_for_each_tool() {
    let definitions = definitions();
    assert_eq!(definitions.len(), real().model.tools.len());
    for (name, definition) in definitions {
        assert_eq!(definition["name"], name);
        assert!(
            name.len() <= 40
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{name}"
        );
        for key in ["title", "description"] {
            assert!(definition[key].as_str().is_some_and(|text| !text.trim().is_empty()), "{name} {key}");
        }
    }
}

#[test]
fn all_schemas_compile() {
    for (name, definition) in definitions() {
        for key in ["inputSchema", "outputSchema"] {
            let Some(schema) = definition.get(key) else { continue };
            jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{name} {key}: {error}"));
            jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{name} {key}: {error}"));
        }
        assert!(definition.get("inputSchema").is_some(), "{name}");
    }
}

#[test]
fn schemas_are_conservative() {
    const WORDS: [&str; 14] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "description",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "maxItems",
        "pattern",
        "default",
    ];
    for (name, definition) in definitions() {
        for key in ["inputSchema", "outputSchema"] {
            let Some(schema) = definition.get(key) else { continue };
            assert_eq!(schema["type"], "object", "{name} {key}");
            walk(&format!("{name} {key}"), schema, &mut |path, object| {
                for word in object.keys() {
                    assert!(WORDS.contains(&word.as_str()), "{path}: `{word}`");
                }
                let kind = object
                    .get("type")
                    .and_then(Value::as_str)
                    .unwrap_or_else(|| panic!("{path}: the type is one word"));
                assert!(
                    ["string", "integer", "number", "boolean", "array", "object"].contains(&kind),
                    "{path}: {kind}"
                );
            });
        }
        assert_eq!(definition["inputSchema"]["additionalProperties"], false, "{name}");
    }
}

/// Those of the gateway share 8 KB, and leave out what the name says.
#[test]
fn arguments_of_tools_have_words() {
    let gateway = |name: &str| real().model.tools.iter().any(|tool| tool.name == name && tool.toolset == "gateway");
    for (name, definition) in definitions() {
        for (argument, schema) in definition["inputSchema"]["properties"].as_object().unwrap() {
            assert!(
                gateway(name) || schema["description"].as_str().is_some_and(|text| text.len() > 10),
                "{name} {argument}"
            );
        }
        for argument in definition["inputSchema"].get("required").and_then(Value::as_array).into_iter().flatten() {
            assert!(
                definition["inputSchema"]["properties"].get(argument.as_str().unwrap()).is_some(),
                "{name} {argument}"
            );
        }
    }
}

#[test]
fn hints_are_always_explicit() {
    for (name, definition) in definitions() {
        let hints = definition["annotations"].as_object().unwrap();
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(hints.get(hint).is_some_and(Value::is_boolean), "{name} {hint}");
        }
        assert!(!(hints["readOnlyHint"] == true && hints["destructiveHint"] == true), "{name}");
    }
}

/// What Perl and Rust can say in a pattern and the dialect of JSON Schema cannot.
#[test]
fn patterns_are_portable() {
    const FOREIGN: [&str; 11] = ["(?^", "(?i", "(?x", "(?s", "(?m", "(?#", "(?>", "\\A", "\\z", "\\Z", "[:"];
    for (name, definition) in definitions() {
        walk(name, &definition["inputSchema"], &mut |path, object| {
            let Some(pattern) = object.get("pattern").and_then(Value::as_str) else { return };
            for word in FOREIGN {
                assert!(!pattern.contains(word), "{path}: {pattern}");
            }
            assert!(pattern.starts_with('^') && pattern.ends_with('$'), "{path}: {pattern} is not anchored");
        });
    }
}

#[test]
fn the_gateway_list_is_small() {
    let names: Vec<&str> =
        real().model.tools.iter().filter(|tool| tool.toolset == "gateway").map(|tool| tool.name.as_str()).collect();
    assert!(!names.is_empty());
    let definitions = definitions();
    let list: Vec<&Value> = names.iter().map(|name| &definitions[name]).collect();
    let bytes = serde_json::json!({"tools": list}).to_string().len();
    assert!(bytes <= 8 * 1024, "{bytes} bytes");
}
