//! PVE's permission expressions, as its own checker reads them.

use serde_json::Value;

use super::reader::{Reader, describe};

/// Who may call an operation. Where an operation has none at all, only `root@pam` itself may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permissions {
    /// Everyone, even without a login.
    World,
    /// Every user; what they may see or do is checked in PVE's code. A check beside it is never looked at.
    AllUsers,
    /// Those who pass this check.
    Check(Check),
}

/// One expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Privileges on an ACL path.
    Perm {
        /// The path, a template over parameters.
        path: String,
        /// The privileges.
        privs: Vec<String>,
        /// One of them is enough, instead of all.
        any: bool,
        /// False unless this parameter is given.
        require_param: Option<String>,
    },
    /// All of these.
    And(Vec<Check>),
    /// One of these.
    Or(Vec<Check>),
    /// Privileges on a group of the user that the parameter `userid` names.
    UserIdGroup {
        /// The privileges.
        privs: Vec<String>,
        /// Whether the groups that the call names count as well.
        groups_param: Option<GroupsParam>,
    },
    /// About the user that the parameter `userid` names.
    UserIdParam(UserIdParam),
    /// The right to change the ACL of this path.
    PermModify(String),
}

/// How the groups that a call names take part in the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsParam {
    /// The user is created in them.
    Create,
    /// The user is moved to them.
    Update,
}

/// What has to hold for the user that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserIdParam {
    /// It is the caller.
    Own,
    /// The caller may allocate users in its realm.
    AllocateUser,
}

impl Reader {
    /// The value of `permissions`.
    pub(super) fn permissions(&mut self, value: &Value) -> Option<Permissions> {
        let object = self.object(value)?;
        let mut user = None;
        let mut check = None;
        for (key, value) in object {
            match key.as_str() {
                "user" => {
                    user = match value.as_str() {
                        Some("world") => Some(Permissions::World),
                        Some("all") => Some(Permissions::AllUsers),
                        _ => {
                            self.at("user", |reader| reader.problem(format!("unknown user {}", describe(value))));
                            None
                        }
                    }
                }
                "check" => check = self.at("check", |reader| reader.check(value)).map(Permissions::Check),
                _ => self.unread(key, value, &["description"]),
            }
        }
        if !object.contains_key("user") && !object.contains_key("check") {
            self.problem("has neither `user` nor `check`");
        }
        // PVE looks at `user` first.
        user.or(check)
    }

    fn check(&mut self, value: &Value) -> Option<Check> {
        let list = self.list(value)?;
        let Some((Value::String(operator), rest)) = list.split_first() else {
            self.problem("does not begin with the name of a check");
            return None;
        };
        match (operator.as_str(), rest) {
            ("and", [_, ..]) => Some(Check::And(self.checks(rest))),
            ("or", [_, ..]) => Some(Check::Or(self.checks(rest))),
            ("perm", [path, privs, options @ ..]) => self.perm(path, privs, options),
            ("userid-group", [privs, options @ ..]) => {
                let privs = self.at("1", |reader| reader.privileges(privs));
                let groups_param = match options {
                    [] => None,
                    [Value::String(name), Value::String(mode)] if name == "groups_param" && mode == "create" => {
                        Some(GroupsParam::Create)
                    }
                    [Value::String(name), Value::String(mode)] if name == "groups_param" && mode == "update" => {
                        Some(GroupsParam::Update)
                    }
                    _ => {
                        self.problem("unknown options of userid-group");
                        None
                    }
                };
                Some(Check::UserIdGroup { privs, groups_param })
            }
            ("userid-param", [Value::String(what)]) if what == "self" => Some(Check::UserIdParam(UserIdParam::Own)),
            ("userid-param", [Value::String(what)]) if what == "Realm.AllocateUser" => {
                Some(Check::UserIdParam(UserIdParam::AllocateUser))
            }
            ("perm-modify", [Value::String(path)]) => Some(Check::PermModify(path.clone())),
            _ => {
                self.problem(format!(
                    "unknown permission check {:?} with {} operands",
                    operator.chars().take(60).collect::<String>(),
                    rest.len()
                ));
                None
            }
        }
    }

    fn checks(&mut self, list: &[Value]) -> Vec<Check> {
        let numbered = list.iter().enumerate();
        numbered.filter_map(|(index, value)| self.at((index + 1).to_string(), |reader| reader.check(value))).collect()
    }

    fn perm(&mut self, path: &Value, privs: &Value, options: &[Value]) -> Option<Check> {
        let path = self.at("1", |reader| reader.text(path));
        let privs = self.at("2", |reader| reader.privileges(privs));
        let mut any = false;
        let mut require_param = None;
        for option in options.chunks(2) {
            match option {
                [Value::String(name), value] if name == "any" => any = self.at("any", |reader| reader.flag(value))?,
                [Value::String(name), Value::String(parameter)] if name == "require_param" => {
                    require_param = Some(parameter.clone());
                }
                _ => self
                    .problem(format!("unknown option of perm: {}", option.first().map(describe).unwrap_or_default())),
            }
        }
        Some(Check::Perm { path: path?, privs, any, require_param })
    }

    /// A list of privileges; 7.4 has a single one without a list.
    fn privileges(&mut self, value: &Value) -> Vec<String> {
        let privs = if let Value::String(one) = value { vec![one.clone()] } else { self.texts(value) };
        if privs.is_empty() {
            self.problem("names no privilege");
        }
        privs
    }
}
