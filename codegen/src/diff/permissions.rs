//! Permission expressions in one line, for people.

use crate::apidoc::{Check, GroupsParam, Permissions, UserIdParam};

/// Who may call an operation.
pub(super) fn show(permissions: Option<&Permissions>) -> String {
    match permissions {
        None => "root@pam only".to_owned(),
        Some(Permissions::World) => "everyone, without a login".to_owned(),
        Some(Permissions::AllUsers) => "every user, checked in code".to_owned(),
        Some(Permissions::Check(expression)) => format!("`{}`", check(expression)),
    }
}

fn check(expression: &Check) -> String {
    match expression {
        Check::Perm { path, privs, any, require_param } => {
            let privs = privs.join(if *any { " or " } else { " and " });
            let given = require_param.as_ref().map(|name| format!(" if {name} is given")).unwrap_or_default();
            format!("{privs} on {path}{given}")
        }
        Check::And(all) => joined(all, " and "),
        Check::Or(any) => joined(any, " or "),
        Check::UserIdGroup { privs, groups_param } => {
            let groups = match groups_param {
                None => "",
                Some(GroupsParam::Create) => ", created in its groups",
                Some(GroupsParam::Update) => ", moved to its groups",
            };
            format!("{} on a group of userid{groups}", privs.join(" and "))
        }
        Check::UserIdParam(UserIdParam::Own) => "userid is the caller".to_owned(),
        Check::UserIdParam(UserIdParam::AllocateUser) => "Realm.AllocateUser on the realm of userid".to_owned(),
        Check::PermModify(path) => format!("may change the ACL of {path}"),
    }
}

fn joined(checks: &[Check], word: &str) -> String {
    let parts: Vec<String> = checks.iter().map(|one| format!("({})", check(one))).collect();
    parts.join(word)
}
