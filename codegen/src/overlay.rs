//! The overlay as it is written: one type for each kind of entry, unknown keys refused.
//!
//! Reading checks form only. Whether entries match and everything is decided is checked where
//! they are used, by [`Uses`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::pattern::Pattern;
use crate::problem::Problems;
use crate::terms::{Area, Flag, Guard, Reason, Role, Settle, Tier};

/// All files of `schema/overlay/`.
#[derive(Debug, Default, Clone)]
pub struct Overlay {
    /// Decisions about operations.
    pub decisions: Vec<Entry<Decision>>,
    /// Roles of parameters.
    pub roles: Vec<Entry<RoleRule>>,
    /// Roles of keys inside property strings.
    pub property_roles: Vec<Entry<RoleRule>>,
    /// What parameters are, in words.
    pub words: Vec<Entry<Words>>,
    /// What the server's own arguments are, in words.
    pub wire: Wire,
    /// What PVE's code checks.
    pub privileges: Privileges,
    /// Repairs of the schema.
    pub fixups: Vec<Entry<Fixup>>,
    /// Ranges of indexed parameters.
    pub ranges: Vec<Entry<Range>>,
    /// Path parameters that the schema does not declare.
    pub synthetic: Vec<Entry<Synthetic>>,
    /// Named tools.
    pub tools: Vec<Entry<Tool>>,
    /// What the server itself needs.
    pub internal: Internal,
}

/// One entry, and where it stands.
#[derive(Debug, Clone)]
pub struct Entry<T> {
    /// `guests.toml:12`.
    pub place: String,
    /// What is written there.
    pub value: T,
}

/// What is decided about one operation, or all that match a pattern.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The file it stands in.
    pub area: Area,
    /// One operation by name, or several.
    pub pattern: Pattern,
    /// Whether it stands under `[[patterns]]`.
    pub is_pattern: bool,
    /// Operations that the pattern leaves to other entries.
    pub except: Vec<String>,
    /// The keys.
    pub keys: DecisionKeys,
}

/// The keys of a decision; `schema/README.md` explains each.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct DecisionKeys {
    pub tier: Tier,
    pub summary: String,
    #[serde(default)]
    pub offered: Option<OfferedKey>,
    #[serde(default)]
    pub leaves: Vec<String>,
    #[serde(default)]
    pub rows: Option<RowsKey>,
    #[serde(default)]
    pub args: Option<Vec<String>>,
    #[serde(default)]
    pub fixed: BTreeMap<String, String>,
    #[serde(default)]
    pub task: Option<TaskKey>,
    #[serde(default)]
    pub settle: Option<Settle>,
    #[serde(default)]
    pub undo: Option<UndoKey>,
    #[serde(default)]
    pub interrupts: bool,
    #[serde(default)]
    pub flags: Vec<Flag>,
    #[serde(default)]
    pub guards: Vec<Guard>,
    #[serde(default)]
    pub binds: Vec<String>,
}

/// `offered`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfferedKey {
    /// Only where the server's configuration names the operation.
    OptIn(Reason),
    /// Not at all.
    Never(Reason),
}

/// `rows`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum RowsKey {
    /// `"all"` or `"bound"`.
    Word(String),
    /// `subject:column` pairs.
    Columns(Vec<String>),
}

/// `task`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKey {
    /// A UPID.
    Yes,
    /// A UPID or null.
    Maybe,
    /// A plain string.
    No,
}

/// `undo`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum UndoKey {
    /// The inverse operation's name.
    Operation(String),
    /// Why there is none.
    None(NoUndo),
}

/// `{ none = "why" }`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoUndo {
    /// Why there is none.
    pub none: String,
}

/// One rule of `roles.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct RoleRule {
    pub role: Role,
    #[serde(default)]
    pub names: Vec<String>,
    #[serde(default)]
    pub formats: Vec<String>,
    #[serde(default)]
    pub places: Vec<String>,
    #[serde(default)]
    pub only: Vec<String>,
    #[serde(default)]
    pub except: Vec<String>,
    #[serde(default)]
    pub except_names: Vec<String>,
}

/// One entry of `params.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct Words {
    pub name: String,
    #[serde(default)]
    pub only: Vec<String>,
    #[serde(default)]
    pub except: Vec<String>,
    pub text: String,
}

/// `[wire]` of `params.toml`: the arguments that the server adds to tools of one operation.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct Wire {
    pub cluster: String,
    pub vmid: String,
    pub fields: String,
    pub limit: String,
    pub cursor: String,
    pub every_node: String,
    pub idempotency_key: String,
}

