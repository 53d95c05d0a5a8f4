//! Joins the pins and the overlay into the model, and reports everything that does not fit.

use std::collections::{BTreeMap, BTreeSet};

use crate::apidoc::{self, Apidoc, Method, Permissions, Schema};
use crate::decide::{Decisions, Glossary, Roles, Subject};
use crate::fixups;
use crate::kinds::{Kinds, Place};
use crate::model::{Answer, Field, Model, Operation, Parameter, Permission, Rows, Runs};
use crate::overlay::{
    Decision, Entry, Internal, OfferedKey, Overlay, Privileges, Range, RowsKey, TaskKey, UndoKey, Uses, patterns,
};
use crate::pattern::Pattern;
use crate::pin::Pin;
use crate::problem::Problems;
use crate::terms::{Flag, Reason, Role, Tier};
use crate::tools;

/// The pinned releases, read.
pub struct Pinned {
    /// Their names, oldest first.
    pub releases: Vec<String>,
    /// SHA-256 of each source.
    pub sources: BTreeMap<String, String>,
    /// What each says; the newest repaired.
    pub apidocs: Vec<Apidoc>,
}

/// Reads all pins, the newest with fixups applied.
pub fn read_pins(pins: &[Pin], texts: &BTreeMap<String, String>, overlay: &Overlay) -> Result<Pinned, Problems> {
    let mut problems = Problems::default();
    let mut pinned = Pinned { releases: Vec::new(), sources: BTreeMap::new(), apidocs: Vec::new() };
    let newest = pins.last().map(|pin| pin.release.clone());
    for pin in pins {
        let name = format!("pve-{}/apidoc.json", pin.release);
        let Some(text) = texts.get(&name) else {
            problems.push(
                "pins.toml",
                format!(
                    "names release {}, and schema/{name} is missing: run `cargo codegen pin --release {0} <apidoc.js>`",
                    pin.release
                ),
            );
            continue;
        };
        let apidoc = if Some(&pin.release) == newest.as_ref() {
            repaired(text, &name, overlay, &mut problems)
        } else {
            problems.keep(Apidoc::parse(text, &name).map_err(|errors| whole(&name, &errors)))
        };
        if let Some(apidoc) = apidoc {
            if apidoc.methods.len() != pin.methods {
                problems.push(
                    &name,
                    format!(
                        "has {} operations, and pins.toml says {}: pin it again",
                        apidoc.methods.len(),
                        pin.methods
                    ),
                );
            }
            pinned.apidocs.push(apidoc);
        }
        pinned.releases.push(pin.release.clone());
        pinned.sources.insert(pin.release.clone(), pin.sha256.clone());
    }
    if pins.is_empty() {
        problems.push("pins.toml", "no release is pinned: run `cargo codegen pin --release R <apidoc.js>`");
    }
    problems.or(pinned)
}

fn repaired(text: &str, name: &str, overlay: &Overlay, problems: &mut Problems) -> Option<Apidoc> {
    let mut value = problems.keep(apidoc::decode(text, name).map_err(|errors| whole(name, &errors)))?;
    fixups::apply(&mut value, &overlay.fixups, problems);
    fixups::declare(&mut value, &overlay.synthetic, problems);
    problems.keep(Apidoc::from_value(&value, name).map_err(|errors| whole(name, &errors)))
}

fn whole(name: &str, errors: &apidoc::ApidocErrors) -> Problems {
    let mut problems = Problems::default();
    for place in &errors.places {
        problems.push(name, place.to_string());
    }
    problems
}

