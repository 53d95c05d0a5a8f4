//! Every operation about access, against the server's own way in.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a panic is how a test fails")]

use std::fmt::Write as _;

use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::Place;
use pvegate_generated::terms::Release;
use serde_json::{Map, Value as Json, json};

use super::*;
use crate::args::decode;

fn own() -> Own {
    let set = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    Own {
        groups: set(&["gates"]),
        roles: set(&["PVEGate"]),
        pools: set(&["lab"]),
        ..Own::parse("gate@pve!main").unwrap()
    }
}

/// What the call does to the server's own access, or to people's.
fn judged(name: &str, arguments: &Json, own: &Own) -> Effect {
    let operation = OPERATIONS.iter().find(|operation| operation.name == name).unwrap();
    let guard =
        operation.guards.iter().find(|guard| matches!(guard, Guard::KeepsOwnAccess | Guard::KeepsManagementAccess));
    let args = decode(operation, arguments.as_object().unwrap(), Release::NEWEST).unwrap();
    effect(*guard.unwrap(), &args, own)
}

fn word(effect: &Effect) -> &'static str {
    match effect {
        Effect::Keeps => "keeps",
        Effect::Breaks(_) => "breaks",
        Effect::Unknown(_) => "unknown",
    }
}

#[test]
fn what_the_server_hangs_on_is_kept() {
    let cases: &[(&str, Json, &str)] = &[
        ("DELETE /access/users/{userid}", json!({"userid": "gate@pve"}), "breaks"),
        ("DELETE /access/users/{userid}", json!({"userid": "root@pam"}), "breaks"),
        ("DELETE /access/users/{userid}", json!({"userid": "ann@pve"}), "keeps"),
        ("PUT /access/users/{userid}", json!({"userid": "gate@pve", "enable": false}), "breaks"),
        ("PUT /access/users/{userid}", json!({"userid": "ann@pve", "enable": false}), "keeps"),
        ("DELETE /access/users/{userid}/token/{tokenid}", json!({"userid": "gate@pve", "tokenid": "main"}), "breaks"),
        ("DELETE /access/users/{userid}/token/{tokenid}", json!({"userid": "gate@pve", "tokenid": "old"}), "keeps"),
        ("DELETE /access/users/{userid}/token/{tokenid}", json!({"userid": "root@pam", "tokenid": "old"}), "breaks"),
        (
            "PUT /access/users/{userid}/token/{tokenid}",
            json!({"userid": "gate@pve", "tokenid": "main", "expire": 1}),
            "breaks",
        ),
        ("POST /access/users/{userid}/token/{tokenid}", json!({"userid": "ann@pve", "tokenid": "new"}), "keeps"),
        ("DELETE /access/tfa/{userid}/{id}", json!({"userid": "root@pam", "id": "recovery"}), "breaks"),
        ("PUT /access/password", json!({"userid": "root@pam", "password": "secret-word"}), "breaks"),
        ("PUT /access/password", json!({"userid": "ann@pve", "password": "secret-word"}), "keeps"),
        ("PUT /access/acl", json!({"path": "/vms/100", "roles": "NoAccess", "tokens": "gate@pve!main"}), "breaks"),
        (
            "PUT /access/acl",
            json!({"path": "/", "roles": "PVEAdmin", "users": "ann@pve,gate@pve", "delete": true}),
            "breaks",
        ),
        ("PUT /access/acl", json!({"path": "/", "roles": "PVEAdmin", "tokens": "root@pam!x"}), "breaks"),
        ("PUT /access/acl", json!({"path": "/", "roles": "PVEAdmin", "groups": "gates"}), "breaks"),
        ("PUT /access/acl", json!({"path": "/", "roles": "PVEAdmin", "groups": "others"}), "keeps"),
        ("PUT /access/acl", json!({"path": "/", "roles": "PVEAdmin", "users": "ann@pve"}), "keeps"),
        ("PUT /access/roles/{roleid}", json!({"roleid": "PVEGate", "privs": "VM.Audit"}), "breaks"),
        ("PUT /access/roles/{roleid}", json!({"roleid": "PVEGate", "privs": "VM.Audit", "append": true}), "keeps"),
        ("DELETE /access/roles/{roleid}", json!({"roleid": "PVEGate"}), "breaks"),
        ("DELETE /access/roles/{roleid}", json!({"roleid": "Other"}), "keeps"),
        ("DELETE /access/groups/{groupid}", json!({"groupid": "gates"}), "breaks"),
        ("PUT /access/groups/{groupid}", json!({"groupid": "gates", "comment": "x"}), "keeps"),
        ("DELETE /access/domains/{realm}", json!({"realm": "pve"}), "breaks"),
        ("DELETE /access/domains/{realm}", json!({"realm": "pam"}), "breaks"),
        ("DELETE /access/domains/{realm}", json!({"realm": "ldap1"}), "keeps"),
        ("PUT /access/domains/{realm}", json!({"realm": "pam", "comment": "x"}), "breaks"),
        ("POST /access/domains/{realm}/sync", json!({"realm": "pve", "remove-vanished": "entry"}), "breaks"),
        ("POST /access/domains/{realm}/sync", json!({"realm": "pve", "dry-run": true}), "keeps"),
        ("DELETE /pools/{poolid}", json!({"poolid": "lab"}), "breaks"),
        ("DELETE /pools/{poolid}", json!({"poolid": "other"}), "keeps"),
        ("PUT /pools", json!({"poolid": "lab", "vms": "100", "delete": true}), "breaks"),
        ("PUT /pools", json!({"poolid": "lab", "vms": "100"}), "keeps"),
        ("PUT /pools", json!({"poolid": "other", "vms": "100", "allow-move": true}), "unknown"),
        ("PUT /cluster/firewall/options", json!({"enable": 0}), "keeps"),
        ("PUT /cluster/firewall/options", json!({"enable": 1}), "unknown"),
        ("PUT /cluster/firewall/options", json!({"enable": 0, "policy_in": "DROP"}), "unknown"),
        ("POST /nodes/{node}/services/{service}/stop", json!({"node": "pve1", "service": "pveproxy"}), "breaks"),
        ("POST /nodes/{node}/services/{service}/stop", json!({"node": "pve1", "service": "chrony"}), "keeps"),
    ];
    for (name, arguments, expected) in cases {
        let found = judged(name, arguments, &own());
        assert_eq!(word(&found), *expected, "{name} {arguments}: {found:?}");
    }
}

