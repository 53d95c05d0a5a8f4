//! What is fuzzed: every parser of input from outside, each with what has to hold for all that it takes.
//!
//! The targets in `fuzz_targets/` call these functions, and so does a test of the workspace, with the files of
//! `corpus/`: it keeps them compiling and true where nobody fuzzes.

use std::fmt::{Debug, Display};
use std::io::Write as _;
use std::str::FromStr;

use pvegate::args::{EncodeError, PropertyText, arrival, decode, encode, parameters};
use pvegate::config::Clusters;
use pvegate::pve::{Answered, Lane, Request, error_from};
use pvegate::tokens::Tokens;
use pvegate::values::{
    Cidr, CidrOrAlias, ConfigId, DiskSource, DnsName, EncodedText, FirewallName, Gib, Growth, Iface, Mac, NodeName,
    NodePriority, PathSegment, PbsUpid, PoolId, Properties, Size, SnapshotName, StorageId, Tag, Tags, TokenId, Upid,
    UserId, Vmid, VolumeId, encoded as encoding, list as lists, tags,
};
use pvegate_codegen::{apidoc as documents, pin};
use pvegate_generated::catalog::{OPERATIONS, operation};
use pvegate_generated::model::{Kind, Operation, Place, PropertyString};
use pvegate_generated::terms::Release;
use serde_json::{Map, Value};

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("address", address),
    ("apidoc", apidoc),
    ("arguments", arguments),
    ("config", config),
    ("encoded", encoded),
    ("list", list),
    ("name", name),
    ("property", property),
    ("refusal", refusal),
    ("size", size),
    ("tag", tag),
    ("upid", upid),
    ("volume", volume),
];

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// Whatever is taken is printed as it was given, and read as the same value again.
fn lossless<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    assert_eq!(value.to_string(), text);
    assert_eq!(text.parse().ok().as_ref(), Some(&value));
    Some(value)
}

/// For kinds that stand in paths: no way out of the segment, or segments, that it is for.
fn stays<T: FromStr + Display + PartialEq + Debug>(text: &str, slashes: bool) -> Option<T> {
    let value = lossless(text)?;
    assert!(slashes || !text.contains('/'));
    assert!(text.split('/').all(|part| !matches!(part, "" | "." | "..")));
    assert!(!text.contains(|character: char| matches!(character, '\\' | '%') || character.is_control()));
    Some(value)
}

/// Guests' numbers, and names without inner structure.
pub fn name(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Some(vmid) = stays::<Vmid>(text, false) {
        assert_eq!(Vmid::new(vmid.get()), Some(vmid));
    }
    stays::<NodeName>(text, false);
    stays::<NodePriority>(text, false);
    stays::<StorageId>(text, false);
    stays::<SnapshotName>(text, false);
    stays::<PoolId>(text, true);
    stays::<ConfigId>(text, false);
    stays::<FirewallName>(text, false);
    stays::<Iface>(text, false);
    stays::<DnsName>(text, false);
    stays::<PathSegment>(text, false);
}

/// Volume ids, and what a drive holds.
pub fn volume(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Some(volume) = stays::<VolumeId>(text, true) {
        assert_eq!(format!("{}:{}", volume.storage(), volume.path()), text);
        assert!(volume.base().is_none_or(|base| volume.path().starts_with(base)));
        let _ = volume.owner();
    }
    lossless::<DiskSource>(text);
}

/// Task ids of both servers.
pub fn upid(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let pve = stays::<Upid>(text, false);
    let pbs = stays::<PbsUpid>(text, false);
    assert!(pve.is_none() || pbs.is_none());
    if let Some(upid) = pve {
        let inside = format!(":{}:{}:{}:", upid.worker(), upid.subject(), upid.user());
        assert!(text.ends_with(&inside) && text.starts_with(&format!("UPID:{}:", upid.node())));
    }
}

/// Sizes of disks.
pub fn size(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Some(size) = lossless::<Size>(text) {
        assert_eq!(Size::of_bytes(size.bytes()).bytes(), size.bytes());
    }
    if let Some(growth) = lossless::<Growth>(text) {
        assert_eq!(growth.is_relative(), text.starts_with('+'));
        assert!(growth.bytes_after(0).is_some());
    }
    if let Some(gib) = lossless::<Gib>(text) {
        assert!(Size::parse(&format!("{gib}G")).is_ok_and(|size| size.bytes() == gib.bytes()));
    }
}

