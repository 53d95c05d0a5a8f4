//! Decides whether two calls wish the same: by cluster, operation and arguments, however they are written down.

use std::fmt::Write as _;

use pvegate_generated::model::Operation;
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

/// A digest over what is wished. Nothing can be read out of it: no argument that a call may have at once is a secret.
pub fn fingerprint(cluster: &str, operation: &Operation, arguments: &Map<String, Json>) -> String {
    let mut text = String::new();
    let whole = Json::from(vec![Json::from(cluster), Json::from(operation.name), Json::Object(arguments.clone())]);
    canonical(&whole, &mut text);
    Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing into a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Keys in order, and one form for what PVE takes for the same: `100` and `"100"`, `true`, `1` and `"1"`.
fn canonical(value: &Json, text: &mut String) {
    match value {
        Json::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort_unstable();
            text.push('{');
            for key in keys {
                let _ = write!(text, "{}:", Json::from(key.as_str()));
                canonical(object.get(key).unwrap_or(&Json::Null), text);
                text.push(',');
            }
            text.push('}');
        }
        Json::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Json::Bool(flag) => text.push_str(if *flag { "\"1\"" } else { "\"0\"" }),
        Json::Number(number) => {
            // Some clients write 2.0 for 2.
            let number = number.to_string();
            let _ = write!(text, "\"{}\"", number.strip_suffix(".0").unwrap_or(&number));
        }
        Json::Null | Json::String(_) => {
            let _ = write!(text, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use pvegate_generated::catalog::{self, OPERATIONS};
    use pvegate_generated::terms::{Role, Tier};
    use serde_json::json;

    use super::*;

    fn of(cluster: &str, operation: &str, arguments: &Json) -> String {
        fingerprint(cluster, catalog::operation(operation).unwrap(), arguments.as_object().unwrap())
    }

    #[test]
    fn the_same_wish_has_one_fingerprint() {
        let start = "POST /nodes/{node}/qemu/{vmid}/status/start";
        let one = of("lab", start, &json!({"vmid": 100, "timeout": 5}));
        for same in [
            json!({"timeout": "5", "vmid": "100"}),
            json!({"timeout": 5.0, "vmid": 100}),
            json!({"vmid": 100, "timeout": 5}),
        ] {
            assert_eq!(one, of("lab", start, &same), "{same}");
        }
        let config = "PUT /nodes/{node}/qemu/{vmid}/config";
        assert_eq!(of("lab", config, &json!({"onboot": true})), of("lab", config, &json!({"onboot": 1})));
        for (cluster, operation, other) in [
            ("lab", start, json!({"vmid": 101, "timeout": 5})),
            ("lab", start, json!({"vmid": 100})),
            ("lab", start, json!({"vmid": 100, "timeout": 50})),
            ("lab2", start, json!({"vmid": 100, "timeout": 5})),
            ("lab", "POST /nodes/{node}/qemu/{vmid}/status/stop", json!({"vmid": 100, "timeout": 5})),
        ] {
            assert_ne!(one, of(cluster, operation, &other), "{cluster} {operation} {other}");
        }
        // What stands in one argument cannot pass for two.
        assert_ne!(
            of("lab", config, &json!({"name": "a", "tags": "b"})),
            of("lab", config, &json!({"name": "a\",\"tags\":\"b"}))
        );
    }

    #[test]
    fn no_argument_that_is_stored_is_a_secret() {
        for operation in OPERATIONS.iter().filter(|operation| operation.tier == Tier::Low) {
            for name in operation.low_args {
                let parameter = operation.parameter(name).unwrap();
                assert_ne!(parameter.role, Role::Secret, "{} {name}", operation.name);
            }
        }
    }
}
