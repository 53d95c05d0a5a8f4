//! Whole calls of every operation, reads and writes: what PVE takes from the request is what was authorized, each
//! value included, whatever stands in the arguments.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Key, Kind, Operation, Parameter, Place, Segment, Text, Verb};
use pvegate_generated::terms::{Release, Role, Value as Grammar};
use serde_json::{Map, Value as Json, json};

use super::HOSTILE;
use crate::args::decode::{check_key, decode_lenient};
use crate::args::{Args, EncodeError, decode, encode};

/// Text that means something to a form, a list, a property string or a terminal, beside what [`HOSTILE`] has.
const HOSTILE_IN_FORMS: &[&str] = &[
    "a&node=pve2",
    "a=b=c",
    "a;digest=0",
    "a+b",
    "a%26b",
    "%3Bx=1",
    "&",
    ";",
    "=",
    "a,b=c",
    "virtio,bridge=vmbr0;tag=1",
    "a\nb",
    "a\u{2003}b",
    "\u{e4}\u{20ac}\u{1f600}",
    "\u{e9}%C3%A9",
    "\u{202e}abc",
    "<script>",
    "'; rm -rf /",
    "$(id)",
    "ssh-rsa AAAA+/B== cardno:000 111",
];

/// Plain words, at least one of which every pattern of the apidoc takes.
const WORDS: &[&str] = &[
    "local",
    "abc",
    "a1",
    "100-0",
    "vm:100",
    "0000:01:00.0",
    "1",
    "fab1",
    "zone1",
    "sdb",
    "a.b",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.0/8",
    "32G",
    "+1G",
    "host",
    "2026-01-01",
    "12:00",
    "0644",
    "eth0",
    "vmbr0",
    "sha256",
    "full,purge",
    "ab:cd",
    "http://a.test/x",
    "0123456789abcdef0123456789abcdef01234567",
    "permit",
    "65000:1",
    "ct:100",
    "a",
    "iothread",
    "65000",
    "wg0",
    "0-3",
    "100:1",
    "mtu=1500",
    "root@pam",
    "fuse;nfs",
    "u:0:100000:65536",
    "noatime;nosuid",
    "0:1",
    "/dev/sdb",
    "00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff",
    "acl;entry",
    "8086:10fb",
    "49.0001.1921.6800.1002.00",
    "mon.a",
    "scsi0",
    "0x500a098196141a09",
    "q35",
    "/dev/parport0",
    "/dev/ttyS0",
    "net0=1,net1=2",
    "/var/tmp/pveupload-0a",
    "5/minute",
    "ci:aabbcc",
    "pve2c-0123456789",
];

/// What a caller may give for a kind: some of it valid, most of it near to it.
fn candidates(kind: &Kind) -> Vec<Json> {
    match kind {
        Kind::Boolean => vec![json!(true), json!(false), json!(1), json!("0")],
        Kind::Integer(least, most) => {
            let some = [least.unwrap_or(0), most.unwrap_or(7), least.unwrap_or(1).max(5)];
            some.iter().flat_map(|number| [json!(number), json!(number.to_string())]).collect()
        }
        Kind::Number(least, most) => {
            vec![json!(least.unwrap_or(0.5)), json!(most.unwrap_or(0.25)), json!("1.5"), json!(1)]
        }
        Kind::Choice(choices) => choices.iter().map(|choice| json!(choice)).collect(),
        Kind::List(element) => {
            let mut one = candidates(element);
            one.push(json!(["abc", "a1"]));
            one.push(json!("abc; a1 ,b2,"));
            one
        }
        Kind::Array(element) => {
            let one = candidates(element);
            one.iter().map(|item| json!([item])).chain([json!([one.first(), one.get(1)])]).chain(one.clone()).collect()
        }
        Kind::Property(shape) => {
            let mut some: Vec<Json> = texts().map(Json::from).collect();
            let required = shape.keys.iter().filter(|key| key.required).map(|key| (key.name.to_owned(), first(key)));
            let required: Map<String, Json> = required.collect();
            for key in shape.keys.iter().filter(|key| key.alias.is_none()) {
                for value in candidates(&key.kind) {
                    let mut object = required.clone();
                    object.insert(key.name.to_owned(), value);
                    some.push(json!(object));
                }
            }
            some.push(json!(required));
            some
        }
        Kind::Text(Text { value, .. }) => grammatical(*value).iter().copied().chain(texts()).map(Json::from).collect(),
    }
}

/// One that the key takes.
fn first(key: &'static Key) -> Json {
    let text = |json: &Json| json.as_str().map_or_else(|| json.to_string(), str::to_owned);
    let mut some = candidates(&key.kind).into_iter();
    some.find(|json| check_key(key, &text(json)).is_ok())
        .unwrap_or_else(|| panic!("nothing goes for {}, {:?}", key.name, key.kind))
}

fn texts() -> impl Iterator<Item = &'static str> {
    WORDS.iter().chain(HOSTILE).chain(HOSTILE_IN_FORMS).copied()
}

