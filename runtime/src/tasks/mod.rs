//! Decides how work that goes on under a UPID is followed to its end, and what came of it.
//!
//! A UPID means that PVE accepted something, not that it did it. So whoever started a task, or asks about one, follows
//! it here: [`Task::follow`] polls until it ended or time is up and answers with a [`Report`]. How it went is judged
//! from the exit status, from what its type of task says in the log, and for requests to the HA manager from the guest.

mod follow;
mod guest;
mod log;
mod outcome;
mod signs;

#[cfg(test)]
mod tests;

pub use follow::{Report, Task, Watcher};
pub use guest::{GuestState, Wanted};
pub use log::clean;
pub use outcome::Outcome;

use crate::values::Upid;

/// Whether this names a task of a Proxmox Backup Server, whose ids have one part more.
pub fn is_of_backup_server(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let hex = |at: usize, lengths: std::ops::RangeInclusive<usize>| {
        parts
            .get(at)
            .is_some_and(|part| lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    Upid::parse(text).is_err()
        && parts.len() == 10
        && parts.first() == Some(&"UPID")
        && hex(2, 8..=8)
        && hex(3, 8..=9)
        && hex(4, 8..=16)
        && hex(5, 8..=8)
}
