//! Groups, roles, and the access control list: made, changed, removed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::people::names;
use super::{Call, Outcome};
use crate::access::{BUILT_IN, Grant, Subject};
use crate::answer::Refusal;
use crate::state::Cluster;

type Done = Result<(), String>;

pub(super) fn write(cluster: &mut Cluster, call: &Call<'_>) -> Option<Outcome> {
    let operation = call.operation.name.as_str();
    if let Some(refusal) = built_in(operation, call) {
        return Some(Err(refusal));
    }
    let (what, done) = match operation {
        "POST /access/groups" => ("create group", create_group(cluster, call)),
        "PUT /access/groups/{groupid}" => ("update group", update_group(cluster, call)),
        "DELETE /access/groups/{groupid}" => ("delete group", delete_group(cluster, call)),
        "POST /access/roles" => ("create role", create_role(cluster, call)),
        "PUT /access/roles/{roleid}" => ("update role", update_role(cluster, call)),
        "DELETE /access/roles/{roleid}" => ("delete role", delete_role(cluster, call)),
        "PUT /access/acl" => {
            if let Err(refusal) = check_acl(call) {
                return Some(Err(refusal));
            }
            ("ACL update", update_acl(cluster, call))
        }
        _ => return None,
    };
    Some(match done {
        Ok(()) => Ok(Value::Null.into()),
        Err(error) => Err(Refusal::failed(format!("{what} failed: {error}"))),
    })
}

fn create_group(cluster: &mut Cluster, call: &Call<'_>) -> Done {
    let id = call.text("groupid");
    if cluster.access.groups.contains_key(id) {
        return Err(format!("group '{id}' already exists"));
    }
    cluster.access.groups.insert(id.to_owned(), call.text("comment").to_owned());
    Ok(())
}

fn update_group(cluster: &mut Cluster, call: &Call<'_>) -> Done {
    let id = call.text("groupid");
    let comment = cluster.access.groups.get_mut(id).ok_or_else(|| format!("group '{id}' does not exist"))?;
    call.text("comment").clone_into(comment);
    Ok(())
}

fn delete_group(cluster: &mut Cluster, call: &Call<'_>) -> Done {
    let id = call.text("groupid");
    cluster.access.groups.remove(id).ok_or_else(|| format!("group '{id}' does not exist"))?;
    for user in cluster.access.users.values_mut() {
        user.groups.remove(id);
    }
    cluster.access.acl.retain(|grant| grant.subject != Subject::Group(id.to_owned()));
    Ok(())
}

/// What is said before anything else where a role of PVE itself is to be changed.
fn built_in(operation: &str, call: &Call<'_>) -> Option<Refusal> {
    let how = match operation {
        "PUT /access/roles/{roleid}" => "modified",
        "DELETE /access/roles/{roleid}" => "deleted",
        _ => return None,
    };
    let id = call.text("roleid");
    BUILT_IN.contains(&id).then(|| Refusal::failed(format!("auto-generated role '{id}' cannot be {how}")))
}

fn create_role(cluster: &mut Cluster, call: &Call<'_>) -> Done {
    let id = call.text("roleid");
    if BUILT_IN.contains(&id) || cluster.access.roles.contains_key(id) {
        return Err(format!("role '{id}' already exists"));
    }
    cluster.access.roles.insert(id.to_owned(), names(call, "privs").map(str::to_owned).collect());
    Ok(())
}

fn update_role(cluster: &mut Cluster, call: &Call<'_>) -> Done {
    let id = call.text("roleid");
    let role = cluster.access.roles.get_mut(id).ok_or_else(|| format!("role '{id}' does not exist"))?;
    let wanted: BTreeSet<String> = names(call, "privs").map(str::to_owned).collect();
    if !call.flag("append") {
        role.clear();
    }
    role.extend(wanted);
    Ok(())
}

fn delete_role(cluster: &mut Cluster, call: &Call<'_>) -> Done {
    let id = call.text("roleid");
    cluster.access.roles.remove(id).ok_or_else(|| format!("role '{id}' does not exist"))?;
    cluster.access.acl.retain(|grant| grant.role != id);
    Ok(())
}

/// What the list does not look at before it is locked.
fn check_acl(call: &Call<'_>) -> Result<(), Refusal> {
    let subjects = ["users", "groups", "tokens"];
    if subjects.iter().all(|subject| !call.params.contains_key(*subject)) {
        let error = "either 'users', 'groups' or 'tokens' is required.";
        let errors: BTreeMap<String, String> =
            subjects.iter().map(|subject| ((*subject).to_owned(), error.to_owned())).collect();
        return Err(Refusal::parameters(errors));
    }
    if !known_path(call.text("path")) {
        return Err(Refusal::parameter("path", format!("invalid ACL path '{}'", call.text("path"))));
    }
    Ok(())
}

/// Whether rights can be given at a path.
fn known_path(path: &str) -> bool {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    #[allow(clippy::match_same_arms, reason = "one line for each part of the tree")]
    match steps.as_slice() {
        [] | ["access" | "mapping" | "nodes" | "pool" | "sdn" | "storage" | "vms"] => true,
        ["access", "groups" | "realm"]
        | ["sdn", "controllers" | "dns" | "fabrics" | "ipams" | "zones" | "prefix-lists" | "route-maps"] => true,
        ["access", "groups" | "realm", _] | ["nodes" | "storage" | "mapping", _] | ["mapping", _, _] => true,
        ["sdn", _, _] | ["sdn", "zones", _, _] | ["sdn", "zones", _, _, _] => true,
        ["pool", rest @ ..] => rest.len() <= 3,
        ["vms", vmid] => vmid.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

fn update_acl(cluster: &mut Cluster, call: &Call<'_>) -> Done {
    let path = format!("/{}", call.text("path").trim_matches('/'));
    let propagate = call.given("propagate").is_none() || call.flag("propagate");
    let access = &cluster.access;
    for role in names(call, "roles") {
        if !BUILT_IN.contains(&role) && !access.roles.contains_key(role) {
            return Err(format!("role '{role}' does not exist"));
        }
    }
    let mut subjects = Vec::new();
    for group in names(call, "groups") {
        if !access.groups.contains_key(group) {
            return Err(format!("group '{group}' does not exist"));
        }
        subjects.push(Subject::Group(group.to_owned()));
    }
    for user in names(call, "users") {
        if !access.users.contains_key(user) {
            return Err(format!("user '{user}' does not exist"));
        }
        subjects.push(Subject::User(user.to_owned()));
    }
    for token in names(call, "tokens") {
        let (user, name) = token.split_once('!').unwrap_or((token, ""));
        if !access.users.get(user).is_some_and(|user| user.tokens.contains_key(name)) {
            return Err(format!("no such token '{name}' for user '{user}'"));
        }
        subjects.push(Subject::Token(token.to_owned()));
    }
    let roles: Vec<String> = names(call, "roles").map(str::to_owned).collect();
    for subject in subjects {
        for role in &roles {
            cluster.access.acl.retain(|grant| grant.path != path || grant.subject != subject || grant.role != *role);
            if !call.flag("delete") {
                cluster.access.acl.push(Grant {
                    path: path.clone(),
                    subject: subject.clone(),
                    role: role.clone(),
                    propagate,
                });
            }
        }
    }
    Ok(())
}
