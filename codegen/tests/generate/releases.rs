//! Releases to come, made up by hand: what the schema may bring and nobody has decided.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pvegate_codegen::files::Inputs;
use pvegate_codegen::model::{Kind, Model};
use pvegate_codegen::problem::Problems;
use serde_json::{Value, json};

use crate::schema::real;

/// A `schema/` of two made-up releases with a small overlay.
struct Small {
    older: Vec<Value>,
    newest: Vec<Value>,
    overlay: BTreeMap<&'static str, String>,
}

fn node(path: &str, verb: &str, info: &Value) -> Value {
    let mut info = info.clone();
    let object = info.as_object_mut().unwrap();
    object.insert("method".to_owned(), json!(verb));
    object.insert("name".to_owned(), json!("made_up"));
    object.insert("allowtoken".to_owned(), json!(1));
    object.insert("permissions".to_owned(), json!({"check": ["perm", "/", ["Sys.Audit"]]}));
    json!({"path": path, "text": path.trim_start_matches('/'), "leaf": 1, "info": {verb: info}})
}

fn plain_get() -> Value {
    json!({"parameters": {"additionalProperties": 0, "properties": {}}, "returns": {"type": "object"}})
}

impl Small {
    fn new() -> Self {
        let mut overlay = BTreeMap::new();
        overlay.insert(
            "cluster.toml",
            "[operations]\n\"GET /thing\" = { tier = \"read\", summary = \"Read the thing\" }\n".to_owned(),
        );
        overlay.insert("roles.toml", "roles = []\n".to_owned());
        overlay.insert(
            "params.toml",
            "words = []\n[wire]\ncluster = \"-\"\nvmid = \"-\"\nfields = \"-\"\nlimit = \"-\"\ncursor = \"-\"\nevery_node = \"-\"\nidempotency_key = \"-\"\n"
                .to_owned(),
        );
        overlay.insert("privileges.toml", "[operations]\n[qemu]\n[lxc]\n".to_owned());
        Self {
            older: vec![node("/thing", "GET", &plain_get())],
            newest: vec![node("/thing", "GET", &plain_get())],
            overlay,
        }
    }

    fn model(&self) -> Result<Model, Problems> {
        let mut files = BTreeMap::new();
        let mut pins = String::new();
        for (release, nodes) in [("9.1", &self.older), ("9.2", &self.newest)] {
            files.insert(format!("pve-{release}/apidoc.json"), json!(nodes).to_string());
            let _ = write!(
                pins,
                "[[pins]]\nrelease = \"{release}\"\nsource = \"made up\"\nsha256 = \"{}\"\npaths = {1}\nmethods = {1}\n",
                "0".repeat(64),
                nodes.len()
            );
        }
        files.insert("pins.toml".to_owned(), pins);
        files.extend(self.overlay.iter().map(|(file, text)| (format!("overlay/{file}"), text.clone())));
        pvegate_codegen::model(&Inputs { files })
    }

    fn refusal(&self) -> String {
        self.model().unwrap_err().to_string()
    }
}

#[track_caller]
fn assert_names(refusal: &str, names: &[&str]) {
    for name in names {
        assert!(refusal.contains(name), "`{name}` is not in: {refusal}");
    }
}

#[test]
fn the_small_schema_is_complete() {
    let model = Small::new().model().unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(model.operations.len(), 1);
}

#[test]
fn a_new_operation_that_nothing_decides() {
    let mut small = Small::new();
    small.newest.push(node("/things", "GET", &plain_get()));
    assert_names(&small.refusal(), &["GET /things: no entry of the overlay decides about it"]);
}

#[test]
fn a_new_operation_covered_only_by_a_pattern() {
    let mut small = Small::new();
    for nodes in [&mut small.older, &mut small.newest] {
        nodes.push(node("/things/old", "GET", &plain_get()));
    }
    small
        .overlay
        .get_mut("cluster.toml")
        .unwrap()
        .push_str("[[patterns]]\nmatch = \"GET /things/**\"\ntier = \"read\"\nsummary = \"Read things\"\n");
    small.model().unwrap_or_else(|problems| panic!("{problems}"));
    small.newest.push(node("/things/new", "GET", &plain_get()));
    let refusal = small.refusal();
    assert_names(
        &refusal,
        &[
            "GET /things/new: new in the newest pinned release and covered only by the pattern at cluster.toml:",
            "name it exactly",
        ],
    );
    assert!(!refusal.contains("/things/old"), "{refusal}");
}

#[test]
fn a_parameter_without_a_role() {
    let mut small = Small::new();
    let info = json!({"parameters": {"additionalProperties": 0, "properties": {"novelty": {"type": "string", "optional": 1}}}, "returns": {"type": "object"}});
    small.newest[0] = node("/thing", "GET", &info);
    assert_names(&small.refusal(), &["GET /thing novelty: no rule gives it a role"]);
    small.overlay.insert("roles.toml", "[[roles]]\nrole = \"plain\"\nnames = [\"novelty\"]\n".to_owned());
    let model = small.model().unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(model.operations[0].params[0].since, 1);
}

