//! Decides what an exit status means, together with what the log said.

use std::fmt;

use super::log::Log;

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It did what it was started for.
    Ok,
    /// It did, and said that something was not right.
    OkWithWarnings,
    /// It did not, or not all of it.
    Failed,
    /// It ended well and only asked the HA manager, which did not do it.
    NotAchieved,
    /// It goes on, or the HA manager is still at it.
    Running,
    /// Nobody can tell.
    Unknown,
}

impl Outcome {
    /// As results and logs have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OkWithWarnings => "ok_with_warnings",
            Self::Failed => "failed",
            Self::NotAchieved => "not_achieved",
            Self::Running => "running",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an ended task's exit status means, and what a person would not read out of the status itself.
pub(super) fn judge(worker: &str, status: &str, log: &Log) -> (Outcome, Option<String>) {
    match status {
        "" => (Outcome::Unknown, Some("PVE does not say how it ended".to_owned())),
        "OK" => done(Outcome::Ok, worker, log),
        _ if is_warnings(status) => done(Outcome::OkWithWarnings, worker, log),
        "unexpected status" => (
            Outcome::Unknown,
            Some("its worker ended without a word, as when it is killed or the node goes down; how far it came shows only in what it worked on".to_owned()),
        ),
        _ => (Outcome::Failed, meaning(status).map(str::to_owned)),
    }
}

/// `WARNINGS: 3`, and nothing that only begins so.
fn is_warnings(status: &str) -> bool {
    status
        .strip_prefix("WARNINGS: ")
        .is_some_and(|count| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()))
}

/// It ended well by its status; its log may know better.
fn done(outcome: Outcome, worker: &str, log: &Log) -> (Outcome, Option<String>) {
    if !log.failures().is_empty() {
        let says = "PVE counts it as done, but its log tells of parts that failed: see `failures`";
        return (Outcome::Failed, Some(says.to_owned()));
    }
    // The package index is refreshed with OK even where nothing could be fetched.
    let outcome = if worker == "aptupdate" && !log.warnings().is_empty() { Outcome::OkWithWarnings } else { outcome };
    let says = if log.forced() {
        Some("the guest did not go down by itself in time and was stopped by force")
    } else if worker == "imgdel" {
        Some("PVE says OK to this also where the volume did not exist")
    } else {
        None
    };
    (outcome, says.map(str::to_owned))
}

/// What some statuses mean that do not say it.
fn meaning(status: &str) -> Option<&'static str> {
    match status {
        "received interrupt" | "interrupted by signal" => Some(
            "it was interrupted, by a person or by a later request that overruled it; what it had done by then stays",
        ),
        "job errors" => Some("the backup of at least one guest failed: see `failures`; those of the others were made"),
        "connection timed out" => Some("nobody connected to the console in time; nothing else was wrong"),
        _ => None,
    }
}
