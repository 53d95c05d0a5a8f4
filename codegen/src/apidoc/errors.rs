//! Errors of reading an apidoc: every one has a place, and all of a file are reported together.

use std::fmt;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The operation (`GET /version`), or the path of the node; empty for the file as a whole.
    pub operation: String,
    /// Where inside of it, as keys joined by dots (`parameters.properties.node.format`).
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.operation, &self.path] {
            if !part.is_empty() {
                write!(f, "{part}: ")?;
            }
        }
        f.write_str(&self.problem)
    }
}

/// Everything that is wrong in one apidoc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApidocErrors {
    /// The file, as the caller named it.
    pub source_name: String,
    /// All places, in the order of the file.
    pub places: Vec<Place>,
}

impl ApidocErrors {
    /// An error that concerns the whole file.
    pub(crate) fn whole(source_name: &str, problem: impl Into<String>) -> Self {
        let place = Place { operation: String::new(), path: String::new(), problem: problem.into() };
        Self { source_name: source_name.to_owned(), places: vec![place] }
    }
}

impl fmt::Display for ApidocErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.places.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{}: {count} problem{plural}, nothing was taken from it:", self.source_name)?;
        for place in &self.places {
            write!(f, "\n  {place}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ApidocErrors {}
