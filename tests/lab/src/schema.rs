//! The pinned apidoc as the simulated daemon sees it: its operations, and the way from a path to one of them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::answer::Connection;
use crate::release::Release;

/// One method of the API.
#[derive(Debug)]
pub(crate) struct Operation {
    /// `GET /nodes/{node}/qemu`
    pub(crate) name: String,
    pub(crate) verb: String,
    /// `/nodes/{node}/qemu`
    pub(crate) path: String,
    /// Declared parameters by name, path parameters included.
    pub(crate) parameters: Map<String, Value>,
    /// Whether undeclared parameters pass. PVE's default is that they do.
    pub(crate) lenient: bool,
    pub(crate) returns: Value,
    /// Absent: only `root@pam` itself, which no token is.
    pub(crate) permissions: Option<Value>,
    pub(crate) allow_token: bool,
    /// Done by the daemon that runs as root, not by the proxy itself.
    pub(crate) protected: bool,
    /// Forwarded to the node of this parameter.
    pub(crate) proxy_to: Option<String>,
}

impl Operation {
    /// Whether a parameter is part of the path.
    pub(crate) fn in_path(&self, name: &str) -> bool {
        self.path.split('/').any(|step| parameter_of(step) == Some(name))
    }

    /// Whether it needs no login.
    pub(crate) fn open(&self) -> bool {
        self.permissions.as_ref().and_then(|permissions| permissions.get("user")?.as_str()) == Some("world")
    }

    /// What its answers say of the connection.
    pub(crate) fn connection(&self) -> Connection {
        match self.name.as_str() {
            "POST /nodes/{node}/storage/{storage}/upload" => Connection::Closed,
            _ if self.protected => Connection::Daemon,
            _ => Connection::Own,
        }
    }

    /// Names of the parameters in the path, in order.
    pub(crate) fn path_parameters(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(parameter_of)
    }
}

fn parameter_of(step: &str) -> Option<&str> {
    step.strip_prefix('{')?.strip_suffix('}')
}

#[derive(Debug, Default)]
struct Node {
    literals: BTreeMap<String, Node>,
    parameter: Option<(String, Box<Node>)>,
    /// By verb.
    operations: BTreeMap<String, usize>,
}

/// All operations and their tree.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) release: Release,
    pub(crate) operations: Vec<Operation>,
    root: Node,
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Route<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) values: BTreeMap<String, String>,
}

impl Schema {
    /// A pinned release. Read once; an apidoc that cannot be read leaves a schema without operations, which answers
    /// `501` to everything and fails this crate's own tests.
    pub(crate) fn pinned(release: Release) -> &'static Self {
        static OLD: OnceLock<Schema> = OnceLock::new();
        static PRESENT: OnceLock<Schema> = OnceLock::new();
        let cell = match release {
            Release::Old => &OLD,
            Release::Present => &PRESENT,
        };
        cell.get_or_init(|| {
            let apidoc: Value = serde_json::from_str(release.apidoc()).unwrap_or_default();
            Self::read(release, &apidoc)
        })
    }

    fn read(release: Release, apidoc: &Value) -> Self {
        let mut schema = Self { release, operations: Vec::new(), root: Node::default() };
        for node in apidoc.as_array().into_iter().flatten() {
            schema.add(node);
        }
        schema
    }

    fn add(&mut self, node: &Value) {
        let path = node.get("path").and_then(Value::as_str).unwrap_or_default();
        for (verb, info) in node.get("info").and_then(Value::as_object).into_iter().flatten() {
            let at = self.operations.len();
            self.operations.push(operation(verb, path, info));
            let mut place = &mut self.root;
            for step in path.split('/').filter(|step| !step.is_empty()) {
                place = match parameter_of(step) {
                    Some(name) => &mut place.parameter.get_or_insert_with(|| (name.to_owned(), Box::default())).1,
                    None => place.literals.entry(step.to_owned()).or_default(),
                };
            }
            place.operations.insert(verb.clone(), at);
        }
        for child in node.get("children").and_then(Value::as_array).into_iter().flatten() {
            self.add(child);
        }
    }

    /// The operation of a name such as `GET /version`.
    pub(crate) fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// Routes a decoded path: empty steps do not count, literals go before parameters, and a parameter takes one step
    /// without white space. A volume and an entry of an IP set take all the rest, since they may hold a slash.
    pub(crate) fn route(&self, verb: &str, path: &str) -> Option<Route<'_>> {
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let mut values = BTreeMap::new();
        let mut place = &self.root;
        let mut walked: Vec<&str> = Vec::new();
        let mut rest = steps.as_slice();
        while let Some((step, after)) = rest.split_first() {
            rest = after;
            walked.push(step);
            if let Some(next) = place.literals.get(*step) {
                place = next;
                continue;
            }
            let (name, next) = place.parameter.as_ref()?;
            let takes_rest = (name == "volume" && walked.get(4) == Some(&"content"))
                || (name == "cidr" && walked.iter().rev().nth(2) == Some(&"ipset"));
            let value = if takes_rest {
                let mut value = (*step).to_owned();
                for more in after {
                    value.push('/');
                    value.push_str(more);
                }
                rest = &[];
                value
            } else {
                (*step).to_owned()
            };
            if value.chars().any(char::is_whitespace) {
                return None;
            }
            values.insert(name.clone(), value);
            place = next;
        }
        let operation = self.operations.get(*place.operations.get(verb)?)?;
        Some(Route { operation, values })
    }

    /// The literal steps below a path template, which is what PVE's directory listings name.
    pub(crate) fn children(&self, template: &str) -> Vec<&str> {
        let mut place = &self.root;
        for step in template.split('/').filter(|step| !step.is_empty()) {
            let next = match parameter_of(step) {
                Some(_) => place.parameter.as_ref().map(|(_, next)| next.as_ref()),
                None => place.literals.get(step),
            };
            let Some(next) = next else { return Vec::new() };
            place = next;
        }
        place.literals.keys().map(String::as_str).collect()
    }
}

fn operation(verb: &str, path: &str, info: &Value) -> Operation {
    let parameters = info.get("parameters");
    Operation {
        name: format!("{verb} {path}"),
        verb: verb.to_owned(),
        path: path.to_owned(),
        parameters: parameters.map(properties).unwrap_or_default(),
        lenient: parameters.and_then(|parameters| parameters.get("additionalProperties")).is_none_or(truthy),
        returns: info.get("returns").cloned().unwrap_or_default(),
        permissions: info.get("permissions").cloned(),
        allow_token: info.get("allowtoken").is_some_and(truthy),
        protected: info.get("protected").is_some_and(truthy),
        proxy_to: info.get("proxyto").and_then(Value::as_str).map(str::to_owned),
    }
}

/// The declared parameters, also where they are spread over `allOf` and `oneOf`.
fn properties(parameters: &Value) -> Map<String, Value> {
    let mut all = Map::new();
    if let Some(own) = parameters.get("properties").and_then(Value::as_object) {
        all.extend(own.clone());
    }
    for key in ["allOf", "oneOf"] {
        for part in parameters.get(key).and_then(Value::as_array).into_iter().flatten() {
            for (name, schema) in properties(part) {
                all.entry(name).or_insert(schema);
            }
        }
    }
    all
}

/// PVE writes flags as 1, 0, "1", "0", true or false.
pub(crate) fn truthy(flag: &Value) -> bool {
    match flag {
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty() && text != "0",
        _ => false,
    }
}

/// A number, also one that the schema writes as text.
pub(crate) fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
