//! Named tools: what a client sees of each, built from the catalog and the overlay's words.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::json_schema;
use crate::model::{Answer, Kind, Model, Operation, Parameter, Runs, Tool};
use crate::overlay::{self, Entry, OfferedKey, Wire};
use crate::problem::Problems;
use crate::terms::{Flag, Role, Tier, Value as Grammar};

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
            tier: self.tier(&operations),
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

    /// What it changes at most: by its operations, or for a tool of the gateway by what the overlay says.
    fn tier(&self, operations: &[&Operation]) -> Tier {
        let most = operations.iter().map(|operation| operation.keys.tier).max();
        most.or(self.tool.tier).unwrap_or(Tier::Read)
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
        let read = self.tier(&[]) == Tier::Read;
        // One that changes something reaches every operation of its tier, so each hint is that of the worst of them.
        self.envelope(&properties, &required, None, Hints { read, destructive: !read, idempotent: read, egress: !read })
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
        let guest = operations.iter().any(|operation| names_a_guest(operation));
        if guest {
            properties.insert(
                "vmid".to_owned(),
                json!({"type": "integer", "minimum": 100, "maximum": 999_999_999, "description": self.wire.vmid}),
            );
            required.push("vmid".to_owned());
        }
        let mut families = BTreeSet::new();
        for name in &self.tool.args {
            if let Some((mut schema, needed)) = self.parameter(name, operations, guest) {
                // One member of a family tells what all of them are.
                let first = family(name)
                    .filter(|family| !families.insert(*family))
                    .map(|family| first_of(family, &self.tool.args));
                if let (Some(first), Some(schema)) = (first, schema.as_object_mut()) {
                    schema.insert("description".to_owned(), json!(format!("The same as `{first}`.")));
                }
                properties.insert(name.clone(), schema);
                if needed {
                    required.push(name.clone());
                }
            }
        }
        self.check_the_rest(operations, guest);
        if self.tier(operations) == Tier::Read {
            self.reading(properties, &required, operations)
        } else {
            self.changing(properties, &required, operations)
        }
    }

    /// The rest of a definition of a tool that reads.
    fn reading(&mut self, mut properties: Map<String, Value>, required: &[String], operations: &[&Operation]) -> Value {
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
        let egress = operations.iter().any(|operation| operation.keys.flags.contains(&Flag::Egress));
        self.envelope(&properties, required, output, Hints { read: true, destructive: false, idempotent: true, egress })
    }

    /// The rest of a definition of a tool that changes something.
    fn changing(
        &mut self,
        mut properties: Map<String, Value>,
        required: &[String],
        operations: &[&Operation],
    ) -> Value {
        properties.insert(
            "idempotency_key".to_owned(),
            json!({"type": "string", "maxLength": 128, "description": self.wire.idempotency_key}),
        );
        let any = |is: fn(&Operation) -> bool| operations.iter().any(|operation| is(operation));
        let hints = Hints {
            read: false,
            destructive: any(|operation| operation.keys.interrupts || operation.keys.tier == Tier::Destructive),
            // Setting what is set changes nothing; growing grows again, and a second start is another task.
            idempotent: operations.iter().all(|operation| {
                matches!(operation.verb.as_str(), "PUT" | "DELETE") && !operation.keys.flags.contains(&Flag::GrowsOnly)
            }),
            egress: any(|operation| operation.keys.flags.contains(&Flag::Egress)),
        };
        self.envelope(&properties, required, Some(json_schema::change()), hints)
    }

    fn parameter(&mut self, name: &str, operations: &[&Operation], guest: bool) -> Option<(Value, bool)> {
        if WIRE_NAMES.contains(&name) {
            self.problem(format!("args: `{name}` is an argument of the server's own, and PVE's parameter of that name means something else"));
        }
        if guest && (name == "node" || name == "vmid") {
            self.problem(format!("args: `{name}` comes by itself: guests are named by cluster and vmid"));
        }
        if self.tier(operations) != Tier::Read
            && name == "node"
            && operations.iter().any(|operation| names_a_task(operation))
        {
            self.problem("args: `node` comes by itself: it stands in the task's id");
        }
        if self.tool.fixed.contains_key(name) {
            self.problem(format!("`{name}` is both in `args` and in `fixed`"));
        }
        let mut found = operations.iter().filter_map(|operation| parameter(operation, name));
        let Some(parameter) = found.next() else {
            self.problem(format!("args: the operation has no parameter `{name}`"));
            return None;
        };
        let mut kind = parameter.kind.clone();
        for other in found {
            match both(&kind, &other.kind) {
                Some(both) => kind = both,
                None => self.problem(format!(
                    "args: `{name}` is not the same for both kinds of guest: {:?}, {:?}",
                    parameter.kind, other.kind
                )),
            }
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
        let words = Self::words(name, operations);
        let words = words
            .as_deref()
            .map(|words| if everywhere { format!("{words} {}", self.wire.every_node) } else { words.to_owned() });
        let schema = json_schema::input(&kind, words.as_deref(), self.model);
        Some((schema, parameter.required || self.tool.required.iter().any(|required| required == name)))
    }

    /// What an argument is, said for each kind of guest where that differs.
    fn words(name: &str, operations: &[&Operation]) -> Option<String> {
        let words: Vec<&str> = operations
            .iter()
            .filter_map(|operation| parameter(operation, name))
            .filter_map(|parameter| parameter.words.as_deref())
            .collect();
        match words.as_slice() {
            [vm, container] if vm != container => Some(format!("For a VM: {vm} For a container: {container}")),
            [words, ..] => Some((*words).to_owned()),
            [] => None,
        }
    }

    /// Required parameters have to come from somewhere, fixed ones have to exist, and the operation has to be offered.
    fn check_the_rest(&mut self, operations: &[&Operation], guest: bool) {
        for name in self.tool.required.iter().filter(|name| !self.tool.args.contains(name)) {
            self.problem(format!("required: `{name}` is not in `args`"));
        }
        for operation in operations {
            for parameter in operation.params.iter().filter(|parameter| parameter.required) {
                let by_itself =
                    guest && parameter.place == "path" && ["node", "vmid"].contains(&parameter.name.as_str())
                        || operation.keys.tier != Tier::Read && parameter.role == Role::Node && names_a_task(operation);
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
                "readOnlyHint": hints.read,
                "destructiveHint": hints.destructive,
                "idempotentHint": hints.idempotent,
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
#[allow(clippy::struct_excessive_bools, reason = "the protocol has these four hints")]
struct Hints {
    read: bool,
    destructive: bool,
    idempotent: bool,
    egress: bool,
}

/// Whether callers name a guest by its vmid alone, and the server finds the node: the path names both, or the path
/// the node and the body the guest.
fn names_a_guest(operation: &Operation) -> bool {
    let has = |place: Option<&str>, roles: &[Role]| {
        operation
            .params
            .iter()
            .any(|parameter| place.is_none_or(|place| parameter.place == place) && roles.contains(&parameter.role))
    };
    let in_body = operation.keys.tier == Tier::Low && has(None, &[Role::GuestList]);
    has(Some("path"), &[Role::GuestTarget, Role::GuestSource]) || in_body
}

/// Whether the path names a task, whose id holds its node.
fn names_a_task(operation: &Operation) -> bool {
    operation.params.iter().any(|parameter| parameter.place == "path" && parameter.role == Role::Task)
}

/// What covers the values of both kinds of guest, where they are of one sort; the runtime checks by the guest's own.
fn both(one: &Kind, other: &Kind) -> Option<Kind> {
    match (one, other) {
        (one, other) if one == other => Some(one.clone()),
        (Kind::Choice(_), Kind::Choice(_)) => {
            Some(Kind::Text { value: Grammar::Plain, pattern: None, min_length: None, max_length: None })
        }
        (Kind::Integer(Some(0), None), Kind::Number(Some(least), None)) if *least == 0.0 => Some(other.clone()),
        _ => None,
    }
}

/// The parameter with this name, or the family that it is a member of.
fn parameter<'a>(operation: &'a Operation, name: &str) -> Option<&'a Parameter> {
    operation.parameter(name).filter(|parameter| parameter.index.is_none()).or_else(|| {
        let index: u16 = name.strip_prefix(family(name)?)?.parse().ok()?;
        let family = operation.parameter(&format!("{}[n]", family(name)?))?;
        family.index.is_some_and(|(first, last)| (first..=last).contains(&index)).then_some(family)
    })
}

/// `net` of `net0`.
fn family(name: &str) -> Option<&str> {
    let family = name.trim_end_matches(|character: char| character.is_ascii_digit());
    (family.len() < name.len()).then_some(family)
}

fn first_of<'a>(of: &str, names: &'a [String]) -> &'a str {
    names.iter().map(String::as_str).find(|name| family(name) == Some(of)).unwrap_or_default()
}