/// `privileges.toml`.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Privileges {
    /// What PVE's code checks for operations that are `user: all` in the schema.
    pub operations: BTreeMap<String, Privilege>,
    /// The privilege that each option of a VM's configuration asks for.
    pub qemu: BTreeMap<String, String>,
    /// The same for containers.
    pub lxc: BTreeMap<String, String>,
}

/// One line of `privileges.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Privilege {
    /// `any-user`, `filters` or `requires`.
    pub kind: String,
    /// The rule in PVE's terms.
    pub rule: String,
}

/// A repair of the schema.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct Fixup {
    pub at: String,
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    #[serde(default)]
    pub remove: Vec<String>,
    pub reason: String,
}

/// The range of indexed parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct Range {
    pub names: Vec<String>,
    pub first: u16,
    pub last: u16,
    #[serde(default)]
    pub only: Vec<String>,
}

/// A path parameter that the schema does not declare.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct Synthetic {
    pub at: String,
    pub name: String,
    pub schema: BTreeMap<String, toml::Value>,
    pub reason: String,
}

/// A named tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct Tool {
    #[serde(skip)]
    pub toolset: String,
    pub name: String,
    pub title: String,
    pub description: String,
    #[serde(default)]
    pub operation: Option<String>,
    #[serde(default)]
    pub operations: Option<ByKind>,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub required: Vec<String>,
    #[serde(default)]
    pub fixed: BTreeMap<String, String>,
    #[serde(default)]
    pub projection: Option<String>,
    #[serde(default)]
    pub filter: BTreeMap<String, String>,
    #[serde(default)]
    pub arguments: Vec<ToolArgument>,
    #[serde(default)]
    pub also_in: Vec<String>,
    #[serde(default)]
    pub tier: Option<Tier>,
}

/// One operation for each kind of guest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByKind {
    /// For VMs.
    pub qemu: String,
    /// For containers.
    pub lxc: String,
}

