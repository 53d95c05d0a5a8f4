//! Decides which protected guests an operator has released, for which operations, for whom, and until when.
//!
//! Waivers come from a file alone: what a caller could pass would be no waiver. One lifts protection, never the second
//! person.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pvegate_generated::{catalog, tools::TOOLS};
use serde_json::Value;

use crate::config::{Clusters, ConfigError, Document, Problems, Table, time};
use crate::untrusted::shown;
use crate::values::Vmid;

/// How long break-glass may last at most.
const BREAK_GLASS: Duration = Duration::from_hours(24);

/// Names of operations that the seed's waivers use and that are no tool of their own.
const SEEDS: &[&str] = &[
    "destroy_guest",
    "delete_snapshot",
    "rollback_snapshot",
    "delete_backup",
    "delete_iso",
    "restore_backup",
    "restore_new_vmid",
    "migrate",
    "update_vm_config",
    "ha_rule_create",
    "ha_rule_update",
    "ha_rule_delete",
];

/// All waivers of this server.
#[derive(Clone, Debug, Default)]
pub struct Waivers {
    file: PathBuf,
    entries: Vec<Waiver>,
}

/// One guest released from protection for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    /// The cluster.
    pub cluster: String,
    /// The guest.
    pub vmid: Vmid,
    /// When it ends.
    pub until: SystemTime,
    /// Why; shown to whoever approves.
    pub reason: String,
    /// The operator's ticket.
    pub ticket: Option<String>,
    /// The operations: a tool's name, a word of the seed's, or a name of the catalog. At least one.
    pub ops: Vec<String>,
    /// The token that may use it; none: any.
    pub principal: Option<String>,
    /// Lifts the second person for this person's own token.
    pub break_glass: Option<String>,
}

impl Waivers {
    /// Reads `waivers.json`, or the same data as TOML. A name of an operation that means nothing matches nothing, and is
    /// told in the log.
    pub fn load(path: &Path, now: SystemTime) -> Result<Self, ConfigError> {
        let Document { mut root, mut problems } = Document::load(path)?;
        root.version_one(&mut problems);
        let items = root.list("waivers", &mut problems).unwrap_or_default();
        root.finish(&["version", "waivers"], &mut problems);
        let entries = items
            .into_iter()
            .enumerate()
            .filter_map(|(at, item)| read(at, item, now, &mut problems))
            .collect::<Vec<_>>();
        for (at, waiver) in entries.iter().enumerate() {
            for op in waiver.ops.iter().filter(|op| !is_known(op)) {
                tracing::warn!(file = %path.display(), waiver = at + 1, op = %shown(op, 80), "a waiver names an operation that this server does not know; it matches nothing");
            }
        }
        problems.finish(Self { file: path.to_owned(), entries })
    }

    /// Refuses names of clusters that the server does not have.
    pub fn check_clusters(&self, clusters: &Clusters) -> Result<(), ConfigError> {
        let mut problems = Problems::new(&self.file);
        for (at, waiver) in self.entries.iter().enumerate() {
            if clusters.get(&waiver.cluster).is_none() {
                let message = format!("`{}`: no cluster of that name in the cluster file", shown(&waiver.cluster, 80));
                problems.at(format!("waiver {}, key `cluster`", at + 1), message);
            }
        }
        problems.finish(())
    }

    /// The waiver that releases a guest for one of these names of what is to be done, planned by this principal.
    pub fn matching(
        &self,
        cluster: &str,
        vmid: Vmid,
        op_names: &[&str],
        planner: &str,
        now: SystemTime,
    ) -> Option<&Waiver> {
        self.entries.iter().find(|waiver| {
            waiver.cluster == cluster
                && waiver.vmid == vmid
                && now < waiver.until
                && waiver.ops.iter().any(|op| op_names.contains(&op.as_str()))
                && waiver.principal.as_deref().is_none_or(|principal| principal == planner)
        })
    }

    /// How many there are, ended ones among them.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn is_known(op: &str) -> bool {
    SEEDS.contains(&op)
        || op.starts_with("firewall_")
        || TOOLS.iter().any(|tool| tool.name == op)
        || catalog::operation(op).is_some()
}

fn read(at: usize, item: Value, now: SystemTime, problems: &mut Problems) -> Option<Waiver> {
    let mut table = Table::new(format!("waiver {}", at + 1), item, problems)?;
    let needed = |table: &mut Table, key: &str, problems: &mut Problems| {
        if !table.has(key) {
            problems.at(table.place(key), "is missing");
            return None;
        }
        table.text(key, problems)
    };
    let cluster = needed(&mut table, "cluster", problems);
    let vmid = table.number("vmid", problems).and_then(|number| Vmid::from_number(number).ok());
    if vmid.is_none() {
        problems.at(table.place("vmid"), "has to be a guest's number, 100 to 999999999");
    }
    let until = needed(&mut table, "until", problems).and_then(|text| {
        let read = time(&text);
        if read.is_none() {
            problems.at(table.place("until"), "has to be a time with its zone, like 2027-01-31T12:00:00Z");
        }
        read
    });
    let reason = needed(&mut table, "reason", problems);
    let ticket = table.text("ticket", problems);
    let ops = if table.has("ops") { table.texts("ops", problems) } else { Some(Vec::new()) }.filter(|ops| {
        if ops.is_empty() {
            problems.at(
                table.place("ops"),
                "has to name the operations that it covers, at least one; a waiver without them covers nothing",
            );
        }
        !ops.is_empty()
    });
    let principal = table.text("principal", problems);
    let glass = break_glass(&mut table, until, now, problems);
    table.finish(
        &["cluster", "vmid", "until", "reason", "ticket", "ops", "principal", "break_glass", "person"],
        problems,
    );
    Some(Waiver {
        cluster: cluster?,
        vmid: vmid?,
        until: until?,
        reason: reason?,
        ticket,
        ops: ops?,
        principal,
        break_glass: glass,
    })
}

