//! Users, tokens, groups, roles, realms and rights.

use serde_json::{Value, json};

use crate::question::{Question, decoded};
use crate::show;
use crate::stage::Stage;

/// A password for those whose own is not known.
const PASSWORD: &str = "replayed-password";

pub async fn before(stage: &mut Stage<'_>, question: &Question, told: bool) {
    logins(stage, question).await;
    let steps = question.steps();
    let Some((&"access", rest)) = steps.split_first() else { return };
    let message = &question.refusal;
    // Where the other recordings' writes come next, these make what they are about.
    if message.contains("already exists") || told {
        return;
    }
    let gone = message.contains("does not exist") || message.contains("no such");
    match (rest, question.method()) {
        (["users", id], _) if !message.starts_with("no such user") => {
            user(stage, &decoded(id)).await;
            for group in question.all_given("groups").iter().filter(|group| !message.contains(&format!("'{group}'"))) {
                group_of(stage, group).await;
            }
        }
        (["users", id, "token"], _) if !gone => user(stage, &decoded(id)).await,
        (["users", id, "token", name], method) if !message.starts_with("no such user") => {
            let id = decoded(id);
            user(stage, &id).await;
            if (method != "POST" || question.status != 200) && !message.starts_with("no such token") {
                token(stage, &id, name).await;
            }
        }
        (["groups", id], _) if !gone => group_of(stage, id).await,
        (["roles", id], _) if !gone => role(stage, id, "").await,
        (["acl"], "PUT") => listed(stage, question).await,
        (["domains", id], _) if !gone => {
            let form =
                json!({"realm": id, "type": "ldap", "server1": "127.0.0.1", "base_dn": "dc=x", "user_attr": "uid"});
            stage.call("POST", "/access/domains", &form).await;
        }
        (["ticket"], "POST") if question.status == 200 => {
            let (name, password) = (question.given("username").unwrap_or_default(), question.given("password"));
            login(stage, name, password.unwrap_or(PASSWORD)).await;
        }
        (["tfa", id], _) if question.status == 200 => user(stage, &decoded(id)).await,
        _ => {}
    }
}

/// Whoever sent the recording's request could log in and had the rights that it was recorded with.
async fn logins(stage: &mut Stage<'_>, question: &Question) {
    match question.request["auth"].as_str() {
        // What this token may do is told by its own view of it.
        Some(name @ "t1") => {
            let own = stage.known.others().find(|other| {
                other.question.request["auth"] == name
                    && other.question.path() == "/access/permissions"
                    && !other.question.url().contains('?')
            });
            if let Some(own) = own {
                Box::pin(show::show(stage, own)).await;
            }
        }
        // A separated token that saw a guest had been given it.
        Some("sep") if question.status == 200 => {
            if let ["nodes", _, "qemu" | "lxc", vmid, ..] = question.steps().as_slice() {
                let form =
                    json!({"path": format!("/vms/{vmid}"), "roles": "PVEVMAdmin", "tokens": "automation@pve!sep"});
                stage.call("PUT", "/access/acl", &form).await;
            }
        }
        Some(literal) if question.status == 200 && literal.contains('!') => {
            let id = literal.trim_start_matches("PVEAPIToken").trim_start_matches(['=', ' ']);
            let (user_id, name) = id.split('=').next().unwrap_or_default().split_once('!').unwrap_or_default();
            user(stage, user_id).await;
            token(stage, user_id, name).await;
        }
        _ => {}
    }
    if let Some(cookie) = question.request["headers"]["Cookie"].as_str()
        && let Some(name) = cookie.split("PVE%3A").nth(1).and_then(|rest| rest.split("%3A").next())
    {
        let name = decoded(name);
        login(stage, &name, PASSWORD).await;
        stage.log_in(&name, PASSWORD).await;
    }
}

async fn login(stage: &Stage<'_>, name: &str, password: &str) {
    stage.call("DELETE", &format!("/access/users/{name}"), &Value::Null).await;
    stage.call("POST", "/access/users", &json!({"userid": name, "password": password})).await;
}

async fn user(stage: &Stage<'_>, id: &str) {
    stage.call("POST", "/access/users", &json!({"userid": id})).await;
}

async fn token(stage: &Stage<'_>, user: &str, name: &str) {
    stage.call("POST", &format!("/access/users/{user}/token/{name}"), &json!({"privsep": 0})).await;
}

async fn group_of(stage: &Stage<'_>, id: &str) {
    stage.call("POST", "/access/groups", &json!({"groupid": id})).await;
}

async fn role(stage: &Stage<'_>, id: &str, held: &str) {
    stage.call("POST", "/access/roles", &json!({"roleid": id, "privs": held})).await;
}

async fn named(stage: &Stage<'_>, kind: &str, id: &str) {
    match kind {
        "group" => group_of(stage, id).await,
        "token" => {
            let (name, token_name) = id.split_once('!').unwrap_or((id, ""));
            user(stage, name).await;
            token(stage, name, token_name).await;
        }
        _ => user(stage, id).await,
    }
}

/// Whom and what a change of the list names is there, except for what the answer says is not.
async fn listed(stage: &Stage<'_>, question: &Question) {
    for (parameter, kind) in [("users", "user"), ("tokens", "token"), ("groups", "group"), ("roles", "role")] {
        for id in question.all_given(parameter) {
            if question.refusal.contains(&format!("'{id}'")) {
                continue;
            }
            match kind {
                "role" => role(stage, &id, "VM.Audit").await,
                kind => named(stage, kind, &id).await,
            }
        }
    }
}
