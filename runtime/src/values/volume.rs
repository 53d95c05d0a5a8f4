//! Decides what names a volume: a storage, a colon, and a path inside the storage that cannot leave it. How the
//! path is read depends on the storage's type; what PVE's own types have in common is read here.

use super::{ValueError, Vmid, names::is_storage, text_traits};

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

    /// The guest whose volume or backup it is, by its name: PVE decides so too. Images for installation and templates
    /// of containers are nobody's.
    pub fn owner(&self) -> Option<Vmid> {
        match self.parts().as_slice() {
            _ if self.is_nobodys() => None,
            // A backup server has `backup/vm/101/2026-01-01T00:00:00Z`, folders have `backup/vzdump-qemu-101-….zst`.
            ["backup", "vm" | "ct", vmid, _] => Vmid::parse(vmid).ok(),
            ["backup", file] => numbered(file.strip_prefix("vzdump-")?),
            // Folders have the guest's number before the name, of a linked clone after the volume that it is based on.
            [vmid, _] if Vmid::parse(vmid).is_ok() => Vmid::parse(vmid).ok(),
            [_, base, vmid, _] if is_base(base) => Vmid::parse(vmid).ok(),
            [base, name] if is_base(base) => numbered(name),
            [name] => numbered(name),
            _ => None,
        }
    }

    /// Whether it is no guest's by its name: images for installation, templates of containers, snippets, files to
    /// import.
    pub fn is_nobodys(&self) -> bool {
        matches!(self.parts().as_slice(), ["iso" | "vztmpl" | "snippets" | "import", ..])
    }

    /// Of a linked clone: the path of the volume that it is based on.
    pub fn base(&self) -> Option<&str> {
        let base_ends_before = match self.parts().as_slice() {
            [_, base, vmid, _] if is_base(base) && Vmid::parse(vmid).is_ok() => 2,
            [base, _] if is_base(base) => 1,
            _ => return None,
        };
        let (end, _) = self.path().match_indices('/').nth(base_ends_before - 1)?;
        self.path().get(..end)
    }

    fn parts(&self) -> Vec<&str> {
        self.path().split('/').collect()
    }
}

fn is_base(name: &str) -> bool {
    name.starts_with("base-") || name.starts_with("basevol-")
}

/// The guest's number in `vm-100-disk-0`, `subvol-…`, `base-…`, `qemu-100-2026_01_01-…`.
fn numbered(name: &str) -> Option<Vmid> {
    let mut words = name.split('-');
    let known = ["vm", "subvol", "base", "basevol", "qemu", "lxc", "openvz"];
    words.next().filter(|word| known.contains(word))?;
    Vmid::parse(words.next()?).ok()
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
