// Written by `cargo codegen` from codegen/templates/model.rs; edit it there.
//! The shape of the catalog: what is known about every operation of the PVE API.
//!
//! All of it is static data. Facts come from the pinned apidoc, decisions from the overlay.

use std::fmt;

use crate::terms::{Area, Flag, Guard, Reason, Release, Role, Settle, Subject, Tier, Value};

/// HTTP verb of an operation. PVE uses no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Parameters travel in the query.
    Get,
    /// Parameters travel in the body.
    Post,
    /// Parameters travel in the body.
    Put,
    /// Parameters travel in the query; PVE refuses a body.
    Delete,
}

impl Verb {
    /// The verb as it stands on the request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether callers can reach an operation at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// To every token whose grant covers it.
    Yes,
    /// Only where the server's configuration names the operation.
    OptIn(Reason),
    /// Not at all.
    Never(Reason),
}

/// Where a parameter travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A segment of the path; always required.
    Path,
    /// The query string (GET and DELETE).
    Query,
    /// The form body (POST and PUT).
    Body,
}

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Fixed text.
    Literal(&'static str),
    /// The value of the path parameter with this name.
    Param(&'static str),
}

/// The type of one value, as PVE checks it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Sent as `1` or `0`.
    Boolean,
    /// A whole number, bounds included.
    Integer(Option<i64>, Option<i64>),
    /// A number, bounds included.
    Number(Option<f64>, Option<f64>),
    /// A string.
    Text(Text),
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A `-list` format: several values in one string, sent with commas.
    List(&'static Kind),
    /// A PVE `array`: the key is sent once for each element.
    Array(&'static Kind),
    /// A property string (`key=value,key=value`).
    Property(&'static PropertyString),
}

/// A string's grammar and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// Which typed value it is; [`Value::Plain`] has no grammar of its own.
    pub value: Value,
    /// Index into [`crate::patterns::PATTERNS`]; the whole value has to match.
    pub pattern: Option<u16>,
    /// Shortest allowed, in characters.
    pub min_length: Option<u32>,
    /// Longest allowed, in characters.
    pub max_length: Option<u32>,
}

impl Kind {
    /// A string of this grammar, without bounds.
    pub const fn text(value: Value) -> Self {
        Self::Text(Text { value, pattern: None, min_length: None, max_length: None })
    }

    /// A string of this grammar, with a pattern and bounds of its length.
    pub const fn bounded(value: Value, pattern: Option<u16>, min_length: Option<u32>, max_length: Option<u32>) -> Self {
        Self::Text(Text { value, pattern, min_length, max_length })
    }
}

/// The grammar of a property string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PropertyString {
    /// A name for messages and generated types.
    pub name: &'static str,
    /// The key that may be given without `key=`.
    pub default_key: Option<&'static str>,
    /// Its keys, sorted by name. Empty where the apidoc has no grammar: the string is passed on as it is.
    pub keys: &'static [Key],
}

/// One key of a property string.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// The key as written, `mac[n]`-style names do not occur here.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether the string is refused without it.
    pub required: bool,
    /// The key that this one is another spelling of.
    pub alias: Option<&'static str>,
    /// For `virtio=MAC` spellings: the key that takes the spelled name as its value.
    pub key_alias: Option<&'static str>,
    /// What the value is, for checks: a storage or volume, a network, a secret.
    pub role: Role,
}

/// One parameter of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// PVE's name; indexed ones end in `[n]`.
    pub name: &'static str,
    /// Where it travels.
    pub place: Place,
    /// Its type.
    pub kind: Kind,
    /// Whether the call is refused without it.
    pub required: bool,
    /// PVE's default where it is a value of the type (never sent).
    pub default: Option<&'static str>,
    /// What it names, which brings its checks.
    pub role: Role,
    /// For `net[n]` and its like: first and last index.
    pub index: Option<(u16, u16)>,
    /// Another parameter that has to be given with it.
    pub requires: Option<&'static str>,
    /// Valid only where that parameter has one of these values.
    pub only_with: Option<(&'static str, &'static [&'static str])>,
    /// The pinned releases that have it.
    pub releases: Releases,
    /// What it is, for people and models: our words, see `schema/overlay/params.toml`.
    pub words: Option<&'static str>,
}

/// First and last pinned release that has a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    /// The first.
    pub first: Release,
    /// The last; the newest pin unless it was removed.
    pub last: Release,
}

impl Releases {
    /// Every pinned release.
    pub const ALL: Self = Self { first: Release::OLDEST, last: Release::NEWEST };

