//! Which backups a schedule keeps, and removing the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::entry::properties;
use super::super::{Call, Outcome};
use super::{usable, volumes};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::storage::{Storage, Volume};
use crate::worker::{self, Done};

/// What is said of a backup.
pub(in crate::area) struct Mark {
    pub(in crate::area) volume: Volume,
    pub(in crate::area) mark: &'static str,
}

/// Periods in the order in which they choose: name and length in seconds; months and years go by their own rule.
const PERIODS: [&str; 5] = ["keep-hourly", "keep-daily", "keep-weekly", "keep-monthly", "keep-yearly"];

/// The number of the period that a time is in.
fn period(name: &str, time: i64) -> i64 {
    let day = time.div_euclid(86_400);
    match name {
        "keep-hourly" => time.div_euclid(3600),
        "keep-daily" => day,
        // Weeks begin on Mondays; the epoch was a Thursday.
        "keep-weekly" => (day + 3).div_euclid(7),
        _ => {
            let (year, month) = crate::calendar::year_and_month(day);
            if name == "keep-monthly" { year * 12 + i64::from(month) } else { year }
        }
    }
}

/// Marks the backups of a storage by a schedule; without one that keeps anything, all are kept.
pub(in crate::area) fn marks(backups: Vec<Volume>, schedule: &str) -> Vec<Mark> {
    let keep = properties(schedule);
    let count = |name: &str| {
        let text = keep.get(name).and_then(Value::as_str).unwrap_or_default();
        text.parse::<usize>().unwrap_or_default()
    };
    let limited = count("keep-all") == 0 && (count("keep-last") > 0 || PERIODS.iter().any(|name| count(name) > 0));
    let mut groups: BTreeMap<(Option<u32>, Option<String>), Vec<Volume>> = BTreeMap::new();
    for backup in backups {
        groups.entry((backup.vmid, backup.subtype.clone())).or_default().push(backup);
    }
    let mut all = Vec::new();
    for (_, mut group) in groups {
        group.sort_by_key(|backup| std::cmp::Reverse(backup.ctime));
        let mut kept: BTreeSet<usize> = BTreeSet::new();
        let open: Vec<usize> =
            group.iter().enumerate().filter(|(_, backup)| !backup.protected).map(|(at, _)| at).collect();
        if limited {
            kept.extend(open.iter().take(count("keep-last")));
            for name in PERIODS {
                let mut seen: BTreeSet<i64> = BTreeSet::new();
                let at = |at: usize| group.get(at).map_or(0, |backup| period(name, backup.ctime));
                let had: BTreeSet<i64> = kept.iter().map(|kept| at(*kept)).collect();
                for backup in &open {
                    if seen.len() >= count(name) {
                        break;
                    }
                    let number = at(*backup);
                    if !had.contains(&number) && seen.insert(number) {
                        kept.insert(*backup);
                    }
                }
            }
        }
        all.extend(group.into_iter().enumerate().map(|(at, volume)| {
            let mark = if volume.protected {
                "protected"
            } else if !limited || kept.contains(&at) {
                "keep"
            } else {
                "remove"
            };
            Mark { volume, mark }
        }));
    }
    all
}

/// The backups that a call is about, marked by its schedule or the storage's own.
fn asked(cluster: &Cluster, call: &Call<'_>, storage: &Storage) -> Vec<Mark> {
    let found = volumes(cluster, call.text("storage")).into_iter().filter(|volume| {
        volume.content == "backup"
            && call.given("vmid").is_none_or(|wanted| volume.vmid.is_some_and(|vmid| vmid.to_string() == wanted))
            && call.given("type").is_none_or(|wanted| volume.subtype.as_deref() == Some(wanted))
    });
    marks(found.collect(), call.given("prune-backups").unwrap_or_else(|| storage.text("prune-backups")))
}

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let storage = usable(cluster, call)?;
    let rows = asked(cluster, call, storage).into_iter().map(|Mark { volume, mark }| {
        json!({"volid": volume.id(), "vmid": volume.vmid, "type": volume.subtype, "ctime": volume.ctime, "mark": mark})
    });
    Ok(Value::Array(rows.collect()).into())
}

pub(super) fn delete(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let storage = call.text("storage").to_owned();
    let marks = shared.look(|cluster| {
        let path = format!("/storage/{storage}");
        if !call.may(cluster, &path, &["Datastore.Allocate"]) {
            if !call.may(cluster, &path, &["Datastore.AllocateSpace"]) {
                return Err(Refusal::forbidden(&format!("{path}, Datastore.AllocateSpace")));
            }
            let guest = call.given("vmid").map(|vmid| format!("/vms/{vmid}"));
            let owned = guest.as_ref().is_some_and(|guest| call.may(cluster, guest, &["VM.Backup"]));
            if !owned {
                let what =
                    guest.map_or_else(|| format!("{path}, Datastore.Allocate"), |guest| format!("{guest}, VM.Backup"));
                return Err(Refusal::forbidden(&what));
            }
        }
        let definition = usable(cluster, call)?;
        Ok(asked(cluster, call, definition))
    })?;
    let id = call.given("vmid").map_or_else(|| storage.clone(), |vmid| format!("{vmid}@{storage}"));
    Ok(worker::start(shared, call, "prunebackups", &id, |worker| async move {
        for Mark { volume, mark } in marks {
            let id = volume.id();
            if mark != "remove" {
                continue;
            }
            worker.log(format!("Removing backup '{id}'"));
            worker.change(|cluster| cluster.free(&id))?;
        }
        Ok(Done::Fine)
    }))
}
