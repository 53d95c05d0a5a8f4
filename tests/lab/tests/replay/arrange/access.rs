//! Users, tokens, groups, roles, realms and rights.

use serde_json::{Map, Value, json};

use crate::recording::Recording;
use crate::stage::Stage;

/// A password for those whose own is not known.
const PASSWORD: &str = "replayed-password";

pub async fn before(stage: &mut Stage<'_>, recording: &Recording) {
    logins(stage, recording).await;
    let steps = recording.steps();
    let Some((&"access", rest)) = steps.split_first() else { return };
    let message = recording.message();
    if message.contains("already exists") {
        return;
    }
    let gone = message.contains("does not exist") || message.contains("no such");
    match (rest, recording.method()) {
        (["users"], "GET") => users(stage, recording.data()).await,
        (["users", id], _) if !message.starts_with("no such user") => {
            let id = plain(id);
            user(stage, &id, recording.data()).await;
            for group in recording.all_given("groups").iter().filter(|group| !message.contains(&format!("'{group}'"))) {
                stage.call("POST", "/access/groups", &json!({"groupid": group})).await;
            }
        }
        (["users", id, "token"], _) if !gone => {
            let id = plain(id);
            user(stage, &id, &Value::Null).await;
            for row in rows(recording.data()) {
                token(stage, &id, text(row, "tokenid"), row).await;
            }
        }
        (["users", id, "token", name], method) if !message.starts_with("no such user") => {
            let id = plain(id);
            user(stage, &id, &Value::Null).await;
            if (method != "POST" || recording.status() != 200) && !message.starts_with("no such token") {
                token(stage, &id, name, recording.data()).await;
            }
        }
        (["groups"], "GET") => {
            for row in rows(recording.data()) {
                group(stage, text(row, "groupid"), row, text(row, "users").split(',')).await;
            }
        }
        (["groups", id], _) if !gone => {
            let members: Vec<&str> = rows(&recording.data()["members"]).filter_map(Value::as_str).collect();
            group(stage, id, recording.data(), members.into_iter()).await;
        }
        (["roles"], "GET") => {
            for row in rows(recording.data()).filter(|row| row["special"] == 0) {
                role(stage, text(row, "roleid"), text(row, "privs")).await;
            }
        }
        (["roles", id], _) if !gone => {
            let held: Vec<&str> =
                recording.data().as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            role(stage, id, &held.join(",")).await;
        }
        (["acl"], "GET") => {
            for row in rows(recording.data()) {
                grant(stage, row).await;
            }
        }
        (["acl"], "PUT") => listed(stage, recording).await,
        (["domains", id], _) if !gone => {
            let form =
                json!({"realm": id, "type": "ldap", "server1": "127.0.0.1", "base_dn": "dc=x", "user_attr": "uid"});
            stage.call("POST", "/access/domains", &form).await;
        }
        (["ticket"], "POST") if recording.status() == 200 => {
            let (name, password) = (recording.given("username").unwrap_or_default(), recording.given("password"));
            login(stage, name, password.unwrap_or(PASSWORD)).await;
        }
        (["tfa", id], _) if recording.status() == 200 => user(stage, &plain(id), &Value::Null).await,
        _ => {}
    }
}

/// Whoever sent the recording's request could log in and had the rights that it was recorded with.
async fn logins(stage: &mut Stage<'_>, recording: &Recording) {
    match recording.request["auth"].as_str() {
        // What this token may do is told by its own view of it.
        Some(name @ "t1") => {
            let all = stage.all;
            let own = all.iter().find(|other| {
                other.request["auth"] == name && other.path() == "/access/permissions" && !other.url().contains('?')
            });
            for (path, held) in own.and_then(|own| own.data().as_object()).into_iter().flatten() {
                let held: Vec<&str> = held.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                let id = format!("Own{}", path.replace('/', "-"));
                role(stage, &id, &held.join(",")).await;
                stage.call("PUT", "/access/acl", &json!({"path": path, "roles": id, "users": "vmadmin@pve"})).await;
            }
        }
        // A separated token that saw a guest had been given it.
        Some("sep") if recording.status() == 200 => {
            if let ["nodes", _, "qemu" | "lxc", vmid, ..] = recording.steps().as_slice() {
                let form =
                    json!({"path": format!("/vms/{vmid}"), "roles": "PVEVMAdmin", "tokens": "automation@pve!sep"});
                stage.call("PUT", "/access/acl", &form).await;
            }
        }
        Some(literal) if recording.status() == 200 && literal.contains('!') => {
            let id = literal.trim_start_matches("PVEAPIToken").trim_start_matches(['=', ' ']);
            let (user_id, name) = id.split('=').next().unwrap_or_default().split_once('!').unwrap_or_default();
            user(stage, user_id, &Value::Null).await;
            token(stage, user_id, name, &json!({"privsep": 0})).await;
        }
        _ => {}
    }
    if let Some(cookie) = recording.request["headers"]["Cookie"].as_str()
        && let Some(name) = cookie.split("PVE%3A").nth(1).and_then(|rest| rest.split("%3A").next())
    {
        let name = plain(name);
        login(stage, &name, PASSWORD).await;
        stage.log_in(&name, PASSWORD).await;
    }
}

fn plain(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

async fn login(stage: &Stage<'_>, name: &str, password: &str) {
    stage.call("DELETE", &format!("/access/users/{name}"), &Value::Null).await;
    stage.call("POST", "/access/users", &json!({"userid": name, "password": password})).await;
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

/// Whom and what a change of the list names is there, except for what the answer says is not.
async fn listed(stage: &Stage<'_>, recording: &Recording) {
    let missing = recording.message();
    for (parameter, kind) in [("users", "user"), ("tokens", "token"), ("groups", "group"), ("roles", "role")] {
        for id in recording.all_given(parameter) {
            if missing.contains(&format!("'{id}'")) {
                continue;
            }
            match kind {
                "role" => role(stage, &id, "VM.Audit").await,
                kind => named(stage, kind, &id).await,
            }
        }
    }
}
