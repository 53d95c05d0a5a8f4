//! Decides which file may hold a secret: a regular one, reached without a link, for its owner's eyes only.

use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use zeroize::Zeroizing;

/// Largest configuration file.
pub(crate) const DOCUMENT_LIMIT: u64 = 1 << 20;
/// Largest file that holds one secret.
pub(crate) const SECRET_LIMIT: u64 = 8 << 10;

/// Reads a file that holds secrets; the error is a sentence for its owner.
pub fn read_credential(path: &Path, limit: u64) -> Result<Zeroizing<String>, String> {
    match examine(path, limit)? {
        (_, Some(loose)) => Err(loose),
        (text, None) => Ok(text),
    }
}

/// The text of a file, and what is wrong with who can reach it: files that a loose one names are looked at as well, so
/// that all are told at once. What is read from a loose one must not be used.
///
/// The checks are made on the opened file, so that it cannot be exchanged in between.
pub(super) fn examine(path: &Path, limit: u64) -> Result<(Zeroizing<String>, Option<String>), String> {
    // NONBLOCK: opening a pipe by mistake must not wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::LOOP => "is a symbolic link; name the file itself".to_owned(),
        rustix::io::Errno::NOENT => "does not exist".to_owned(),
        error => format!("cannot be opened: {}", std::io::Error::from(error)),
    })?;
    let facts = rustix::fs::fstat(file.as_fd())
        .map_err(|error| format!("cannot be examined: {}", std::io::Error::from(error)))?;
    if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
        return Err("is not a regular file".to_owned());
    }
    let user = rustix::process::geteuid().as_raw();
    if facts.st_uid != user {
        return Err(format!("belongs to user id {}, but the server runs as {user}; change its owner", facts.st_uid));
    }
    let loose = (facts.st_mode & 0o077 != 0)
        .then(|| format!("has mode {:04o}, so others can reach it; run chmod 600", facts.st_mode & 0o7777));
    let mut text = Zeroizing::new(String::new());
    File::from(file)
        .take(limit + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("cannot be read as text: {error}"))?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > limit {
        return Err(format!("is larger than {limit} bytes"));
    }
    Ok((text, loose))
}
