//! Why the store did not do what it was asked: each a sentence for a person. In every case nothing is lost and the
//! mutation is not to be sent.

use std::path::PathBuf;
use std::time::SystemTime;

use super::change::ChangeId;
use super::time::shown;

/// Nothing may be changed anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Who froze.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: SystemTime,
    /// Until when; without end until somebody unfreezes.
    pub until: Option<SystemTime>,
}

impl std::fmt::Display for Freeze {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { by, reason, since, until } = self;
        write!(f, "frozen by {by} since {}", shown(*since))?;
        match until {
            Some(until) => write!(f, " until {}", shown(*until))?,
            None => f.write_str(" until somebody unfreezes")?,
        }
        write!(f, ": {reason}")
    }
}

/// Why the store refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// No room.
    #[error("the store {} cannot grow: the disk is full. Nothing is changed until there is room; reads go on", .0.display())]
    Full(PathBuf),
    /// It can be read only.
    #[error("the store {} can only be read. Nothing is changed until the server may write it; reads go on", .0.display())]
    ReadOnly(PathBuf),
    /// Another process has it.
    #[error(
        "the store is held by another process ({holder}), and only that one changes anything. Use that server, or go \
         through it with `pvegate serve --stdio --via URL --token-file FILE`; reads go on"
    )]
    Held {
        /// What the lock file says about it.
        holder: String,
    },
    /// Somebody works on the change.
    #[error("{holder} works on this change until {}; wait for what comes of it", shown(*until))]
    Claimed {
        /// Who.
        holder: String,
        /// Until when, unless renewed.
        until: SystemTime,
    },
    /// An operator stopped all changes.
    #[error("all changes are {0}")]
    Frozen(Freeze),
    /// The claim is not good any more, or not for long enough.
    #[error("the claim on {0} has run out or has too little time left, so nothing more is sent under it")]
    LeaseLost(ChangeId),
    /// What happened meanwhile does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The file is not the one that was opened.
    #[error(
        "the store {} was removed or replaced while the server was running. Nothing is changed until the server is \
         started again; reads go on",
        .0.display()
    )]
    Gone(PathBuf),
    /// Something else.
    #[error("the store failed: {0}. Nothing is changed while it does; reads go on")]
    Other(String),
}
