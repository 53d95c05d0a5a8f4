//! `POLICY.tsv`: one line for each operation with everything that decides about it. This is what
//! people review.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::apidoc::Check;
use crate::apidoc::Permissions;
use crate::model::{Answer, Model, Operation, Permission, Rows};
use crate::overlay::{OfferedKey, UndoKey};
use crate::terms::Role;

const COLUMNS: &str = "operation\tarea\ttier\toffered\tinterrupts\tlow args\tfixed\trows\tleaves\ttask\tsettle\tundo\tflags\tguards\tbinds\troles\tpermission\tsince";

/// Writes it.
pub fn emit(model: &Model, files: &mut BTreeMap<String, String>) {
    let mut text = format!("{COLUMNS}\n");
    for operation in &model.operations {
        let _ = writeln!(text, "{}", line(model, operation));
    }
    files.insert("generated/POLICY.tsv".to_owned(), text);
}

fn line(model: &Model, operation: &Operation) -> String {
    let keys = &operation.keys;
    let columns = [
        operation.name.clone(),
        operation.area.word().to_owned(),
        keys.tier.word().to_owned(),
        offered_text(keys.offered),
        if keys.interrupts { "interrupts" } else { "" }.to_owned(),
        keys.args.as_deref().unwrap_or_default().join(" "),
        keys.fixed.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
        rows_text(&operation.rows),
        keys.leaves.join(" "),
        match operation.answer {
            Answer::Task => "task",
            Answer::MaybeTask => "maybe",
            _ => "",
        }
        .to_owned(),
        keys.settle.map_or("", crate::terms::Settle::word).to_owned(),
        undo_text(keys.undo.as_ref()),
        keys.flags.iter().map(|flag| flag.word()).collect::<Vec<_>>().join(" "),
        keys.guards.iter().map(|guard| guard.word()).collect::<Vec<_>>().join(" "),
        keys.binds.join(" "),
        operation
            .params
            .iter()
            .filter(|parameter| parameter.role != Role::Plain)
            .map(|parameter| format!("{}={}", parameter.name, parameter.role.word()))
            .collect::<Vec<_>>()
            .join(" "),
        permission_text(&operation.permission),
        model.releases.get(operation.since).cloned().unwrap_or_default(),
    ];
    columns.map(|column| if column.is_empty() { "-".to_owned() } else { column.replace(['\t', '\n'], " ") }).join("\t")
}

/// `yes`, `opt-in: reason` or `never: reason`.
pub fn offered_text(offered: Option<OfferedKey>) -> String {
    match offered {
        None => "yes".to_owned(),
        Some(OfferedKey::OptIn(reason)) => format!("opt-in: {}", reason.word()),
        Some(OfferedKey::Never(reason)) => format!("never: {}", reason.word()),
    }
}

fn rows_text(rows: &Rows) -> String {
    match rows {
        Rows::NotAList => String::new(),
        Rows::Bound => "bound".to_owned(),
        Rows::All => "all".to_owned(),
        Rows::Columns(columns) => {
            columns.iter().map(|(subject, column)| format!("{}:{column}", subject.word())).collect::<Vec<_>>().join(" ")
        }
    }
}

fn undo_text(undo: Option<&UndoKey>) -> String {
    match undo {
        None => String::new(),
        Some(UndoKey::Operation(name)) => name.clone(),
        Some(UndoKey::None(why)) => format!("none: {}", why.none),
    }
}

/// PVE's check in one line.
pub fn permission_text(permission: &Permission) -> String {
    match permission {
        Permission::RootOnly => "root@pam only".to_owned(),
        Permission::InCode(rule) => format!("in code: {rule}"),
        Permission::Schema(Permissions::World) => "world".to_owned(),
        Permission::Schema(Permissions::AllUsers) => "in code".to_owned(),
        Permission::Schema(Permissions::Check(check)) => check_text(check),
    }
}

fn check_text(check: &Check) -> String {
    let all =
        |checks: &[Check], word: &str| format!("({})", checks.iter().map(check_text).collect::<Vec<_>>().join(word));
    match check {
        Check::Perm { path, privs, any, require_param } => {
            let privs = privs.join(if *any { "|" } else { "," });
            let given = require_param.as_ref().map(|name| format!(" if {name}")).unwrap_or_default();
            format!("{privs}@{path}{given}")
        }
        Check::And(checks) => all(checks, " and "),
        Check::Or(checks) => all(checks, " or "),
        Check::UserIdGroup { privs, .. } => format!("{}@groups of the user", privs.join(",")),
        Check::UserIdParam(of) => format!("user: {of:?}"),
        Check::PermModify(path) => format!("may modify {path}"),
    }
}