    /// From this release on.
    pub const fn since(first: Release) -> Self {
        Self { first, last: Release::NEWEST }
    }

    /// Whether a cluster of this release has it.
    pub fn contains(self, release: Release) -> bool {
        self.first <= release && release <= self.last
    }
}

/// What an operation answers with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// `null`.
    Nothing,
    /// A task id (UPID): accepted, not done.
    Task,
    /// `null`, or a task id where the work goes on.
    MaybeTask,
    /// A single value.
    Value,
    /// An object with these described properties (it may have more).
    Object(&'static [Field]),
    /// A list; the fields are those of an element, empty where it is not an object or not described.
    List(&'static [Field]),
    /// Not described by the apidoc.
    Undescribed,
}

/// One described property of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The property's name.
    pub name: &'static str,
    /// `string`, `integer`, `number`, `boolean`, `object`, `array` or `any`.
    pub kind: &'static str,
    /// Whether it may be missing.
    pub optional: bool,
}

impl Field {
    /// One that may be missing.
    pub const fn new(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, optional: true }
    }

    /// One that is always there.
    pub const fn always(name: &'static str, kind: &'static str) -> Self {
        Self { name, kind, optional: false }
    }
}

/// Whose the rows of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Not a list.
    NotAList,
    /// The path already names whose they are.
    Bound,
    /// Nobody's in particular: reading it takes the grant `*`.
    All,
    /// These columns tell.
    Columns(&'static [Row]),
}

/// Which column of a list tells whose a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What the column names.
    pub subject: Subject,
    /// The column.
    pub column: &'static str,
}

/// Who runs the operation on the PVE side, which limits how many may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// pveproxy itself.
    Proxy,
    /// One of the three blocking workers of pvedaemon.
    Daemon,
    /// The same, and known to hold the worker for long (agent, scan, smart, report).
    Slow,
}

/// PVE's own privilege check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// No check at all, not even a login.
    World,
    /// Only `root@pam` itself: no API token passes.
    RootOnly,
    /// Any user; PVE's code checks what the overlay says here (`privileges.toml`).
    InCode(&'static str),
    /// `path` is a template over parameters.
    Perm {
        /// The ACL path.
        path: &'static str,
        /// The privileges.
        privs: &'static [&'static str],
        /// One is enough, instead of all.
        any: bool,
        /// True only if this parameter is given.
        require_param: Option<&'static str>,
    },
    /// All of these.
    And(&'static [Permission]),
    /// One of these.
    Or(&'static [Permission]),
    /// Privileges on the groups of the user that `userid` names; the option is `create` or `update`.
    UserGroup(&'static [&'static str], Option<&'static str>),
    /// `self`: the caller is that user; otherwise a privilege on its realm.
    UserParam(&'static str),
    /// The right to change the ACL of this path.
    PermModify(&'static str),
}

/// The inverse of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Not a mutation.
    NotNeeded,
    /// This operation, with arguments from the state before.
    Operation(&'static str),
    /// There is none, for this reason.
    None(&'static str),
}

/// Everything about one operation.
#[derive(Debug, PartialEq)]
pub struct Operation {
    /// `VERB /path/{with}/{parameters}`: the name under which everyone calls it.
    pub name: &'static str,
    /// The verb.
    pub verb: Verb,
    /// The path template below `/api2/json`.
    pub path: &'static str,
    /// The same in steps.
    pub segments: &'static [Segment],
    /// What it does in a few words: ours, from the overlay; empty where not yet written.
    pub summary: &'static str,
    /// The overlay file that decides about it.
    pub area: Area,
    /// How much it can hurt.
    pub tier: Tier,
    /// Whether callers can reach it.
    pub offered: Offered,
    /// For opt-in reads that return secrets: the keys that may leave. Empty: no limit.
    pub leaves: &'static [&'static str],
    /// Its parameters, path first, then by name.
    pub params: &'static [Parameter],
    /// For low operations: the arguments that keep it low, beyond those in the path.
    pub low_args: &'static [&'static str],
    /// Arguments that are always sent with this value.
    pub fixed: &'static [(&'static str, &'static str)],
    /// What it answers with.
    pub answer: Answer,
    /// How rows of its list are tied to what a grant names.
    pub rows: Rows,
    /// What a plan's preview depends on, beyond identity.
    pub binds: &'static [&'static str],
    /// How a lost answer is settled; nothing for reads.
    pub settle: Option<Settle>,
    /// Its inverse.
    pub undo: Undo,
    /// Takes something running down.
    pub interrupts: bool,
    /// What else is special about it.
    pub flags: &'static [Flag],
    /// Checks beyond those that roles bring.
    pub guards: &'static [Guard],
    /// PVE's own privilege check.
    pub permission: Permission,
    /// Whether PVE forwards it to the node in its path.
    pub proxied: bool,
    /// Who runs it.
    pub lane: Lane,
    /// The pinned releases that have it.
    pub releases: Releases,
}

impl Operation {
    /// What an operation is unless its entry says otherwise. It has no name and is in no table.
    pub const BASE: Self = Self {
        name: "",
        verb: Verb::Get,
        path: "",
        segments: &[],
        summary: "",
        area: Area::Cluster,
        tier: Tier::Destructive,
        offered: Offered::Yes,
        leaves: &[],
        params: &[],
        low_args: &[],
        fixed: &[],
        answer: Answer::Nothing,
        rows: Rows::NotAList,
        binds: &[],
        settle: None,
        undo: Undo::NotNeeded,
        interrupts: false,
        flags: &[],
        guards: &[],
        permission: Permission::RootOnly,
        proxied: false,
        lane: Lane::Proxy,
        releases: Releases::ALL,
    };

    /// The parameter with this name; for an indexed one give `net[n]` or a member like `net0`.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.params.iter().find(|parameter| parameter.index_of(name).is_some())
    }

    /// Whether the overlay gives it this flag.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
}

