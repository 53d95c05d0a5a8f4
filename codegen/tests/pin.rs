//! The pin: what is read, what is refused, what is written, and what an upgrade report says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use pvegate_codegen::apidoc::{Additional, Apidoc, Check, Format, GroupsParam, Kind, Permissions, UserIdParam};
use pvegate_codegen::{diff, pin};
use serde_json::Value;

const SMALL: &str = include_str!("data/small.json");
const SMALL_JS: &str = include_str!("data/small.js");
const BROKEN: &str = include_str!("data/broken.json");
const COMPOSED: &str = include_str!("data/composed.json");
const COUNTS: [(&str, usize); 3] = [("8.4", 605), ("9.1", 646), ("9.2", 675)];

fn schema_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema")
}

/// The expected facts, which are not part of the repository.
fn shared() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = std::env::var_os("PVEGATE_SHARED").map_or_else(beside, PathBuf::from).join("pve");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no expected facts; set PVEGATE_SHARED to the folder that has pve/apidoc-facts-9.2.json");
    None
}

fn pinned(text: &str) -> String {
    pin::pin("9.2", text.as_bytes(), "small").unwrap().json_text
}

fn refusal(text: &str) -> String {
    pin::pin("9.2", text.as_bytes(), "broken").unwrap_err().to_string()
}

#[test]
fn pins_equal_the_expected_facts() {
    use std::io::Read as _;
    let Some(shared) = shared() else { return };
    for (release, methods) in COUNTS {
        let packed = fs::read(shared.join(format!("apidoc-{release}.json.gz"))).unwrap();
        let mut source = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut source).unwrap();
        let pinned = pin::pin(release, &source, "apidoc.json").unwrap();
        let facts = fs::read_to_string(shared.join(format!("apidoc-facts-{release}.json"))).unwrap();
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(value(&pinned.json_text) == value(&facts), "{release} differs from the expected facts");
        assert_eq!(pinned.methods, methods);

        let record =
            pin::load_pins(&schema_dir()).unwrap().into_iter().find(|loaded| loaded.pin.release == release).unwrap();
        assert!(record.text == pinned.json_text, "the committed pin of {release} is not what its source gives");
        assert_eq!(
            (record.pin.sha256, record.pin.paths, record.pin.methods),
            (pinned.sha256, pinned.paths, pinned.methods)
        );
    }
}

#[test]
fn committed_pins_are_canonical_and_have_their_counts() {
    let pins = pin::load_pins(&schema_dir()).unwrap();
    let found: Vec<(&str, usize)> =
        pins.iter().map(|loaded| (loaded.pin.release.as_str(), loaded.apidoc.methods.len())).collect();
    assert_eq!(found, COUNTS);
    for loaded in &pins {
        let again = pin::pin(&loaded.pin.release, loaded.text.as_bytes(), "apidoc.json").unwrap();
        assert!(again.json_text == loaded.text, "pinning the pin of {} changes it", loaded.pin.release);
        assert!(loaded.text.ends_with("\n]\n") && !loaded.text.contains('\r'));
        // `min` and `max` (4), `enum: null` (1), `default: null` (4): for the fixups, and nothing else.
        assert_eq!(loaded.apidoc.defects.len(), 9, "{:#?}", loaded.apidoc.defects);
    }
}

#[test]
fn no_prose_is_left() {
    fn search(value: &Value, place: &str) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let prose =
                        ["description", "verbose_description", "title", "format_description"].contains(&key.as_str());
                    // A property may be called so; it is described by an object, prose is a text.
                    assert!(!prose || value.is_object(), "{place}.{key} is prose");
                    search(value, &format!("{place}.{key}"));
                }
            }
            Value::Array(list) => list.iter().for_each(|value| search(value, place)),
            _ => {}
        }
    }
    for loaded in pin::load_pins(&schema_dir()).unwrap() {
        search(&serde_json::from_str(&loaded.text).unwrap(), &loaded.pin.release);
    }
    let text = pinned(SMALL);
    search(&serde_json::from_str(&text).unwrap(), "small");
    assert!(text.contains(r#""description": {"type": "string"}"#), "a column called description is a fact:\n{text}");
    assert!(!text.contains("made up"));
}

#[test]
fn only_a_typetext_that_says_something_is_kept() {
    let value: Value = serde_json::from_str(&pinned(SMALL)).unwrap();
    let parameters = &value[0]["children"][0]["children"][1]["info"]["POST"]["parameters"]["properties"];
    let kept: Vec<&String> = parameters
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, schema)| schema.get("typetext").is_some())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(kept, ["cpu", "when"]);
}

