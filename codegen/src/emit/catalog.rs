//! `catalog/`, `patterns.rs` and `property_strings.rs` of the generated crate.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::rust::{constant, header, kind, pairs, parameter, release, string, strings};
use crate::apidoc::{Check, GroupsParam, Permissions, UserIdParam};
use crate::model::{Answer, Field, Key, Model, Operation, Permission, PropertyString, Rows};
use crate::overlay::{OfferedKey, UndoKey};

/// Which file an operation goes to: the first prefix that fits. Files stay readable, and do not
/// move when an upgrade adds operations.
const GROUPS: &[(&str, &str)] = &[
    ("/access", "access"),
    ("/cluster/firewall", "cluster_firewall"),
    ("/cluster/ha", "cluster_ha"),
    ("/cluster/mapping", "cluster_mapping"),
    ("/cluster/notifications", "cluster_notifications"),
    ("/cluster/sdn", "cluster_sdn"),
    ("/cluster", "cluster"),
    ("/nodes/{node}/ceph", "nodes_ceph"),
    ("/nodes/{node}/disks", "nodes_disks"),
    ("/nodes/{node}/lxc/{vmid}/firewall", "lxc_firewall"),
    ("/nodes/{node}/lxc", "lxc"),
    ("/nodes/{node}/qemu/{vmid}/agent", "qemu_agent"),
    ("/nodes/{node}/qemu/{vmid}/firewall", "qemu_firewall"),
    ("/nodes/{node}/qemu", "qemu"),
    ("/nodes/{node}/storage", "nodes_storage"),
    ("/nodes", "nodes"),
    ("/pools", "pools"),
    ("/storage", "storage"),
    ("/version", "version"),
];

/// The file's name for a path.
pub fn group(path: &str) -> &'static str {
    GROUPS
        .iter()
        .find(|(prefix, _)| path == *prefix || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')))
        .map_or("other", |(_, group)| group)
}

/// Writes them.
pub fn emit(model: &Model, files: &mut BTreeMap<String, String>) {
    let mut groups: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in &model.operations {
        groups.entry(group(&operation.path)).or_default().push(operation);
    }
    let mut index: Vec<(&str, String)> = Vec::new();
    for (name, operations) in &groups {
        for (at, operation) in operations.iter().enumerate() {
            index.push((&operation.name, format!("&{name}::OPERATIONS[{at}]")));
        }
        files.insert(format!("generated/src/catalog/{name}.rs"), group_file(model, name, operations));
    }
    index.sort();
    files.insert("generated/src/catalog/mod.rs".to_owned(), index_file(model, &groups, &index));
    files.insert("generated/src/patterns.rs".to_owned(), patterns_file(model));
    files.insert("generated/src/property_strings.rs".to_owned(), property_strings_file(model));
    files.insert("generated/src/internal.rs".to_owned(), internal_file(model, &index));
    files.insert("generated/src/lib.rs".to_owned(), lib_file(model));
}

fn internal_file(model: &Model, index: &[(&str, String)]) -> String {
    let mut text = header(model, "Operations that the server itself needs, whoever calls.");
    text.push_str("use crate::catalog::*;\nuse crate::model::Operation;\n\n");
    for (key, name) in &model.internal.operations {
        if let Ok(at) = index.binary_search_by(|(known, _)| (*known).cmp(name.as_str()))
            && let Some((_, place)) = index.get(at)
        {
            let _ = write!(text, "/// `{name}`\npub static {}: &Operation = {place};\n\n", key.to_uppercase());
        }
    }
    for (key, parameters) in &model.internal.parameters {
        let _ = writeln!(text, "/// Parameters of [`{}`] that the server sets.\npub mod {key} {{", key.to_uppercase());
        for name in parameters {
            let _ = writeln!(text, "    /// `{name}`\n    pub const {}: &str = \"{name}\";", constant(name));
        }
        text.push_str("}\n\n");
    }
    text
}

fn lib_file(model: &Model) -> String {
    let mut text = header(model, "What pvegate knows about the PVE API, as static data: operations, types, tools.");
    text.push_str("#![deny(warnings)]\n#![allow(\n    clippy::unreadable_literal,\n    clippy::wildcard_imports,\n    reason = \"numbers stand as PVE has them, and every file of data uses the whole vocabulary\"\n)]\n\n");
    for (module, skip) in [
        ("catalog", true),
        ("internal", true),
        ("model", false),
        ("patterns", true),
        ("property_strings", true),
        ("requests", true),
        ("terms", true),
        ("tools", true),
    ] {
        if skip {
            text.push_str("#[rustfmt::skip] // One fact a line, however long.\n");
        }
        let _ = writeln!(text, "pub mod {module};");
    }
    text
}