/// An argument of a tool that is not one operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "schema/README.md is the one place that explains the keys")]
pub struct ToolArgument {
    #[serde(default)]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub items: Option<Box<ToolArgument>>,
    #[serde(default)]
    pub properties: Option<Vec<ToolArgument>>,
    #[serde(default)]
    pub max_items: Option<u64>,
    #[serde(default)]
    pub choices: Vec<String>,
    #[serde(default)]
    pub minimum: Option<i64>,
    #[serde(default)]
    pub maximum: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AreaFile {
    #[serde(default)]
    operations: BTreeMap<Spanned<String>, DecisionKeys>,
    #[serde(default)]
    patterns: Vec<Spanned<toml::Table>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RolesFile {
    roles: Vec<Spanned<RoleRule>>,
    #[serde(default)]
    property_roles: Vec<Spanned<RoleRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WordsFile {
    wire: Wire,
    words: Vec<Spanned<Words>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixupsFile {
    #[serde(default)]
    fixups: Vec<Spanned<Fixup>>,
    #[serde(default)]
    ranges: Vec<Spanned<Range>>,
    #[serde(default)]
    synthetic: Vec<Spanned<Synthetic>>,
}

/// `internal.toml`.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Internal {
    /// Operations that the server itself needs, by the name that its code uses.
    pub operations: BTreeMap<String, String>,
    /// Parameters of these operations that the server sets, by the same name.
    #[serde(default)]
    pub parameters: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsFile {
    toolset: String,
    #[serde(default)]
    tools: Vec<Spanned<Tool>>,
}

impl Overlay {
    /// Reads the files of `schema/overlay/`, given by their path below it.
    pub fn read(files: &BTreeMap<String, String>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let mut overlay = Self::default();
        for (name, text) in files {
            let file = File { name, text };
            let read = match name.as_str() {
                "roles.toml" => file.parse().map(|parsed: RolesFile| {
                    overlay.roles = file.entries(parsed.roles);
                    overlay.property_roles = file.entries(parsed.property_roles);
                }),
                "params.toml" => file.parse().map(|parsed: WordsFile| {
                    overlay.words = file.entries(parsed.words);
                    overlay.wire = parsed.wire;
                }),
                "internal.toml" => file.parse().map(|parsed| overlay.internal = parsed),
                "privileges.toml" => file.parse().map(|parsed| overlay.privileges = parsed),
                "fixups.toml" => file.parse().map(|parsed: FixupsFile| {
                    overlay.fixups = file.entries(parsed.fixups);
                    overlay.ranges = file.entries(parsed.ranges);
                    overlay.synthetic = file.entries(parsed.synthetic);
                }),
                _ if name.starts_with("tools/") => file.parse().map(|parsed: ToolsFile| {
                    overlay.tools.extend(file.entries(parsed.tools).into_iter().map(|mut entry| {
                        entry.value.toolset.clone_from(&parsed.toolset);
                        entry
                    }));
                }),
                _ => file.decisions().map(|decisions| overlay.decisions.extend(decisions)),
            };
            problems.keep(read);
        }
        problems.or(overlay)
    }
}

struct File<'a> {
    name: &'a str,
    text: &'a str,
}

impl File<'_> {
    fn parse<T: DeserializeOwned>(&self) -> Result<T, Problems> {
        toml::from_str(self.text).map_err(|error| {
            let line = error.span().map_or(1, |span| self.line(span.start));
            problem(format!("{}:{line}", self.name), error.message())
        })
    }

    fn line(&self, offset: usize) -> usize {
        self.text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
    }

    fn entries<T>(&self, spanned: Vec<Spanned<T>>) -> Vec<Entry<T>> {
        spanned
            .into_iter()
            .map(|item| Entry {
                place: format!("{}:{}", self.name, self.line(item.span().start)),
                value: item.into_inner(),
            })
            .collect()
    }

    fn decisions(&self) -> Result<Vec<Entry<Decision>>, Problems> {
        let Some(area) = Area::ALL.iter().copied().find(|area| Some(area.word()) == self.name.strip_suffix(".toml"))
        else {
            return Err(problem(self.name, "not a file of the overlay; schema/README.md lists them"));
        };
        let parsed: AreaFile = self.parse()?;
        let mut problems = Problems::default();
        let mut decisions = Vec::new();
        for (name, keys) in parsed.operations {
            let place = format!("{}:{} {}", self.name, self.line(name.span().start), name.get_ref());
            match Pattern::parse(name.get_ref()).filter(|_| !name.get_ref().contains('*')) {
                Some(pattern) => decisions.push(Entry {
                    place,
                    value: Decision { area, pattern, is_pattern: false, except: Vec::new(), keys },
                }),
                None => problems.push(place, "not the name of an operation: `VERB /path`, without `*`"),
            }
        }
        for spanned in parsed.patterns {
            let place = format!("{}:{}", self.name, self.line(spanned.span().start));
            if let Some(decision) = problems.keep(pattern_entry(area, spanned.into_inner(), &place)) {
                decisions.push(Entry { place: format!("{place} {}", decision.pattern.as_str()), value: decision });
            }
        }
        problems.or(decisions)
    }
}

fn pattern_entry(area: Area, mut table: toml::Table, place: &str) -> Result<Decision, Problems> {
    let Some(toml::Value::String(text)) = table.remove("match") else {
        return Err(problem(place, "a pattern needs `match = \"VERB /path\"`"));
    };
    let pattern = Pattern::parse(&text).ok_or_else(|| {
        problem(place, format!("`{text}` is not a pattern: `VERB /path`, with `*` for one step and a final `**`"))
    })?;
    let except = match table.remove("except") {
        None => Vec::new(),
        Some(value) => {
            value.try_into().map_err(|error: toml::de::Error| problem(place, format!("except: {}", error.message())))?
        }
    };
    let keys = table.try_into().map_err(|error: toml::de::Error| problem(place, error.message()))?;
    Ok(Decision { area, pattern, is_pattern: true, except, keys })
}

fn problem(place: impl Into<String>, message: impl Into<String>) -> Problems {
    let mut problems = Problems::default();
    problems.push(place, message);
    problems
}

/// Parses the operation patterns of an entry; those that have not the form are noted.
pub fn patterns(texts: &[String], place: &str, problems: &mut Problems) -> Vec<Pattern> {
    texts
        .iter()
        .filter_map(|text| {
            let pattern = Pattern::parse(text);
            if pattern.is_none() {
                problems.push(place, format!("`{text}` is not an operation pattern: `VERB /path`"));
            }
            pattern
        })
        .collect()
}

/// Which parts of an entry have mattered. What never did is an error: an overlay that drifts
/// away from the schema decides less than it seems to.
#[derive(Debug, Default)]
pub struct Uses(BTreeSet<String>);

impl Uses {
    /// Notes that this part of an entry decided something.
    pub fn mark(&mut self, part: impl Into<String>) {
        self.0.insert(part.into());
    }

    /// Reports the entry at `place` if `mark` was never made.
    pub fn require_entry(&self, mark: &str, place: &str, problems: &mut Problems) {
        if !self.0.contains(mark) {
            problems.push(place, "matches nothing in the newest pinned release: remove it, or correct it");
        }
    }

    /// Reports a part of the entry at `place` if `mark` was never made.
    pub fn require_part(&self, mark: &str, part: &str, place: &str, problems: &mut Problems) {
        if !self.0.contains(mark) {
            problems.push(
                place,
                format!("`{part}` matches nothing in the newest pinned release: remove it, or correct it"),
            );
        }
    }
}
