//! Users, tokens, groups, roles, the access control list, and what a caller may do.

mod domain;
mod grants;
mod people;
mod ticket;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::access::{BUILT_IN, Caller, Subject, Token, User};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::guest::object;

pub(crate) use ticket::guard_of;

/// Answers the writes.
pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    let areas: [fn(&mut Cluster, &Call<'_>) -> Option<Outcome>; 4] =
        [people::write, grants::write, domain::write, ticket::write];
    shared.change(|cluster| areas.iter().find_map(|area| area(cluster, call)))
}

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    if let Some(outcome) = domain::read(cluster, call) {
        return Some(outcome);
    }
    Some(match call.path() {
        "/access/users" => Ok(Value::Array(users(cluster, call)).into()),
        "/access/users/{userid}" => user(cluster, call).map(|found| single_user(found).into()),
        "/access/users/{userid}/token" => user(cluster, call).map(|found| Value::Array(tokens(found)).into()),
        "/access/users/{userid}/token/{tokenid}" => token(cluster, call),
        "/access/users/{userid}/tfa" => {
            user(cluster, call).map(|_| json!({"realm": "none", "user": "none", "types": []}).into())
        }
        "/access/groups" => Ok(Value::Array(groups(cluster, call)).into()),
        "/access/groups/{groupid}" => group(cluster, call),
        "/access/roles" => Ok(Value::Array(roles(cluster)).into()),
        "/access/roles/{roleid}" => role(cluster, call),
        "/access/acl" => Ok(Value::Array(acl(cluster, call)).into()),
        "/access/permissions" => permissions(cluster, call),
        "/access/tfa" | "/access/tfa/{userid}" => Ok(json!([]).into()),
        "/access/ticket" => Ok(Value::Null.into()),
        _ => return None,
    })
}

fn user<'a>(cluster: &'a Cluster, call: &Call<'_>) -> Result<&'a User, Refusal> {
    let id = call.text("userid");
    cluster.access.users.get(id).ok_or_else(|| Refusal::failed(format!("no such user ('{id}')")))
}

/// What `user.cfg` keeps of a user. Its columns end with the last one that is set, and an empty address before that shows.
fn fields(user: &User) -> Map<String, Value> {
    let mut row = object(json!({"enable": u8::from(user.enable), "expire": user.expire}));
    let mut add = |key: &str, value: &Option<String>| {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            row.insert(key.to_owned(), json!(value));
        }
    };
    add("firstname", &user.firstname);
    add("lastname", &user.lastname);
    add("email", &user.email);
    add("comment", &user.comment);
    add("keys", &user.keys);
    if row.contains_key("comment") || row.contains_key("keys") {
        row.entry("email").or_insert(json!(""));
    }
    row
}

fn single_user(user: &User) -> Value {
    let mut data = fields(user);
    data.insert("groups".to_owned(), json!(user.groups));
    let tokens: Map<String, Value> =
        user.tokens.iter().map(|(name, token)| (name.clone(), Value::Object(token_fields(token)))).collect();
    data.insert("tokens".to_owned(), if tokens.is_empty() { Value::Null } else { Value::Object(tokens) });
    Value::Object(data)
}

fn token_fields(token: &Token) -> Map<String, Value> {
    let mut row = object(json!({"expire": token.expire, "privsep": u8::from(token.privsep)}));
    if let Some(comment) = token.comment.as_ref().filter(|comment| !comment.is_empty()) {
        row.insert("comment".to_owned(), json!(comment));
    }
    row
}

fn tokens(user: &User) -> Vec<Value> {
    let row = |(name, token): (&String, &Token)| {
        let mut row = token_fields(token);
        row.insert("tokenid".to_owned(), json!(name));
        Value::Object(row)
    };
    user.tokens.iter().map(row).collect()
}

fn token(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let name = call.text("tokenid");
    let token = user(cluster, call)?
        .tokens
        .get(name)
        .ok_or_else(|| Refusal::failed(format!("no such token '{name}' for user '{}'", call.text("userid"))))?;
    Ok(Value::Object(token_fields(token)).into())
}