/// Joins everything.
pub fn join(pinned: &Pinned, overlay: &Overlay) -> Result<Model, Problems> {
    let mut problems = Problems::default();
    let Some((newest, older)) = pinned.apidocs.split_last() else {
        return Err(problems);
    };
    let mut joiner = Joiner {
        older,
        decisions: Decisions::new(&overlay.decisions),
        roles: Roles::of_parameters(&overlay.roles, &mut problems),
        kinds: Kinds::new(Roles::of_keys(&overlay.property_roles, &mut problems)),
        ranges: Ranges::new(&overlay.ranges, &mut problems),
        privileges: &overlay.privileges,
        glossary: Glossary::new(&overlay.words, &mut problems),
        tooled: tools::operations(&overlay.tools),
        problems,
    };
    let mut operations: Vec<Operation> =
        newest.methods.iter().filter_map(|(name, method)| joiner.operation(name, method)).collect();
    operations.sort_by(|one, other| (&one.path, &one.verb).cmp(&(&other.path, &other.verb)));
    let Joiner { decisions, roles, kinds, ranges, glossary, mut problems, .. } = joiner;
    decisions.finish(&mut problems);
    roles.finish(&mut problems);
    ranges.finish(&mut problems);
    glossary.finish(&mut problems);
    let (patterns, property_strings) = kinds.finish(&mut problems);
    check_privileges(&operations, &overlay.privileges, &mut problems);
    check_references(&operations, &overlay.internal, &mut problems);
    let mut model = Model {
        counts: pinned.releases.iter().cloned().zip(pinned.apidocs.iter().map(|apidoc| apidoc.methods.len())).collect(),
        removed: removed(pinned, newest),
        releases: pinned.releases.clone(),
        sources: pinned.sources.clone(),
        operations,
        property_strings,
        patterns,
        tools: Vec::new(),
        internal: overlay.internal.clone(),
        option_privileges: option_privileges(&overlay.privileges),
    };
    model.tools = tools::tools(&overlay.tools, &overlay.wire, &model, &mut problems);
    problems.or(model)
}

fn removed(pinned: &Pinned, newest: &Apidoc) -> BTreeMap<String, String> {
    let mut removed = BTreeMap::new();
    for (release, apidoc) in pinned.releases.iter().zip(&pinned.apidocs) {
        for name in apidoc.methods.keys().filter(|name| !newest.methods.contains_key(*name)) {
            removed.insert(name.clone(), release.clone());
        }
    }
    removed
}

fn option_privileges(privileges: &Privileges) -> BTreeMap<(String, String), String> {
    let of = |kind: &str, options: &BTreeMap<String, String>| -> Vec<_> {
        options.iter().map(|(option, privilege)| ((kind.to_owned(), option.clone()), privilege.clone())).collect()
    };
    of("qemu", &privileges.qemu).into_iter().chain(of("lxc", &privileges.lxc)).collect()
}

struct Joiner<'a> {
    older: &'a [Apidoc],
    decisions: Decisions<'a>,
    roles: Roles<'a>,
    kinds: Kinds<'a>,
    ranges: Ranges<'a>,
    privileges: &'a Privileges,
    glossary: Glossary<'a>,
    tooled: BTreeSet<String>,
    problems: Problems,
}