#[test]
fn what_the_schema_says_and_nobody_knows() {
    let refusal = |property: Value| {
        let mut small = Small::new();
        small.newest[0] = node(
            "/thing",
            "GET",
            &json!({"parameters": {"additionalProperties": 0, "properties": {"novelty": property}}, "returns": {"type": "object"}}),
        );
        small.overlay.insert("roles.toml", "[[roles]]\nrole = \"plain\"\nnames = [\"novelty\"]\n".to_owned());
        small.refusal()
    };
    assert_names(
        &refusal(json!({"type": "string", "no-such-key": 1})),
        &["pve-9.2/apidoc.json", "/thing", "novelty", "no-such-key"],
    );
    assert_names(
        &refusal(json!({"type": "string", "format": "no-such-format"})),
        &["GET /thing novelty", "no-such-format"],
    );
    assert_names(&refusal(json!({"type": "no-such-type"})), &["/thing", "novelty", "no-such-type"]);
    assert_names(&refusal(json!({"optional": 1})), &["GET /thing novelty", "without a type"]);

    let mut small = Small::new();
    small.newest[0] = node("/thing", "GET", &plain_get());
    small.newest[0]["info"]["GET"]["no-such-flag"] = json!(1);
    assert_names(&small.refusal(), &["pve-9.2/apidoc.json", "/thing", "no-such-flag"]);
}

#[test]
fn counts_and_files_of_the_pins_have_to_agree() {
    let mut inputs = real().inputs.clone();
    let pins = inputs.files["pins.toml"].replace("methods = 675", "methods = 674");
    inputs.files.insert("pins.toml".to_owned(), pins);
    assert_names(&pvegate_codegen::model(&inputs).unwrap_err().to_string(), &["pve-9.2/apidoc.json", "675", "674"]);
    inputs.files.remove("pve-9.2/apidoc.json");
    assert_names(
        &pvegate_codegen::model(&inputs).unwrap_err().to_string(),
        &["pins.toml", "9.2", "pve-9.2/apidoc.json is missing"],
    );
    inputs.files.remove("pins.toml");
    assert_names(&pvegate_codegen::model(&inputs).unwrap_err().to_string(), &["pins.toml: missing"]);
}

/// The form that HA rules have from pve-manager 9.2.11 on.
#[test]
fn composed_parameters_are_all_there_with_their_conditions() {
    let mut small = Small::new();
    let affinity = |names: &[&str]| json!({"type": "string", "enum": names});
    let rule = json!({
        "parameters": {"allOf": [
            {"additionalProperties": 0, "type": "object", "properties": {
                "rule": {"type": "string", "format": "pve-configid"},
                "comment": {"type": "string", "optional": 1, "maxLength": 4096},
                "disable": {"type": "boolean", "optional": 1, "default": 0},
            }},
            {"oneOf": [
                {"additionalProperties": 0, "instance-types": ["node-affinity"], "properties": {
                    "type": affinity(&["node-affinity"]),
                    "resources": {"type": "string", "format": "pve-ha-resource-id-list"},
                    "nodes": {"type": "string", "format": "pve-ha-node-list"},
                    "strict": {"type": "boolean", "optional": 1, "default": 0},
                }},
                {"additionalProperties": 0, "instance-types": ["resource-affinity"], "properties": {
                    "type": affinity(&["resource-affinity"]),
                    "resources": {"type": "string", "format": "pve-ha-resource-id-list"},
                    "affinity": affinity(&["positive", "negative"]),
                }},
            ],
            "type-property": "type",
            "type-property-schema": affinity(&["node-affinity", "resource-affinity"])},
        ]},
        "returns": {"type": "null"},
    });
    small.newest.push(node("/cluster/ha/rules", "POST", &rule));
    small.overlay.get_mut("cluster.toml").unwrap().push_str(
        "\"POST /cluster/ha/rules\" = { tier = \"destructive\", summary = \"Create an HA rule\", settle = \"read-back\", undo = { none = \"made up\" } }\n",
    );
    assert_names(
        &small.refusal(),
        &["rule", "comment", "disable", "type", "resources", "nodes", "strict", "affinity"]
            .map(|name| format!("POST /cluster/ha/rules {name}: no rule"))
            .each_ref()
            .map(String::as_str),
    );
    small.overlay.insert(
        "roles.toml",
        "[[roles]]\nrole = \"plain\"\nnames = [\"affinity\", \"comment\", \"disable\", \"rule\", \"strict\", \"type\"]\n[[roles]]\nrole = \"guest-list\"\nnames = [\"resources\"]\n[[roles]]\nrole = \"node-list\"\nnames = [\"nodes\"]\n".to_owned(),
    );
    let model = small.model().unwrap_or_else(|problems| panic!("{problems}"));
    let operation = model.operations.iter().find(|operation| operation.name == "POST /cluster/ha/rules").unwrap();
    let facts: BTreeMap<&str, (bool, Option<String>)> = operation
        .params
        .iter()
        .map(|parameter| {
            (
                parameter.name.as_str(),
                (
                    parameter.required,
                    parameter.only_with.as_ref().map(|(other, values)| format!("{other}={}", values.join(","))),
                ),
            )
        })
        .collect();
    let only = |value: &str| Some(format!("type={value}"));
    assert_eq!(
        facts,
        [
            ("affinity", (false, only("resource-affinity"))),
            ("comment", (false, None)),
            ("disable", (false, None)),
            ("nodes", (false, only("node-affinity"))),
            ("resources", (true, only("node-affinity,resource-affinity"))),
            ("rule", (true, None)),
            ("strict", (false, only("node-affinity"))),
            ("type", (true, None)),
        ]
        .into()
    );
    assert_eq!(
        operation.parameter("type").unwrap().kind,
        Kind::Choice(vec!["node-affinity".to_owned(), "resource-affinity".to_owned()])
    );
    let catalog = &pvegate_codegen::output(&model).files["generated/src/catalog/cluster_ha.rs"];
    assert!(
        catalog.contains(".only_where(\"type\", &[\"node-affinity\"])")
            && catalog.contains(".only_where(\"type\", &[\"resource-affinity\"])"),
        "{catalog}"
    );
}
