//! Decides what a line of a log tells, which depends on the type of the task.

/// Whether a line tells that a part of the work failed, in tasks that go on with the next part and may end well.
pub(super) fn is_failure(worker: &str, line: &str) -> bool {
    match worker {
        "vzdump" => line.starts_with("ERROR: Backup of VM ") && line.contains(" failed"),
        // It ends with OK whatever happens on the nodes.
        "reloadnetworkall" => line.starts_with("command '") && line.contains("' failed: "),
        "startall" | "stopall" | "suspendall" | "migrateall" => is_guest_failure(line),
        bulk if bulk.starts_with("bulk-") => is_guest_failure(line),
        _ => false,
    }
}

/// `Starting VM 100 failed: …`, with or without a mark before it.
fn is_guest_failure(line: &str) -> bool {
    let line = line.strip_prefix("WARN: ").unwrap_or(line);
    let doing = ["Starting ", "Stopping ", "Shutting down ", "Suspending ", "Migrating "];
    doing.iter().any(|doing| line.starts_with(doing)) && line.contains(" failed: ")
}

/// Whether a line is a warning.
pub(super) fn is_warning(worker: &str, line: &str) -> bool {
    line.starts_with("WARN")
        || worker == "aptupdate" && ["Err:", "W: ", "E: "].iter().any(|mark| line.starts_with(mark))
}

/// Whether a line tells that a guest had to be stopped by force.
pub(super) fn is_force(line: &str) -> bool {
    line.contains(" - terminating now")
}

/// The node that the HA manager was asked to move a guest to.
pub(super) fn target(worker: &str, line: &str) -> Option<String> {
    if !matches!(worker, "hamigrate" | "harelocate") || !line.starts_with("Requesting HA ") {
        return None;
    }
    let (_, node) = line.rsplit_once(" to node ")?;
    Some(node.trim().trim_matches('\'').to_owned())
}

/// How far the present part of the work is, in percent. A backup or clone begins anew for each guest or disk.
pub(super) fn percent(worker: &str, line: &str) -> Option<f64> {
    let found = match worker {
        "vzdump" => {
            let (number, rest) = line.strip_prefix("INFO:")?.trim_start().split_once('%')?;
            rest.starts_with(" (").then(|| number.parse().ok())?
        }
        "download" => {
            let mut words = line.split_ascii_whitespace();
            words.find_map(|word| word.strip_suffix('%')).and_then(|number| number.parse().ok())
        }
        _ => line
            .strip_prefix("progress ")
            .and_then(|rest| rest.split_once('%')?.0.parse().ok())
            .or_else(|| transferred(line)),
    };
    found.filter(|percent: &f64| (0.0..=100.0).contains(percent))
}

/// `transferred 1.2 GiB of 10.0 GiB (12.34%)` of a disk, `transferred 1.2 GiB of 4.0 GiB VM-state` of memory.
fn transferred(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once("transferred ")?;
    if let Some((_, percent)) = rest.split_once('(')
        && let Some((number, _)) = percent.split_once("%)")
    {
        return number.parse().ok();
    }
    let mut words = rest.split_ascii_whitespace();
    let done = bytes(words.next()?, words.next()?)?;
    if words.next() != Some("of") {
        return None;
    }
    let whole = bytes(words.next()?, words.next()?)?;
    // Memory that the guest changes meanwhile is sent again, so there may be more done than there is.
    (words.next()?.starts_with("VM-state") && whole > 0.0).then(|| (done / whole * 100.0).min(99.0))
}

fn bytes(number: &str, unit: &str) -> Option<f64> {
    let power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].iter().position(|known| *known == unit)?;
    Some(number.parse::<f64>().ok()? * 1024_f64.powi(i32::try_from(power).ok()?))
}