fn grammatical(grammar: Grammar) -> &'static [&'static str] {
    match grammar {
        Grammar::Plain | Grammar::Snapshot | Grammar::Storage | Grammar::ConfigId | Grammar::Encoded => &[],
        Grammar::Vmid => &["100", "999999999"],
        Grammar::Node => &["pve1"],
        Grammar::NodePriority => &["pve1:2", "pve2"],
        Grammar::Volume | Grammar::VolumeOrPath => {
            &["local:iso/x.iso", "local:100/vm-100-disk-0.qcow2", "pbs:backup/vm/101/2025-09-15T13:54:03Z"]
        }
        Grammar::Drive | Grammar::Mount => &["local:8", "none", "/dev/sdb", "local-lvm:base-9000-disk-0/vm-100-disk-0"],
        Grammar::Pool => &["lab", "lab/web/front"],
        Grammar::Upid => &["UPID:pve1:0000ABCD:0012D687:6543AB10:qmstart:100:root@pam!t:"],
        Grammar::User => &["root@pam", "j\u{fc}rgen@pve"],
        Grammar::Iface => &["vmbr0", "eno1.20"],
        Grammar::Cidr | Grammar::CidrOrAlias => &["10.0.0.0/8", "fd00::/8"],
        Grammar::Mac => &["BC:24:11:00:00:01"],
        Grammar::Size => &["1G", "528K"],
        Grammar::Growth => &["+0.5G", "3G"],
        Grammar::Tag => &["ci", "_x+1.0"],
        Grammar::DnsName => &["web-1.example.org"],
    }
}

/// The name of one argument, for a family of its last member.
fn name_of(parameter: &Parameter) -> String {
    parameter.name.replace("[n]", &parameter.index.map(|(_, last)| last.to_string()).unwrap_or_default())
}

/// Parameters that a caller may give.
fn given(operation: &'static Operation) -> impl Iterator<Item = &'static Parameter> {
    let fixed = |parameter: &&Parameter| operation.fixed.iter().any(|(name, _)| *name == parameter.name);
    operation.params.iter().filter(move |parameter| parameter.role != Role::Digest && !fixed(parameter))
}

/// What decoding takes of the candidates of a parameter, by itself.
fn accepted(operation: &'static Operation, parameter: &'static Parameter) -> Vec<Json> {
    let name = name_of(parameter);
    let takes = |json: &Json| {
        let one: Map<String, Json> = [(name.clone(), json.clone())].into_iter().collect();
        !decode_lenient(operation, &one).is_empty()
    };
    let list: Vec<Json> = candidates(&parameter.kind).into_iter().filter(takes).collect();
    assert!(!list.is_empty(), "{}: nothing goes for `{name}`, {:?}", operation.name, parameter.kind);
    list
}

/// Decodes a call. What does not go together is put right: optional arguments are left out, others get `base`.
fn decoded(
    operation: &'static Operation,
    mut arguments: Map<String, Json>,
    base: &BTreeMap<String, Vec<Json>>,
) -> Args {
    for attempt in 0..6 {
        match decode(operation, &arguments, Release::NEWEST) {
            Ok(args) => return args,
            Err(error) => {
                for (name, _) in &error.problems {
                    let required = operation.parameter(name).is_some_and(|parameter| parameter.required);
                    match base.get(name).and_then(|list| list.first()) {
                        Some(first) if required => arguments.insert(name.clone(), first.clone()),
                        _ => arguments.remove(name),
                    };
                }
                if attempt > 1 {
                    // A volume and its storage, a task and its node.
                    for parameter in operation.params.iter().filter(|parameter| parameter.place == Place::Path) {
                        let first = base.get(parameter.name).and_then(|list| list.first()).unwrap().clone();
                        arguments.insert(parameter.name.to_owned(), first);
                    }
                }
            }
        }
    }
    panic!("{}: {:?}", operation.name, decode(operation, &arguments, Release::NEWEST))
}

/// What PVE takes from a request, worked out here once more, and compared with what was authorized.
/// Says whether it may be sent.
fn arrives(args: &Args) -> Result<bool, String> {
    let operation = args.operation();
    let encoded = match encode(args) {
        Ok(encoded) => encoded,
        Err(EncodeError::Elsewhere { .. }) => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    let with_body = matches!(operation.verb, Verb::Post | Verb::Put);
    let (sent, empty) = if with_body { (&encoded.form, &encoded.query) } else { (&encoded.query, &encoded.form) };
    if !empty.is_empty() {
        return Err(format!("{}: parameters at the wrong place: {empty}", operation.name));
    }
    let plain = |text: &str, also: &[u8]| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte) || also.contains(&byte))
    };
    if !plain(sent, b"&=") || !plain(&encoded.path, b"/") {
        return Err(format!("{}: reserved bytes in {} {sent}", operation.name, encoded.path));
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let mut arrived: Vec<(String, String)> = sent
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').map(|(name, value)| (decoded(name), decoded(value))).unwrap())
        .collect();
    let path = decoded(&encoded.path);
    let mut steps = path.split('/').skip(1);
    for (at, segment) in operation.segments.iter().enumerate() {
        match segment {
            Segment::Literal(text) if steps.next() == Some(text) => {}
            Segment::Literal(_) => return Err(format!("{} arrives at {path}", operation.name)),
            Segment::Param(name) => {
                let rest = at + 1 == operation.segments.len();
                let value =
                    if rest { steps.by_ref().collect::<Vec<_>>().join("/") } else { steps.next().unwrap().to_owned() };
                arrived.push(((*name).to_owned(), value));
            }
        }
    }
    if let Some((name, value)) = arrived.iter().find(|(_, value)| value.contains('\0') || value.is_empty()) {
        return Err(format!("{}: `{name}` arrives as {value:?}", operation.name));
    }
    same_values(args, &arrived)?;
    same_call(operation, &arrived, args)?;
    Ok(true)
}