#[test]
fn one_parameter_is_one_line() {
    let before = pinned(SMALL);
    let after = pinned(&SMALL.replace(r#""when": {"#, r#""watch": { "type": "string", "optional": 1 }, "when": {"#));
    let lines: BTreeSet<&str> = before.lines().collect();
    let fresh: Vec<&str> = after.lines().filter(|line| !lines.contains(line)).collect();
    assert_eq!(fresh, [r#"                    "watch": {"optional": 1, "type": "string"},"#]);
    assert_eq!(after.lines().count(), before.lines().count() + 1);
}

#[test]
fn order_in_the_source_does_not_matter() {
    let value: Value = serde_json::from_str(SMALL).unwrap();
    let mut nodes = value.as_array().unwrap().clone();
    nodes.reverse();
    assert_eq!(pinned(&Value::Array(nodes).to_string()), pinned(SMALL));
    assert_eq!(pinned(&pinned(SMALL)), pinned(SMALL));
}

#[test]
fn javascript_is_decoded_and_not_executed() {
    assert_eq!(pinned(SMALL_JS), pinned(SMALL));
    assert_eq!(pinned(&SMALL_JS.replace("const apiSchema", "var pveapi")), pinned(SMALL));
    for other in ["", "<html>[]</html>", "alert([1])", "{\"data\": []}", "\u{1f}\u{8b}[", "const apiSchema = {}"] {
        assert!(refusal(other).contains("neither apidoc.json"), "{other:?}: {}", refusal(other));
    }
    assert!(pin::pin("9.2", b"\x1f\x8b\xff[", "packed").unwrap_err().to_string().contains("unpacked"));
}

#[test]
fn truncated_files_are_refused_wherever_they_end() {
    for text in [SMALL, SMALL_JS] {
        let end = text.rfind("]\n").unwrap().min(SMALL.len() + 17);
        for length in (20..end.min(SMALL.len() - 2)).step_by(37) {
            assert!(refusal(&text[..length]).contains("truncated"), "{}", refusal(&text[..length]));
        }
    }
    assert!(refusal(&format!("{SMALL}]")).contains("not valid JSON"));
    assert!(refusal("[]").contains("holds no nodes"));
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let text =
        SMALL.replace(r#""bios": {"#, r#""vmid": { "type": "string" }, "tag": { "type": "integer" }, "bios": {"#);
    let message = refusal(&text);
    assert!(message.contains("2 problems"), "{message}");
    for name in ["vmid", "tag"] {
        assert!(message.contains(&format!("parameters.properties.{name}: stands twice")), "{message}");
    }
}

#[test]
fn everything_unknown_is_listed_with_its_place() {
    let message = refusal(BROKEN);
    for line in [
        "/a: unknown key `colour`",
        "/a: info: unknown verb `PATCH`",
        "GET /a: unknown key `cached`",
        "GET /a: method: is not GET",
        "GET /a: allowtoken: is 2, not 0 or 1",
        r#"GET /a: proxyto: is "elsewhere", which is not a parameter"#,
        r#"GET /a: parameters.properties.one.type: unknown type "float""#,
        "GET /a: parameters.properties.two: unknown key `anyOf`",
        "GET /a: parameters.properties.three.format.key: unknown key `secret`",
        r#"GET /a: parameters.properties.four.minimum: is "many", not a number"#,
        "GET /a: parameters.properties.five: unknown key `allOf`",
        "GET /a: parameters.properties.six: has `oneOf` without `type-property`",
        "GET /a: parameters.properties.six.oneOf.0: is a variant without `instance-types`",
        "GET /a: parameters.properties.seven.optional: is true, not 0 or 1",
        "GET /a: parameters.properties.eight: has `instance-types`, but no `type-property` says of what",
        "GET /a: parameters.properties.nine.enum.0: is 1, not a text",
        "GET /a: parameters: unknown key `required`",
        "GET /a: permissions: unknown key `role`",
        "GET /a: permissions.check.1.2: names no privilege",
        r#"GET /a: permissions.check.2: unknown permission check "group" with 1 operands"#,
        r#"GET /a: permissions.check.3: unknown option of perm: "some""#,
        "GET /a: returns.links.0: unknown key `method`",
        "/a: a second node with this path",
        "/a: `leaf` does not say whether there are `children`",
        "/a: info: holds no verb",
        "/b/c: `path` is not that of its parent (\"\") and `text` (\"b\")",
        "/b/c: children: is 3, not a list",
        "/[3]: has no `path`",
        "/[4]: is 7, not an object",
    ] {
        assert!(message.lines().any(|found| found.trim_start() == line), "{line}\nis not in\n{message}");
    }
}

#[test]
fn nothing_is_written_unless_all_was_understood() {
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("schema");
    let source = folder.path().join("apidoc.js");
    fs::write(&source, BROKEN).unwrap();
    assert!(pin::run("9.2", &source, &schema).is_err());
    fs::write(&source, SMALL_JS).unwrap();
    for release in ["", "9", "9.2.3", "09.2", "9.x", "../9.2", "+9.2"] {
        assert!(pin::run(release, &source, &schema).unwrap_err().to_string().contains("not a release"), "{release}");
    }
    assert!(!schema.exists());

    assert!(pin::run("9.2", &source, &schema).unwrap().contains("4 operations on 3 paths"));
    pin::run("9.10", &source, &schema).unwrap();
    pin::run("8.4", &source, &schema).unwrap();
    let releases: Vec<String> = pin::load_pins(&schema).unwrap().into_iter().map(|loaded| loaded.pin.release).collect();
    assert_eq!(releases, ["8.4", "9.2", "9.10"]);
    let record = fs::read_to_string(schema.join("pins.toml")).unwrap();
    pin::run("9.2", &source, &schema).unwrap();
    assert_eq!(fs::read_to_string(schema.join("pins.toml")).unwrap(), record);

    // Somebody edits a pin by hand.
    let path = pin::path_of(&schema, "9.2");
    fs::write(&path, pinned(COMPOSED)).unwrap();
    assert!(
        pin::load_pins(&schema)
            .unwrap_err()
            .to_string()
            .contains("has 1 paths and 1 operations, but pins.toml says 3 and 4")
    );
    fs::write(&path, SMALL).unwrap();
    assert!(pin::load_pins(&schema).unwrap_err().to_string().contains("GET /version: `description` is prose"));
    fs::write(schema.join("pins.toml"), record.replace("paths", "roads")).unwrap();
    assert!(pin::load_pins(&schema).unwrap_err().to_string().contains("roads"));
}

#[test]
fn known_mistakes_are_errors_until_a_fixup_repairs_them() {
    let text = pinned(SMALL);
    assert_eq!(Apidoc::parse(&text, "small").unwrap().defects.len(), 3);
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let message = Apidoc::from_value(&value, "small").unwrap_err().to_string();
    for problem in ["`min` is a typo of `minimum`", "`enum: null` names no values", "`default: null` is not a value"] {
        let line = format!(
            "PUT /nodes/{{node}}/apt: parameters.properties.id{}: {problem}; repair it in fixups.toml",
            match problem.as_bytes()[1] {
                b'm' => ".min",
                b'e' => ".enum",
                _ => ".default",
            }
        );
        assert!(message.contains(&line), "{line}\nis not in\n{message}");
    }
    value[0]["children"][0]["children"][0]["info"]["PUT"]["parameters"]["properties"]["id"] =
        serde_json::json!({"type": "string"});
    assert!(Apidoc::from_value(&value, "small").unwrap().defects.is_empty());
}

#[test]
fn facts_are_typed() {
    let apidoc = Apidoc::parse(&pinned(SMALL), "small").unwrap();
    let create = &apidoc.methods["POST /nodes/{node}/qemu"];
    assert!(create.protected && create.allow_token && create.proxyto.as_deref() == Some("node"));
    let parameter = |name: &str| &create.parameters.properties[name];
    assert_eq!(parameter("vmid").maximum.as_ref().unwrap().as_i64(), Some(999_999_999));
    assert_eq!(parameter("limit").minimum.as_ref().unwrap().as_i64(), Some(0), "a number in a string");
    assert!(!parameter("limit").required() && parameter("vmid").required());
    let Some(Format::Nested(keys)) = &parameter("net[n]").format else { panic!("a property string") };
    assert!(keys["model"].default_key);
    assert_eq!(
        (keys["virtio"].alias.as_deref(), keys["virtio"].key_alias.as_deref()),
        (Some("macaddr"), Some("model"))
    );
    assert!(!keys["virtio"].required());

    let perm = |path: &str, privs: &[&str], any, require_param: Option<&str>| Check::Perm {
        path: path.to_owned(),
        privs: privs.iter().map(ToString::to_string).collect(),
        any,
        require_param: require_param.map(str::to_owned),
    };
    let expected = Check::Or(vec![
        perm("/vms/{vmid}", &["VM.Allocate"], false, None),
        Check::And(vec![
            perm("/pool/{pool}", &["VM.Allocate", "Pool.Audit"], true, Some("pool")),
            Check::UserIdGroup { privs: vec!["User.Modify".to_owned()], groups_param: Some(GroupsParam::Create) },
        ]),
        Check::UserIdParam(UserIdParam::Own),
        Check::UserIdParam(UserIdParam::AllocateUser),
        Check::PermModify("{path}".to_owned()),
    ]);
    assert_eq!(create.permissions, Some(Permissions::Check(expected)));

    let list = &apidoc.methods["GET /nodes/{node}/qemu"];
    assert!(list.permissions.is_none() && list.proxyto.is_none() && !list.protected);
    assert_eq!(list.returns.links[0].href, "{vmid}");
    assert_eq!(apidoc.methods["GET /version"].permissions, Some(Permissions::AllUsers));
}

#[test]
fn composed_parameters_are_flattened_without_losing_one() {
    let apidoc = Apidoc::parse(&pinned(COMPOSED), "composed").unwrap();
    let parameters = &apidoc.methods["POST /rules"].parameters;
    assert_eq!((parameters.kind, &parameters.additional_properties), (Some(Kind::Object), &Some(Additional::Denied)));
    let found: Vec<(&str, bool, String)> = parameters
        .properties
        .iter()
        .map(|(name, schema)| {
            (
                name.as_str(),
                schema.required(),
                format!("{}={}", schema.type_property.as_deref().unwrap_or(""), schema.instance_types.join("|")),
            )
        })
        .collect();
    let row = |name, required, condition: &str| (name, required, condition.to_owned());
    assert_eq!(
        found,
        [
            row("affinity", false, "type=resource-affinity"),
            row("comment", false, "="),
            row("mode", false, "type=node-affinity|resource-affinity"),
            row("nodes", false, "type=node-affinity"),
            row("resources", true, "type=node-affinity|resource-affinity"),
            row("rule", true, "="),
            row("strict", false, "type=node-affinity"),
            row("type", true, "="),
        ]
    );
    assert_eq!(parameters.properties["type"].enum_values.as_ref().unwrap().len(), 2);
    let mode = &parameters.properties["mode"];
    assert_eq!(mode.kind, Some(Kind::String));
    let variants: Vec<_> = mode
        .one_of
        .iter()
        .map(|variant| (variant.instance_types.join("|"), variant.enum_values.clone().unwrap().join("|")))
        .collect();
    assert_eq!(
        variants,
        [("node-affinity".to_owned(), "a|b".to_owned()), ("resource-affinity".to_owned(), "c".to_owned())]
    );
}

#[test]
fn compositions_beyond_that_are_refused() {
    let message = refusal(&COMPOSED.replace(r#""type-property": "type","#, ""));
    assert!(message.contains("POST /rules: parameters.allOf.1: has no `type-property`"), "{message}");
    let message = refusal(&COMPOSED.replace(r#""instance-types": ["node-affinity"],"#, ""));
    assert!(message.contains("parameters.allOf.1.oneOf.0: is a variant without `instance-types`"), "{message}");
    let message = refusal(&COMPOSED.replace(r#""allOf": ["#, r#""anyOf": [], "allOf": ["#));
    assert!(message.contains("POST /rules: parameters: unknown key `anyOf`"), "{message}");
    let message = refusal(&COMPOSED.replace(r#""strict": {"#, r#""comment": { "type": "integer" }, "strict": {"#));
    assert!(message.contains("`comment` is described differently in two parts"), "{message}");
    let message = refusal(&COMPOSED.replace(r#""returns": {"#, r#""returns": { "allOf": [],"#));
    assert!(message.contains("POST /rules: returns: unknown key `allOf`"), "{message}");
}

#[test]
fn a_wrapper_is_required_only_if_every_variant_is() {
    let pins = pin::load_pins(&schema_dir()).unwrap();
    let newest = &pins.last().unwrap().apidoc;
    let wrappers: Vec<_> = newest
        .methods
        .values()
        .flat_map(|method| &method.parameters.properties)
        .filter(|(_, schema)| !schema.one_of.is_empty())
        .collect();
    assert_eq!(wrappers.len(), 6);
    assert!(wrappers.iter().all(|(_, schema)| !schema.required()));
    assert!(wrappers.iter().all(|(_, schema)| schema.one_of.iter().all(|variant| variant.type_property.is_some())));
}

fn section<'a>(report: &'a str, title: &str) -> &'a str {
    let start = report.find(&format!("\n## {title}")).unwrap_or_else(|| panic!("no {title} in\n{report}"));
    let rest = &report[start + 1..];
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}

#[test]
fn the_report_lists_exactly_the_added_operations() {
    let report = diff::run(&schema_dir(), "9.1", "9.2").unwrap();
    let pins = pin::load_pins(&schema_dir()).unwrap();
    let names = |index: usize| pins[index].apidoc.methods.keys().cloned().collect::<BTreeSet<String>>();
    let expected: Vec<String> = names(2).difference(&names(1)).cloned().collect();
    assert_eq!(expected.len(), 29);
    let added = section(&report, "Operations added: 29");
    let listed: Vec<&str> = added.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next()).collect();
    assert_eq!(listed, expected);
    assert!(section(&report, "Operations removed: 0").contains("None."));
    assert!(section(&report, "Parameters removed").contains("`maxfiles` of 3 operations"));
    assert!(
        section(&report, "Parameters tightened")
            .contains("`name` of `GET /nodes/{node}/apt/changelog`: pattern none -> ")
    );
    assert!(!section(&report, "Parameters tightened").contains("required"), "9.2 requires nothing new");
    for name in &expected {
        assert!(section(&report, "Overlay lines").contains(&format!("\n\"{name}\" = {{ tier = ")), "{name}");
    }
    let lines = section(&report, "Overlay lines").lines();
    let overlay: String = lines.filter(|line| line.starts_with('"')).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(toml::from_str::<toml::Table>(&overlay).unwrap().len(), 29);
}

#[test]
fn the_report_tells_tightened_from_loosened() {
    let changed = SMALL
        .replace(r#""maximum": 999999999, "typetext": "<integer> (100 - 999999999)""#, r#""maximum": 9999999999"#)
        .replace(r#""minimum": 100"#, r#""minimum": 200"#)
        .replace(
            r#""enum": ["seabios", "ovmf"], "optional": 1, "typetext": "<ovmf | seabios>""#,
            r#""enum": ["ovmf", "other"]"#,
        )
        .replace(r#""tag": {"#, r#""label": {"#)
        .replace(r#""protected": 1, "proxyto": "node""#, r#""protected": 0"#)
        .replace(r#"["perm", "/vms/{vmid}", ["VM.Allocate"]],"#, "")
        .replace(r#""enum": ["virtio", "e1000"]"#, r#""enum": ["virtio"]"#)
        .replace(r#""title": { "type": "string", "optional": 1 }"#, r#""title": { "type": "integer", "optional": 1 }"#)
        .replace(r#""when": { "type": "string""#, r#""when": { "type": "string", "default": "now""#)
        .replace(
            r#""GET": {
                "method": "GET""#,
            r#""DELETE": {
                "method": "DELETE""#,
        );
    let read = |text: &str| Apidoc::parse(&pinned(text), "small").unwrap();
    let report = diff::report(&read(SMALL), "1.0", &read(&changed), "1.1");
    let create = "of `POST /nodes/{node}/qemu`";
    for (title, line) in [
        ("Operations added: 1", "- `DELETE /nodes/{node}/qemu`: returns array, root@pam only".to_owned()),
        ("Operations removed: 1", "- `GET /nodes/{node}/qemu`".to_owned()),
        ("Parameters added: 1", format!("- `label` {create}: string")),
        ("Parameters removed: 1", format!("- `tag` {create}: gone")),
        ("Parameters tightened: 3", format!("- `bios` {create}: now required, value removed: `seabios`")),
        ("Parameters tightened: 3", format!("- `net[n].model` {create}: value removed: `e1000`")),
        ("Parameters tightened: 3", format!("- `vmid` {create}: minimum `100` -> `200`")),
        ("Parameters loosened: 2", format!("- `bios` {create}: value added: `other`")),
        ("Parameters loosened: 2", format!("- `vmid` {create}: maximum `999999999` -> `9999999999`")),
        ("Parameters changed otherwise: 1", format!("- `when` {create}: default none -> `\"now\"`")),
        ("Flags moved: 1", "- `POST /nodes/{node}/qemu`: protected 1 -> 0, proxyto node -> none".to_owned()),
        ("Permissions changed: 1", "- `POST /nodes/{node}/qemu`: `(VM.Allocate on /vms/{vmid}) or ".to_owned()),
        ("Answers changed: 1", "- `GET /version`: `title` string -> integer".to_owned()),
        ("Overlay lines", r#""DELETE /nodes/{node}/qemu" = { tier = "destructive", summary = "TO DECIDE", offered = { never = "root-only" }"#.to_owned()),
    ] {
        assert!(section(&report, title).lines().any(|found| found.starts_with(&line)), "{line}\nis not in\n{report}");
    }
    let same = diff::report(&read(SMALL), "1.0", &read(SMALL), "1.1");
    assert!(same.contains("0 added, 0 removed, 0 changed"), "{same}");
}

#[test]
fn a_release_that_is_not_pinned_is_named() {
    let message = diff::run(&schema_dir(), "9.1", "9.9").unwrap_err().to_string();
    assert!(message.contains("\"9.9\" is not pinned; there are 8.4, 9.1, 9.2"), "{message}");
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), wrap in any::<bool>()) {
        let source = if wrap { [b"var pveapi = [".as_slice(), &bytes].concat() } else { bytes };
        let _ = pin::pin("9.2", &source, "arbitrary");
    }

    #[test]
    fn damaged_files_never_panic(at in 0..SMALL.len(), with in any::<u8>(), composed in any::<bool>()) {
        let mut bytes = if composed { COMPOSED.as_bytes().to_vec() } else { SMALL.as_bytes().to_vec() };
        let at = at % bytes.len();
        bytes[at] = with;
        if let Ok(pinned) = pin::pin("9.2", &bytes, "damaged") {
            let again = pin::pin("9.2", pinned.json_text.as_bytes(), "again").unwrap();
            prop_assert_eq!(again.json_text, pinned.json_text);
        }
    }
}
