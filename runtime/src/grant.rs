//! Decides what a token reaches: which tools and which clusters.
//!
//! Both are plain lists. What a list cannot express yet (guests, nodes, storages, …) does not load at all
//! (see `tokens`), so that a narrow token is never taken for a wide one.

use std::collections::BTreeSet;

/// What a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Tools and toolsets.
    pub tools: Scope,
    /// Clusters.
    pub clusters: Scope,
}

impl Grant {
    /// Everything that reads: what a caller without a token has on stdio.
    pub fn all() -> Self {
        Self { tools: Scope::All, clusters: Scope::All }
    }
}

/// A list of names, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `*`. For tools it covers those that change nothing.
    All,
    /// These, at least one.
    Names(BTreeSet<String>),
}

impl Scope {
    /// Most names in one list.
    const MOST: usize = 256;
    /// Longest name, in bytes.
    const LONGEST: usize = 128;

    /// Reads a list from a file: names, or `*` alone.
    pub fn from_names(names: Vec<String>) -> Result<Self, String> {
        if names.is_empty() {
            return Err("has to name something, or `*` for all".to_owned());
        }
        if names.iter().any(|name| name == "*") {
            return if names.len() == 1 {
                Ok(Self::All)
            } else {
                Err("`*` stands for all, so it stands alone".to_owned())
            };
        }
        if names.len() > Self::MOST {
            return Err(format!("holds more than {} names", Self::MOST));
        }
        if let Some(name) = names.iter().find(|name| {
            name.len() > Self::LONGEST
                || name.contains('*')
                || name.chars().any(|c| c.is_control() || c.is_whitespace())
        }) {
            return Err(format!(
                "`{}` is not a name; write whole names, or `*` alone for all",
                crate::untrusted::shown(name, 80)
            ));
        }
        Ok(Self::Names(names.into_iter().collect()))
    }

    /// Whether the name is covered.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.contains(name),
        }
    }

    /// Whether it is `*`.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// The names, none for `*`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::All => None,
            Self::Names(names) => Some(names),
        };
        names.into_iter().flatten().map(String::as_str)
    }
}
