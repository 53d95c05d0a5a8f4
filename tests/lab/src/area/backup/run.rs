//! A run of backups as a task: guest after guest, each with the lock, with what its log says.

use std::time::Duration;

use super::super::storage::prune::marks;
use super::{Order, archive};
use crate::calendar::parts;
use crate::clock;
use crate::state::Cluster;
use crate::state::disk;
use crate::state::guest::{Guest, Kind};
use crate::worker::{Done, End, Worker};

/// Figures of progress that a log shows.
const STEPS: [u32; 4] = [0, 35, 70, 100];

fn stamp() -> String {
    let (year, month, day, hour, minute, second) = parts(clock::now());
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Why nothing can be backed up to a storage, if it cannot.
fn unusable(cluster: &Cluster, name: &str) -> Option<String> {
    let Some(storage) = cluster.storages.get(name) else {
        return Some(format!("could not get storage information for '{name}': storage '{name}' does not exist"));
    };
    if !storage.enabled() {
        return Some(format!("could not get storage information for '{name}': storage '{name}' is disabled"));
    }
    if let Some(broken) = &storage.broken {
        return Some(format!("could not activate storage '{name}': {broken}"));
    }
    let holds = storage.text("content").split(',').any(|content| content == "backup");
    (!holds).then(|| {
        format!("could not get storage information for '{name}': can't use storage '{name}' for backups - wrong content type")
    })
}

pub(super) async fn all(worker: Worker, order: Order) -> End {
    if let Some(why) = worker.look(|cluster| unusable(cluster, &order.storage)) {
        return Err(why);
    }
    if worker.look(|cluster| cluster.host.missing.contains("sendmail")) {
        return Err("unable to find command 'sendmail'".to_owned());
    }
    worker.log(format!("INFO: starting new backup job: {}", order.command));
    let mut failed = false;
    for vmid in &order.vmids {
        let began = clock::now();
        let kind = worker.look(|cluster| cluster.guests.get(vmid).map(|guest| guest.kind.as_str()));
        let outcome = match kind {
            Some(kind) => {
                worker.log(format!("INFO: Starting Backup of VM {vmid} ({kind})"));
                worker.log(format!("INFO: Backup started at {}", stamp()));
                one(&worker, &order, *vmid).await
            }
            None => Err(format!("unable to find VM '{vmid}'")),
        };
        let took = clock::now() - began;
        match outcome {
            Ok(()) => {
                let took = format!("{:02}:{:02}:{:02}", took / 3600, took / 60 % 60, took % 60);
                worker.log(format!("INFO: Finished Backup of VM {vmid} ({took})"));
                worker.log(format!("INFO: Backup finished at {}", stamp()));
            }
            Err(why) => {
                failed = true;
                worker.log(format!("ERROR: Backup of VM {vmid} failed - {why}"));
                worker.log(format!("INFO: Failed at {}", stamp()));
            }
        }
    }
    let how = if failed { "with errors" } else { "successfully" };
    worker.log(format!("INFO: Backup job finished {how}"));
    for target in worker.look(targets) {
        worker.log(format!("INFO: notified via target `{target}`"));
        worker.log(format!("notified via target `{target}`"));
    }
    if failed { Err("job errors".to_owned()) } else { Ok(Done::Fine) }
}

/// Whom matchers tell.
fn targets(cluster: &Cluster) -> Vec<String> {
    let matchers = cluster.sections.entries("/cluster/notifications/matchers").into_iter().flatten();
    let mut all: Vec<String> = matchers
        .filter(|(_, matcher)| matcher.get("disable").and_then(serde_json::Value::as_i64) != Some(1))
        .filter_map(|(_, matcher)| matcher.get("target")?.as_array())
        .flatten()
        .filter_map(|target| target.as_str().map(str::to_owned))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// One guest. It is marked as being backed up for as long as this takes.
async fn one(worker: &Worker, order: &Order, vmid: u32) -> Result<(), String> {
    worker.lock(vmid).await?;
    let guest = worker.change(|cluster| {
        let guest = cluster.guests.get_mut(&vmid).ok_or_else(|| format!("unable to find VM '{vmid}'"))?;
        if let Some(lock) = &guest.lock {
            let what = if guest.kind == Kind::Qemu { "VM" } else { "CT" };
            return Err(format!("{what} is locked ({lock})"));
        }
        guest.lock = Some("backup".to_owned());
        Ok(guest.clone())
    })?;
    let marked = Marked { worker, vmid };
    let info = |line: String| worker.log(format!("INFO: {line}"));
    info(format!("status = {}", guest.status()));
    let mode = if guest.running() { order.mode.as_str() } else { "stop" };
    info(format!("backup mode: {mode}"));
    info("ionice priority: 7".to_owned());
    if guest.kind == Kind::Qemu {
        info(format!("VM Name: {}", guest.name()));
    } else {
        info(format!("CT Name: {}", guest.name()));
    }
    included(&guest, &info);
    let volume = worker.look(|cluster| archive::of(cluster, order, &guest, clock::now()));
    let folder =
        worker.look(|cluster| cluster.storages.get(&order.storage).map(|storage| storage.text("path").to_owned()));
    let file = volume.name.strip_prefix("backup/").unwrap_or(&volume.name);
    let place = folder
        .filter(|folder| !folder.is_empty())
        .map_or_else(|| volume.id(), |folder| format!("{folder}/dump/{file}"));
    info(format!("creating vzdump archive '{place}'"));
    if guest.kind == Kind::Qemu {
        machine(worker, &guest, &info).await?;
    } else {
        worker.step(Duration::from_secs(1)).await;
        let written = volume.size;
        #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
        let mebibytes = written as f64 / 1_048_576.0;
        info(format!("Total bytes written: {written} ({mebibytes:.1}MiB, 500MiB/s)"));
    }
    if worker.look(|cluster| cluster.full.contains(&order.storage)) {
        return Err(format!("writing to '{place}' failed: No space left on device"));
    }
    info(format!("archive file size: {}MB", volume.size >> 20));
    if volume.notes.is_some() {
        info("adding notes to backup".to_owned());
    }
    if volume.protected {
        info("marking backup as protected".to_owned());
    }
    worker.change(|cluster| {
        cluster.archives.insert(volume.id(), guest.config.clone());
        cluster.volumes.push(volume);
    });
    if let Some(keep) = &order.prune {
        info(format!("prune older backups with retention: {keep}"));
        let gone = worker.change(|cluster| prune(cluster, order, vmid, keep));
        for id in &gone {
            info(format!("removing backup '{id}'"));
        }
        info(format!("pruned {} backup(s) not covered by keep-retention policy", gone.len()));
    }
    drop(marked);
    Ok(())
}

/// Takes the mark off again, however the backup ends.
struct Marked<'a> {
    worker: &'a Worker,
    vmid: u32,
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.worker.change(|cluster| {
            if let Some(guest) = cluster.guests.get_mut(&self.vmid) {
                guest.lock = None;
            }
        });
    }
}

