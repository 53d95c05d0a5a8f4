//! What data looks like when it leaves: only what may, of the type that the catalog says, in an order
//! that does not change from answer to answer.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Answer, Field, Kind, Operation, Text};
use pvegate_generated::terms::Value as Grammar;
use serde_json::{Map, Value as Json};

use crate::values::{EncodedText, scalar};

/// Columns that say what a row is, the first that a list has decides its order. PVE's own order is random.
const ORDER: &[&str] = &[
    "pos", "n", "vmid", "volid", "upid", "storage", "node", "sid", "rule", "id", "userid", "groupid", "roleid",
    "poolid", "realm", "tokenid", "name", "cidr", "iface", "zone", "vnet", "subnet", "type", "Package", "title",
    "time",
];

/// Columns that people and programs inside guests write. What stands there is data, never an instruction.
const GUEST_WRITTEN: &[&str] = &[
    "name",
    "hostname",
    "description",
    "notes",
    "comment",
    "tags",
    "t",
    "msg",
    "result",
    "out-data",
    "err-data",
    "title",
    "text",
    "exitstatus",
];

/// Where the overlay says which keys may leave, drops all others.
pub fn only_leaves(operation: &Operation, data: &mut Json) {
    if operation.leaves.is_empty() {
        return;
    }
    let keep = |object: &mut Map<String, Json>| object.retain(|key, _| operation.leaves.contains(&key.as_str()));
    match data {
        Json::Object(object) => keep(object),
        Json::Array(rows) => {
            for row in rows.iter_mut() {
                match row {
                    Json::Object(object) => keep(object),
                    other => *other = Json::Null,
                }
            }
        }
        other => *other = Json::Null,
    }
}

/// Decodes what PVE keeps percent-encoded, so that people read it and secrets in it are found.
pub fn decode(operation: &Operation, data: &mut Json) {
    match (operation.answer, data) {
        (Answer::Object(fields), Json::Object(object)) => {
            for field in fields.iter().filter(|field| ENCODED.contains(field.name)) {
                decode_value(object, field.name);
            }
        }
        (Answer::List(fields), Json::Array(rows)) if fields.iter().any(|field| field.name == "key") => {
            let encoded = |row: &Map<String, Json>| {
                row.get("key").and_then(Json::as_str).is_some_and(|key| ENCODED.contains(key))
            };
            for row in rows.iter_mut().filter_map(Json::as_object_mut).filter(|row| encoded(row)) {
                for name in PENDING {
                    decode_value(row, name);
                }
            }
        }
        _ => {}
    }
}

fn decode_value(object: &mut Map<String, Json>, name: &str) {
    if let Some(Json::String(text)) = object.get_mut(name)
        && let Some(decoded) = EncodedText::read(text)
    {
        decoded.plain().clone_into(text);
    }
}

/// Settings that PVE keeps percent-encoded.
static ENCODED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let parameters = OPERATIONS.iter().flat_map(|operation| operation.params);
    let encoded = |kind| matches!(kind, Kind::Text(Text { value: Grammar::Encoded, .. }));
    parameters.filter(|parameter| encoded(parameter.kind)).map(|parameter| parameter.name).collect()
});

/// Makes described values the type that the catalog says. PVE sends numbers as text and the reverse,
/// and booleans as 0 and 1. What is not of its type and cannot be made so is left out: clients check.
pub fn coerce(operation: &Operation, data: &mut Json) {
    match (operation.answer, data) {
        (Answer::Object(fields), Json::Object(object)) => coerce_object(fields, object),
        (Answer::List(fields), Json::Array(rows)) => {
            for row in rows.iter_mut() {
                if let Json::Object(object) = row {
                    coerce_object(fields, object);
                }
            }
            sort(rows);
        }
        _ => {}
    }
}

fn coerce_object(fields: &[Field], object: &mut Map<String, Json>) {
    for field in fields {
        let Some(value) = object.get_mut(field.name) else { continue };
        match coerced(field.kind, value) {
            Some(Some(new)) => *value = new,
            Some(None) => {}
            None => {
                object.remove(field.name);
            }
        }
    }
}

/// `Some(None)`: right as it is; `None`: cannot be made right.
#[allow(clippy::option_option, reason = "three outcomes of one small private function")]
fn coerced(kind: &str, value: &Json) -> Option<Option<Json>> {
    let right = match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => true,
    };
    if right {
        return Some(None);
    }
    let new = match (kind, value) {
        ("string", Json::Number(number)) => Some(Json::from(number.to_string())),
        ("integer", _) => scalar::exact(value).map(Json::from),
        ("number", _) => scalar::measure(value).map(Json::from),
        ("boolean", Json::Number(_) | Json::String(_)) => scalar::boolean(value).map(Json::from),
        _ => None,
    };
    new.map(Some)
}

/// Sorts rows so that pages fit together. Lists of plain values (lines of a log) keep PVE's order.
fn sort(rows: &mut [Json]) {
    let Some(Json::Object(first)) = rows.first() else { return };
    // Tasks are wanted newest first.
    if first.contains_key("starttime") && first.contains_key("upid") {
        rows.sort_by(|one, other| {
            compare(other.get("starttime"), one.get("starttime"))
                .then_with(|| compare(one.get("upid"), other.get("upid")))
        });
        return;
    }
    let keys: Vec<&str> = ORDER.iter().copied().filter(|key| first.contains_key(*key)).take(3).collect();
    rows.sort_by(|one, other| {
        keys.iter()
            .map(|key| compare(one.get(*key), other.get(*key)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    });
}

fn compare(one: Option<&Json>, other: Option<&Json>) -> Ordering {
    match (one, other) {
        (Some(Json::Number(one)), Some(Json::Number(other))) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Some(Json::String(one)), Some(Json::String(other))) => one.cmp(other),
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(one), Some(other)) => one.to_string().cmp(&other.to_string()),
    }
}