/// Tags, as they are written and as they are found.
pub fn tag(data: &[u8]) {
    let Some(text) = text(data) else { return };
    stays::<Tag>(text, false);
    if let Ok(list) = Tags::parse(text) {
        assert!(list.iter().map(Tag::as_str).eq(tags::names(text)));
        assert_eq!(Tags::parse(list.as_str()), Ok(list));
    }
    for name in tags::names(text) {
        assert!(tags::has(text, name));
    }
}

/// Property strings of every grammar: the first line picks one and names a key, the second is the string, the third a
/// value for the key.
pub fn property(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let mut lines = text.splitn(3, '\n');
    let (key, written, value) =
        (lines.next().unwrap_or_default(), lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let Some(grammar) = grammar(key) else { return };
    let key = key.trim_start_matches(|character: char| character.is_ascii_digit());
    let Ok(properties) = Properties::parse(grammar, written) else { return };
    assert_eq!(properties.to_string(), written);
    if let Ok(checked) = PropertyText::from_text(grammar, written) {
        assert_eq!(checked.as_str(), written);
    }
    let mut edited = properties.clone();
    if edited.set(key, value).is_ok() {
        assert_eq!(edited.get(key), Some(value));
        assert_eq!(Properties::parse(grammar, edited.as_str()).ok().as_ref(), Some(&edited));
    } else {
        assert_eq!(edited, properties);
    }
    edited.remove(key);
    assert_eq!(edited.get(key), None);
}

/// The grammar that the number before the key stands for.
fn grammar(key: &str) -> Option<&'static PropertyString> {
    let digits = key.len() - key.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let at: usize = key.get(..digits)?.parse().unwrap_or_default();
    let config = operation("POST /nodes/{node}/qemu")?;
    let mut all = config.params.iter().filter_map(|parameter| match parameter.kind {
        Kind::Property(grammar) => Some(grammar),
        _ => None,
    });
    all.nth(at)
}

/// `-list` strings.
pub fn list(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let joined = lists::join(lists::split(text));
    assert!(lists::split(&joined).eq(lists::split(text)));
    assert!(lists::split(text).all(lists::is_element));
    assert_eq!(lists::is_element(text), lists::split(text).eq([text]));
}

/// Addresses and networks, users and tokens.
pub fn address(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Some(cidr) = stays::<Cidr>(text, true) {
        assert!(cidr.prefix().is_none_or(|bits| bits <= if cidr.address().is_ipv4() { 32 } else { 128 }));
    }
    stays::<CidrOrAlias>(text, true);
    stays::<Mac>(text, false);
    let user = stays::<UserId>(text, false);
    if let Some(token) = stays::<TokenId>(text, false) {
        assert!(user.is_none(), "a token is no user");
        assert!(UserId::parse(token.user()).is_ok());
        assert_eq!(format!("{}!{}", token.user(), token.token()), text);
    }
}

/// Text that PVE keeps percent-encoded.
pub fn encoded(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(value) = EncodedText::parse(text) {
        let printed = value.to_string();
        assert!(encoding::is_encoded(&printed));
        assert_eq!(EncodedText::read(&printed).as_ref(), Some(&value));
        assert_eq!(EncodedText::parse(&printed), Ok(value));
    }
    if let Some(value) = EncodedText::read(text) {
        assert_eq!(EncodedText::read(&value.to_string()), Some(value));
    }
    let _ = parameters(text);
}

