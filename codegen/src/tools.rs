//! Named tools: what a client sees of each, built from the catalog and the overlay's words.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::json_schema;
use crate::model::{Answer, Model, Operation, Runs, Tool};
use crate::overlay::{self, Entry, OfferedKey, Wire};
use crate::problem::Problems;
use crate::terms::{Flag, Role, Tier};

/// Longest name: clients put a prefix before it and cut at 64.
const LONGEST_NAME: usize = 40;

/// Arguments of the server's own; a parameter of PVE with such a name means something else.
const WIRE_NAMES: &[&str] = &[
    "cluster",
    "fields",
    "cursor",
    "limit",
    "query",
    "reads",
    "steps",
    "change_id",
    "change_digest",
    "reason",
    "idempotency_key",
];

/// The names of projections that the runtime has.
const PROJECTIONS: &[&str] = &["guests"];

/// The operations behind named tools.
pub fn operations(tools: &[Entry<overlay::Tool>]) -> BTreeSet<String> {
    tools.iter().flat_map(|entry| names(&runs(&entry.value))).collect()
}

fn runs(tool: &overlay::Tool) -> Runs {
    match (&tool.operation, &tool.operations) {
        (Some(name), _) => Runs::One(name.clone()),
        (None, Some(kinds)) => Runs::ByKind { qemu: kinds.qemu.clone(), lxc: kinds.lxc.clone() },
        (None, None) => Runs::Gateway,
    }
}

fn names(runs: &Runs) -> Vec<String> {
    match runs {
        Runs::Gateway => Vec::new(),
        Runs::One(name) => vec![name.clone()],
        Runs::ByKind { qemu, lxc } => vec![qemu.clone(), lxc.clone()],
    }
}

/// Builds all of them, by toolset and name.
pub fn tools(entries: &[Entry<overlay::Tool>], wire: &Wire, model: &Model, problems: &mut Problems) -> Vec<Tool> {
    let mut seen = BTreeSet::new();
    let mut tools = Vec::new();
    for entry in entries {
        let place = format!("{} {}", entry.place, entry.value.name);
        if !seen.insert(entry.value.name.as_str()) {
            problems.push(&place, "another tool has this name");
        }
        check_name(&entry.value.name, &place, problems);
        let mut builder = Builder { place: &place, tool: &entry.value, wire, model, problems };
        if let Some(tool) = builder.tool() {
            tools.push(tool);
        }
    }
    for tool in &tools {
        for name in &tool.also_in {
            if *name == tool.toolset || !tools.iter().any(|other| other.toolset == *name) {
                problems.push(&tool.place, format!("also_in: `{name}` is no other toolset that has tools"));
            }
        }
    }
    tools.sort_by(|one, other| (&one.toolset, &one.name).cmp(&(&other.toolset, &other.name)));
    tools
}

fn check_name(name: &str, place: &str, problems: &mut Problems) {
    let fits = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !fits {
        problems.push(place, format!("a tool's name has at most {LONGEST_NAME} characters of a-z, 0-9 and _"));
    }
}

struct Builder<'a> {
    place: &'a str,
    tool: &'a overlay::Tool,
    wire: &'a Wire,
    model: &'a Model,
    problems: &'a mut Problems,
}

