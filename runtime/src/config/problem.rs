//! Decides how problems of configuration files are told: all at once, each with its place.

use std::fmt;
use std::path::{Path, PathBuf};

/// One thing that is wrong in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Where in it (`cluster pve1, key endpoint`); empty for the file as a whole.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong, in the order of the files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// The problems, at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.problems.extend(other.problems);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// Collects the problems of one file.
#[derive(Debug)]
pub(crate) struct Problems {
    file: PathBuf,
    found: Vec<Problem>,
}

impl Problems {
    pub(crate) fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), found: Vec::new() }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// A problem inside the file.
    pub(crate) fn at(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.found.push(Problem { file: self.file.clone(), place: place.into(), message: message.into() });
    }

    /// A problem of another file that this one names.
    pub(crate) fn of(&mut self, file: &Path, message: impl Into<String>) {
        self.found.push(Problem { file: file.to_owned(), place: String::new(), message: message.into() });
    }

    /// The value if nothing was found.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, ConfigError> {
        if self.found.is_empty() { Ok(value) } else { Err(ConfigError { problems: self.found }) }
    }

    /// An error whether or not the caller had something to report.
    pub(crate) fn fail<T>(mut self) -> Result<T, ConfigError> {
        if self.found.is_empty() {
            self.at("", "could not be read");
        }
        Err(ConfigError { problems: self.found })
    }
}
