//! Volumes of guests: which there are, new ones, sizes as PVE writes them.

use crate::clock;

use super::Cluster;
use super::guest::{Guest, bytes};
use super::property::Property;
use super::storage::Volume;

/// Names of a drive's first value.
pub(crate) const FILE: [&str; 2] = ["file", "volume"];

/// Whether an option is a drive of a VM, unused ones aside.
pub(crate) fn is_drive(key: &str) -> bool {
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() < key.len() && matches!(stem, "ide" | "sata" | "scsi" | "virtio" | "efidisk" | "tpmstate")
}

/// Whether an option is the root or a mount point of a container.
pub(crate) fn is_mount(key: &str) -> bool {
    key == "rootfs"
        || key.strip_prefix("mp").is_some_and(|index| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()))
}

/// A size as PVE writes it in configurations.
pub(crate) fn size(bytes: u64) -> String {
    let mut size = bytes.div_ceil(512) * 512;
    let mut unit = "";
    for next in ["K", "M", "G", "T"] {
        if size == 0 || !size.is_multiple_of(1024) {
            break;
        }
        size /= 1024;
        unit = next;
    }
    format!("{size}{unit}")
}

/// Reads a size such as `3G`, `0.5G` or `512`.
pub(crate) fn read_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.chars().last()? {
        'K' => (text.strip_suffix('K')?, 10),
        'M' => (text.strip_suffix('M')?, 20),
        'G' => (text.strip_suffix('G')?, 30),
        'T' => (text.strip_suffix('T')?, 40),
        _ => (text, 0),
    };
    let number: f64 = digits.parse().ok()?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "sizes of disks are far below"
    )]
    let size = (number * (1_u64 << shift) as f64) as u64;
    Some(size)
}

/// The parts of a volume id.
pub(crate) fn split(volume: &str) -> Option<(&str, &str)> {
    volume.split_once(':').filter(|(storage, name)| !storage.is_empty() && !name.is_empty() && !volume.starts_with('/'))
}

/// The format that a volume's name says it has.
pub(crate) fn format_of(name: &str) -> &str {
    let end = name.rsplit('.').next().unwrap_or_default();
    if matches!(end, "raw" | "qcow2" | "vmdk" | "subvol") { end } else { "raw" }
}

impl Guest {
    /// Every volume that the configuration names, snapshots and what is pending included.
    pub(crate) fn volumes(&self) -> Vec<String> {
        let configs = self.snapshots.iter().map(|snapshot| &snapshot.config).chain([&self.config, &self.pending]);
        let mut all = Vec::new();
        for (key, value) in configs.flatten() {
            if !(is_drive(key) || is_mount(key) || key.starts_with("unused") || key == "vmstate") {
                continue;
            }
            let property = Property::read(value.as_str().unwrap_or_default(), &FILE);
            if property.get("media") != Some("cdrom") && split(&property.first).is_some() {
                all.push(property.first);
            }
        }
        all.sort();
        all.dedup();
        all
    }
}

impl Cluster {
    /// The size of a volume, if it is there.
    pub(crate) fn volume_size(&self, id: &str) -> Option<u64> {
        let known = self.volumes.iter().find(|volume| volume.id() == id).map(|volume| volume.size);
        known.or_else(|| {
            self.guests.values().find_map(|guest| {
                let mut disks = guest.disks();
                disks.find(|(_, volume, _)| *volume == id).map(|(_, _, size)| size)
            })
        })
    }

    fn volume_known(&self, storage: &str, stem: &str) -> bool {
        let same = |id: &str| {
            split(id).is_some_and(|(on, name)| {
                let last = name.rsplit('/').next().unwrap_or_default();
                on == storage && last.split('.').next() == Some(stem)
            })
        };
        self.volumes.iter().any(|volume| same(&volume.id()))
            || self.guests.values().any(|guest| guest.volumes().iter().any(|id| same(id)))
    }

