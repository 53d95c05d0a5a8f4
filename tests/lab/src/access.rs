//! Who may do what: users, tokens, groups, roles and the access control list, and the schema's permission expressions.

mod permission;
mod roles;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use permission::{allowed, any_of};
pub(crate) use roles::{BUILT_IN, PRIVILEGES, is_privilege};

/// A user of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) enable: bool,
    pub(crate) expire: i64,
    pub(crate) comment: Option<String>,
    pub(crate) email: Option<String>,
    pub(crate) firstname: Option<String>,
    pub(crate) lastname: Option<String>,
    /// Of a user of realm `pve`.
    pub(crate) password: Option<String>,
    pub(crate) groups: BTreeSet<String>,
    /// Keys of the older kinds of second factor.
    pub(crate) keys: Option<String>,
    pub(crate) tokens: BTreeMap<String, Token>,
}

/// An API token of a user.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) secret: String,
    pub(crate) privsep: bool,
    pub(crate) expire: i64,
    pub(crate) comment: Option<String>,
}

/// Whom an entry of the access control list is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    User(String),
    Group(String),
    /// `user@realm!name`
    Token(String),
}

/// One entry of the access control list.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) path: String,
    pub(crate) subject: Subject,
    pub(crate) role: String,
    pub(crate) propagate: bool,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    pub(crate) users: BTreeMap<String, User>,
    /// Comment by group.
    pub(crate) groups: BTreeMap<String, String>,
    /// Privileges by role, beyond the built-in ones.
    pub(crate) roles: BTreeMap<String, BTreeSet<String>>,
    pub(crate) acl: Vec<Grant>,
    /// Users by the ticket that they got.
    pub(crate) tickets: BTreeMap<String, String>,
}

/// Whom a request is from: a token, a user with a ticket where the token is empty, or nobody where both are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: String,
    pub(crate) token: String,
}

impl Caller {
    pub(crate) const fn nobody() -> Self {
        Self { user: String::new(), token: String::new() }
    }

    /// `user@realm!name`, or `user@realm`.
    pub(crate) fn id(&self) -> String {
        if self.token.is_empty() { self.user.clone() } else { format!("{}!{}", self.user, self.token) }
    }

    /// Whether it is `root@pam` itself, which none of its tokens is.
    pub(crate) fn is_root(&self) -> bool {
        self.user == "root@pam" && self.token.is_empty()
    }
}

impl Access {
    /// Finds whom a credential `user@realm!name=secret` belongs to. What is wrong with one that does not fit is not said.
    pub(crate) fn authenticate(&self, credential: &str, now: i64) -> Option<Caller> {
        let (id, secret) = credential.split_once('=')?;
        let (user, token) = id.rsplit_once('!')?;
        let account = self.users.get(user)?;
        let held = account.tokens.get(token)?;
        let live = |expire: i64| expire == 0 || expire > now;
        (held.secret == secret && account.enable && live(account.expire) && live(held.expire))
            .then(|| Caller { user: user.to_owned(), token: token.to_owned() })
    }

    /// Privileges of a token at a path. A separated token has what both it and its user have.
    pub(crate) fn privileges(&self, caller: &Caller, path: &str, pool: Option<&str>) -> BTreeSet<&str> {
        let user = Holder { user: &caller.user, token: None };
        let mut held = self.with_pool(user, path, pool);
        if caller.token.is_empty() {
            return held;
        }
        let token = self.users.get(&caller.user).and_then(|user| user.tokens.get(&caller.token));
        if token.is_none_or(|token| token.privsep) {
            let id = caller.id();
            let own = self.with_pool(Holder { user: &caller.user, token: Some(&id) }, path, pool);
            held.retain(|privilege| own.contains(privilege));
        }
        held
    }

    /// Privileges of a user itself, without a token.
    pub(crate) fn of_user(&self, user: &str, path: &str) -> BTreeSet<&str> {
        self.at(Holder { user, token: None }, path)
    }

    /// A guest or storage also has what is granted on its pool.
    fn with_pool(&self, holder: Holder<'_>, path: &str, pool: Option<&str>) -> BTreeSet<&str> {
        let mut held = self.at(holder, path);
        if let Some(pool) = pool {
            held.append(&mut self.at(holder, &format!("/pool/{pool}")));
        }
        held
    }

    /// What is granted to the holder itself goes before what its groups have, and deeper before higher.
    fn at(&self, holder: Holder<'_>, path: &str) -> BTreeSet<&str> {
        if holder.token.is_none() && holder.user == "root@pam" {
            return PRIVILEGES.into();
        }
        let groups = self.users.get(holder.user).map(|user| &user.groups);
        // (depth, whether it is the holder's own) of the roles in force.
        let mut best = None;
        let mut roles: Vec<&str> = Vec::new();
        for grant in &self.acl {
            let own = match &grant.subject {
                Subject::User(user) => holder.token.is_none() && user == holder.user,
                Subject::Token(token) => holder.token == Some(token),
                Subject::Group(_) => false,
            };
            let through_group = match &grant.subject {
                Subject::Group(group) => holder.token.is_none() && groups.is_some_and(|groups| groups.contains(group)),
                _ => false,
            };
            if !(own || through_group) || !covers(grant, path) {
                continue;
            }
            let rank = Some((grant.path.len(), own));
            if rank > best {
                best = rank;
                roles.clear();
            }
            if rank == best {
                roles.push(&grant.role);
            }
        }
        if roles.contains(&"NoAccess") {
            return BTreeSet::new();
        }
        roles.into_iter().flat_map(|role| self.role(role)).collect()
    }

    /// Privileges of a role.
    pub(crate) fn role(&self, name: &str) -> Vec<&str> {
        match self.roles.get(name) {
            Some(custom) => custom.iter().map(String::as_str).collect(),
            None => roles::built_in(name),
        }
    }
}

/// A user, or one of its tokens (`user@realm!name`).
#[derive(Clone, Copy)]
struct Holder<'a> {
    user: &'a str,
    token: Option<&'a str>,
}

/// Whether an entry is about a path or, where it propagates, about something above it.
fn covers(grant: &Grant, path: &str) -> bool {
    if grant.path == path {
        return true;
    }
    let below = grant.path == "/" || path.strip_prefix(grant.path.as_str()).is_some_and(|rest| rest.starts_with('/'));
    grant.propagate && below
}

#[cfg(test)]
mod tests;