#[test]
fn what_is_not_known_of_the_own_user_is_no_yes() {
    let bare = Own::parse("gate@pve!main").unwrap();
    for (name, arguments) in [
        ("PUT /access/acl", json!({"path": "/", "roles": "PVEAdmin", "groups": "others"})),
        ("DELETE /access/roles/{roleid}", json!({"roleid": "Other"})),
        ("DELETE /access/groups/{groupid}", json!({"groupid": "others"})),
        ("DELETE /pools/{poolid}", json!({"poolid": "other"})),
    ] {
        assert_eq!(word(&judged(name, &arguments, &bare)), "unknown", "{name}");
    }
}

/// Every guarded operation, with the server's own things, root's, and somebody else's wherever it takes them.
#[test]
fn every_guarded_operation_is_judged() {
    let whose = [
        ("own", ["gate@pve", "main", "pve", "PVEGate", "gates", "lab"]),
        ("root", ["root@pam", "xx", "pam", "Administrator", "admins", "top"]),
        ("other", ["ann@ldap1", "yy", "ldap1", "Other", "others", "side"]),
    ];
    let mut table = String::new();
    for operation in OPERATIONS.iter().filter(|operation| operation.guards.contains(&Guard::KeepsOwnAccess)) {
        table.push_str(operation.name);
        for (who, [user, token, realm, role, group, pool]) in &whose {
            let mut given = Map::new();
            for parameter in
                operation.params.iter().filter(|one| one.required || one.place == Place::Path || one.name == "tokens")
            {
                let text = match parameter.name {
                    "userid" => (*user).to_owned(),
                    "tokenid" => (*token).to_owned(),
                    "tokens" => format!("{user}!{token}"),
                    "realm" => (*realm).to_owned(),
                    "roleid" | "roles" => (*role).to_owned(),
                    "groupid" => (*group).to_owned(),
                    "poolid" => (*pool).to_owned(),
                    "type" => operation.parameter("type").map_or_else(String::new, |one| first_choice(&one.kind)),
                    "path" => "/vms".to_owned(),
                    "password" => "secret-word".to_owned(),
                    "schedule" => "daily".to_owned(),
                    _ => "x1".to_owned(),
                };
                given.insert(parameter.name.to_owned(), Json::from(text));
            }
            let args = decode(operation, &given, Release::NEWEST).unwrap();
            let _ = write!(table, " {who}={}", word(&effect(Guard::KeepsOwnAccess, &args, &own())));
        }
        table.push('\n');
    }
    assert_eq!(table, EXPECTED, "\n{table}");
}

fn first_choice(kind: &pvegate_generated::model::Kind) -> String {
    match kind {
        pvegate_generated::model::Kind::Choice(words) => {
            words.first().map_or_else(String::new, |word| (*word).to_owned())
        }
        _ => String::new(),
    }
}

const EXPECTED: &str = "\
DELETE /access/domains/{realm} own=breaks root=breaks other=keeps
DELETE /access/groups/{groupid} own=breaks root=keeps other=keeps
DELETE /access/roles/{roleid} own=breaks root=keeps other=keeps
DELETE /access/tfa/{userid}/{id} own=breaks root=breaks other=keeps
DELETE /access/users/{userid} own=breaks root=breaks other=keeps
DELETE /access/users/{userid}/token/{tokenid} own=breaks root=breaks other=keeps
DELETE /cluster/jobs/realm-sync/{id} own=keeps root=keeps other=keeps
DELETE /pools own=breaks root=keeps other=keeps
DELETE /pools/{poolid} own=breaks root=keeps other=keeps
POST /access/domains own=keeps root=keeps other=keeps
POST /access/domains/{realm}/sync own=breaks root=breaks other=keeps
POST /access/groups own=keeps root=keeps other=keeps
POST /access/roles own=keeps root=keeps other=keeps
POST /access/tfa/{userid} own=breaks root=breaks other=keeps
POST /access/users own=keeps root=keeps other=keeps
POST /access/users/{userid}/token/{tokenid} own=breaks root=breaks other=keeps
POST /cluster/jobs/realm-sync/{id} own=keeps root=keeps other=keeps
PUT /access/acl own=breaks root=breaks other=keeps
PUT /access/domains/{realm} own=breaks root=breaks other=keeps
PUT /access/groups/{groupid} own=keeps root=keeps other=keeps
PUT /access/password own=breaks root=breaks other=keeps
PUT /access/roles/{roleid} own=breaks root=keeps other=keeps
PUT /access/tfa/{userid}/{id} own=breaks root=breaks other=keeps
PUT /access/users/{userid} own=breaks root=breaks other=keeps
PUT /access/users/{userid}/token/{tokenid} own=breaks root=breaks other=keeps
PUT /cluster/jobs/realm-sync/{id} own=keeps root=keeps other=keeps
PUT /pools own=keeps root=keeps other=keeps
PUT /pools/{poolid} own=keeps root=keeps other=keeps
";