fn index_file(model: &Model, groups: &BTreeMap<&str, Vec<&Operation>>, index: &[(&str, String)]) -> String {
    let mut text = header(model, "All operations of the newest pinned release.");
    for name in groups.keys() {
        let _ = writeln!(text, "pub mod {name};");
    }
    let _ = write!(
        text,
        "\nuse crate::model::Operation;\n\n/// Every operation, sorted by name.\npub static OPERATIONS: [&Operation; {}] = [\n",
        index.len()
    );
    for (name, place) in index {
        let _ = writeln!(text, "    {place}, // {name}");
    }
    text.push_str("];\n\n/// The operation with this name (`VERB /path`).\npub fn operation(name: &str) -> Option<&'static Operation> {\n    OPERATIONS.binary_search_by(|known| known.name.cmp(name)).ok().and_then(|at| OPERATIONS.get(at)).copied()\n}\n");
    text
}

fn patterns_file(model: &Model) -> String {
    let mut text = header(model, "The regular expressions that values have to match as a whole.");
    let _ = write!(
        text,
        "/// In the order of their first use; [`crate::model::Text::pattern`] points here.\npub static PATTERNS: [&str; {}] = [\n",
        model.patterns.len()
    );
    for pattern in &model.patterns {
        let _ = writeln!(text, "    {},", string(pattern));
    }
    text.push_str("];\n");
    text
}

fn property_strings_file(model: &Model) -> String {
    let mut text = header(model, "The grammars of property strings.");
    text.push_str("use crate::model::{Key, Kind, PropertyString};\nuse crate::property_strings;\nuse crate::terms::{Role, Value};\n\n");
    for (name, shape) in &model.property_strings {
        text.push_str(&property_string(name, shape));
    }
    text
}

fn property_string(name: &str, shape: &PropertyString) -> String {
    let used = shape.used_by.first().map(String::as_str).unwrap_or_default();
    let more = if shape.used_by.len() > 1 { format!(" and {} more", shape.used_by.len() - 1) } else { String::new() };
    let default = shape.keys.iter().find(|(_, key)| key.is_default).map(|(name, _)| name);
    let mut text = format!(
        "/// `{used}`{more}.\npub static {}: PropertyString = PropertyString {{ name: {}, default_key: {default:?}, keys: &[\n",
        constant(name),
        string(name)
    );
    for (name, key) in &shape.keys {
        let Key { kind: of, required, alias, key_alias, role, .. } = key;
        let of = of.as_ref().map_or_else(|| "Kind::text(Value::Plain)".to_owned(), kind);
        let _ = writeln!(
            text,
            "    Key {{ name: {}, kind: {of}, required: {required}, alias: {alias:?}, key_alias: {key_alias:?}, role: Role::{} }},",
            string(name),
            role.variant()
        );
    }
    text.push_str("] };\n\n");
    text
}

fn group_file(model: &Model, name: &str, operations: &[&Operation]) -> String {
    let mut text = header(model, &format!("Operations of `{name}`."));
    text.push_str("#[allow(unused_imports, reason = \"not every file needs every name\")]\nuse crate::{model::*, property_strings, terms::*};\n\n");
    let _ = write!(text, "/// By path, then verb.\npub static OPERATIONS: [Operation; {}] = [\n", operations.len());
    for operation in operations {
        text.push_str(&self::operation(model, operation));
    }
    text.push_str("];\n");
    text
}

fn operation(model: &Model, operation: &Operation) -> String {
    let keys = &operation.keys;
    let mut text = String::from("    Operation {\n");
    let mut put = |key: &str, value: String| {
        let _ = writeln!(text, "        {key}: {value},");
    };
    put("name", string(&operation.name));
    put("verb", format!("Verb::{}", crate::kinds::camel(&operation.verb.to_lowercase())));
    put("path", string(&operation.path));
    put("segments", segments(&operation.path));
    put("summary", string(&keys.summary));
    put("area", format!("Area::{}", operation.area.variant()));
    put("tier", format!("Tier::{}", keys.tier.variant()));
    match keys.offered {
        None => {}
        Some(OfferedKey::OptIn(reason)) => put("offered", format!("Offered::OptIn(Reason::{})", reason.variant())),
        Some(OfferedKey::Never(reason)) => put("offered", format!("Offered::Never(Reason::{})", reason.variant())),
    }
    if !keys.leaves.is_empty() {
        put("leaves", strings(&keys.leaves));
    }
    if !operation.params.is_empty() {
        let lines = operation
            .params
            .iter()
            .fold(String::new(), |lines, of| lines + "            " + &parameter(model, of) + ",\n");
        put("params", format!("&[\n{lines}        ]"));
    }
    if let Some(args) = keys.args.as_ref().filter(|args| !args.is_empty()) {
        put("low_args", strings(args));
    }
    if !keys.fixed.is_empty() {
        put("fixed", pairs(&keys.fixed));
    }
    put("answer", answer(&operation.answer));
    if operation.rows != Rows::NotAList {
        put("rows", rows(&operation.rows));
    }
    if !keys.binds.is_empty() {
        put("binds", strings(&keys.binds));
    }
    if let Some(settle) = keys.settle {
        put("settle", format!("Some(Settle::{})", settle.variant()));
    }
    match &keys.undo {
        None => {}
        Some(UndoKey::Operation(name)) => put("undo", format!("Undo::Operation({})", string(name))),
        Some(UndoKey::None(why)) => put("undo", format!("Undo::None({})", string(&why.none))),
    }
    if keys.interrupts {
        put("interrupts", "true".to_owned());
    }
    if !keys.flags.is_empty() {
        put(
            "flags",
            format!(
                "&[{}]",
                keys.flags.iter().map(|flag| format!("Flag::{}", flag.variant())).collect::<Vec<_>>().join(", ")
            ),
        );
    }
    if !keys.guards.is_empty() {
        put(
            "guards",
            format!(
                "&[{}]",
                keys.guards.iter().map(|guard| format!("Guard::{}", guard.variant())).collect::<Vec<_>>().join(", ")
            ),
        );
    }
    put("permission", permission(&operation.permission));
    if operation.proxied {
        put("proxied", "true".to_owned());
    }
    if operation.protected {
        put("lane", format!("Lane::{}", if is_slow(&operation.path) { "Slow" } else { "Daemon" }));
    }
    if let Some(first) = model.releases.get(operation.since).filter(|_| operation.since > 0) {
        put("releases", format!("Releases::since(Release::{})", release(first)));
    }
    text.push_str("        ..Operation::BASE\n    },\n");
    text
}

