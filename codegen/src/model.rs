//! What the emitters see: operations with facts of the newest pin and decisions of the overlay joined.

use std::collections::BTreeMap;

use crate::apidoc::Permissions;
use crate::overlay::{DecisionKeys, Internal};
use crate::terms::{Area, Role, Subject, Tier, Value};

/// Everything that is generated from.
#[derive(Debug)]
pub struct Model {
    /// The pinned releases, oldest first, such as `8.4`.
    pub releases: Vec<String>,
    /// How many operations each of them has, and which were removed since.
    pub counts: BTreeMap<String, usize>,
    /// Operations of older pins that the newest lacks, with the last release that has them.
    pub removed: BTreeMap<String, String>,
    /// SHA-256 of each pinned source.
    pub sources: BTreeMap<String, String>,
    /// All operations of the newest pin, by path, then verb.
    pub operations: Vec<Operation>,
    /// The shapes of property strings, by name.
    pub property_strings: BTreeMap<String, PropertyString>,
    /// All regular expressions, in the order of their first use.
    pub patterns: Vec<String>,
    /// The named tools, by toolset and name.
    pub tools: Vec<Tool>,
    /// What the server itself needs.
    pub internal: Internal,
    /// Privileges that config options ask for one by one: (`qemu` or `lxc`, option) to privilege.
    pub option_privileges: BTreeMap<(String, String), String>,
}

impl Model {
    /// The toolsets by name, each with the tools that it lists.
    pub fn toolsets(&self) -> BTreeMap<&str, Vec<&Tool>> {
        let mut toolsets: BTreeMap<&str, Vec<&Tool>> = BTreeMap::new();
        for tool in &self.tools {
            for name in std::iter::once(&tool.toolset).chain(&tool.also_in) {
                toolsets.entry(name).or_default().push(tool);
            }
        }
        for tools in toolsets.values_mut() {
            tools.sort_by(|one, other| one.name.cmp(&other.name));
        }
        toolsets
    }
}

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// `VERB /path`.
    pub name: String,
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub verb: String,
    /// The path template.
    pub path: String,
    /// The overlay file that decides about it.
    pub area: Area,
    /// The entry that decides about it.
    pub decided_at: String,
    /// The decision.
    pub keys: DecisionKeys,
    /// The decision's rows, parsed.
    pub rows: Rows,
    /// Path parameters in their order, then the others by name.
    pub params: Vec<Parameter>,
    /// What it answers with.
    pub answer: Answer,
    /// PVE's own privilege check.
    pub permission: Permission,
    /// Whether PVE forwards it to the node in its path.
    pub proxied: bool,
    /// Whether a blocking worker of pvedaemon runs it.
    pub protected: bool,
    /// First pinned release that has it, as an index into `releases`.
    pub since: usize,
}

impl Operation {
    /// Whether it changes something.
    pub fn mutates(&self) -> bool {
        self.keys.tier != Tier::Read
    }

    /// The parameter with this name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.params.iter().find(|parameter| parameter.name == name)
    }
}

/// Whose the rows of a list are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Not a list.
    NotAList,
    /// The path already names whose they are.
    Bound,
    /// Nobody's in particular: takes the grant `*`.
    All,
    /// These columns tell.
    Columns(Vec<(Subject, String)>),
}

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// PVE's name.
    pub name: String,
    /// `path`, `query` or `body`.
    pub place: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether the call is refused without it.
    pub required: bool,
    /// PVE's default where it is a value of the type.
    pub default: Option<String>,
    /// What it names.
    pub role: Role,
    /// The rule that says so.
    pub role_at: String,
    /// First and last index.
    pub index: Option<(u16, u16)>,
    /// A parameter that has to be given with it.
    pub requires: Option<String>,
    /// Valid only where that parameter has one of these values.
    pub only_with: Option<(String, Vec<String>)>,
    /// First pinned release that has it, as an index into `releases`.
    pub since: usize,
    /// Our words about it.
    pub words: Option<String>,
}

/// The type of one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `1` or `0`.
    Boolean,
    /// With bounds.
    Integer(Option<i64>, Option<i64>),
    /// With bounds.
    Number(Option<f64>, Option<f64>),
    /// A string.
    Text {
        /// Its grammar.
        value: Value,
        /// Index into the model's patterns.
        pattern: Option<usize>,
        /// Bounds of its length in characters.
        min_length: Option<u64>,
        /// Bounds of its length in characters.
        max_length: Option<u64>,
    },
    /// One of these.
    Choice(Vec<String>),
    /// Several in one string.
    List(Box<Kind>),
    /// A PVE array.
    Array(Box<Kind>),
    /// A property string, by the name of its shape.
    Property(String),
}

/// The shape of a property string.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyString {
    /// Its keys, by name; empty where the grammar is not known.
    pub keys: BTreeMap<String, Key>,
    /// The parameters that use it, as `VERB /path name`.
    pub used_by: Vec<String>,
}

/// One key of a property string.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Its type; `None` for another spelling of a key.
    pub kind: Option<Kind>,
    /// Whether the string is refused without it.
    pub required: bool,
    /// May be given without `key=`.
    pub is_default: bool,
    /// The key that this one is another spelling of.
    pub alias: Option<String>,
    /// The key that takes the spelled name as its value.
    pub key_alias: Option<String>,
    /// What it names.
    pub role: Role,
}

/// What an operation answers with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `null`.
    Nothing,
    /// A UPID.
    Task,
    /// A UPID or null.
    MaybeTask,
    /// A single value.
    Value,
    /// An object.
    Object(Vec<Field>),
    /// A list.
    List(Vec<Field>),
    /// Not described.
    Undescribed,
}

/// One described property of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean`, `object`, `array` or `any`.
    pub kind: &'static str,
    /// Whether it may be missing.
    pub optional: bool,
}

/// PVE's own privilege check.
#[derive(Clone, Debug, PartialEq)]
pub enum Permission {
    /// As the schema says.
    Schema(Permissions),
    /// Only root@pam itself.
    RootOnly,
    /// In PVE's code, as the overlay says.
    InCode(String),
}

/// A named tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Where it is defined.
    pub place: String,
    /// Its toolset.
    pub toolset: String,
    /// Further toolsets that list it.
    pub also_in: Vec<String>,
    /// Its name.
    pub name: String,
    /// What it runs: nothing for tools of the gateway, an operation, or one for each kind of guest.
    pub runs: Runs,
    /// What it changes at most.
    pub tier: Tier,
    /// The definition that a client sees, without the name.
    pub definition: serde_json::Value,
    /// PVE's parameters that callers may give.
    pub args: Vec<String>,
    /// PVE's parameters that are sent always.
    pub fixed: BTreeMap<String, String>,
    /// Reshaping in the runtime, by name.
    pub projection: Option<String>,
    /// For projections of the resources snapshot.
    pub filter: BTreeMap<String, String>,
}

/// What a tool runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// The server's own.
    Gateway,
    /// This operation.
    One(String),
    /// One for each kind of guest.
    ByKind {
        /// For VMs.
        qemu: String,
        /// For containers.
        lxc: String,
    },
}