impl Joiner<'_> {
    fn operation(&mut self, name: &str, method: &Method) -> Option<Operation> {
        let added = self.older.last().is_some_and(|previous| !previous.methods.contains_key(name));
        let entry = self.decisions.decide(name, added, &mut self.problems)?;
        let Decision { area, keys, .. } = &entry.value;
        // A low one has words for what keeps it low: with anything else, no tool takes it.
        let worded = self.tooled.contains(name) && keys.tier != Tier::Low;
        let params = self.parameters(name, method, keys.tier, keys.args.as_deref().unwrap_or_default(), worded);
        let answer = answer(method, keys.task, name, &mut self.problems);
        let operation = Operation {
            name: name.to_owned(),
            verb: method.verb.as_str().to_owned(),
            path: method.path.clone(),
            area: *area,
            decided_at: entry.place.clone(),
            rows: rows(entry, method, name, &mut self.problems),
            keys: keys.clone(),
            params,
            answer,
            permission: permission(
                method,
                self.privileges.operations.get(name).map(|privilege| privilege.rule.as_str()),
            ),
            proxied: method.proxyto.as_deref() == Some("node"),
            protected: method.protected,
            since: self.since(|apidoc| apidoc.methods.contains_key(name)),
        };
        check_decision(&operation, entry, &mut self.problems);
        Some(operation)
    }

    /// Index of the first release from which on every pin has it.
    fn since(&self, has: impl Fn(&Apidoc) -> bool) -> usize {
        self.older.len() - self.older.iter().rev().take_while(|apidoc| has(apidoc)).count()
    }

    fn parameters(
        &mut self,
        operation: &str,
        method: &Method,
        tier: Tier,
        low_args: &[String],
        worded: bool,
    ) -> Vec<Parameter> {
        let path_names: Vec<&str> =
            method.path.split('/').filter_map(|step| step.strip_prefix('{')?.strip_suffix('}')).collect();
        for name in path_names.iter().filter(|name| !method.parameters.properties.contains_key(**name)) {
            self.problems.push(
                format!("{operation} {name}"),
                "the path names it, and the schema does not declare it: add it to [[synthetic]] in fixups.toml",
            );
        }
        let mut params: Vec<Parameter> = Vec::new();
        for (name, schema) in &method.parameters.properties {
            let in_path = path_names.contains(&name.as_str());
            let place = match method.verb {
                _ if in_path => "path",
                apidoc::Verb::Get | apidoc::Verb::Delete => "query",
                apidoc::Verb::Post | apidoc::Verb::Put => "body",
            };
            let low = tier == Tier::Low && (in_path || low_args.contains(name));
            if let Some(parameter) = self.parameter(operation, name, schema, place, worded || low) {
                params.push(parameter);
            }
        }
        let order = |parameter: &Parameter| {
            (path_names.iter().position(|name| *name == parameter.name).unwrap_or(usize::MAX), parameter.name.clone())
        };
        params.sort_by_key(order);
        params
    }

    fn parameter(
        &mut self,
        operation: &str,
        name: &str,
        schema: &Schema,
        place: &'static str,
        worded: bool,
    ) -> Option<Parameter> {
        let whole = format!("{operation} {name}");
        let format = match &schema.format {
            Some(apidoc::Format::Named(format)) => Some(format.as_str()),
            _ => schema.items.as_ref().and_then(|items| match &items.format {
                Some(apidoc::Format::Named(format)) => Some(format.as_str()),
                _ => None,
            }),
        };
        let deciding = self.roles.deciding(Subject { within: operation, name, format, place });
        let (role, role_at) = match deciding.as_slice() {
            [(role, at)] => (*role, (*at).to_owned()),
            [] => {
                self.problems.push(&whole, "no rule gives it a role: add it to schema/overlay/roles.toml");
                return None;
            }
            several => {
                let places: Vec<&str> = several.iter().map(|(_, at)| *at).collect();
                self.problems.push(&whole, format!("several rules give it a role: {}", places.join(", ")));
                return None;
            }
        };
        let kind = self.kinds.kind(Place { operation, parameter: name }, schema, role, &mut self.problems);
        let index = self.ranges.range(operation, name, &mut self.problems);
        let since = self.since(|apidoc| {
            apidoc.methods.get(operation).is_some_and(|method| method.parameters.properties.contains_key(name))
        });
        let since = since.max(self.since(|apidoc| apidoc.methods.contains_key(operation)));
        let words =
            if worded { self.glossary.words(operation, name, &mut self.problems).map(str::to_owned) } else { None };
        Some(Parameter {
            name: name.to_owned(),
            place,
            default: default_of(&kind, schema),
            kind,
            // PVE declares some path parameters optional; without them the path is another one.
            required: place == "path" || schema.required() && index.is_none(),
            role,
            role_at,
            index,
            requires: schema.requires.clone(),
            only_with: schema
                .type_property
                .clone()
                .filter(|_| !schema.instance_types.is_empty())
                .map(|property| (property, schema.instance_types.clone())),
            since,
            words,
        })
    }
}

/// A default is kept only where it is a value of the type: many are prose.
fn default_of(kind: &crate::model::Kind, schema: &Schema) -> Option<String> {
    use crate::model::Kind;
    let text = match schema.default.as_ref()? {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(number) => number.to_string(),
        serde_json::Value::Bool(flag) => u8::from(*flag).to_string(),
        _ => return None,
    };
    let fits = match kind {
        Kind::Boolean => text == "0" || text == "1",
        Kind::Integer(..) => text.parse::<i64>().is_ok(),
        Kind::Number(..) => text.parse::<f64>().is_ok(),
        Kind::Choice(choices) => choices.contains(&text),
        Kind::Text { .. } | Kind::List(_) | Kind::Property(_) => !text.is_empty(),
        Kind::Array(_) => false,
    };
    fits.then_some(text)
}

