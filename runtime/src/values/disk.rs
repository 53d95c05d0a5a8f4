//! Decides what a drive or mount point holds: a volume that exists, one that is to be made, a path of the
//! node, or nothing.

use super::size::Gib;
use super::{StorageId, ValueError, VolumeId, text_traits};

/// The first part of a drive (`local-lvm:32`, `local:iso/x.iso,media=cdrom`) or mount point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DiskSource {
    text: Box<str>,
    held: Held,
}

/// What a [`DiskSource`] says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    /// An empty CD drive (`none`).
    Nothing,
    /// The node's own CD drive (`cdrom`).
    HostDrive,
    /// A device or folder of the node.
    Path,
    /// A volume that PVE makes on this storage.
    New {
        /// The storage.
        storage: StorageId,
        /// How large it becomes. `0` stands for the size of what is imported.
        size: Gib,
    },
    /// A volume that exists.
    Volume(VolumeId),
}

impl DiskSource {
    /// Reads it as PVE does: a number after the storage is the size of a new volume, never a name.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        Self::read(text).map(|held| Self { text: text.into(), held }).ok_or_else(|| {
            ValueError::new(
                "what a disk holds",
                text,
                "a volume id, `storage:GiB` for a new volume, an absolute path of the node, `none` or `cdrom`",
            )
        })
    }

    fn read(text: &str) -> Option<Held> {
        match text {
            "none" => return Some(Held::Nothing),
            "cdrom" => return Some(Held::HostDrive),
            _ if text.starts_with('/') => return is_path(text).then_some(Held::Path),
            _ => {}
        }
        let (storage, rest) = text.split_once(':')?;
        match Gib::parse(rest) {
            Ok(size) => Some(Held::New { storage: StorageId::parse(storage).ok()?, size }),
            Err(_) => VolumeId::parse(text).ok().map(Held::Volume),
        }
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it says.
    pub fn held(&self) -> &Held {
        &self.held
    }
}

/// Where a path leads is for who reads it to judge; here it is kept from ending the value early or climbing.
fn is_path(text: &str) -> bool {
    text.len() <= 4096
        && !text.split('/').any(|part| matches!(part, "." | ".."))
        && !text.chars().any(|character| matches!(character, ',' | ';') || character.is_control())
}

text_traits!(DiskSource);
