//! What a backup holds: the guest's configuration, and the name, size and form of its archive.

use serde_json::{Map, Value, json};

use super::super::{Call, Outcome};
use super::Order;
use crate::answer::Refusal;
use crate::calendar::parts;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind};
use crate::state::storage::Volume;

/// The configuration inside a backup: as it was then, in the form of its file.
pub(super) fn extract(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let id = call.text("volume");
    let missing = || Refusal::failed(format!("volume '{id}' does not exist"));
    let volume = cluster.volumes.iter().find(|volume| volume.id() == id && volume.content == "backup");
    let vmid = volume.ok_or_else(missing)?.vmid.unwrap_or_default();
    let path = format!("/vms/{vmid}");
    if !call.may(cluster, &path, &["VM.Backup"]) {
        return Err(Refusal::forbidden(&format!("{path}, VM.Backup")));
    }
    Ok(json!(file(cluster.archives.get(id).ok_or_else(missing)?)).into())
}

/// A configuration as its file has it.
fn file(config: &Map<String, Value>) -> String {
    let mut lines: Vec<String> = config
        .iter()
        .filter(|(key, _)| *key != "description")
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}: {}\n", text.replace('\n', "%0A")),
            other => format!("{key}: {other}\n"),
        })
        .collect();
    lines.sort();
    let notes = config.get("description").and_then(Value::as_str).unwrap_or_default();
    let notes: Vec<String> =
        notes.lines().map(|line| format!("#{}\n", line.replace('%', "%25").replace(':', "%3A"))).collect();
    notes.concat() + &lines.concat()
}

/// The archive that a backup of a guest makes, as a volume.
pub(super) fn of(cluster: &Cluster, order: &Order, guest: &Guest, now: i64) -> Volume {
    let (year, month, day, hour, minute, second) = parts(now);
    let pbs = cluster.storages.get(&order.storage).is_some_and(|storage| storage.text("type") == "pbs");
    let kind = if guest.kind == Kind::Qemu { "qemu" } else { "lxc" };
    let inner = if guest.kind == Kind::Qemu { "vma" } else { "tar" };
    let (name, format) = if pbs {
        let short = if guest.kind == Kind::Qemu { "vm" } else { "ct" };
        let time = format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
        (format!("backup/{short}/{}/{time}", guest.vmid), format!("pbs-{short}"))
    } else {
        let time = format!("{year}_{month:02}_{day:02}-{hour:02}_{minute:02}_{second:02}");
        let format = format!("{inner}{}", order.ending);
        (format!("backup/vzdump-{kind}-{}-{time}.{format}", guest.vmid), format)
    };
    // As large as the last one, or a tenth of the disks.
    let before =
        cluster.volumes.iter().rev().find(|volume| volume.content == "backup" && volume.vmid == Some(guest.vmid));
    let disks: u64 = guest.disks().map(|(_, _, size)| size).sum();
    let size = before.map_or_else(|| (disks / 10).max(2 << 20), |volume| volume.size);
    let size = if order.ending.is_empty() { size } else { size / 2 };
    Volume {
        storage: order.storage.clone(),
        name,
        content: "backup".to_owned(),
        format,
        size,
        used: None,
        vmid: Some(guest.vmid),
        subtype: Some(kind.to_owned()),
        ctime: now,
        notes: order.notes.as_ref().map(|template| {
            template
                .replace("{{guestname}}", &guest.name())
                .replace("{{vmid}}", &guest.vmid.to_string())
                .replace("{{node}}", &order.node)
                .replace("{{cluster}}", &cluster.name)
                .replace("\\n", "\n")
        }),
        protected: order.protected,
    }
}