fn users(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    let see = &["User.Modify", "Sys.Audit"];
    let all = call.may(cluster, "/access/groups", see);
    cluster
        .access
        .users
        .iter()
        .filter(|(id, user)| {
            let seen = all
                || **id == call.caller.user
                || user.groups.iter().any(|group| call.may(cluster, &format!("/access/groups/{group}"), see));
            seen && (call.given("enabled").is_none() || call.flag("enabled") == user.enable)
        })
        .map(|(id, user)| {
            let mut row = fields(user);
            let realm = id.rsplit_once('@').map(|(_, realm)| realm).unwrap_or_default();
            row.insert("userid".to_owned(), json!(id));
            let kind = cluster.sections.get("/access/domains", realm).and_then(|realm| realm.get("type"));
            if let Some(kind) = kind {
                row.insert("realm-type".to_owned(), kind.clone());
            }
            if call.flag("full") {
                row.insert("groups".to_owned(), json!(user.groups.iter().cloned().collect::<Vec<_>>().join(",")));
                row.insert("tokens".to_owned(), Value::Array(tokens(user)));
            }
            Value::Object(row)
        })
        .collect()
}

fn members(cluster: &Cluster, group: &str) -> Vec<String> {
    let users = cluster.access.users.iter();
    users.filter(|(_, user)| user.groups.contains(group)).map(|(id, _)| id.clone()).collect()
}

fn groups(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    let see = &["User.Modify", "Sys.Audit", "Group.Allocate"];
    cluster
        .access
        .groups
        .iter()
        .filter(|(group, _)| call.may(cluster, &format!("/access/groups/{group}"), see))
        .map(|(group, comment)| {
            let mut row = object(json!({"groupid": group, "users": members(cluster, group).join(",")}));
            if !comment.is_empty() {
                row.insert("comment".to_owned(), json!(comment));
            }
            Value::Object(row)
        })
        .collect()
}

fn group(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let id = call.text("groupid");
    let comment =
        cluster.access.groups.get(id).ok_or_else(|| Refusal::failed(format!("group '{id}' does not exist")))?;
    let mut data = object(json!({"members": members(cluster, id)}));
    if !comment.is_empty() {
        data.insert("comment".to_owned(), json!(comment));
    }
    Ok(Value::Object(data).into())
}

fn roles(cluster: &Cluster) -> Vec<Value> {
    let custom = cluster.access.roles.keys().map(|name| (name.as_str(), 0));
    BUILT_IN
        .iter()
        .map(|name| (*name, 1))
        .chain(custom)
        .map(
            |(name, special)| json!({"roleid": name, "special": special, "privs": cluster.access.role(name).join(",")}),
        )
        .collect()
}

fn role(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let id = call.text("roleid");
    if !BUILT_IN.contains(&id) && !cluster.access.roles.contains_key(id) {
        return Err(Refusal::failed(format!("role '{id}' does not exist")));
    }
    Ok(flags(cluster.access.role(id)).into())
}

fn flags<'a>(held: impl IntoIterator<Item = &'a str>) -> Value {
    Value::Object(held.into_iter().map(|name| (name.to_owned(), json!(1))).collect())
}

fn acl(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    let all = call.may(cluster, "/access", &["Sys.Audit"]);
    cluster
        .access
        .acl
        .iter()
        .filter(|grant| all || call.may(cluster, &grant.path, &["Permissions.Modify"]))
        .map(|grant| {
            let (kind, id) = match &grant.subject {
                Subject::User(id) => ("user", id),
                Subject::Group(id) => ("group", id),
                Subject::Token(id) => ("token", id),
            };
            json!({"path": grant.path, "type": kind, "ugid": id, "roleid": grant.role, "propagate": u8::from(grant.propagate)})
        })
        .collect()
}

/// The privileges of the caller, or of another user or token, at the paths that the list names.
fn permissions(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let whose = call.given("userid");
    let caller = match whose {
        None => call.caller.clone(),
        Some(id) => {
            let (user, token) = id.split_once('!').unwrap_or((id, ""));
            if user != call.caller.user && !call.may(cluster, "/access", &["Sys.Audit"]) {
                return Err(Refusal::forbidden("/access, Sys.Audit"));
            }
            Caller { user: user.to_owned(), token: token.to_owned() }
        }
    };
    let held = |path: &str| {
        if caller.token.is_empty() {
            cluster.access.of_user(&caller.user, path)
        } else {
            cluster.privileges(&caller, path)
        }
    };
    let mut paths: BTreeSet<&str> =
        ["/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"].into();
    paths.extend(cluster.access.acl.iter().map(|grant| grant.path.as_str()));
    if let Some(path) = call.given("path") {
        paths = [path].into();
    }
    let data: Map<String, Value> = paths
        .into_iter()
        .map(|path| (path, held(path)))
        .filter(|(_, held)| !held.is_empty())
        .map(|(path, held)| (path.to_owned(), flags(held)))
        .collect();
    Ok(Value::Object(data).into())
}
