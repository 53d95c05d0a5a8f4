//! Decides what is kept of a task's log as it is read, page by page, and which of its answers are no log.

use std::collections::VecDeque;

use serde_json::Value as Json;

use super::signs;
use crate::redact::{Lines, Redactor};
use crate::untrusted;

/// Last lines that are kept.
const TAIL: usize = 20;
/// Most warnings and most failures that are kept, the first ones.
const KEPT: usize = 20;
/// Longest line that is kept, in characters.
const LINE: usize = 500;
/// Most lines that are read at once; of a longer rest only the end is.
const MOST_UNREAD: u64 = 50_000;

/// What PVE says in place of lines where a task has written none, and where there is no such log.
const EMPTY: &str = "no content";
const NO_FILE: &str = "unable to open file - ";

/// Puts right what PVE answers as the log of a task: lines that are its own and not the task's. `None`: there is no
/// such log.
pub fn clean(rows: &mut Vec<Json>, total: &mut Option<u64>) -> Option<()> {
    let [row] = rows.as_slice() else { return Some(()) };
    let text = row.get("t").and_then(Json::as_str).unwrap_or_default();
    if text.starts_with(NO_FILE) {
        return None;
    }
    if text == EMPTY {
        rows.clear();
        *total = Some(0);
    }
    Some(())
}

/// What was read of a log so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    next: u64,
    lines: Lines,
    tail: VecDeque<String>,
    warnings: Vec<String>,
    failures: Vec<String>,
    percent: Option<f64>,
    forced: bool,
    target: Option<String>,
    skipped: Option<(u64, u64)>,
}

impl Log {
    /// Where the next page begins.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Takes a page; whether there is more.
    pub(super) fn take(&mut self, worker: &str, redactor: &Redactor, rows: &[Json], total: Option<u64>) -> bool {
        for row in rows {
            let text = row.get("t").and_then(Json::as_str).unwrap_or_default();
            self.line(worker, redactor, text);
        }
        self.next += rows.len() as u64;
        let total = total.unwrap_or(self.next);
        if rows.is_empty() || total <= self.next {
            return false;
        }
        if total - self.next > MOST_UNREAD {
            let from = self.next;
            self.next = total - MOST_UNREAD;
            let first = self.skipped.map_or(from, |(first, _)| first);
            self.skipped = Some((first, self.next));
        }
        true
    }

    fn line(&mut self, worker: &str, redactor: &Redactor, text: &str) {
        let mut line = text.to_owned();
        // Masked before it is cut, or half a secret could be kept.
        self.lines.mask(redactor, &mut line);
        if let Some(target) = signs::target(worker, &line) {
            self.target = Some(target);
        }
        let line = untrusted::shown(&line, LINE);
        // What it tells is read from the line as it was written: a guest that writes what looks like the beginning of
        // a secret must not hide that something failed.
        if let Some(percent) = signs::percent(worker, text) {
            self.percent = Some(percent);
        }
        self.forced |= signs::is_force(text);
        if signs::is_failure(worker, text) && self.failures.len() < KEPT {
            self.failures.push(line.clone());
        }
        if signs::is_warning(worker, text) && self.warnings.len() < KEPT {
            self.warnings.push(line.clone());
        }
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    /// The last lines.
    pub(super) fn tail(&self) -> impl Iterator<Item = &str> {
        self.tail.iter().map(String::as_str)
    }

    /// Lines that warn.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Lines that tell of a part that failed.
    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// How far the present part is.
    pub(super) fn percent(&self) -> Option<f64> {
        self.percent
    }

    /// Whether a guest had to be stopped by force.
    pub(super) fn forced(&self) -> bool {
        self.forced
    }

    /// The node that a guest is to be moved to.
    pub(super) fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Lines that were too many to be read: the number before the first of them, and the last.
    pub(super) fn skipped(&self) -> Option<(u64, u64)> {
        self.skipped
    }
}
