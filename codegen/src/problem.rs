//! Errors of the generator: every one has a place, and all of a run are reported together.

use std::fmt;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// File and entry, or operation and parameter.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Everything that was wrong in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Notes one.
    pub fn push(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem { place: place.into(), message: message.into() });
    }

    /// Notes all of another list.
    pub fn append(&mut self, other: Problems) {
        self.0.extend(other.0);
    }

    /// Keeps the value, or notes why there is none.
    pub fn keep<T>(&mut self, result: Result<T, Problems>) -> Option<T> {
        result.map_err(|problems| self.append(problems)).ok()
    }

    /// `value` if nothing was noted.
    pub fn or<T>(self, value: T) -> Result<T, Problems> {
        if self.0.is_empty() { Ok(value) } else { Err(self.sorted()) }
    }

    /// The problems, by place.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    fn sorted(mut self) -> Self {
        self.0.sort();
        self.0.dedup();
        self
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} problem{} in schema/:", self.0.len(), if self.0.len() == 1 { "" } else { "s" })?;
        for problem in &self.0 {
            writeln!(f, "  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
