//! Decoding and encoding over the whole catalog, with text that somebody chose to do harm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use pvegate_generated::catalog::{OPERATIONS, operation};
use pvegate_generated::model::{Kind, Operation, Place, Segment, Text};
use pvegate_generated::patterns::PATTERNS;
use pvegate_generated::terms::{Release, Value as Grammar};
use serde_json::{Map, Value as Json, json};

use super::*;

mod calls;
mod kinds;
mod recorded;

/// Text that has escaped from a path somewhere before.
const HOSTILE: &[&str] = &[
    "..",
    ".",
    "",
    "/",
    "//",
    "a/b",
    "../..",
    "100/config",
    "pve1/qemu/999",
    "%2e%2e",
    "%2F",
    "..%2f..",
    "a%00b",
    "a\0b",
    "a\r\nb",
    "a b",
    "a?x=1",
    "a#b",
    "a;b",
    "a&b",
    "localhost",
    "PVE1",
    "\u{2215}",
    "\u{ff0f}",
    "a\\b",
    "local:iso/../../x",
    "local:..",
    "local:/etc/passwd",
    "10.0.0.0/8/..",
    "pool/../x",
    "~",
    "+",
    "%",
    "100 ",
    " 100",
    "0100",
    "1e2",
    "-1",
    "UPID:pve1/qemu:00000001:00000001:00000001:x:y:root@pam:",
];

/// A value that the grammar of a path parameter takes.
fn valid(operation: &Operation, name: &str) -> Json {
    let parameter = operation.parameter(name).unwrap();
    match parameter.kind {
        Kind::Text(Text { value, pattern, .. }) => match value {
            Grammar::Vmid => json!(100),
            Grammar::Node => json!("pve1"),
            Grammar::Volume => json!("local:iso/x.iso"),
            Grammar::Upid => json!("UPID:pve1:0000ABCD:0012D687:6543AB10:qmstart:100:root@pam!t:"),
            Grammar::User => json!("root@pam"),
            Grammar::Cidr | Grammar::CidrOrAlias => json!("10.0.0.0/8"),
            Grammar::Mac => json!("BC:24:11:00:00:01"),
            Grammar::Size => json!("1G"),
            _ => sample(pattern),
        },
        Kind::Integer(least, _) => json!(least.unwrap_or_default().max(0)),
        Kind::Choice(choices) => json!(choices.first().unwrap()),
        other => panic!("{} {name}: {other:?} in a path", operation.name),
    }
}

/// One of some plain words that matches the pattern.
fn sample(pattern: Option<u16>) -> Json {
    let words = ["local", "abc", "a1", "100-0", "vm:100", "0000:01:00.0", "1", "fab1", "zone1", "sdb", "a.b"];
    let regex = pattern.map(|at| regex::Regex::new(PATTERNS.get(usize::from(at)).unwrap()).unwrap());
    let word = words.iter().find(|word| regex.as_ref().is_none_or(|regex| regex.is_match(word)));
    json!(word.unwrap_or_else(|| panic!("no sample for pattern {pattern:?}")))
}

