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
