//! Decides which file may be the store, who may write it, and whether it still is the one that was opened.
//!
//! The store's file is never opened here once it is there: when a process closes any handle on it, the locks that SQLite
//! holds on it in the same process are gone. It is looked at by name, which is safe in a folder that only its owner writes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Longest text of a lock file that is shown.
const SHOWN: usize = 200;

/// Why a file cannot be the store: a sentence for the operator.
#[derive(Debug, thiserror::Error)]
#[error("the store {} {what}", path.display())]
pub struct OpenError {
    path: PathBuf,
    what: String,
}

impl OpenError {
    pub(super) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), what: what.into() }
    }
}

/// Which file that is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inode(u64, u64);

impl Inode {
    fn of(facts: &Stat) -> Self {
        Self(facts.st_dev, facts.st_ino)
    }

    fn at(path: &Path) -> Option<Self> {
        rustix::fs::lstat(path).ok().map(|facts| Self::of(&facts))
    }
}

/// The names that belong to a store.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn reason(error: Errno) -> std::io::Error {
    error.into()
}

/// Whoever can write the folder can put another file in the store's place.
pub(super) fn check_folder(path: &Path) -> Result<(), OpenError> {
    let folder = folder(path);
    let wrong = |what: String| Err(OpenError::new(path, format!("cannot be in {}: {what}", folder.display())));
    let facts = match rustix::fs::stat(folder) {
        Ok(facts) => facts,
        Err(error) => return wrong(reason(error).to_string()),
    };
    let user = rustix::process::geteuid().as_raw();
    if facts.st_uid != user && facts.st_uid != 0 {
        return wrong(format!(
            "the folder belongs to user id {}, but this runs as {user}; run it as that user, or use another folder",
            facts.st_uid
        ));
    }
    if facts.st_mode & 0o022 != 0 {
        let mode = facts.st_mode & 0o7777;
        return wrong(format!("the folder has mode {mode:04o}, so others can replace files in it; run chmod go-w"));
    }
    Ok(())
}

/// Checks what stands at a name: a regular file of this user, for nobody else. `false` if nothing does.
pub(super) fn check(path: &Path) -> Result<bool, OpenError> {
    let facts = match rustix::fs::lstat(path) {
        Ok(facts) => facts,
        Err(Errno::NOENT) => return Ok(false),
        Err(error) => return Err(OpenError::new(path, format!("cannot be examined: {}", reason(error)))),
    };
    let wrong = |what: String| Err(OpenError::new(path, what));
    match FileType::from_raw_mode(facts.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return wrong("is a symbolic link; name the file itself".to_owned()),
        _ => return wrong("is not a regular file".to_owned()),
    }
    let user = rustix::process::geteuid().as_raw();
    if facts.st_uid != user {
        return wrong(format!("belongs to user id {}, but this runs as {user}; run it as that user", facts.st_uid));
    }
    if facts.st_mode & 0o077 != 0 {
        return wrong(format!("has mode {:04o}, so others can reach it; run chmod 600", facts.st_mode & 0o7777));
    }
    Ok(true)
}

/// Makes an empty file for its owner alone, if there is none. SQLite gives what it puts beside it the same mode.
pub(super) fn create(path: &Path) -> Result<(), OpenError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(()),
        Err(error) => Err(OpenError::new(path, format!("cannot be made: {}", reason(error)))),
    }
}

/// Makes sure that a new file is still in its folder after a crash.
pub(super) fn keep_in_folder(path: &Path) -> Result<(), OpenError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(folder(path), flags, Mode::empty())
        .and_then(rustix::fs::fsync)
        .map_err(|error| OpenError::new(path, format!("cannot be kept: {}", reason(error))))
}

/// What trying to become the one writer came to.
pub(super) enum Lock {
    /// This process is.
    Taken(LockFile),
    /// Another is; what it says about itself.
    Held(String),
    /// Nothing can be written there.
    ReadOnly,
}

/// The right to write changes, until it is dropped.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    file: OwnedFd,
}

impl Lock {
    /// Tries to become the one writer; `about` tells others who that is. The file stays when the right ends: who
    /// removed it could not know whether another waits with it open.
    pub(super) fn take(store: &Path, about: &str) -> Result<Self, OpenError> {
        let path = beside(store, ".lock");
        check(&path)?;
        let wrong = |error: Errno| OpenError::new(&path, format!("cannot be used: {}", reason(error)));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => file,
            Err(Errno::ROFS | Errno::ACCESS) => return Ok(Self::ReadOnly),
            Err(error) => return Err(wrong(error)),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // What it says is for people; that another has it is certain without.
                let _ = File::from(file).take(4096).read_to_string(&mut text);
                return Ok(Self::Held(crate::untrusted::shown(text.trim(), SHOWN)));
            }
            Err(error) => return Err(wrong(error)),
        }
        let text = format!("pid {}, {about}\n", std::process::id());
        let mut written = File::from(file.try_clone().map_err(|error| OpenError::new(&path, error.to_string()))?);
        written
            .set_len(0)
            .and_then(|()| written.write_all(text.as_bytes()))
            .map_err(|error| OpenError::new(&path, format!("cannot be written: {error}")))?;
        Ok(Self::Taken(LockFile { path, file }))
    }
}

/// The files as they were when the store was opened.
#[derive(Debug)]
pub(super) struct Opened {
    path: PathBuf,
    store: Option<Inode>,
    /// Where SQLite writes first. It is there once something was written, and stays while a connection is open.
    journal: OnceLock<Inode>,
    lock: Option<LockFile>,
}

impl Opened {
    pub(super) fn new(path: &Path, lock: Option<LockFile>) -> Self {
        Self { path: path.to_owned(), store: Inode::at(path), journal: OnceLock::new(), lock }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all of them are in their places. What is written to a file that has no name is lost with the process.
    pub(super) fn are_there(&self) -> bool {
        let journal = Inode::at(&beside(&self.path, "-wal"));
        let same_journal = match (self.journal.get(), journal) {
            (Some(known), now) => now == Some(*known),
            (None, Some(now)) => *self.journal.get_or_init(|| now) == now,
            (None, None) => true,
        };
        let same_lock = self.lock.as_ref().is_none_or(|lock| {
            let held = rustix::fs::fstat(lock.file.as_fd()).ok().map(|facts| Inode::of(&facts));
            held.is_some() && held == Inode::at(&lock.path)
        });
        self.store.is_some() && self.store == Inode::at(&self.path) && same_journal && same_lock
    }
}