fn answer(method: &Method, task: Option<TaskKey>, operation: &str, problems: &mut Problems) -> Answer {
    use apidoc::Kind;
    let returns = &method.returns;
    let text = returns.kind == Some(Kind::String);
    if !text && task.is_some() {
        problems.push(operation, "`task` is for operations that return a string");
    }
    match returns.kind {
        Some(Kind::Null) => Answer::Nothing,
        Some(Kind::String) => match task {
            Some(TaskKey::Yes) => Answer::Task,
            Some(TaskKey::Maybe) => Answer::MaybeTask,
            Some(TaskKey::No) => Answer::Value,
            None => {
                problems.push(
                    operation,
                    "returns a string, and the overlay does not say whether it is a task id: set `task`",
                );
                Answer::Value
            }
        },
        Some(Kind::Integer | Kind::Number | Kind::Boolean) => Answer::Value,
        Some(Kind::Object) => Answer::Object(fields(returns)),
        Some(Kind::Array) => Answer::List(returns.items.as_deref().map(fields).unwrap_or_default()),
        None if !returns.properties.is_empty() => Answer::Object(fields(returns)),
        Some(Kind::Any) | None => Answer::Undescribed,
    }
}

fn fields(schema: &Schema) -> Vec<Field> {
    let kind = |schema: &Schema| match schema.kind {
        Some(apidoc::Kind::String) => "string",
        Some(apidoc::Kind::Integer) => "integer",
        Some(apidoc::Kind::Number) => "number",
        Some(apidoc::Kind::Boolean) => "boolean",
        Some(apidoc::Kind::Object) => "object",
        Some(apidoc::Kind::Array) => "array",
        Some(apidoc::Kind::Null | apidoc::Kind::Any) | None => "any",
    };
    schema
        .properties
        .iter()
        .map(|(name, schema)| Field { name: name.clone(), kind: kind(schema), optional: !schema.required() })
        .collect()
}

fn rows(entry: &Entry<Decision>, method: &Method, operation: &str, problems: &mut Problems) -> Rows {
    let keys = &entry.value.keys;
    let is_list = method.returns.kind == Some(apidoc::Kind::Array);
    match (&keys.rows, keys.tier == Tier::Read && is_list) {
        (None, false) => Rows::NotAList,
        (None, true) => {
            problems.push(operation, "a list: say in the overlay whose its rows are (`rows`)");
            Rows::All
        }
        // An object may tell of everything too, whatever its path names.
        (Some(RowsKey::Word(word)), false) if keys.tier == Tier::Read && word == "all" => Rows::All,
        (Some(_), false) => {
            // A pattern may cover lists and other reads alike.
            if !entry.value.is_pattern {
                problems.push(&entry.place, "`rows` is for reads that return a list; other reads take \"all\" alone");
            }
            Rows::NotAList
        }
        (Some(RowsKey::Word(word)), true) => match word.as_str() {
            "all" => Rows::All,
            "bound" => Rows::Bound,
            other => {
                problems.push(
                    &entry.place,
                    format!("rows = \"{other}\": only \"all\", \"bound\" or a list of `subject:column`"),
                );
                Rows::All
            }
        },
        (Some(RowsKey::Columns(columns)), true) => {
            Rows::Columns(columns.iter().filter_map(|column| row(column, &entry.place, problems)).collect())
        }
    }
}

fn row(text: &str, place: &str, problems: &mut Problems) -> Option<(crate::terms::Subject, String)> {
    let parsed = text.split_once(':').and_then(|(subject, column)| {
        Some((crate::terms::Subject::ALL.iter().copied().find(|known| known.word() == subject)?, column.to_owned()))
    });
    if parsed.is_none() {
        problems.push(place, format!("`{text}` is not `subject:column`; subjects are guest, node, storage, pool"));
    }
    parsed
}

fn permission(method: &Method, in_code: Option<&str>) -> Permission {
    match (&method.permissions, in_code) {
        (None, _) => Permission::RootOnly,
        (Some(Permissions::AllUsers), Some(rule)) => Permission::InCode(rule.to_owned()),
        (Some(permissions), _) => Permission::Schema(permissions.clone()),
    }
}

