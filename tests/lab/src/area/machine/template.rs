//! Making a template of a guest: its disks become bases that linked clones build on.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{found, locked, unchanged};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::disk::{FILE, is_drive, is_mount, split};
use crate::state::guest::Kind;
use crate::state::property::Property;
use crate::worker::{self, Done};

pub(super) fn template(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let guest = super::call_guest(shared, call, kind)?;
    let vmid = guest.vmid;
    unchanged(call, &guest)?;
    let noun = if kind == Kind::Qemu { "VM" } else { "CT" };
    locked(&guest).map_err(Refusal::failed)?;
    if !guest.snapshots.is_empty() {
        let error = format!("unable to create template, because {noun} contains snapshots");
        return Err(Refusal::failed(error));
    }
    if guest.template() {
        return Err(Refusal::failed("you can't convert a template to a template"));
    }
    if guest.running() {
        return Err(Refusal::failed(format!("you can't convert a {noun} to template if {noun} is running")));
    }
    if let Some(disk) = call.given("disk")
        && !guest.config.contains_key(disk)
    {
        return Err(Refusal::failed(format!("disk '{disk}' does not exist")));
    }
    let only = call.given("disk").map(str::to_owned);
    let task = if kind == Kind::Qemu { "qmtemplate" } else { "vztemplate" };
    let reply = worker::start(shared, call, task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        worker.change(|cluster| freeze(cluster, kind, vmid, only.as_deref()))?;
        Ok(Done::Fine)
    });
    // A container's template is made by a task as well, but the answer does not name it.
    Ok(if kind == Kind::Qemu { reply } else { Value::Null.into() })
}

fn freeze(cluster: &mut Cluster, kind: Kind, vmid: u32, only: Option<&str>) -> Result<(), String> {
    let mut guest = found(cluster, vmid, kind)?.clone();
    for (key, value) in &mut guest.config {
        let Some(text) = value.as_str() else { continue };
        if !(is_drive(key) || is_mount(key)) || only.is_some_and(|only| only != key) || text.contains("media=cdrom") {
            continue;
        }
        let mut drive = Property::read(text, &FILE);
        let based = base(&drive.first);
        for volume in cluster.volumes.iter_mut().filter(|volume| volume.id() == drive.first) {
            if let Some((_, name)) = split(&based) {
                name.clone_into(&mut volume.name);
            }
        }
        drive.first = based;
        *value = json!(drive.write());
    }
    guest.config.insert("template".to_owned(), json!(1));
    cluster.guests.insert(vmid, guest);
    Ok(())
}

/// The name of a volume once it is a base.
fn base(volume: &str) -> String {
    let Some((storage, name)) = split(volume) else { return volume.to_owned() };
    let (folder, last) = name.rsplit_once('/').map_or(("", name), |(folder, last)| (folder, last));
    let last = match (last.strip_prefix("vm-"), last.strip_prefix("subvol-")) {
        (Some(rest), _) => format!("base-{rest}"),
        (_, Some(rest)) => format!("basevol-{rest}"),
        _ => last.to_owned(),
    };
    // A linked clone that becomes a template stands on its own feet.
    let folder = folder.rsplit('/').next().unwrap_or_default();
    let folder = if folder.contains("base-") { "" } else { folder };
    if folder.is_empty() { format!("{storage}:{last}") } else { format!("{storage}:{folder}/{last}") }
}