/// Keeps the keys that the caller wants; none named keeps all.
pub fn project(fields: &[String], value: &mut Json) {
    if let (Json::Object(object), false) = (value, fields.is_empty()) {
        object.retain(|key, _| fields.iter().any(|field| field == key));
    }
}

/// Where a pending difference has what was written.
const PENDING: &[&str] = &["pending", "value"];

/// The same inside `config`, where a guest's answer holds its configuration too.
const GUEST_WRITTEN_CONFIG: &[&str] = &["config.description", "config.hostname", "config.name", "config.tags"];

/// Which of the columns that guests and people write are in the data.
pub fn guest_written(data: &Json) -> Vec<&'static str> {
    let mut found = BTreeSet::new();
    let mut look = |object: &Map<String, Json>| {
        found.extend(GUEST_WRITTEN.iter().filter(|key| object.contains_key(**key)));
        if let Some(Json::Object(config)) = object.get("config") {
            let inside = |name: &str| name.strip_prefix("config.").is_some_and(|key| config.contains_key(key));
            found.extend(GUEST_WRITTEN_CONFIG.iter().filter(|name| inside(name)));
        }
        // In a list of tasks it is the text with which one failed.
        if object.contains_key("upid") && object.contains_key("status") {
            found.insert("status");
        }
        // A pending difference names the setting in `key` and has what was written beside it.
        if object.get("key").and_then(Json::as_str).is_some_and(|key| GUEST_WRITTEN.contains(&key)) {
            found.extend(PENDING.iter().filter(|key| object.contains_key(**key)));
        }
    };
    match data {
        Json::Object(object) => look(object),
        Json::Array(rows) => rows.iter().filter_map(Json::as_object).for_each(look),
        // A log or a configuration as one text, which leaves as `value`.
        Json::String(text) if text.contains(char::is_whitespace) => {
            found.insert("value");
        }
        _ => {}
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use pvegate_generated::catalog;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_get_the_type_that_the_catalog_says() {
        static FIELDS: [Field; 4] = [
            Field::new("a", "integer"),
            Field::new("b", "boolean"),
            Field::new("c", "string"),
            Field::new("d", "number"),
        ];
        let mut object = json!({"a": "12", "b": 1, "c": 7, "d": "0.5", "e": [1]}).as_object().cloned().unwrap();
        coerce_object(&FIELDS, &mut object);
        assert_eq!(Json::from(object), json!({"a": 12, "b": true, "c": "7", "d": 0.5, "e": [1]}));
        let mut object = json!({"a": "many", "b": "perhaps", "c": null, "d": "inf"}).as_object().cloned().unwrap();
        coerce_object(&FIELDS, &mut object);
        assert!(object.is_empty(), "{object:?}");
    }

    #[test]
    fn keys_for_login_are_read_decoded() {
        let keys = "ssh-rsa AAAA+/B== cardno:000 111\n";
        let encoded = "ssh-rsa%20AAAA%2B%2FB%3D%3D%20cardno%3A000%20111%0A";
        let config = catalog::operation("GET /nodes/{node}/qemu/{vmid}/config").unwrap();
        let mut data = json!({"sshkeys": encoded, "name": "a%20b"});
        decode(config, &mut data);
        assert_eq!(data, json!({"sshkeys": keys, "name": "a%20b"}));
        for name in ["GET /nodes/{node}/qemu/{vmid}/pending", "GET /nodes/{node}/qemu/{vmid}/cloudinit"] {
            let mut data =
                json!([{"key": "sshkeys", "value": "a b", "pending": encoded}, {"key": "name", "value": "%41"}]);
            decode(catalog::operation(name).unwrap(), &mut data);
            assert_eq!(
                data,
                json!([{"key": "sshkeys", "value": "a b", "pending": keys}, {"key": "name", "value": "%41"}]),
                "{name}"
            );
        }
    }

    #[test]
    fn rows_have_one_order() {
        let mut rows = vec![json!({"vmid": 102}), json!({"vmid": 100}), json!({"vmid": 101})];
        sort(&mut rows);
        assert_eq!(rows, [json!({"vmid": 100}), json!({"vmid": 101}), json!({"vmid": 102})]);
        let mut tasks = vec![json!({"upid": "a", "starttime": 1}), json!({"upid": "b", "starttime": 2})];
        sort(&mut tasks);
        assert_eq!(tasks.first().unwrap().get("upid"), Some(&json!("b")));
    }

    #[test]
    fn only_named_keys_leave_an_opt_in_read() {
        let users = catalog::operation("GET /access/users").unwrap();
        assert!(!users.leaves.is_empty());
        let mut data = json!([{"userid": "root@pam", "keys": "x", "invented": "secret"}, "secret"]);
        only_leaves(users, &mut data);
        assert_eq!(data, json!([{"userid": "root@pam"}, null]));
    }
}
