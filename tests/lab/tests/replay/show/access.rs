//! Users, tokens, groups, roles and grants, as a read shows them.

use serde_json::{Map, Value, json};

use crate::stage::Stage;

pub async fn all(stage: &Stage<'_>, rest: &[&str], data: &Value) {
    match rest {
        ["users"] => users(stage, data).await,
        ["users", id] => user(stage, id, data).await,
        ["users", id, "token"] => {
            user(stage, id, &Value::Null).await;
            for row in rows(data) {
                token(stage, id, text(row, "tokenid"), row).await;
            }
        }
        ["users", id, "token", name] => {
            user(stage, id, &Value::Null).await;
            token(stage, id, name, data).await;
        }
        ["groups"] => {
            for row in rows(data) {
                group(stage, text(row, "groupid"), row, text(row, "users").split(',')).await;
            }
        }
        ["groups", id] => {
            let members: Vec<&str> = rows(&data["members"]).filter_map(Value::as_str).collect();
            group(stage, id, data, members.into_iter()).await;
        }
        ["roles"] => {
            for row in rows(data).filter(|row| row["special"] == 0) {
                role(stage, text(row, "roleid"), text(row, "privs")).await;
            }
        }
        ["roles", id] => {
            let held: Vec<&str> = data.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            role(stage, id, &held.join(",")).await;
        }
        ["acl"] => {
            for row in rows(data) {
                grant(stage, row).await;
            }
        }
        // What a token sees of its own rights was given to its user.
        ["permissions"] => {
            for (path, held) in data.as_object().into_iter().flatten() {
                let held: Vec<&str> = held.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                let id = format!("Own{}", path.replace('/', "-"));
                role(stage, &id, &held.join(",")).await;
                stage.call("PUT", "/access/acl", &json!({"path": path, "roles": id, "users": "vmadmin@pve"})).await;
            }
        }
        _ => {}
    }
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

/// The user is there, and as far as the answer shows it, as it was.
async fn user(stage: &Stage<'_>, id: &str, shown: &Value) {
    stage.call("POST", "/access/users", &json!({"userid": id})).await;
    let Some(shown) = shown.as_object().filter(|shown| shown.contains_key("enable")) else { return };
    let mut form = Map::new();
    for key in ["comment", "email", "firstname", "lastname", "keys"] {
        form.insert(key.to_owned(), shown.get(key).cloned().unwrap_or_else(|| json!("")));
    }
    for key in ["enable", "expire"] {
        form.insert(key.to_owned(), shown[key].clone());
    }
    if let Some(groups) = shown.get("groups").and_then(Value::as_array) {
        let groups: Vec<&str> = groups.iter().filter_map(Value::as_str).collect();
        for id in &groups {
            stage.call("POST", "/access/groups", &json!({"groupid": id})).await;
        }
        form.insert("groups".to_owned(), json!(groups.join(",")));
    }
    stage.call("PUT", &format!("/access/users/{id}"), &Value::Object(form)).await;
    for (name, fields) in shown.get("tokens").and_then(Value::as_object).into_iter().flatten() {
        token(stage, id, name, fields).await;
    }
}

async fn users(stage: &Stage<'_>, shown: &Value) {
    for row in rows(shown) {
        let id = text(row, "userid");
        let mut fields = row.clone();
        fields["tokens"] = Value::Null;
        user(stage, id, &fields).await;
        for fields in rows(&row["tokens"]) {
            token(stage, id, text(fields, "tokenid"), fields).await;
        }
    }
}

async fn token(stage: &Stage<'_>, user: &str, name: &str, shown: &Value) {
    let mut form = Map::new();
    for key in ["privsep", "expire", "comment"] {
        if let Some(value) = shown.get(key).filter(|value| !value.is_null()) {
            form.insert(key.to_owned(), value.clone());
        }
    }
    stage.call("POST", &format!("/access/users/{user}/token/{name}"), &Value::Object(form)).await;
}

async fn group(stage: &Stage<'_>, id: &str, shown: &Value, members: impl Iterator<Item = &str>) {
    let comment = shown["comment"].as_str().unwrap_or_default();
    stage.call("POST", "/access/groups", &json!({"groupid": id, "comment": comment})).await;
    for member in members.filter(|member| !member.is_empty()) {
        user(stage, member, &Value::Null).await;
        stage.call("PUT", &format!("/access/users/{member}"), &json!({"groups": id, "append": "1"})).await;
    }
}

async fn role(stage: &Stage<'_>, id: &str, held: &str) {
    stage.call("POST", "/access/roles", &json!({"roleid": id, "privs": held})).await;
}

/// A row of the list is there, with whom and what it names.
async fn grant(stage: &Stage<'_>, row: &Value) {
    let (id, kind) = (text(row, "ugid"), text(row, "type"));
    named(stage, kind, id).await;
    role(stage, text(row, "roleid"), "VM.Audit").await;
    let form =
        json!({"path": row["path"], "roles": row["roleid"], "propagate": row["propagate"], format!("{kind}s"): id});
    stage.call("PUT", "/access/acl", &form).await;
}

async fn named(stage: &Stage<'_>, kind: &str, id: &str) {
    match kind {
        "group" => group(stage, id, &Value::Null, std::iter::empty()).await,
        "token" => {
            let (name, token_name) = id.split_once('!').unwrap_or((id, ""));
            user(stage, name, &Value::Null).await;
            token(stage, name, token_name, &Value::Null).await;
        }
        _ => user(stage, id, &Value::Null).await,
    }
}