/// What a decision has to say, and what it may not.
fn check_decision(operation: &Operation, entry: &Entry<Decision>, problems: &mut Problems) {
    let keys = &operation.keys;
    let mut wrong = |message: String| problems.push(format!("{} ({})", operation.name, entry.place), message);
    let low = keys.tier == Tier::Low;
    if keys.summary.trim().is_empty() || keys.summary.chars().count() > 100 {
        wrong("`summary` has to have 1 to 100 characters".to_owned());
    }
    match (low, &keys.args) {
        (true, None) => wrong("a low operation lists its `args` (none: [])".to_owned()),
        (false, Some(_)) => wrong("`args` is for low operations".to_owned()),
        _ => {}
    }
    for name in keys.args.iter().flatten() {
        match operation.parameter(name) {
            Some(parameter) if parameter.place == "path" => {
                wrong(format!("args: `{name}` is in the path, and those are always allowed"));
            }
            Some(_) => {}
            None => wrong(format!("args: the operation has no parameter `{name}`")),
        }
    }
    for name in keys.fixed.keys().filter(|name| operation.parameter(name).is_none()) {
        wrong(format!("fixed: the operation has no parameter `{name}`"));
    }
    if operation.mutates() != keys.settle.is_some() {
        wrong(
            if operation.mutates() {
                "say how a lost answer is settled (`settle`)"
            } else {
                "`settle` is for operations that change something"
            }
            .to_owned(),
        );
    }
    if operation.mutates() != keys.undo.is_some() {
        wrong(
            if operation.mutates() {
                "say what reverses it (`undo`), or why nothing does"
            } else {
                "`undo` is for operations that change something"
            }
            .to_owned(),
        );
    }
    let token_reaches = matches!(operation.permission, Permission::RootOnly);
    if token_reaches && !matches!(keys.offered, Some(OfferedKey::Never(_))) && keys.tier != Tier::Read {
        wrong("no API token can call it: `offered = { never = \"root-only\" }`".to_owned());
    }
    let secret = keys.flags.contains(&Flag::SecretOut);
    let closed = matches!(keys.offered, Some(OfferedKey::Never(_)))
        || matches!(keys.offered, Some(OfferedKey::OptIn(Reason::ReturnsCredential))) && !keys.leaves.is_empty();
    if secret && keys.tier == Tier::Read && !closed {
        wrong("its answer may hold a secret: `never`, or `opt-in = \"returns-a-credential\"` with `leaves`".to_owned());
    }
    if let Rows::Columns(columns) = &operation.rows
        && let Answer::List(fields) = &operation.answer
    {
        for (_, column) in
            columns.iter().filter(|(_, column)| !fields.is_empty() && !fields.iter().any(|field| field.name == *column))
        {
            wrong(format!("rows: its rows have no column `{column}`"));
        }
    }
}

/// Operations that entries name have to exist.
fn check_references(operations: &[Operation], internal: &Internal, problems: &mut Problems) {
    let names: BTreeSet<&str> = operations.iter().map(|operation| operation.name.as_str()).collect();
    for (key, name) in internal.operations.iter().filter(|(_, name)| !names.contains(name.as_str())) {
        problems.push(format!("internal.toml {key}"), format!("there is no operation `{name}`"));
    }
    for (key, parameters) in &internal.parameters {
        let wanted = internal.operations.get(key);
        let operation = wanted.and_then(|name| operations.iter().find(|operation| operation.name == *name));
        for parameter in parameters.iter().filter(|name| operation.is_none_or(|it| it.parameter(name).is_none())) {
            problems.push(format!("internal.toml {key}"), format!("its operation has no parameter `{parameter}`"));
        }
    }
    for operation in operations {
        match &operation.keys.undo {
            Some(UndoKey::Operation(name)) if !names.contains(name.as_str()) => {
                problems.push(&operation.decided_at, format!("undo: there is no operation `{name}`"));
            }
            Some(UndoKey::None(why)) if why.none.trim().is_empty() => {
                problems.push(&operation.decided_at, "undo: say why there is none");
            }
            _ => {}
        }
    }
}

