//! Decides whether a change leaves the server its own access to a cluster, and people theirs: nothing may remove, disable
//! or narrow the user, token, roles, groups, realm, pools or network path that pvegate itself uses, nor `root@pam`, nor
//! the realms `pam` and `pve`. PVE would allow all of that.
//!
//! What cannot be told from the arguments and from what is known of the server's own user counts as unknown, which
//! whoever asks has to take for a no.

use std::collections::BTreeSet;

use pvegate_generated::internal;
use pvegate_generated::model::{Operation, Verb};
use pvegate_generated::terms::Guard;

use crate::args::{Args, Value};

/// Realms that people log in by when nothing else works.
const REALMS: [&str; 2] = ["pam", "pve"];
/// Who can always repair a node.
const ROOT: &str = "root@pam";
/// Services without which a node's API does not answer.
const SERVICES: [&str; 6] = ["corosync", "networking", "pve-cluster", "pvedaemon", "pveproxy", "sshd"];

/// Whom the server is to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    user: String,
    realm: String,
    token: String,
    /// Groups that its user is in; unknown unless they were read.
    pub groups: Option<BTreeSet<String>>,
    /// Roles that it has somewhere.
    pub roles: Option<BTreeSet<String>>,
    /// Pools through which it has them.
    pub pools: Option<BTreeSet<String>>,
}

/// What a change does to access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that matters here.
    Keeps,
    /// It would be lost or less: a clause that says how.
    Breaks(String),
    /// It may be: a clause that says what is not known.
    Unknown(String),
}

impl Own {
    /// Reads `user@realm!token`.
    pub fn parse(id: &str) -> Option<Self> {
        let (user, token) = id.split_once('!')?;
        let (_, realm) = user.rsplit_once('@')?;
        Some(Self {
            user: user.to_owned(),
            realm: realm.to_owned(),
            token: token.to_owned(),
            groups: None,
            roles: None,
            pools: None,
        })
    }

    fn full(&self) -> String {
        format!("{}!{}", self.user, self.token)
    }
}

/// What a call does to what this guard is about. Any other guard is not about access.
pub fn effect(guard: Guard, args: &Args, own: &Own) -> Effect {
    match guard {
        Guard::KeepsOwnAccess => own_access(args, own),
        Guard::KeepsManagementAccess => management_access(args),
        Guard::VmidIsFree | Guard::VolumeOfGuest | Guard::OwnTask | Guard::NewFileName => Effect::Keeps,
    }
}

/// An operation is the one or under the path of the one that `internal.toml` names.
fn below(operation: &Operation, top: &Operation) -> bool {
    operation.path == top.path || operation.path.strip_prefix(top.path).is_some_and(|rest| rest.starts_with('/'))
}

fn own_access(args: &Args, own: &Own) -> Effect {
    let operation = args.operation();
    if operation.path == internal::CHANGE_ACL.path {
        return acl(args, own);
    }
    if below(operation, internal::REMOVE_USER) || below(operation, internal::LIST_USER_FACTORS) {
        return user(args, own);
    }
    if operation.path == internal::CHANGE_PASSWORD.path {
        return named_user(args, internal::change_password::USERID, own);
    }
    if below(operation, internal::REMOVE_REALM) {
        return realm(args, own);
    }
    if operation.path == internal::REMOVE_ROLE.path {
        let only_adds = is_set(args, internal::change_role::APPEND);
        return if only_adds {
            Effect::Keeps
        } else {
            one_of(args, internal::remove_role::ROLEID, "role", own.roles.as_ref())
        };
    }
    if operation.path == internal::REMOVE_GROUP.path {
        let removes = operation.verb == Verb::Delete;
        return if removes {
            one_of(args, internal::remove_group::GROUPID, "group", own.groups.as_ref())
        } else {
            Effect::Keeps
        };
    }
    if operation.path == internal::CREATE_REALM_SYNC.path {
        // A job of a realm removes users where it says so; whose realm an existing job is, its arguments do not tell.
        return match (operation.verb, args.get(internal::change_realm_sync::REMOVE_VANISHED)) {
            (Verb::Delete, _) | (_, None) => Effect::Keeps,
            (Verb::Post, Some(_)) => realm(args, own),
            _ => Effect::Unknown("it may remove users of the realm that this server logs in by".to_owned()),
        };
    }
    if operation.path == internal::CHANGE_POOLS.path || operation.path == internal::CHANGE_POOL.path {
        return pool(args, own);
    }
    match operation.verb {
        // New users, groups, roles and realms take nothing away; one that exists is refused by PVE.
        Verb::Post | Verb::Get => Effect::Keeps,
        Verb::Put | Verb::Delete => {
            Effect::Unknown(format!("what {} does to this server's access is not known", operation.name))
        }
    }
}

