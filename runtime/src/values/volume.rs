//! Decides what names a volume: a storage, a colon, and a path inside the storage that cannot leave it.

use super::{ValueError, names::is_storage, text_traits};

/// A volume on a storage (`local-lvm:vm-100-disk-0`, `local:iso/debian.iso`, `pbs:backup/vm/100/2026-01-01T00:00:00Z`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId {
    text: Box<str>,
    storage_end: usize,
}

impl VolumeId {
    /// Reads `storage:path`.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        match text.split_once(':') {
            Some((storage, path)) if text.len() <= 512 && is_storage(storage) && is_path(path) => {
                Ok(Self { text: text.into(), storage_end: storage.len() })
            }
            _ => Err(ValueError::new(
                "a volume id",
                text,
                "`storage:path` as a storage lists it, without empty, `.` or `..` parts, `\\`, `%` and control characters",
            )),
        }
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The storage's name.
    pub fn storage(&self) -> &str {
        self.text.get(..self.storage_end).unwrap_or_default()
    }

    /// What follows the first colon.
    pub fn path(&self) -> &str {
        self.text.get(self.storage_end + 1..).unwrap_or_default()
    }
}

/// Percent signs are refused because a proxying node could decode the path a second time.
fn is_path(path: &str) -> bool {
    path.split('/').all(|part| !part.is_empty() && !matches!(part, "." | ".."))
        && !path.chars().any(|character| {
            matches!(character, '\\' | '%' | '?' | '#' | ',' | ';')
                || character.is_control()
                || (character.is_whitespace() && character != ' ')
        })
        && !path.starts_with(' ')
        && !path.ends_with(' ')
}

text_traits!(VolumeId);
