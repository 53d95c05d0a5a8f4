//! Who may do what: users, tokens, groups, roles and the access control list, and the schema's permission expressions.

mod permission;
mod roles;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use permission::{allowed, any_of};
pub(crate) use roles::{BUILT_IN, PRIVILEGES, is_privilege};

/// A user of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) enable: bool,
    pub(crate) expire: i64,
    pub(crate) comment: String,
    pub(crate) email: String,
    pub(crate) groups: BTreeSet<String>,
    /// Keys of the older kinds of second factor.
    pub(crate) keys: String,
    pub(crate) tokens: BTreeMap<String, Token>,
}

/// An API token of a user.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) secret: String,
    pub(crate) privsep: bool,
    pub(crate) expire: i64,
    pub(crate) comment: String,
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
}

/// The token that a request came with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: String,
    pub(crate) token: String,
}

impl Caller {
    /// `user@realm!name`
    pub(crate) fn id(&self) -> String {
        format!("{}!{}", self.user, self.token)
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
    pub(crate) fn privileges(&self, caller: &Caller, path: &str, pool: Option<&str>) -> BTreeSet<String> {
        let mut held = self.with_pool(&Subject::User(caller.user.clone()), path, pool);
        let separated = self
            .users
            .get(&caller.user)
            .and_then(|user| user.tokens.get(&caller.token))
            .is_none_or(|token| token.privsep);
        if separated {
            let own = self.with_pool(&Subject::Token(caller.id()), path, pool);
            held = held.intersection(&own).cloned().collect();
        }
        held
    }

    /// Privileges of a user itself, without a token.
    pub(crate) fn of_user(&self, user: &str, path: &str) -> BTreeSet<String> {
        self.at(&Subject::User(user.to_owned()), path)
    }

    /// A guest or storage also has what is granted on its pool.
    fn with_pool(&self, subject: &Subject, path: &str, pool: Option<&str>) -> BTreeSet<String> {
        let mut held = self.at(subject, path);
        if let Some(pool) = pool {
            held.extend(self.at(subject, &format!("/pool/{pool}")));
        }
        held
    }

    fn at(&self, subject: &Subject, path: &str) -> BTreeSet<String> {
        if *subject == Subject::User("root@pam".to_owned()) {
            return PRIVILEGES.iter().map(|name| (*name).to_owned()).collect();
        }
        let mut roles: BTreeSet<&str> = BTreeSet::new();
        for prefix in prefixes(path) {
            let entries = |who: &dyn Fn(&Subject) -> bool| -> BTreeSet<&str> {
                self.acl
                    .iter()
                    .filter(|grant| grant.path == prefix && (grant.propagate || prefix == path) && who(&grant.subject))
                    .map(|grant| grant.role.as_str())
                    .collect()
            };
            // What is granted to the subject itself goes before what its groups have, and deeper before higher.
            let own = entries(&|who| who == subject);
            let found = if own.is_empty() {
                entries(&|who| match (subject, who) {
                    (Subject::User(user), Subject::Group(group)) => {
                        self.users.get(user).is_some_and(|user| user.groups.contains(group))
                    }
                    _ => false,
                })
            } else {
                own
            };
            if !found.is_empty() {
                roles = found;
            }
        }
        if roles.contains("NoAccess") {
            return BTreeSet::new();
        }
        roles.iter().flat_map(|role| self.role(role)).collect()
    }

    /// Privileges of a role.
    pub(crate) fn role(&self, name: &str) -> BTreeSet<String> {
        if let Some(custom) = self.roles.get(name) {
            return custom.clone();
        }
        roles::built_in(name).into_iter().map(str::to_owned).collect()
    }
}

/// `/`, `/vms`, `/vms/100` for `/vms/100`.
fn prefixes(path: &str) -> Vec<String> {
    let mut all = vec!["/".to_owned()];
    let mut at = String::new();
    for step in path.split('/').filter(|step| !step.is_empty()) {
        at.push('/');
        at.push_str(step);
        all.push(at.clone());
    }
    all
}

#[cfg(test)]
mod tests;