    /// Whether a storage keeps volumes as files.
    pub(crate) fn in_files(&self, storage: &str) -> bool {
        let kind = self.storages.get(storage).map(|storage| storage.text("type")).unwrap_or_default();
        matches!(kind, "dir" | "nfs" | "cifs" | "cephfs" | "btrfs")
    }

    /// Where a volume of a file storage is, as task logs show it.
    pub(crate) fn path_of(&self, id: &str) -> String {
        let (storage, name) = split(id).unwrap_or(("", id));
        let entry = self.storages.get(storage);
        let path = entry.map(|entry| entry.text("path")).unwrap_or_default();
        if !path.is_empty() {
            return format!("{path}/images/{name}");
        }
        if self.in_files(storage) {
            return format!("/mnt/pve/{storage}/images/{name}");
        }
        let group = entry.map(|entry| entry.text("vgname")).filter(|group| !group.is_empty()).unwrap_or("pve");
        format!("/dev/{group}/{name}")
    }

    /// Makes a volume. Answers with its id and, for files, what is logged on the way.
    pub(crate) fn allocate(
        &mut self,
        (storage, vmid): (&str, u32),
        size: u64,
        format: &str,
        stem: &str,
    ) -> Result<(String, Option<String>), String> {
        let entry = self.storages.get(storage).ok_or_else(|| format!("storage '{storage}' does not exist"))?;
        if !entry.enabled() {
            return Err(format!("storage '{storage}' is disabled"));
        }
        if let Some(broken) = &entry.broken {
            return Err(broken.clone());
        }
        let (total, files) = (entry.total, self.in_files(storage));
        let number = (0..10_000).find(|number| !self.volume_known(storage, &format!("{stem}-{vmid}-disk-{number}")));
        let name = format!("{stem}-{vmid}-disk-{}", number.unwrap_or_default());
        let name = if files { format!("{vmid}/{name}.{format}") } else { name };
        let id = format!("{storage}:{name}");
        let path = self.path_of(&id);
        let log = match format {
            "raw" if files => Some(format!("Formatting '{path}', fmt=raw size={size} preallocation=off")),
            "qcow2" if files => Some(format!(
                "Formatting '{path}', fmt=qcow2 cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib size={size} lazy_refcounts=off refcount_bits=16"
            )),
            "vmdk" if files => Some(format!(
                "Formatting '{path}', fmt=vmdk size={size} compat6=off hwversion=undefined subformat=monolithicSparse"
            )),
            _ => None,
        };
        if size > total || self.full.contains(storage) {
            return Err(format!(
                "unable to create image: qemu-img: {path}: Could not write zeros for preallocation: No space left on device"
            ));
        }
        self.volumes.push(Volume {
            storage: storage.to_owned(),
            name,
            content: if matches!(format, "subvol") { "rootdir" } else { "images" }.to_owned(),
            format: format.to_owned(),
            size,
            used: files.then_some(0),
            vmid: Some(vmid),
            subtype: None,
            ctime: clock::now(),
            notes: None,
            protected: false,
        });
        Ok((id, log))
    }

    /// The linked clone that still needs a volume, if there is one.
    pub(crate) fn based_on(&self, id: &str) -> bool {
        let Some((storage, name)) = split(id) else { return false };
        let prefix = format!("{storage}:{name}/");
        self.guests.values().any(|guest| guest.volumes().iter().any(|volume| volume.starts_with(&prefix)))
    }

    /// Removes a volume, unless a linked clone needs it.
    pub(crate) fn free(&mut self, id: &str) -> Result<(), String> {
        if self.based_on(id) {
            return Err(format!("base volume '{id}' is still in use by linked cloned"));
        }
        self.volumes.retain(|volume| volume.id() != id);
        Ok(())
    }
}

/// Bytes that a size in a configuration stands for.
pub(crate) fn sized(property: &Property) -> u64 {
    property.get("size").map_or(0, bytes)
}
