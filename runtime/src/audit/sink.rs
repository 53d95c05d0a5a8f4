//! Where lines go: standard error, or the end of a regular file that its owner alone can read.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use super::AuditError;

/// One place.
pub(super) enum Sink {
    Stderr,
    File {
        file: File,
        path: PathBuf,
        /// A line broke off: the next one begins on a line of its own.
        torn: bool,
    },
    Writer(Box<dyn Write + Send>),
}

impl Sink {
    /// Opens a file for its end. The checks are made on the opened file, so that it cannot be exchanged in between.
    pub(super) fn file(path: &Path) -> Result<Self, AuditError> {
        let fails = |problem: String| AuditError::Open { path: path.to_owned(), problem };
        let system = |what: &str, error: rustix::io::Errno| fails(format!("{what}: {}", io::Error::from(error)));
        // NONBLOCK: opening a pipe by mistake must not wait for a reader.
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| match error {
            rustix::io::Errno::LOOP => fails("is a symbolic link; name the file itself".to_owned()),
            error => system("cannot be opened", error),
        })?;
        let facts = rustix::fs::fstat(file.as_fd()).map_err(|error| system("cannot be examined", error))?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return Err(fails("is not a regular file".to_owned()));
        }
        let user = rustix::process::geteuid().as_raw();
        if facts.st_uid != user {
            return Err(fails(format!("belongs to user id {}, but the server runs as {user}", facts.st_uid)));
        }
        if facts.st_mode & 0o077 != 0 {
            return Err(fails(format!(
                "has mode {:04o}, so others can reach it; run chmod 600",
                facts.st_mode & 0o7777
            )));
        }
        Ok(Self::File { file: File::from(file), path: path.to_owned(), torn: false })
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => Some(path),
            Self::Stderr | Self::Writer(_) => None,
        }
    }

    /// Writes a whole line.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Stderr => io::stderr().lock().write_all(line),
            Self::Writer(writer) => writer.write_all(line).and_then(|()| writer.flush()),
            Self::File { file, torn, .. } => {
                if *torn {
                    file.write_all(b"\n")?;
                    *torn = false;
                }
                let mut rest = line;
                while !rest.is_empty() {
                    match file.write(rest) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(written) => {
                            rest = rest.get(written..).unwrap_or_default();
                            *torn = !rest.is_empty();
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
        }
    }

    /// Waits until what was written lasts.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        match self {
            Self::File { file, .. } => file.sync_data(),
            Self::Stderr | Self::Writer(_) => Ok(()),
        }
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stderr => formatter.write_str("standard error"),
            Self::File { path, .. } => path.display().fmt(formatter),
            Self::Writer(_) => formatter.write_str("its writer"),
        }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}
