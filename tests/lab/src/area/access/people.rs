//! Users and their tokens: made, changed, removed.

use serde_json::{Value, json};

use super::{Call, Outcome, user};
use crate::access::{Subject, Token, User};
use crate::answer::Refusal;
use crate::state::Cluster;
use crate::state::guest::object;
use crate::tls::random_secret;

pub(super) fn write(cluster: &mut Cluster, call: &Call<'_>) -> Option<Outcome> {
    Some(match call.operation.name.as_str() {
        "POST /access/users" => {
            create(cluster, call).map_err(|error| Refusal::failed(format!("create user failed: {error}")))
        }
        "PUT /access/users/{userid}" => {
            update(cluster, call).map_err(|error| Refusal::failed(format!("update user failed: {error}")))
        }
        "DELETE /access/users/{userid}" => delete(cluster, call),
        "PUT /access/users/{userid}/unlock-tfa" => match cluster.access.users.get(call.text("userid")) {
            Some(_) => Ok(json!(0).into()),
            None => Err(Refusal::failed("no such user")),
        },
        "POST /access/users/{userid}/token/{tokenid}" => create_token(cluster, call),
        "PUT /access/users/{userid}/token/{tokenid}" => update_token(cluster, call),
        "DELETE /access/users/{userid}/token/{tokenid}" => delete_token(cluster, call),
        "PUT /access/password" => set_password(cluster, call),
        _ => return None,
    })
}

/// Names in a list parameter.
pub(super) fn names<'a>(call: &'a Call<'_>, parameter: &str) -> impl Iterator<Item = &'a str> {
    call.text(parameter).split([',', ';', ' ', '\0', '\t', '\n']).filter(|name| !name.is_empty())
}

/// Sets what the call gives; what it does not name stays.
fn set(cluster: &Cluster, user: &mut User, call: &Call<'_>, add_groups: bool) -> Result<(), String> {
    let given = |name: &str| call.params.get(name).and_then(Value::as_str).map(str::to_owned);
    for (field, name) in [
        (&mut user.comment, "comment"),
        (&mut user.email, "email"),
        (&mut user.firstname, "firstname"),
        (&mut user.lastname, "lastname"),
        (&mut user.keys, "keys"),
    ] {
        if let Some(value) = given(name) {
            *field = Some(value);
        }
    }
    if call.given("enable").is_some() {
        user.enable = call.flag("enable");
    }
    if let Some(expire) = call.number("expire") {
        user.expire = expire;
    }
    if call.params.contains_key("groups") {
        if !add_groups {
            user.groups.clear();
        }
        for group in names(call, "groups") {
            if !cluster.access.groups.contains_key(group) {
                return Err(format!("no such group '{group}'"));
            }
            user.groups.insert(group.to_owned());
        }
    }
    Ok(())
}

fn create(cluster: &mut Cluster, call: &Call<'_>) -> Result<crate::answer::Reply, String> {
    let id = call.text("userid");
    if cluster.access.users.contains_key(id) {
        return Err(format!("user '{id}' already exists"));
    }
    let mut user = User { enable: true, password: call.given("password").map(str::to_owned), ..User::default() };
    set(cluster, &mut user, call, false)?;
    cluster.access.users.insert(id.to_owned(), user);
    Ok(Value::Null.into())
}

fn update(cluster: &mut Cluster, call: &Call<'_>) -> Result<crate::answer::Reply, String> {
    let id = call.text("userid");
    let mut user = cluster.access.users.get(id).cloned().ok_or_else(|| format!("no such user ('{id}')"))?;
    set(cluster, &mut user, call, call.flag("append"))?;
    cluster.access.users.insert(id.to_owned(), user);
    Ok(Value::Null.into())
}

/// Also of `root@pam`: its entry and its tokens go, the login stays.
fn delete(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    user(cluster, call)?;
    let id = call.text("userid");
    cluster.access.users.remove(id);
    if id == "root@pam" {
        cluster.access.users.insert(id.to_owned(), User { enable: true, ..User::default() });
    }
    let of_token = format!("{id}!");
    cluster.access.acl.retain(|grant| match &grant.subject {
        Subject::User(user) => user != id,
        Subject::Token(token) => !token.starts_with(&of_token),
        Subject::Group(_) => true,
    });
    cluster.access.tickets.retain(|_, holder| holder != id);
    Ok(Value::Null.into())
}

fn random() -> Result<String, Refusal> {
    random_secret().map_err(|error| Refusal::failed(error.to_string()))
}

/// The answer repeats what was given, as it was given.
fn create_token(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    let (id, name) = (call.text("userid"), call.text("tokenid"));
    if user(cluster, call)?.tokens.contains_key(name) {
        return Err(Refusal::parameter("tokenid", "Token already exists."));
    }
    let secret = random()?;
    let mut info = object(json!({"privsep": 1}));
    for key in ["privsep", "expire", "comment"] {
        if let Some(value) = call.given(key) {
            info.insert(key.to_owned(), json!(value));
        }
    }
    let token = Token {
        secret: secret.clone(),
        privsep: call.given("privsep").is_none() || call.flag("privsep"),
        expire: call.number("expire").unwrap_or(0),
        comment: call.given("comment").map(str::to_owned),
    };
    if let Some(user) = cluster.access.users.get_mut(id) {
        user.tokens.insert(name.to_owned(), token);
    }
    Ok(json!({"full-tokenid": format!("{id}!{name}"), "value": secret, "info": info}).into())
}

fn token_of<'a>(cluster: &'a mut Cluster, call: &Call<'_>) -> Result<&'a mut Token, Refusal> {
    super::token(cluster, call)?;
    let user = cluster.access.users.get_mut(call.text("userid"));
    user.and_then(|user| user.tokens.get_mut(call.text("tokenid"))).ok_or_else(|| Refusal::failed("no such token"))
}

/// Answers with the whole token as it is now, numbers as they were given.
fn update_token(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    let secret = if call.flag("regenerate") { Some(random()?) } else { None };
    let token = token_of(cluster, call)?;
    if call.given("privsep").is_some() {
        token.privsep = call.flag("privsep");
    }
    if let Some(expire) = call.number("expire") {
        token.expire = expire;
    }
    if let Some(comment) = call.params.get("comment").and_then(Value::as_str) {
        token.comment = Some(comment.to_owned());
    }
    let mut info = super::token_fields(token);
    for key in ["privsep", "expire"] {
        if let Some(value) = call.given(key) {
            info.insert(key.to_owned(), json!(value));
        }
    }
    if let Some(secret) = secret {
        token.secret.clone_from(&secret);
        let full = format!("{}!{}", call.text("userid"), call.text("tokenid"));
        info.insert("full-tokenid".to_owned(), json!(full));
        info.insert("value".to_owned(), json!(secret));
    }
    Ok(Value::Object(info).into())
}

fn delete_token(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    token_of(cluster, call)?;
    let (id, name) = (call.text("userid"), call.text("tokenid"));
    if let Some(user) = cluster.access.users.get_mut(id) {
        user.tokens.remove(name);
    }
    let full = format!("{id}!{name}");
    cluster.access.acl.retain(|grant| grant.subject != Subject::Token(full.clone()));
    Ok(Value::Null.into())
}

fn set_password(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    user(cluster, call)?;
    if let Some(user) = cluster.access.users.get_mut(call.text("userid")) {
        user.password = call.given("password").map(str::to_owned);
    }
    Ok(Value::Null.into())
}