/// Rights of a user, token or group on a path replace those that it inherits there, so that giving some may take others.
fn acl(args: &Args, own: &Own) -> Effect {
    let mentions = |name: &str| elements(args, name);
    if let Some(found) = mentions(internal::change_acl::TOKENS).into_iter().find(|id| *id == own.full() || is_roots(id))
    {
        return Effect::Breaks(format!("it changes the rights of the API token {found}"));
    }
    if let Some(found) = mentions(internal::change_acl::USERS).into_iter().find(|id| *id == own.user || id == ROOT) {
        return Effect::Breaks(format!("it changes the rights of {found}"));
    }
    let groups = mentions(internal::change_acl::GROUPS);
    match (&own.groups, groups.first()) {
        (_, None) => Effect::Keeps,
        (Some(known), Some(_)) => match groups.iter().find(|group| known.contains(*group)) {
            Some(group) => {
                Effect::Breaks(format!("it changes the rights of the group {group}, which {} is in", own.user))
            }
            None => Effect::Keeps,
        },
        (None, Some(group)) => Effect::Unknown(format!("whether {} is in the group {group} is not known", own.user)),
    }
}

fn user(args: &Args, own: &Own) -> Effect {
    let (userid, tokenid) = (internal::remove_user_token::USERID, internal::remove_user_token::TOKENID);
    match text(args, tokenid) {
        // Another token of the server's own user is not the server's.
        Some(token) if text(args, userid).as_deref() == Some(own.user.as_str()) && token != own.token => Effect::Keeps,
        _ => named_user(args, userid, own),
    }
}

fn named_user(args: &Args, name: &str, own: &Own) -> Effect {
    match text(args, name) {
        Some(user) if user == own.user => Effect::Breaks(format!("it changes {user}, as whom this server logs in")),
        Some(user) if user == ROOT => Effect::Breaks(format!("it changes {ROOT}, who can always repair a node")),
        Some(_) => Effect::Keeps,
        None => Effect::Unknown("whom it changes is not told".to_owned()),
    }
}

fn realm(args: &Args, own: &Own) -> Effect {
    let operation = args.operation();
    if operation.path == internal::SYNC_REALM.path && is_set(args, internal::sync_realm::DRY_RUN) {
        return Effect::Keeps;
    }
    match text(args, internal::remove_realm::REALM) {
        Some(realm) if realm == own.realm => {
            Effect::Breaks(format!("it changes the realm {realm}, which this server logs in by"))
        }
        Some(realm) if REALMS.contains(&realm.as_str()) => {
            Effect::Breaks(format!("it changes the realm {realm}, which people log in by when nothing else works"))
        }
        Some(_) => Effect::Keeps,
        None => Effect::Unknown("which realm it changes is not told".to_owned()),
    }
}

/// Who takes something out of a pool, or the pool itself, takes the rights that came through it.
fn pool(args: &Args, own: &Own) -> Effect {
    let removes = args.operation().verb == Verb::Delete || is_set(args, internal::change_pools::DELETE);
    if removes {
        return one_of(args, internal::change_pools::POOLID, "pool", own.pools.as_ref());
    }
    if !is_set(args, internal::change_pools::ALLOW_MOVE) {
        return Effect::Keeps;
    }
    match &own.pools {
        Some(pools) if pools.is_empty() => Effect::Keeps,
        _ => Effect::Unknown("it may move guests out of a pool through which this server has its rights".to_owned()),
    }
}

/// Whether the named thing is one of those that the server's own rights hang on.
fn one_of(args: &Args, name: &str, kind: &str, known: Option<&BTreeSet<String>>) -> Effect {
    let Some(given) = text(args, name) else {
        return Effect::Unknown(format!("which {kind} it changes is not told"));
    };
    match known {
        Some(known) if known.contains(&given) => {
            Effect::Breaks(format!("it takes rights away that this server has by the {kind} {given}"))
        }
        Some(_) => Effect::Keeps,
        None => Effect::Unknown(format!("whether this server has its rights by the {kind} {given} is not known")),
    }
}

/// Rules and networks act together, so only what plainly opens or closes is judged here.
fn management_access(args: &Args) -> Effect {
    let operation = args.operation();
    if operation.path == internal::CHANGE_CLUSTER_FIREWALL.path {
        let enable = args.get(internal::change_cluster_firewall::ENABLE).map(|value| value.wire().into_owned());
        let alone = args.iter().count() == 1;
        if alone && enable.as_deref() == Some("0") {
            return Effect::Keeps;
        }
    }
    if operation.path == internal::STOP_SERVICE.path {
        return match text(args, internal::stop_service::SERVICE) {
            Some(service) if SERVICES.contains(&service.as_str()) => {
                Effect::Breaks(format!("without {service} the node's API cannot be reached"))
            }
            Some(_) => Effect::Keeps,
            None => Effect::Unknown("which service it stops is not told".to_owned()),
        };
    }
    Effect::Unknown(format!(
        "whether the node's API can still be reached after {} is not known before it is done",
        operation.name
    ))
}

fn is_roots(token: &str) -> bool {
    token.split_once('!').is_some_and(|(user, _)| user == ROOT)
}

fn is_set(args: &Args, name: &str) -> bool {
    args.get(name).is_some_and(|value| value.wire() != "0")
}

fn text(args: &Args, name: &str) -> Option<String> {
    args.get(name).map(|value| value.wire().into_owned())
}

fn elements(args: &Args, name: &str) -> Vec<String> {
    match args.get(name) {
        Some(Value::List(items) | Value::Array(items)) => items.iter().map(|item| item.wire().into_owned()).collect(),
        Some(single) => vec![single.wire().into_owned()],
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