/// Known to hold a blocking worker of pvedaemon for seconds: the guest agent, scans, SMART, the report.
pub fn is_slow(path: &str) -> bool {
    path.contains("/agent") || path.contains("/scan/") || path.ends_with("/disks/smart") || path.ends_with("/report")
}

fn segments(path: &str) -> String {
    let steps: Vec<String> = path
        .split('/')
        .skip(1)
        .map(|step| match step.strip_prefix('{').and_then(|step| step.strip_suffix('}')) {
            Some(name) => format!("Segment::Param({})", string(name)),
            None => format!("Segment::Literal({})", string(step)),
        })
        .collect();
    format!("&[{}]", steps.join(", "))
}

fn answer(answer: &Answer) -> String {
    let fields = |fields: &[Field]| {
        let fields: Vec<String> = fields
            .iter()
            .map(|field| {
                format!(
                    "Field::{}({}, {})",
                    if field.optional { "new" } else { "always" },
                    string(&field.name),
                    string(field.kind)
                )
            })
            .collect();
        format!("&[{}]", fields.join(", "))
    };
    match answer {
        Answer::Nothing => "Answer::Nothing".to_owned(),
        Answer::Task => "Answer::Task".to_owned(),
        Answer::MaybeTask => "Answer::MaybeTask".to_owned(),
        Answer::Value => "Answer::Value".to_owned(),
        Answer::Object(of) => format!("Answer::Object({})", fields(of)),
        Answer::List(of) => format!("Answer::List({})", fields(of)),
        Answer::Undescribed => "Answer::Undescribed".to_owned(),
    }
}

fn rows(rows: &Rows) -> String {
    match rows {
        Rows::NotAList => "Rows::NotAList".to_owned(),
        Rows::Bound => "Rows::Bound".to_owned(),
        Rows::All => "Rows::All".to_owned(),
        Rows::Columns(columns) => {
            let columns: Vec<String> = columns
                .iter()
                .map(|(subject, column)| {
                    format!("Row {{ subject: Subject::{}, column: {} }}", subject.variant(), string(column))
                })
                .collect();
            format!("Rows::Columns(&[{}])", columns.join(", "))
        }
    }
}

fn permission(permission: &Permission) -> String {
    match permission {
        Permission::RootOnly => "Permission::RootOnly".to_owned(),
        Permission::InCode(rule) => format!("Permission::InCode({})", string(rule)),
        Permission::Schema(Permissions::World) => "Permission::World".to_owned(),
        Permission::Schema(Permissions::AllUsers) => "Permission::InCode(\"\")".to_owned(),
        Permission::Schema(Permissions::Check(check)) => self::check(check),
    }
}

fn check(check: &Check) -> String {
    let all = |checks: &[Check]| checks.iter().map(self::check).collect::<Vec<_>>().join(", ");
    match check {
        Check::Perm { path, privs, any, require_param } => {
            format!(
                "Permission::Perm {{ path: {}, privs: {}, any: {any}, require_param: {require_param:?} }}",
                string(path),
                strings(privs)
            )
        }
        Check::And(checks) => format!("Permission::And(&[{}])", all(checks)),
        Check::Or(checks) => format!("Permission::Or(&[{}])", all(checks)),
        Check::UserIdGroup { privs, groups_param } => {
            let groups = groups_param.map(|groups| match groups {
                GroupsParam::Create => "create",
                GroupsParam::Update => "update",
            });
            format!("Permission::UserGroup({}, {groups:?})", strings(privs))
        }
        Check::UserIdParam(UserIdParam::Own) => "Permission::UserParam(\"self\")".to_owned(),
        Check::UserIdParam(UserIdParam::AllocateUser) => "Permission::UserParam(\"Realm.AllocateUser\")".to_owned(),
        Check::PermModify(path) => format!("Permission::PermModify({})", string(path)),
    }
}
