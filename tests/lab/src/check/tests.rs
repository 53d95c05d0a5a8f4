//! Which parameters the lab refuses, in the words that PVE uses.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use serde_json::{Value, json};

use super::*;
use crate::release::Release;
use crate::schema::Schema;

/// Errors of a call, by parameter.
fn errors(operation: &str, params: Value) -> Errors {
    let operation = Schema::pinned(Release::Present).operation(operation).unwrap();
    let Value::Object(params) = params else { return Errors::new() };
    let mut params: Params = params.into_iter().collect();
    check(operation, &mut params).err().map(|refusal| refusal.errors).unwrap_or_default()
}

fn error(operation: &str, params: Value, name: &str) -> String {
    errors(operation, params).get(name).cloned().unwrap_or_default()
}

const CREATE: &str = "POST /nodes/{node}/qemu";

#[test]
fn types_are_checked_in_pves_words() {
    assert_eq!(error(CREATE, json!({"vmid": "abc"}), "vmid"), "type check ('integer') failed - got 'abc'");
    assert_eq!(
        error(CREATE, json!({"vmid": "1000000000"}), "vmid"),
        "invalid format - value does not look like a valid VM ID\n"
    );
    assert_eq!(
        error(CREATE, json!({"vmid": "100", "onboot": "yes"}), "onboot"),
        "type check ('boolean') failed - got 'yes'"
    );
    assert_eq!(error(CREATE, json!({"vmid": "100", "cores": "0"}), "cores"), "value must have a minimum value of 1");
    assert_eq!(
        error(CREATE, json!({"vmid": "100", "name": ["a", "b"]}), "name"),
        "type check ('string') failed - got ARRAY"
    );
    assert_eq!(
        error(CREATE, json!({"vmid": "100", "net0": {"model": "virtio"}}), "net0"),
        "type check ('string') failed - got HASH"
    );
}

#[test]
fn unknown_and_missing_parameters_are_named() {
    assert_eq!(error(CREATE, json!({"vmid": "100", "nosuch": "1"}), "nosuch"), UNDECLARED);
    assert_eq!(error(CREATE, json!({}), "vmid"), MISSING);
    assert_eq!(error("GET /version", json!({"x": "1"}), "x"), UNDECLARED);
    assert_eq!(
        error("PUT /nodes/{node}/qemu/{vmid}/config", json!({"force": "1"}), "delete"),
        "missing property - 'force' requires this property"
    );
}

#[test]
fn families_end_at_their_last_member() {
    let bridge = "virtio,bridge=vmbr0";
    assert_eq!(error(CREATE, json!({"vmid": "100", "net31": bridge}), "net31"), "");
    assert_eq!(error(CREATE, json!({"vmid": "100", "net32": bridge}), "net32"), UNDECLARED);
    assert_eq!(error(CREATE, json!({"vmid": "100", "net[n]": bridge}), "net[n]"), UNDECLARED);
    assert_eq!(error(CREATE, json!({"vmid": "100", "net00": bridge}), "net00"), UNDECLARED);
}

#[test]
fn property_strings_are_checked_inside() {
    assert!(error(CREATE, json!({"vmid": "100", "net0": "bogus"}), "net0").starts_with(
        "invalid format - format error\nnet0.model: value 'bogus' does not have a value in the enumeration"
    ));
    assert_eq!(
        error(CREATE, json!({"vmid": "100", "net0": "virtio,bridge=vmbr0,rate=abc"}), "net0"),
        "invalid format - format error\nnet0.rate: type check ('number') failed - got 'abc'\n"
    );
    assert_eq!(error(CREATE, json!({"vmid": "100", "net0": "virtio=BC:24:11:48:A9:F6,bridge=vmbr0"}), "net0"), "");
    assert_eq!(
        error(CREATE, json!({"vmid": "100", "memory": "1e3"}), "memory"),
        "invalid format - format error\nmemory.current: type check ('integer') failed - got '1e3'\n"
    );
}

#[test]
fn arrays_are_checked_item_by_item() {
    assert_eq!(
        error("POST /cluster/bulk-action/guest/start", json!({"vms": "100,200"}), "vms[0]"),
        "type check ('integer') failed - got '100,200'"
    );
    assert!(errors("POST /cluster/bulk-action/guest/start", json!({"vms": ["100", "200"]})).is_empty());
}

#[test]
fn every_pattern_of_the_schema_compiles() {
    fn walk(value: &Value, seen: &mut usize) {
        match value {
            Value::Object(map) => {
                if let Some(pattern) = map.get("pattern").and_then(Value::as_str) {
                    *seen += 1;
                    assert!(Regex::new(&perl(pattern)).is_ok(), "{pattern}");
                }
                map.values().for_each(|value| walk(value, seen));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, seen)),
            _ => {}
        }
    }
    let mut seen = 0;
    for operation in &Schema::pinned(Release::Present).operations {
        operation.parameters.values().for_each(|value| walk(value, &mut seen));
    }
    assert!(seen > 200, "{seen}");
}