/// Arguments of a call: the first line is the operation's name, the rest is JSON. What is sent arrives at this operation
/// with these values, and is the same call when it is read again.
pub fn arguments(data: &[u8]) {
    let Some((first, json)) = text(data).and_then(|text| text.split_once('\n')) else { return };
    let Ok(Value::Object(given)) = serde_json::from_str(json) else { return };
    let operation = chosen(first);
    let Ok(args) = decode(operation, &given, Release::NEWEST) else { return };
    let sent = match encode(&args) {
        Ok(sent) => sent,
        Err(EncodeError::Elsewhere { .. } | EncodeError::TooLarge(_)) => return,
    };
    let arrived = arrival(operation.verb, &sent.path).map(|arrived| (arrived.operation.name, arrived.values));
    let Some((name, mut values)) = arrived.map(|(name, values)| {
        (name, values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>())
    }) else {
        panic!("{} arrives nowhere", sent.path)
    };
    assert_eq!(name, operation.name);
    let in_path = values.len();
    for pairs in [&sent.query, &sent.form] {
        values.extend(parameters(pairs).unwrap_or_else(|| panic!("{pairs} is not text")));
    }
    assert!(values.iter().all(|(_, value)| !value.contains('\0') && !value.is_empty()), "{values:?}");
    assert_eq!(in_path, operation.params.iter().filter(|parameter| parameter.place == Place::Path).count());
    let again = decode(operation, &as_json(operation, values), Release::NEWEST);
    match again.map(|again| encode(&again)) {
        Ok(Ok(again)) => assert_eq!(again, sent),
        other => panic!("{sent:?} is not taken again: {other:?}"),
    }
}

fn chosen(name: &str) -> &'static Operation {
    operation(name).unwrap_or_else(|| {
        let at = name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        OPERATIONS.get(at % OPERATIONS.len()).copied().unwrap_or(&Operation::BASE)
    })
}

/// What arrived, as a caller would give it: without what the server adds itself.
fn as_json(operation: &Operation, values: Vec<(String, String)>) -> Map<String, Value> {
    let mut arguments = Map::new();
    for (name, value) in values {
        if operation.fixed.iter().any(|(fixed, _)| *fixed == name) {
            continue;
        }
        match arguments.get_mut(&name) {
            None => {
                arguments.insert(name, Value::from(value));
            }
            Some(Value::Array(items)) => items.push(Value::from(value)),
            Some(single) => *single = Value::from(vec![single.take(), Value::from(value)]),
        }
    }
    arguments
}

/// Failed answers: the first line is the status and the reason phrase, the rest is the body. What a person is told is
/// one line without control characters.
pub fn refusal(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, body) = data.split_at(at);
    let digits = first.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
    let Some(status) = digits.and_then(|digits| digits.parse().ok()) else { return };
    let reason = first.get(4..).unwrap_or_default();
    let body = body.get(1..).unwrap_or_default();
    for lane in [Lane::Proxy, Lane::Slow] {
        let request = Request::new("GET /version", "/version", "").in_lane(lane);
        let answered = Answered { status, reason, content_type: "application/json", body };
        let error = error_from("lab", &request, answered);
        assert_eq!(error.status(), Some(status));
        assert!(!error.message().is_empty() && !error.message().chars().any(char::is_control), "{error}");
        assert!(error.parameters().values().all(|told| !told.chars().any(char::is_control)), "{error}");
        let _ = answered.judge("lab", &request);
    }
}

/// The apidoc of a release, as `cargo codegen pin` gets it. What is pinned is pinned as itself.
pub fn apidoc(data: &[u8]) {
    if let Ok(value) = documents::decode_source(data, "fuzzed") {
        let _ = documents::Apidoc::from_source(&value, "fuzzed");
    }
    if let Ok(pinned) = pin::pin("9.2", data, "fuzzed") {
        match pin::pin("9.2", pinned.json_text.as_bytes(), "pinned") {
            Ok(again) => assert_eq!(again.json_text, pinned.json_text),
            Err(error) => panic!("the pin is not readable: {error}"),
        }
    }
    if let Some(text) = text(data) {
        let _ = pin::parse_pins(text);
    }
}

/// The files of an operator. What is told about them names their problems, and nothing that would move a cursor.
pub fn config(data: &[u8]) {
    for ending in [".json", ".toml"] {
        let Ok(mut file) = tempfile::Builder::new().suffix(ending).tempfile() else { return };
        if file.write_all(data).is_err() {
            return;
        }
        let told = [Clusters::load(file.path()).err(), Tokens::load(file.path()).err()];
        for error in told.into_iter().flatten() {
            assert!(!error.problems().is_empty());
            let told = error.to_string();
            assert!(!told.contains(|character: char| character.is_control() && character != '\n'), "{told:?}");
        }
    }
}
