//! Decides how a refused value is told: what it should have been, and what was found, made harmless.

use crate::untrusted;

/// Longest piece of a refused value that a message repeats, in characters.
const SHOWN: usize = 80;

/// A value that is not of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not {what}: {expected}")]
pub struct ValueError {
    what: &'static str,
    found: String,
    expected: &'static str,
}

impl ValueError {
    /// `what` with its article (`a node name`), the text that was found, and the grammar in words.
    pub fn new(what: &'static str, found: &str, expected: &'static str) -> Self {
        Self { what, found: untrusted::shown(found, SHOWN), expected }
    }

    /// What the value should have been, with its article.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The grammar in words.
    pub fn expected(&self) -> &'static str {
        self.expected
    }
}