/// Break-glass names a person, and ends within a day.
fn break_glass(
    table: &mut Table,
    until: Option<SystemTime>,
    now: SystemTime,
    problems: &mut Problems,
) -> Option<String> {
    let person = table.text("person", problems);
    match table.take("break_glass") {
        None | Some(Value::Bool(false)) => {
            if person.is_some() {
                problems
                    .at(table.place("person"), "belongs to `break_glass: true`; `principal` binds a waiver to a token");
            }
            None
        }
        Some(Value::Bool(true)) => {
            if person.is_none() {
                problems.at(table.place("person"), "is missing: break-glass is for one person's own token");
            }
            if until.is_some_and(|until| until > now + BREAK_GLASS) {
                problems.at(table.place("until"), "is more than 24 hours away, and break-glass ends sooner");
            }
            person
        }
        Some(_) => {
            problems.at(table.place("break_glass"), "has to be true or false");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// As the documentation of rust-proxmoxmcp prints it.
    const SEEDS_EXAMPLE: &str = r#"{ "version": 1, "waivers": [ { "cluster": "pve3", "vmid": 905, "until": "2026-12-31T23:59:59Z", "reason": "decommission per CHG-1234", "ticket": "CHG-1234", "ops": ["destroy_guest"], "principal": "ops-token" } ] }"#;

    fn at(text: &str) -> SystemTime {
        time(text).unwrap()
    }

    fn load(text: &str) -> Result<Waivers, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("waivers.json");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        Waivers::load(&path, at("2026-12-01T00:00:00Z")).map_err(|error| error.to_string())
    }

    fn entry(more: &str) -> String {
        format!(
            r#"{{"version": 1, "waivers": [{{"cluster": "lab", "vmid": 905, "until": "2026-12-01T12:00:00Z", "reason": "because"{more}}}]}}"#
        )
    }

    #[test]
    fn the_seeds_example_loads_and_means_what_it_meant() {
        let waivers = load(SEEDS_EXAMPLE).unwrap();
        let vmid = Vmid::new(905).unwrap();
        let asked =
            |cluster, vmid, op: &str, who, when: &str| waivers.matching(cluster, vmid, &[op], who, at(when)).is_some();
        let now = "2026-12-01T00:00:00Z";
        assert!(asked("pve3", vmid, "destroy_guest", "ops-token", now));
        assert!(!asked("pve4", vmid, "destroy_guest", "ops-token", now));
        assert!(!asked("pve3", Vmid::new(906).unwrap(), "destroy_guest", "ops-token", now));
        assert!(!asked("pve3", vmid, "stop_vm", "ops-token", now));
        assert!(!asked("pve3", vmid, "destroy_guest", "other", now));
        assert!(!asked("pve3", vmid, "destroy_guest", "ops-token", "2026-12-31T23:59:59Z"));
    }

    #[test]
    fn a_waiver_without_operations_stops_the_start() {
        for ops in ["", r#", "ops": []"#] {
            let told = load(&entry(ops)).unwrap_err();
            assert!(told.contains("waiver 1, key `ops`"), "{told}");
        }
        // A word that means nothing loads, and matches nothing.
        let waivers = load(&entry(r#", "ops": ["stop_wm"]"#)).unwrap();
        let now = at("2026-12-01T00:00:00Z");
        assert!(waivers.matching("lab", Vmid::new(905).unwrap(), &["stop_vm"], "any", now).is_none());
    }

    #[test]
    fn break_glass_is_for_a_person_and_a_day() {
        let waivers = load(&entry(r#", "ops": ["destroy_guest"], "break_glass": true, "person": "ada""#)).unwrap();
        assert_eq!(waivers.entries.first().unwrap().break_glass.as_deref(), Some("ada"));
        assert!(load(&entry(r#", "ops": ["destroy_guest"], "break_glass": true"#)).unwrap_err().contains("`person`"));
        let long = entry(r#", "ops": ["destroy_guest"], "break_glass": true, "person": "ada""#)
            .replace("2026-12-01T12", "2026-12-03T12");
        assert!(load(&long).unwrap_err().contains("24 hours"));
    }

    #[test]
    fn what_is_missing_or_odd_is_told_together() {
        let told = load(r#"{"version": 1, "waivers": [{"vmid": 5, "until": "soon", "op": ["x"]}]}"#).unwrap_err();
        for part in ["`cluster`: is missing", "`vmid`", "`until`", "`reason`", "`ops`", "unknown key `op`"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