impl Builder<'_> {
    fn tool(&mut self) -> Option<Tool> {
        let runs = runs(self.tool);
        if self.tool.operation.is_some() && self.tool.operations.is_some() {
            self.problem("either `operation` or `operations`");
        }
        if let Some(projection) = self.tool.projection.as_ref().filter(|name| !PROJECTIONS.contains(&name.as_str())) {
            self.problem(format!("the runtime has no projection `{projection}`"));
        }
        let mut operations = Vec::new();
        for name in names(&runs) {
            match self.model.operations.iter().find(|operation| operation.name == name) {
                Some(operation) => operations.push(operation),
                None => self.problem(format!("there is no operation `{name}`")),
            }
        }
        if operations.len() != names(&runs).len() {
            return None;
        }
        let definition = if operations.is_empty() { self.gateway_definition() } else { self.definition(&operations) };
        Some(Tool {
            place: self.place.to_owned(),
            toolset: self.tool.toolset.clone(),
            also_in: self.tool.also_in.clone(),
            name: self.tool.name.clone(),
            runs,
            definition,
            args: self.tool.args.clone(),
            fixed: self.tool.fixed.clone(),
            projection: self.tool.projection.clone(),
            filter: self.tool.filter.clone(),
        })
    }

    fn problem(&mut self, message: impl Into<String>) {
        self.problems.push(self.place, message);
    }

    fn gateway_definition(&mut self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for argument in &self.tool.arguments {
            if argument.name.is_empty() {
                self.problem("an argument without a name");
            }
            if argument.required {
                required.push(argument.name.clone());
            }
            let schema = self.argument(argument);
            properties.insert(argument.name.clone(), schema);
        }
        if self.tool.toolset != "gateway" || !self.tool.args.is_empty() || !self.tool.fixed.is_empty() {
            self.problem("a tool without an operation stands in toolset gateway and has neither `args` nor `fixed`");
        }
        self.envelope(&properties, &required, None, Hints { tier: Tier::Read, egress: false })
    }

    fn argument(&mut self, argument: &overlay::ToolArgument) -> Value {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!(argument.kind));
        if !["string", "integer", "number", "boolean", "array", "object"].contains(&argument.kind.as_str()) {
            self.problem(format!("argument `{}`: `{}` is not a type", argument.name, argument.kind));
        }
        if (argument.kind == "array") != argument.items.is_some() {
            self.problem(format!("argument `{}`: `items` goes with arrays", argument.name));
        }
        if !argument.text.is_empty() {
            schema.insert("description".to_owned(), json!(argument.text));
        }
        if !argument.choices.is_empty() {
            schema.insert("enum".to_owned(), json!(argument.choices));
        }
        for (key, number) in [("minimum", argument.minimum), ("maximum", argument.maximum)] {
            number.map(|number| schema.insert(key.to_owned(), json!(number)));
        }
        if let Some(most) = argument.max_items {
            schema.insert("maxItems".to_owned(), json!(most));
        }
        if let Some(items) = &argument.items {
            schema.insert("items".to_owned(), self.argument(items));
        }
        if let Some(properties) = &argument.properties {
            let required: Vec<&str> =
                properties.iter().filter(|property| property.required).map(|property| property.name.as_str()).collect();
            let properties: Map<String, Value> =
                properties.iter().map(|property| (property.name.clone(), self.argument(property))).collect();
            schema.insert("properties".to_owned(), Value::Object(properties));
            schema.insert("required".to_owned(), json!(required));
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        Value::Object(schema)
    }

    fn definition(&mut self, operations: &[&Operation]) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        properties.insert("cluster".to_owned(), json!({"type": "string", "description": self.wire.cluster}));
        let guest = operations.iter().any(|operation| {
            operation.params.iter().any(|parameter| parameter.place == "path" && parameter.role == Role::GuestTarget)
        });
        if guest {
            properties.insert(
                "vmid".to_owned(),
                json!({"type": "integer", "minimum": 100, "maximum": 999_999_999, "description": self.wire.vmid}),
            );
            required.push("vmid".to_owned());
        }
        for name in &self.tool.args {
            if let Some((schema, needed)) = self.parameter(name, operations, guest) {
                properties.insert(name.clone(), schema);
                if needed {
                    required.push(name.clone());
                }
            }
        }
        self.check_the_rest(operations, guest);
        let answer = &operations.first().map_or(Answer::Nothing, |operation| operation.answer.clone());
        if let Answer::List(_) | Answer::Object(_) = answer {
            properties.insert(
                "fields".to_owned(),
                json!({"type": "array", "items": {"type": "string"}, "description": self.wire.fields}),
            );
        }
        if let Answer::List(_) = answer {
            properties.insert(
                "limit".to_owned(),
                json!({"type": "integer", "minimum": 1, "maximum": 1000, "description": self.wire.limit}),
            );
            properties.insert("cursor".to_owned(), json!({"type": "string", "description": self.wire.cursor}));
        }
        let output =
            if self.tool.projection.is_some() { Some(json_schema::guest_page()) } else { json_schema::output(answer) };
        let tier = operations.iter().map(|operation| operation.keys.tier).max().unwrap_or(Tier::Destructive);
        let egress = operations.iter().any(|operation| operation.keys.flags.contains(&Flag::Egress));
        self.envelope(&properties, &required, output, Hints { tier, egress })
    }

    fn parameter(&mut self, name: &str, operations: &[&Operation], guest: bool) -> Option<(Value, bool)> {
        if WIRE_NAMES.contains(&name) {
            self.problem(format!("args: `{name}` is an argument of the server's own, and PVE's parameter of that name means something else"));
        }
        if guest && (name == "node" || name == "vmid") {
            self.problem(format!("args: `{name}` comes by itself: guests are named by cluster and vmid"));
        }
        if self.tool.fixed.contains_key(name) {
            self.problem(format!("`{name}` is both in `args` and in `fixed`"));
        }
        let mut found = operations.iter().filter_map(|operation| operation.parameter(name));
        let Some(parameter) = found.next() else {
            self.problem(format!("args: the operation has no parameter `{name}`"));
            return None;
        };
        if let Some(other) = found.find(|other| other.kind != parameter.kind) {
            self.problem(format!(
                "args: `{name}` is not the same for both kinds of guest: {:?}, {:?}",
                parameter.kind, other.kind
            ));
        }
        if parameter.role == Role::Digest {
            self.problem(format!("args: `{name}` is PVE's lock, which the server supplies"));
        }
        // What one node lists can be asked of all of them.
        let everywhere = parameter.role == Role::Node
            && parameter.place == "path"
            && operations
                .iter()
                .all(|operation| operation.keys.tier == Tier::Read && matches!(operation.answer, Answer::List(_)))
            && !operations.iter().flat_map(|operation| &operation.params).any(|parameter| parameter.role == Role::Task);
        let words = parameter
            .words
            .as_deref()
            .map(|words| if everywhere { format!("{words} {}", self.wire.every_node) } else { words.to_owned() });
        let schema = json_schema::input(&parameter.kind, words.as_deref(), self.model);
        Some((schema, parameter.required))
    }

    /// Required parameters have to come from somewhere, fixed ones have to exist, and the operation has to be offered.
    fn check_the_rest(&mut self, operations: &[&Operation], guest: bool) {
        for operation in operations {
            for parameter in operation.params.iter().filter(|parameter| parameter.required) {
                let by_itself =
                    guest && parameter.place == "path" && ["node", "vmid"].contains(&parameter.name.as_str());
                let given = self.tool.args.contains(&parameter.name) || self.tool.fixed.contains_key(&parameter.name);
                if !by_itself && !given {
                    self.problem(format!("{} needs `{}`: add it to `args` or `fixed`", operation.name, parameter.name));
                }
            }
            for name in self.tool.fixed.keys().filter(|name| operation.parameter(name).is_none()) {
                self.problem(format!("fixed: {} has no parameter `{name}`", operation.name));
            }
            if let Some(OfferedKey::Never(reason)) = operation.keys.offered {
                self.problem(format!("{} is not offered ({})", operation.name, reason.word()));
            }
        }
    }

    fn envelope(
        &mut self,
        properties: &Map<String, Value>,
        required: &[String],
        output: Option<Value>,
        hints: Hints,
    ) -> Value {
        let read = hints.tier == Tier::Read;
        let mut input = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if let (Some(input), false) = (input.as_object_mut(), required.is_empty()) {
            input.insert("required".to_owned(), json!(required));
        }
        let mut definition = json!({
            "name": self.tool.name,
            "title": self.tool.title,
            "description": self.tool.description,
            "inputSchema": input,
            "annotations": {
                "readOnlyHint": read,
                "destructiveHint": hints.tier == Tier::Destructive,
                "idempotentHint": read,
                "openWorldHint": hints.egress,
            },
        });
        if let (Some(definition), Some(output)) = (definition.as_object_mut(), output) {
            definition.insert("outputSchema".to_owned(), output);
        }
        definition
    }
}

#[derive(Clone, Copy)]
struct Hints {
    tier: Tier,
    egress: bool,
}
