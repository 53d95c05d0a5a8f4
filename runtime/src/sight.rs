//! Decides whether an empty list means that there is nothing, or that the server's API token sees nothing: PVE filters
//! lists without a word, and only its own list of privileges tells the difference.

use std::collections::BTreeMap;

use pvegate_generated::terms::Subject;
use serde_json::Value as Json;

use crate::untrusted;

/// What the server's API token may see, by ACL path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Privileges by path, each with whether it holds below the path too.
    paths: BTreeMap<String, BTreeMap<String, bool>>,
}

/// How much of one kind of thing is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// All of it: an empty list means that there is none.
    All,
    /// What is at or below these ACL paths, and nothing else.
    Only(Vec<String>),
    /// All but what is at or below these ACL paths.
    Not(Vec<String>),
    /// Nothing.
    Nothing,
}

/// Privileges of which each shows a thing in lists, and the ACL path above all things of its kind.
fn shown_by(subject: Subject) -> (&'static [&'static str], &'static str) {
    match subject {
        Subject::Guest => (&["VM.Audit"], "/vms"),
        Subject::Node => (&["Sys.Audit"], "/nodes"),
        Subject::Storage => (&["Datastore.Audit", "Datastore.AllocateSpace"], "/storage"),
        Subject::Pool => (&["Pool.Audit"], "/pool"),
    }
}

impl Sight {
    /// Reads the answer to `GET /access/permissions`. What is not understood counts as no privilege.
    pub fn read(data: &Json) -> Self {
        let paths = data.as_object().into_iter().flatten().filter_map(|(path, privileges)| {
            let below = |value: &Json| value.as_i64() == Some(1) || value.as_str() == Some("1") || value == true;
            let privileges = privileges.as_object()?.iter().map(|(name, value)| (name.clone(), below(value))).collect();
            Some((path.clone(), privileges))
        });
        Self { paths: paths.collect() }
    }

    /// Whether the token has no privilege at all.
    pub fn is_blind(&self) -> bool {
        self.paths.values().all(BTreeMap::is_empty)
    }

    /// Whether the token has a privilege at a path, as far as PVE's list tells: what stands there, or what holds below the
    /// nearest path above it. Paths without any privilege are not listed, the highest of each kind among them.
    pub fn holds(&self, path: &str, privilege: &str) -> bool {
        if let Some(given) = self.paths.get(path) {
            return given.contains_key(privilege);
        }
        let mut above = path;
        while let Some((higher, _)) = above.rsplit_once('/').filter(|(higher, _)| !higher.is_empty()) {
            above = higher;
            if let Some(given) = self.paths.get(above) {
                return given.get(privilege) == Some(&true);
            }
        }
        false
    }

    /// How much of one kind of thing is seen.
    pub fn of(&self, subject: Subject) -> Seen {
        let (privileges, above) = shown_by(subject);
        let has = |path: &str, below: bool| {
            self.paths.get(path).is_some_and(|given| {
                privileges.iter().any(|privilege| given.get(*privilege).is_some_and(|holds| *holds || !below))
            })
        };
        // PVE tells what holds at each path with all that is inherited, and leaves out paths at which nothing does.
        let prefix = format!("{above}/");
        if has(above, true) {
            let without = self.paths.keys().filter(|path| path.starts_with(&prefix) && !has(path, false));
            let without: Vec<String> = without.cloned().collect();
            return if without.is_empty() { Seen::All } else { Seen::Not(without) };
        }
        // Guests and storages are also seen through their pool.
        let through_pool = matches!(subject, Subject::Guest | Subject::Storage);
        let paths: Vec<String> = self
            .paths
            .keys()
            .filter(|path| path.starts_with(&prefix) || through_pool && path.starts_with("/pool/"))
            .filter(|path| has(path, false))
            .cloned()
            .collect();
        if paths.is_empty() { Seen::Nothing } else { Seen::Only(paths) }
    }

