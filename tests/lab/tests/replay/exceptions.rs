//! The recordings whose differences are accepted.

use std::collections::BTreeMap;

/// How many there may be. Only ever lowered.
pub const MOST: usize = 7;

/// Reasons by name.
pub fn load() -> BTreeMap<String, String> {
    include_str!("../exceptions.txt")
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (name, reason) = line.split_once(": ").unwrap_or_else(|| panic!("no reason in `{line}`"));
            (name.to_owned(), reason.to_owned())
        })
        .collect()
}