/// Each argument arrives once with its text, arrays with one pair for each element; nothing else does.
fn same_values(args: &Args, arrived: &[(String, String)]) -> Result<(), String> {
    let mut wanted: Vec<(String, String)> = Vec::new();
    for arg in args.iter() {
        match &arg.value {
            crate::args::Value::Array(items) => {
                wanted.extend(items.iter().map(|item| (arg.name(), item.wire().into_owned())));
            }
            single => wanted.push((arg.name(), single.wire().into_owned())),
        }
    }
    let mut found = arrived.to_vec();
    // Elements of one array keep their order: the sort is stable and looks at names alone.
    wanted.sort_by(|one, other| one.0.cmp(&other.0));
    found.sort_by(|one, other| one.0.cmp(&other.0));
    if wanted == found { Ok(()) } else { Err(format!("{}: {wanted:?} arrives as {found:?}", args.operation().name)) }
}

/// What arrives, read as a call again, is the same call: printing lost nothing.
fn same_call(operation: &'static Operation, arrived: &[(String, String)], args: &Args) -> Result<(), String> {
    let mut arguments: BTreeMap<&str, Vec<Json>> = BTreeMap::new();
    for (name, value) in arrived.iter().filter(|(name, _)| !operation.fixed.iter().any(|(fixed, _)| fixed == name)) {
        arguments.entry(name).or_default().push(json!(value));
    }
    let one = |(name, mut values): (&str, Vec<Json>)| {
        let value = if values.len() == 1 { values.remove(0) } else { json!(values) };
        (name.to_owned(), value)
    };
    let arguments: Map<String, Json> = arguments.into_iter().map(one).collect();
    let again = decode(operation, &arguments, Release::NEWEST).map_err(|error| error.to_string())?;
    if encode(&again) == encode(args) {
        Ok(())
    } else {
        Err(format!("{}: {arguments:?} is another call", operation.name))
    }
}

#[test]
fn every_argument_of_every_operation_arrives_as_it_was_authorized() {
    let (mut calls, mut values, mut written) = (0, 0, BTreeSet::new());
    for operation in OPERATIONS {
        let accepted: BTreeMap<String, Vec<Json>> =
            given(operation).map(|parameter| (name_of(parameter), accepted(operation, parameter))).collect();
        let rounds = accepted.values().map(Vec::len).max().unwrap_or(1);
        for round in 0..rounds {
            let arguments: Map<String, Json> = accepted
                .iter()
                .map(|(name, list)| (name.clone(), list.get(round % list.len()).unwrap().clone()))
                .collect();
            let args = decoded(operation, arguments, &accepted);
            if arrives(&args).unwrap() {
                calls += 1;
                values += args.iter().count();
                written.insert(operation.name);
            }
        }
    }
    assert_eq!(written.len(), OPERATIONS.len());
    assert!(calls > 20_000 && values > 100_000, "{calls} calls with {values} values");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_in_any_argument_arrives_as_it_was_authorized(
        text in prop_oneof![
            any::<String>(),
            "[%&;=+,/. a-f0-9\u{0}\n\u{e4}\u{20ac}\\\\-]{1,24}",
            "(%2[fF]|\\.\\.|%00|;|&|=|%25|[a-z]|\u{fc}| ){1,12}",
        ],
        pick: prop::sample::Index,
        which: prop::sample::Index,
    ) {
        let operation = *pick.get(&OPERATIONS);
        let parameters: Vec<&'static Parameter> = given(operation).collect();
        if !parameters.is_empty() {
            let required = parameters.iter().filter(|parameter| parameter.required);
            let mut arguments: Map<String, Json> =
                required.map(|parameter| (name_of(parameter), accepted(operation, parameter).remove(0))).collect();
            let name = name_of(parameters.get(which.index(parameters.len())).unwrap());
            for json in [json!(text), json!([text.clone(), text])] {
                arguments.insert(name.clone(), json);
                if let Ok(args) = decode(operation, &arguments, Release::NEWEST) {
                    prop_assert!(arrives(&args).is_ok(), "{:?}", arrives(&args));
                }
            }
        }
    }
}
