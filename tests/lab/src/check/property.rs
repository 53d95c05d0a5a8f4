//! Property strings: `key=value,...` texts with a schema of their own.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::{MISSING, UNDECLARED, check_scalar};
use crate::schema::truthy;

/// Property strings that the apidoc only names.
pub(super) fn named(format: &str) -> Option<&'static Map<String, Value>> {
    static NAMED: OnceLock<Map<String, Value>> = OnceLock::new();
    let all = NAMED.get_or_init(|| {
        let text = json!({"type": "string", "optional": 1});
        let count = json!({"type": "integer", "minimum": 0, "optional": 1});
        let flag = json!({"type": "boolean", "optional": 1});
        let of = |format: &str| json!({"type": "string", "format": format, "optional": 1});
        let first = json!({"type": "string", "optional": 1, "default_key": 1});
        let first_count = json!({"type": "integer", "minimum": 0, "optional": 1, "default_key": 1});
        let all = json!({
            "pve-qm-ipconfig": {"ip": of("pve-ipv4-config"), "gw": of("ipv4"), "ip6": of("pve-ipv6-config"), "gw6": of("ipv6")},
            "pve-qm-boot": {"legacy": first, "order": text},
            "pve-qm-smbios1": {"uuid": text, "version": text, "sku": text, "manufacturer": text, "product": text, "serial": text, "family": text, "base64": flag},
            "pve-startup-order": {"order": first_count, "up": count, "down": count},
            "prune-backups": {"keep-all": flag, "keep-last": count, "keep-hourly": count, "keep-daily": count, "keep-weekly": count, "keep-monthly": count, "keep-yearly": count},
        });
        match all {
            Value::Object(all) => all,
            _ => Map::new(),
        }
    });
    all.get(format)?.as_object()
}

/// Checks a property string. The error holds one line for each complaint.
pub(super) fn check(at: &str, properties: &Map<String, Value>, text: &str) -> Result<(), String> {
    let mut errors = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let default_key =
        properties.iter().find(|(_, schema)| schema.get("default_key").is_some_and(truthy)).map(|(key, _)| key.clone());
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let (key, value) = match (part.split_once('='), &default_key) {
            (Some((key, value)), _) => (key.to_owned(), value),
            (None, Some(key)) => (key.clone(), part),
            (None, None) => {
                return Err("invalid key in comma-separated list property\n".to_owned());
            }
        };
        let Some(schema) = properties.get(&key) else {
            errors.push(format!("{at}.{key}: {UNDECLARED}"));
            continue;
        };
        // An alias stands for another key; one with `keyAlias` also names a value (`virtio=<mac>`: the model).
        let (key, schema) = match schema.get("alias").and_then(Value::as_str) {
            Some(target) => {
                if let Some(named) = schema.get("keyAlias").and_then(Value::as_str) {
                    seen.push(named.to_owned());
                }
                match properties.get(target) {
                    Some(schema) => (target.to_owned(), schema),
                    None => continue,
                }
            }
            None => (key, schema),
        };
        if seen.contains(&key) {
            return Err("duplicate key in comma-separated list property: ".to_owned() + &key + "\n");
        }
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
        // Inside property strings PVE reads booleans in words too.
        let value = match (kind, value.to_ascii_lowercase().as_str()) {
            ("boolean", "on" | "yes" | "true") => "1",
            ("boolean", "off" | "no" | "false") => "0",
            _ => value,
        };
        if let Err(error) = check_scalar(&format!("{at}.{key}"), kind, schema, value) {
            errors.push(format!("{at}.{key}: {error}"));
        }
        seen.push(key);
    }
    for (key, schema) in properties {
        let optional = schema.get("optional").is_some_and(truthy) || schema.get("alias").is_some();
        if !optional && !seen.contains(key) {
            errors.insert(0, format!("{at}.{key}: {MISSING}"));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n") + "\n") }
}