fn path_names(operation: &'static Operation) -> Vec<&'static str> {
    operation.params.iter().filter(|parameter| parameter.place == Place::Path).map(|parameter| parameter.name).collect()
}

/// Path arguments, one of them as given; others that are required are left out, so only the path counts.
fn path_arguments(operation: &'static Operation, hostile: Option<(&str, &str)>) -> Map<String, Json> {
    path_names(operation)
        .into_iter()
        .map(|name| match hostile {
            Some((which, text)) if which == name => (name.to_owned(), json!(text)),
            _ => (name.to_owned(), valid(operation, name)),
        })
        .collect()
}

/// Decodes the path alone: what a call may lack besides is not the question here.
fn path_args(operation: &'static Operation, arguments: &Map<String, Json>) -> Option<Args> {
    match decode(operation, arguments, Release::NEWEST) {
        Ok(args) => Some(args),
        Err(error) if error.problems.iter().all(|(_, problem)| problem == "is needed and missing") => {
            let list = arguments
                .iter()
                .map(|(name, json)| {
                    let one: Map<String, Json> = [(name.clone(), json.clone())].into_iter().collect();
                    let mut only = super::decode::decode_lenient(operation, &one);
                    only.pop().unwrap()
                })
                .collect();
            Some(Args { operation, list })
        }
        Err(_) => None,
    }
}

/// What PVE would see, worked out here once more: the segments, and nothing of the encoder.
fn reaches_only_itself(operation: &'static Operation, arguments: &Map<String, Json>) -> Result<(), String> {
    let Some(args) = path_args(operation, arguments) else { return Ok(()) };
    let Ok(encoded) = encode(&args) else { return Ok(()) };
    let decoded = percent_decode_str(&encoded.path).decode_utf8().map_err(|error| error.to_string())?;
    let mut steps = decoded.split('/').skip(1);
    for (at, segment) in operation.segments.iter().enumerate() {
        match segment {
            Segment::Literal(text) => {
                if steps.next() != Some(*text) {
                    return Err(format!("{} arrives at {decoded}", operation.name));
                }
            }
            Segment::Param(name) => {
                let last = at + 1 == operation.segments.len();
                let found = if last {
                    steps.by_ref().collect::<Vec<_>>().join("/")
                } else {
                    steps.next().unwrap_or_default().to_owned()
                };
                let wanted = args.get(name).map(|value| value.wire().into_owned()).unwrap_or_default();
                if found != wanted || found.split('/').any(|step| step == ".." || step == "." || step.is_empty()) {
                    return Err(format!("{}: `{name}` = {wanted:?} arrives as {found:?}", operation.name));
                }
            }
        }
    }
    if steps.next().is_some() { Err(format!("{} arrives at {decoded}", operation.name)) } else { Ok(()) }
}

#[test]
fn every_operation_can_be_written_and_arrives_at_itself() {
    for operation in OPERATIONS {
        let arguments = path_arguments(operation, None);
        let args = path_args(operation, &arguments)
            .unwrap_or_else(|| panic!("{}: {:?}", operation.name, decode(operation, &arguments, Release::NEWEST)));
        let encoded = encode(&args).unwrap_or_else(|error| panic!("{error}"));
        let arrived = arrival(operation.verb, &encoded.path).unwrap();
        assert_eq!(arrived.operation.name, operation.name);
    }
}

#[test]
fn hostile_text_reaches_no_other_operation() {
    for operation in OPERATIONS {
        for name in path_names(operation) {
            for text in HOSTILE {
                reaches_only_itself(operation, &path_arguments(operation, Some((name, text)))).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_text_reaches_no_other_operation(text: String, pick: prop::sample::Index) {
        let operation = *pick.get(&OPERATIONS);
        for name in path_names(operation) {
            prop_assert_eq!(reaches_only_itself(operation, &path_arguments(operation, Some((name, &text)))), Ok(()));
        }
    }

    #[test]
    fn decoding_arbitrary_json_never_panics(text: String, number: i64, pick: prop::sample::Index, which: prop::sample::Index) {
        let operation = *pick.get(&OPERATIONS);
        if !operation.params.is_empty() {
            let name = which.get(operation.params).name.replace("[n]", "0");
            for json in [json!(text), json!(number), json!([text]), json!({text.clone(): number}), json!(null), json!(true)] {
                let arguments: Map<String, Json> = [(name.clone(), json)].into_iter().collect();
                let _ = decode(operation, &arguments, Release::NEWEST);
            }
        }
    }

    #[test]
    fn what_is_taken_is_sent_as_it_was_given(text in "[ -~äöü\n]{1,40}") {
        let config = operation("PUT /nodes/{node}/qemu/{vmid}/config").unwrap();
        let arguments = json!({"node": "pve1", "vmid": 100, "description": text}).as_object().unwrap().clone();
        let args = decode(config, &arguments, Release::NEWEST).unwrap();
        let form = encode(&args).unwrap().form;
        let sent = form.strip_prefix("description=").unwrap();
        prop_assert_eq!(percent_decode_str(sent).decode_utf8().unwrap(), text);
    }
}

#[test]
fn every_pattern_compiles() {
    for pattern in PATTERNS {
        assert!(regex::Regex::new(pattern).is_ok(), "{pattern}");
    }
}

#[allow(clippy::needless_pass_by_value, reason = "calls read better with the value in place")]
fn refused(name: &str, arguments: Json) -> Vec<(String, String)> {
    decode(operation(name).unwrap(), arguments.as_object().unwrap(), Release::NEWEST).unwrap_err().problems
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let problems = refused(
        "GET /nodes/{node}/tasks",
        json!({"node": "pve1/qemu/999", "limit": "many", "errors": "yes", "wish": 1, "since": null}),
    );
    let names: Vec<&str> = problems.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["errors", "limit", "node", "since", "wish"]);
}

#[test]
fn values_are_of_their_type() {
    let tasks = "GET /nodes/{node}/tasks";
    for (arguments, name) in [
        (json!({}), "node"),
        (json!({"node": "localhost/.."}), "node"),
        (json!({"node": "pve1", "vmid": 99}), "vmid"),
        (json!({"node": "pve1", "limit": 1.5}), "limit"),
        (json!({"node": "pve1", "limit": -1}), "limit"),
        (json!({"node": "pve1", "source": "past"}), "source"),
        (json!({"node": "pve1", "userfilter": ""}), "userfilter"),
    ] {
        assert_eq!(refused(tasks, arguments.clone()).first().unwrap().0, name, "{arguments}");
    }
}

#[test]
fn property_strings_come_as_text_or_object() {
    let config = operation("PUT /nodes/{node}/qemu/{vmid}/config").unwrap();
    let form = |net0: Json| {
        let arguments = json!({"node": "pve1", "vmid": 100, "net0": net0}).as_object().unwrap().clone();
        decode(config, &arguments, Release::NEWEST)
            .map(|args| encode(&args).unwrap().form)
            .map_err(|error| error.problems)
    };
    assert_eq!(
        form(json!("virtio=BC:24:11:00:00:01,bridge=vmbr0")).unwrap(),
        "net0=virtio%3DBC%3A24%3A11%3A00%3A00%3A01%2Cbridge%3Dvmbr0"
    );
    assert_eq!(
        form(json!({"bridge": "vmbr0", "model": "virtio", "firewall": true})).unwrap(),
        "net0=virtio%2Cbridge%3Dvmbr0%2Cfirewall%3D1"
    );
    for bad in [
        json!("bridge=vmbr0"),
        json!("virtio,bridge=vmbr0,wish=1"),
        json!("virtio,firewall=perhaps"),
        json!("virtio,virtio"),
        json!({"model": "virtio", "bridge": "a,b=c"}),
        json!(7),
    ] {
        assert!(form(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn lists_are_checked_by_element_and_sent_with_commas() {
    let backup = operation("POST /nodes/{node}/vzdump").unwrap();
    let form = |vmid: Json| {
        let arguments = json!({"node": "pve1", "vmid": vmid}).as_object().unwrap().clone();
        decode(backup, &arguments, Release::NEWEST)
            .map(|args| encode(&args).unwrap().form)
            .map_err(|error| error.problems)
    };
    for same in [json!("100,101"), json!("100; 101"), json!("100 101"), json!([100, 101]), json!(["100", "101"])] {
        assert!(form(same.clone()).unwrap().contains("vmid=100%2C101"), "{same}");
    }
    for bad in [json!([]), json!(["100,101"]), json!("100,all"), json!([100, null])] {
        assert!(form(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn what_the_server_supplies_is_not_taken() {
    let config = "PUT /nodes/{node}/qemu/{vmid}/config";
    assert_eq!(
        refused(config, json!({"node": "pve1", "vmid": 100, "digest": "da39a3ee"})).first().unwrap().0,
        "digest"
    );
    assert_eq!(
        refused("POST /nodes/{node}/vzdump", json!({"node": "pve1", "vmid": 100, "remove": true})).first().unwrap().0,
        "remove"
    );
}

#[test]
fn a_path_names_one_storage_and_one_node() {
    let problems = refused(
        "GET /nodes/{node}/storage/{storage}/content/{volume}",
        json!({"node": "pve1", "storage": "nas", "volume": "local:iso/x.iso"}),
    );
    assert_eq!(problems.first().unwrap().0, "storage");
    let upid = "UPID:pve2:0000ABCD:0012D687:6543AB10:qmstart:100:root@pam:";
    let problems = refused("GET /nodes/{node}/tasks/{upid}/status", json!({"node": "pve1", "upid": upid}));
    assert_eq!(problems.first().unwrap().0, "node");
}

#[test]
fn secrets_do_not_show_in_errors_or_debug_output() {
    let create = operation("POST /nodes/{node}/lxc").unwrap();
    let arguments =
        json!({"node": "pve1", "vmid": 200, "ostemplate": "local:vztmpl/x.tar.zst", "password": "hunter2hunter2"})
            .as_object()
            .unwrap()
            .clone();
    let args = decode(create, &arguments, Release::NEWEST).unwrap();
    assert!(!format!("{args:?}").contains("hunter2"));
    let problems = refused(
        "POST /nodes/{node}/lxc",
        json!({"node": "pve1", "vmid": 200, "ostemplate": "x", "password": ["hunter2hunter2"]}),
    );
    assert!(!format!("{problems:?}").contains("hunter2"));
}

#[test]
fn a_cluster_of_an_older_release_lacks_what_came_later() {
    let flags = operation("GET /nodes/{node}/capabilities/qemu/cpu-flags").unwrap();
    let arguments = json!({"node": "pve1", "accel": "kvm"}).as_object().unwrap().clone();
    assert!(decode(flags, &arguments, Release::R9_2).is_ok());
    assert_eq!(decode(flags, &arguments, Release::R9_1).unwrap_err().problems.first().unwrap().0, "accel");
}
