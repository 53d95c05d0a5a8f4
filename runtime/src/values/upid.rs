//! Decides what names a task: every part of a UPID is read, and the node inside is a node name.

use super::{NodeName, ValueError, text_traits};
use std::str::Split;

/// A task id as PVE gives it (`UPID:node:pid:pstart:start:type:id:user:`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Upid {
    text: Box<str>,
    node: NodeName,
    started: u32,
    worker: Box<str>,
    subject: Box<str>,
    user: Box<str>,
}

impl Upid {
    /// Reads all parts; PVE writes the process start with 8 or 9 hex digits.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        Self::read(text).ok_or_else(|| {
            let expected = if PbsUpid::parse(text).is_ok() {
                "a UPID of a PVE node; this one is a Proxmox Backup Server's, which has one part more"
            } else {
                "a UPID exactly as PVE gave it: `UPID:node:pid:pstart:start:type:id:user:`"
            };
            ValueError::new("a task id", text, expected)
        })
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = begin(text)?;
        let node = NodeName::parse(parts.next()?).ok()?;
        hex(parts.next()?, 8..=8)?;
        hex(parts.next()?, 8..=9)?;
        let started = u32::try_from(hex(parts.next()?, 8..=8)?).ok()?;
        let (worker, subject, user) = end(parts)?;
        Some(Self {
            node,
            started,
            worker: worker.into(),
            subject: subject.into(),
            user: user.into(),
            text: text.into(),
        })
    }

    /// The text as PVE gave it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The node that runs the task.
    pub fn node(&self) -> &NodeName {
        &self.node
    }

    /// When it started, in seconds since 1970.
    pub fn started(&self) -> u32 {
        self.started
    }

    /// The worker type (`qmstart`, `vzdump`).
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// What it works on, often a vmid; may be empty.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The user or API token that started it.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The API token's name, where it was one.
    pub fn token(&self) -> Option<&str> {
        self.user.split_once('!').map(|(_, token)| token)
    }
}

/// The task id of a Proxmox Backup Server, which turns up in logs of backup tasks. Nothing can be asked about it here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PbsUpid {
    text: Box<str>,
    worker: Box<str>,
    subject: Box<str>,
    user: Box<str>,
}

impl PbsUpid {
    /// Reads `UPID:node:pid:pstart:task:start:type:id:user:`; the number of the task is what PVE has not.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let expected = "a UPID as a Proxmox Backup Server gives it: `UPID:node:pid:pstart:task:start:type:id:user:`";
        Self::read(text).ok_or_else(|| ValueError::new("a task id of a backup server", text, expected))
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = begin(text)?;
        word(parts.next()?).filter(|node| !node.is_empty())?;
        hex(parts.next()?, 8..=8)?;
        hex(parts.next()?, 8..=9)?;
        hex(parts.next()?, 8..=16)?;
        hex(parts.next()?, 8..=8)?;
        let (worker, subject, user) = end(parts)?;
        Some(Self { worker: worker.into(), subject: subject.into(), user: user.into(), text: text.into() })
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The worker type (`backup`, `garbage_collection`).
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// What it works on; may be empty.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The user or API token that started it.
    pub fn user(&self) -> &str {
        &self.user
    }
}

/// Parts after the mark that all task ids begin with.
fn begin(text: &str) -> Option<Split<'_, char>> {
    let mut parts = text.split(':');
    (text.len() <= 512 && parts.next() == Some("UPID")).then_some(parts)
}

/// Type, subject and user, which all task ids end with.
fn end(mut parts: Split<'_, char>) -> Option<(&str, &str, &str)> {
    let worker = word(parts.next()?).filter(|worker| !worker.is_empty())?;
    let subject = word(parts.next()?)?;
    let user = word(parts.next()?).filter(|user| !user.is_empty())?;
    // The trailing colon leaves one empty part, and nothing after it.
    (parts.next() == Some("") && parts.next().is_none()).then_some((worker, subject, user))
}

fn hex(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Option<u64> {
    let good = lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    good.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A part between colons. A slash or a percent sign could make two path segments of one.
fn word(text: &str) -> Option<&str> {
    let bad = |character: char| {
        matches!(character, '/' | '\\' | '%' | '?' | '#') || character.is_whitespace() || character.is_control()
    };
    (!text.chars().any(bad)).then_some(text)
}

text_traits!(Upid);
text_traits!(PbsUpid);
