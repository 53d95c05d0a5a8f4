//! The permission expressions of the schema, evaluated over the access control list.

use serde_json::Value;

use crate::answer::Refusal;
use crate::params::{Params, text};
use crate::schema::{Operation, truthy};
use crate::state::Cluster;

use super::Caller;

/// Whether a call passes the schema's check. Operations open to every user are filtered by their handlers.
pub(crate) fn allowed(
    cluster: &Cluster,
    caller: &Caller,
    operation: &Operation,
    params: &Params,
) -> Result<(), Refusal> {
    let Some(permissions) = &operation.permissions else {
        if caller.is_root() {
            return Ok(());
        }
        return Err(Refusal::forbidden("user != root@pam"));
    };
    if permissions.get("user").is_some() {
        return Ok(());
    }
    match permissions.get("check") {
        Some(check) => Check { cluster, caller, params }.holds(check),
        None => Err(Refusal::forbidden("")),
    }
}

/// Whether a caller has one of some privileges at a path.
pub(crate) fn any_of(cluster: &Cluster, caller: &Caller, path: &str, wanted: &[&str]) -> bool {
    let held = cluster.privileges(caller, path);
    wanted.iter().any(|name| held.contains(*name))
}

struct Check<'a> {
    cluster: &'a Cluster,
    caller: &'a Caller,
    params: &'a Params,
}

impl Check<'_> {
    fn holds(&self, check: &Value) -> Result<(), Refusal> {
        let parts = check.as_array().map(Vec::as_slice).unwrap_or_default();
        let (Some(kind), rest) = (parts.first().and_then(Value::as_str), parts.get(1..).unwrap_or_default()) else {
            return Err(Refusal::forbidden(""));
        };
        match kind {
            "and" => rest.iter().try_for_each(|part| self.holds(part)),
            "or" => {
                if rest.iter().any(|part| self.holds(part).is_ok()) {
                    Ok(())
                } else {
                    Err(Refusal::forbidden(""))
                }
            }
            "perm" => self.perm(rest),
            "userid-param" => self.userid_param(rest.first().and_then(Value::as_str)),
            "userid-group" => self.userid_group(rest.first()),
            "perm-modify" => {
                let path = text(self.params, "path").unwrap_or("/");
                self.one_of(path, &["Permissions.Modify"])
            }
            _ => Err(Refusal::forbidden("")),
        }
    }

    fn perm(&self, rest: &[Value]) -> Result<(), Refusal> {
        let path = self.fill(rest.first().and_then(Value::as_str).unwrap_or_default());
        let wanted: Vec<&str> = match rest.get(1) {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(name)) => vec![name],
            _ => Vec::new(),
        };
        let option = |name: &str| rest.iter().skip_while(|part| part.as_str() != Some(name)).nth(1);
        if let Some(needed) = option("require_param").and_then(Value::as_str)
            && !self.params.contains_key(needed)
        {
            return Err(Refusal::forbidden(""));
        }
        if option("any").is_some_and(truthy) {
            return self.one_of(&path, &wanted);
        }
        let held = self.cluster.privileges(self.caller, &path);
        match wanted.iter().find(|name| !held.contains(**name)) {
            None => Ok(()),
            Some(missing) => Err(Refusal::forbidden(&format!("{path}, {missing}"))),
        }
    }

    fn one_of(&self, path: &str, wanted: &[&str]) -> Result<(), Refusal> {
        if any_of(self.cluster, self.caller, path, wanted) {
            Ok(())
        } else {
            Err(Refusal::forbidden(&format!("{path}, {}", wanted.join("|"))))
        }
    }

    fn userid_param(&self, what: Option<&str>) -> Result<(), Refusal> {
        let user = text(self.params, "userid").unwrap_or_default();
        if !crate::check::is_userid(user) {
            return Err(Refusal::failed(format!("value '{user}' does not look like a valid user name")));
        }
        let realm = user.rsplit_once('@').map(|(_, realm)| realm).unwrap_or_default();
        match what {
            Some("self") if user == self.caller.user => Ok(()),
            Some("Realm.AllocateUser") => self.one_of(&format!("/access/realm/{realm}"), &["Realm.AllocateUser"]),
            _ => Err(Refusal::forbidden("")),
        }
    }

    fn userid_group(&self, wanted: Option<&Value>) -> Result<(), Refusal> {
        let wanted: Vec<&str> =
            wanted.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if any_of(self.cluster, self.caller, "/access/groups", &wanted) {
            return Ok(());
        }
        let user = text(self.params, "userid").unwrap_or_default();
        let through_group = self.cluster.access.users.get(user).is_some_and(|user| {
            user.groups
                .iter()
                .any(|group| any_of(self.cluster, self.caller, &format!("/access/groups/{group}"), &wanted))
        });
        if through_group { Ok(()) } else { Err(Refusal::forbidden("")) }
    }

    /// A path template with its parameters; one that is not given leaves nothing. PVE then has no path at all where the
    /// result cannot be one.
    fn fill(&self, template: &str) -> String {
        let mut path = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            path.push_str(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            path.push_str(text(self.params, name).unwrap_or_default());
            rest = after;
        }
        path.push_str(rest);
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "/._-@:".contains(c));
        if path.contains(odd) { String::new() } else { path }
    }
}