impl Parameter {
    /// A required one, known to every pinned release.
    pub const fn new(name: &'static str, place: Place, kind: Kind, role: Role) -> Self {
        Self {
            name,
            place,
            kind,
            required: true,
            default: None,
            role,
            index: None,
            requires: None,
            only_with: None,
            releases: Releases::ALL,
            words: None,
        }
    }

    /// May be left out.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// What PVE takes where it is left out.
    #[must_use]
    pub const fn or_else(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// One of a numbered family.
    #[must_use]
    pub const fn indexed(mut self, first: u16, last: u16) -> Self {
        self.index = Some((first, last));
        self
    }

    /// Only together with this one.
    #[must_use]
    pub const fn with(mut self, other: &'static str) -> Self {
        self.requires = Some(other);
        self
    }

    /// Only where that one has one of these values.
    #[must_use]
    pub const fn only_where(mut self, other: &'static str, values: &'static [&'static str]) -> Self {
        self.only_with = Some((other, values));
        self
    }

    /// Not before this release.
    #[must_use]
    pub const fn since(mut self, release: Release) -> Self {
        self.releases = Releases::since(release);
        self
    }

    /// What it is.
    #[must_use]
    pub const fn words(mut self, words: &'static str) -> Self {
        self.words = Some(words);
        self
    }

    /// Whether `name` means this parameter: `Some(None)` by its own name,
    /// `Some(Some(3))` for member `net3` of `net[n]` inside the range.
    pub fn index_of(&self, name: &str) -> Option<Option<u16>> {
        if self.name == name {
            return Some(None);
        }
        let (first, last) = self.index?;
        let digits = name.strip_prefix(self.name.strip_suffix("[n]")?)?;
        if digits.is_empty()
            || digits.len() > 1 && digits.starts_with('0')
            || !digits.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let index = digits.parse().ok()?;
        (first <= index && index <= last).then_some(Some(index))
    }
}

/// What a named tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// The server's own.
    Gateway,
    /// This operation.
    One(&'static str),
    /// One for each kind of guest.
    ByKind {
        /// For VMs.
        qemu: &'static str,
        /// For containers.
        lxc: &'static str,
    },
}

/// A named tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name on the wire.
    pub name: &'static str,
    /// Its toolset.
    pub toolset: &'static str,
    /// Further toolsets that list it.
    pub also_in: &'static [&'static str],
    /// Exactly what a client sees of it in `tools/list`, as JSON.
    pub definition: &'static str,
    /// What it runs.
    pub runs: Runs,
    /// What it changes at most.
    pub tier: Tier,
    /// PVE's parameters that callers may give.
    pub args: &'static [&'static str],
    /// PVE's parameters that are sent always.
    pub fixed: &'static [(&'static str, &'static str)],
    /// How the runtime reshapes the answer.
    pub projection: Option<&'static str>,
    /// Which rows of the resources snapshot it shows: column and value.
    pub filter: &'static [(&'static str, &'static str)],
}

impl Tool {
    /// Every toolset that lists it.
    pub fn toolsets(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.toolset).chain(self.also_in.iter().copied())
    }
}