fn included(guest: &Guest, info: &impl Fn(String)) {
    for (key, volume, size) in guest.disks() {
        let text = guest.text(key).unwrap_or_default();
        let option = |name: &str| text.split(',').find_map(|part| part.strip_prefix(name));
        match guest.kind {
            Kind::Qemu if option("backup=") == Some("0") => {
                info(format!("exclude disk '{key}' '{volume}' (backup=no)"));
            }
            Kind::Qemu => info(format!("include disk '{key}' '{volume}' {}", disk::size(size))),
            Kind::Lxc => {
                let path = option("mp=").unwrap_or("/");
                let taken = key == "rootfs" || option("backup=") == Some("1");
                let (verb, why) =
                    if taken { ("including", "in backup") } else { ("excluding", "from backup (disabled)") };
                info(format!("{verb} mount point {key} ('{path}') {why}"));
            }
        }
    }
}

/// The part that QEMU does. One without PVE's additions cannot.
async fn machine(worker: &Worker, guest: &Guest, info: &impl Fn(String)) -> Result<(), String> {
    if !guest.running() {
        info("starting kvm to execute backup task".to_owned());
    }
    if !worker.look(|cluster| cluster.host.own_qemu) {
        return Err(format!("VM {} qmp command 'backup' failed - The command backup has not been found", guest.vmid));
    }
    let total: u64 = guest.disks().map(|(_, _, size)| size).sum();
    info(format!("started backup task '00000000-0000-4000-8000-{:012}'", guest.vmid));
    for percent in STEPS {
        worker.step(Duration::from_secs(1)).await;
        let done = total / 100 * u64::from(percent);
        info(format!(
            "{percent:3}% ({} of {}) in 1s, read: 100.0 MiB/s, write: 80.0 MiB/s",
            disk::size(done),
            disk::size(total)
        ));
    }
    info(format!("transferred {} in 4 seconds", disk::size(total)));
    if !guest.running() {
        info("stopping kvm after backup task".to_owned());
    }
    Ok(())
}

fn prune(cluster: &mut Cluster, order: &Order, vmid: u32, keep: &str) -> Vec<String> {
    let backups = cluster
        .volumes
        .iter()
        .filter(|volume| volume.storage == order.storage && volume.content == "backup" && volume.vmid == Some(vmid));
    let marked = marks(backups.cloned().collect(), keep);
    let gone: Vec<String> =
        marked.into_iter().filter(|mark| mark.mark == "remove").map(|mark| mark.volume.id()).collect();
    cluster.volumes.retain(|volume| !gone.contains(&volume.id()));
    gone
}