    /// What a person has to know about an empty list; nothing if it is really empty.
    pub fn doubt(&self, cluster: &str, subject: Subject) -> Option<String> {
        let (privileges, above) = shown_by(subject);
        let privilege = privileges.join(" or ");
        let what = plural(subject);
        match self.of(subject) {
            Seen::All => None,
            Seen::Nothing if self.is_blind() => Some(format!(
                "cluster {cluster} shows nothing to the server's API token, which has no privilege at all, so whether there are {what} is not known; an operator has to give it a role such as PVEAuditor on / (a privilege-separated token has none of its user's)"
            )),
            Seen::Nothing => Some(format!(
                "cluster {cluster} shows no {what} to the server's API token, which lacks {privilege} on {above}, so whether there are any is not known"
            )),
            Seen::Not(paths) => Some(format!(
                "the server's API token on cluster {cluster} lacks {privilege} on {}, so {what} there are not seen",
                some(&paths)
            )),
            Seen::Only(paths) => Some(format!(
                "the server's API token on cluster {cluster} has {privilege} only on {}, so {what} elsewhere are not seen",
                some(&paths)
            )),
        }
    }
}

/// The first few paths. They hold names that people gave.
fn some(paths: &[String]) -> String {
    let mut list = paths.iter().take(5).map(|path| untrusted::shown(path, 80)).collect::<Vec<_>>().join(", ");
    if paths.len() > 5 {
        list.push_str(", …");
    }
    list
}

fn plural(subject: Subject) -> &'static str {
    match subject {
        Subject::Guest => "guests",
        Subject::Node => "nodes",
        Subject::Storage => "storages",
        Subject::Pool => "pools",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn privileges_are_inherited_as_pve_does_it() {
        let sight = |data| Sight::read(&data).of(Subject::Guest);
        assert_eq!(sight(json!({"/": {"VM.Audit": 1}, "/vms": {"VM.Audit": 1}})), Seen::All);
        assert_eq!(sight(json!({"/vms": {"VM.Audit": 1}})), Seen::All);
        // PVE has worked out what is inherited, and leaves out paths without any privilege: here it was taken away.
        assert_eq!(sight(json!({"/": {"VM.Audit": 1}, "/nodes": {"VM.Audit": 1}})), Seen::Nothing);
        // Taken away further down.
        assert_eq!(
            sight(json!({"/vms": {"VM.Audit": 1}, "/vms/100": {"VM.Console": 1}, "/vms/101": {"VM.Audit": 0}})),
            Seen::Not(vec!["/vms/100".to_owned()])
        );
        // At the path itself and not below.
        assert_eq!(sight(json!({"/vms": {"VM.Audit": 0}})), Seen::Nothing);
        assert_eq!(sight(json!({"/": {"VM.Audit": 1}, "/vms": {"VM.PowerMgmt": 1}})), Seen::Nothing);
        assert_eq!(
            sight(json!({"/pool/team": {"VM.Audit": 1}, "/vms/100": {"VM.Audit": 0}, "/vms/101": {"VM.Console": 1}})),
            Seen::Only(vec!["/pool/team".to_owned(), "/vms/100".to_owned()])
        );
        assert_eq!(sight(json!({"/storage/local": {"Datastore.Audit": 1}})), Seen::Nothing);
        for odd in [json!(null), json!([]), json!({"/": null}), json!({"/": {"VM.Audit": "soon"}})] {
            assert_eq!(sight(odd), Seen::Nothing);
        }
    }

    #[test]
    fn a_privilege_holds_at_a_path_or_from_above() {
        let sight = Sight::read(&json!({
            "/": {"VM.Allocate": 1}, "/vms": {"VM.Allocate": 1}, "/vms/100": {"VM.Audit": 1}, "/pool/team": {"VM.Allocate": 0},
        }));
        assert!(sight.holds("/vms/600", "VM.Allocate"));
        assert!(sight.holds("/pool/team", "VM.Allocate"));
        // What stands at a path replaces what is above it, and what does not hold below stays where it is.
        assert!(!sight.holds("/vms/100", "VM.Allocate"));
        assert!(!sight.holds("/pool/team/inner", "VM.Allocate"));
        assert!(!sight.holds("/storage/local", "Datastore.AllocateSpace"));
        assert!(!sight.holds("/vms/600", "VM.Audit"));
    }

    #[test]
    fn an_empty_list_is_told_from_a_blind_one() {
        let doubt = |data, subject| Sight::read(&data).doubt("lab", subject).unwrap_or_default();
        assert!(doubt(json!({}), Subject::Guest).contains("no privilege at all"));
        assert!(doubt(json!({"/nodes": {"Sys.Audit": 1}}), Subject::Pool).contains("Pool.Audit on /pool"));
        assert!(doubt(json!({"/pool/team": {"VM.Audit": 1}}), Subject::Guest).contains("only on /pool/team"));
        assert_eq!(doubt(json!({"/nodes": {"Sys.Audit": "1"}}), Subject::Node), "");
    }
}