/// `privileges.toml` covers every operation whose check is in PVE's code, and every config option; nothing else.
fn check_privileges(operations: &[Operation], privileges: &Privileges, problems: &mut Problems) {
    let place = "privileges.toml";
    let in_code = |operation: &Operation| {
        matches!(operation.permission, Permission::InCode(_) | Permission::Schema(Permissions::AllUsers))
    };
    for operation in operations.iter().filter(|operation| in_code(operation)) {
        if !privileges.operations.contains_key(&operation.name) {
            problems.push(&operation.name, "its privileges are checked in PVE's code: say which in privileges.toml");
        }
    }
    for name in privileges.operations.keys() {
        if !operations.iter().any(|operation| operation.name == *name && in_code(operation)) {
            problems.push(
                place,
                format!("`{name}` is not an operation whose privileges are checked in code: remove it, or correct it"),
            );
        }
    }
    for (options, paths) in [
        (&privileges.qemu, ["/nodes/{node}/qemu", "/nodes/{node}/qemu/{vmid}/config"]),
        (&privileges.lxc, ["/nodes/{node}/lxc", "/nodes/{node}/lxc/{vmid}/config"]),
    ] {
        let known: BTreeSet<&str> = operations
            .iter()
            .filter(|operation| operation.verb != "GET" && paths.contains(&operation.path.as_str()))
            .flat_map(|operation| {
                operation
                    .params
                    .iter()
                    .filter(|parameter| parameter.place != "path" && parameter.role != Role::GuestNew)
                    .map(|parameter| parameter.name.as_str())
            })
            .collect();
        for option in options.keys().filter(|option| !known.contains(option.as_str())) {
            problems.push(place, format!("`{option}` is not an option of {}: remove it, or correct it", paths[0]));
        }
        for option in known.iter().filter(|option| !options.contains_key(**option)) {
            problems.push(place, format!("says nothing about the option `{option}` of {}", paths[0]));
        }
    }
}

/// The ranges of indexed parameters.
struct Ranges<'a> {
    entries: Vec<(&'a Entry<Range>, Vec<Pattern>)>,
    uses: Uses,
}

impl<'a> Ranges<'a> {
    fn new(entries: &'a [Entry<Range>], problems: &mut Problems) -> Self {
        Self {
            entries: entries.iter().map(|entry| (entry, patterns(&entry.value.only, &entry.place, problems))).collect(),
            uses: Uses::default(),
        }
    }

    fn range(&mut self, operation: &str, name: &str, problems: &mut Problems) -> Option<(u16, u16)> {
        if !name.ends_with("[n]") {
            return None;
        }
        let mut found = Vec::new();
        for (entry, only) in &self.entries {
            if entry.value.names.iter().any(|known| known == name)
                && (only.is_empty() || only.iter().any(|pattern| pattern.matches(operation)))
            {
                self.uses.mark(format!("{} {name}", entry.place));
                for pattern in only.iter().filter(|pattern| pattern.matches(operation)) {
                    self.uses.mark(format!("{} {}", entry.place, pattern.as_str()));
                }
                found.push((entry.value.first, entry.value.last));
            }
        }
        match found.as_slice() {
            [range] => Some(*range),
            [] => {
                problems.push(
                    format!("{operation} {name}"),
                    "an indexed parameter whose range the apidoc lost: add it to [[ranges]] in fixups.toml",
                );
                None
            }
            _ => {
                problems.push(format!("{operation} {name}"), "several [[ranges]] in fixups.toml cover it");
                None
            }
        }
    }

    fn finish(&self, problems: &mut Problems) {
        for (entry, only) in &self.entries {
            for name in &entry.value.names {
                self.uses.require_part(&format!("{} {name}", entry.place), name, &entry.place, problems);
            }
            for pattern in only {
                self.uses.require_part(
                    &format!("{} {}", entry.place, pattern.as_str()),
                    pattern.as_str(),
                    &entry.place,
                    problems,
                );
            }
        }
    }
}

/// Whether a tool runs this operation.
pub fn runs(runs: &Runs, operation: &str) -> bool {
    match runs {
        Runs::Gateway => false,
        Runs::One(name) => name == operation,
        Runs::ByKind { qemu, lxc } => qemu == operation || lxc == operation,
    }
}
