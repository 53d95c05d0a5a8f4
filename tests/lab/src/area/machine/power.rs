//! Starting and stopping guests, and what else a switch does. Reasons to fail that show only in the task stand in its
//! exit status.

use std::sync::Arc;
use std::time::Duration;

use super::apply::{self, Asked};
use super::{found, locked, net, noun, prefix, root_only};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::clock;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind};
use crate::state::property::Property;
use crate::worker::{self, Done, End, Worker};

const MOMENT: Duration = Duration::from_millis(200);

pub(super) fn power(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind, verb: &str) -> Outcome {
    let vmid = super::vmid(call);
    root_only(call, &["skiplock"])?;
    if let Some(managed) = through_ha(shared, call, kind, verb) {
        return managed;
    }
    let guest = shared.look(|cluster| call.guest(cluster, kind).cloned());
    let running = guest.as_ref().is_ok_and(Guest::running);
    let not_running = || Refusal::failed(format!("{} {vmid} not running", noun(kind)));
    // A VM that is missing shows in the task only, where it is started or stopped.
    if !(kind == Kind::Qemu && matches!(verb, "start" | "stop")) {
        guest?;
    }
    match (kind, verb) {
        (Kind::Lxc, "start") if running => return Err(Refusal::failed(format!("CT {vmid} already running"))),
        (_, "start") | (Kind::Qemu, "stop") => {}
        _ if !running => return Err(not_running()),
        _ => {}
    }
    let task = match verb {
        "suspend" if kind == Kind::Qemu && !call.flag("todisk") => "qmpause".to_owned(),
        verb => format!("{}{verb}", prefix(kind)),
    };
    let overrule = call.flag("overrule-shutdown");
    let verb = verb.to_owned();
    let to_disk = call.flag("todisk");
    Ok(worker::start(shared, call, &task, &vmid.to_string(), |worker| async move {
        if overrule {
            overrule_shutdowns(&worker, kind, vmid).await;
        }
        worker.lock(vmid).await?;
        worker.step(MOMENT).await;
        match verb.as_str() {
            "start" => begin(&worker, kind, vmid),
            "stop" => stop(&worker, kind, vmid),
            verb => switch(&worker, kind, vmid, verb, to_disk),
        }
    }))
}

/// A guest that HA manages is started and stopped by it: the task only records what is wanted.
pub(super) fn through_ha(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind, verb: &str) -> Option<Outcome> {
    let vmid = super::vmid(call);
    let (task, state) = match verb {
        "start" => ("hastart", "started"),
        "stop" | "shutdown" => ("hastop", "stopped"),
        _ => return None,
    };
    let sid = format!("{}:{vmid}", if kind == Kind::Qemu { "vm" } else { "ct" });
    shared.look(|cluster| cluster.sections.get("/cluster/ha/resources", &sid).is_some()).then(|| {
        Ok(worker::start(shared, call, task, &vmid.to_string(), |worker| async move {
            let noun = noun(kind);
            worker.log(format!("Requesting HA {} for {noun} {vmid}", task.trim_start_matches("ha")));
            if worker.look(|cluster| cluster.host.missing.contains("syslog")) {
                worker.log(
                    "Unable to open syslog: Os { code: 2, kind: NotFound, message: \"No such file or directory\" }",
                );
            }
            worker.change(|cluster| {
                if let Some(entry) = cluster.sections.get_mut("/cluster/ha/resources", &sid) {
                    entry.insert("state".to_owned(), state.into());
                }
                if cluster.host.ha
                    && let Some(guest) = cluster.guests.get_mut(&vmid)
                {
                    guest.started = (state == "started").then(|| guest.started.unwrap_or_else(clock::now));
                }
            });
            Ok(Done::Fine)
        }))
    })
}

/// Ends the shutdowns of a guest that are under way, so that stopping it need not wait for them.
async fn overrule_shutdowns(worker: &Worker, kind: Kind, vmid: u32) {
    let task = format!("{}shutdown", prefix(kind));
    let id = vmid.to_string();
    let tasks: Vec<String> = worker.look(|cluster| {
        let running = cluster.tasks.all.iter().filter(|other| other.ended.is_none());
        running.filter(|other| other.kind == task && other.id == id).map(|other| other.upid.clone()).collect()
    });
    let ended: Vec<String> = tasks.into_iter().filter(|upid| worker.interrupt(upid)).collect();
    if !ended.is_empty() {
        worker.log(format!("overruled {task} tasks: {}", ended.join(", ")));
        let over =
            |upid: &String| worker.look(|cluster| cluster.tasks.get(upid).is_none_or(|task| task.ended.is_some()));
        while !ended.iter().all(over) {
            worker.step(Duration::from_millis(5)).await;
        }
    }
}

/// Starts a guest inside a task.
pub(super) fn begin(worker: &Worker, kind: Kind, vmid: u32) -> End {
    let mut log = Vec::new();
    let end = worker.change(|cluster| turn_on(cluster, kind, vmid, &mut log));
    for line in log {
        worker.log(line);
    }
    end
}

fn turn_on(cluster: &mut Cluster, kind: Kind, vmid: u32, log: &mut Vec<String>) -> End {
    let mut guest = found(cluster, vmid, kind)?.clone();
    let host = cluster.host.clone();
    if guest.template() {
        let what = if kind == Kind::Qemu { "vm" } else { "CT" };
        return Err(format!("you can't start a {what} if it's a template"));
    }
    locked(&guest)?;
    if guest.running() {
        return Err(format!("{} {vmid} already running", noun(kind)));
    }
    apply::apply(cluster, &mut guest, &Asked::default())?;
    let mut done = Done::Fine;
    if kind == Kind::Qemu {
        if !host.kvm && guest.value("kvm").as_deref() != Some("0") {
            return Err("KVM virtualisation configured, but not available. Either disable in VM configuration or enable in BIOS.".to_owned());
        }
        if guest.value("bios").as_deref() == Some("ovmf") && !guest.config.contains_key("efidisk0") {
            if !host.own_qemu {
                return Err("EFI base image '/usr/share/pve-edk2-firmware//OVMF_CODE.fd' not found".to_owned());
            }
            log.push("WARN: no efidisk configured! Using temporary efivars disk.".to_owned());
            done = Done::Warnings(1);
        }
    }
    for (key, value) in &guest.config {
        if key.starts_with("net")
            && let Some(bridge) = value.as_str().and_then(net::bridge)
            && !cluster.has_bridge(&bridge)
        {
            log.push(format!("bridge '{bridge}' does not exist"));
            let error = if kind == Kind::Qemu {
                "start failed: QEMU exited with code 1"
            } else {
                "startup for container '{}' failed"
            };
            return Err(error.replace("{}", &vmid.to_string()));
        }
    }
    for (_, volume, _) in guest.disks() {
        if let Some((storage, _)) = volume.split_once(':')
            && let Some(entry) = cluster.storages.get(storage)
        {
            if let Some(broken) = &entry.broken {
                return Err(broken.clone());
            }
            if !entry.enabled() {
                return Err(format!("storage '{storage}' is disabled"));
            }
        }
    }
    guest.started = Some(clock::now());
    guest.paused = false;
    cluster.guests.insert(vmid, guest);
    Ok(done)
}

/// Pulls the plug.
pub(super) fn stop(worker: &Worker, kind: Kind, vmid: u32) -> End {
    worker.change(|cluster| {
        let guest = found(cluster, vmid, kind)?;
        locked(guest)?;
        turn_off(guest);
        Ok(Done::Fine)
    })
}

/// What is left of a guest that does not run.
pub(super) fn turn_off(guest: &mut Guest) {
    guest.started = None;
    guest.paused = false;
    guest.inside.processes.clear();
    guest.inside.frozen = false;
}

fn switch(worker: &Worker, kind: Kind, vmid: u32, verb: &str, to_disk: bool) -> End {
    worker.change(|cluster| {
        let guest = found(cluster, vmid, kind)?;
        locked(guest)?;
        if !guest.running() {
            return Err(format!("{} {vmid} not running", noun(kind)));
        }
        match verb {
            "suspend" if to_disk => turn_off(guest),
            "suspend" => guest.paused = true,
            "resume" => guest.paused = false,
            _ => {
                guest.inside.processes.clear();
                guest.paused = false;
            }
        }
        Ok(Done::Fine)
    })
}

/// Whether a VM's agent is switched on in its configuration.
pub(in crate::area) fn agent_enabled(guest: &Guest) -> bool {
    let text = guest.value("agent").unwrap_or_default();
    let enabled = Property::read(&text, &["enabled"]).first;
    matches!(enabled.to_ascii_lowercase().as_str(), "1" | "on" | "yes" | "true")
}

/// Starts a guest that was just made, as a task of its own whose end nobody waits for.
pub(super) fn autostart(worker: &Worker, kind: Kind, vmid: u32, node: &str) {
    worker.change(|cluster| {
        let owner = cluster.tasks.get(&worker.upid).map(|task| (task.user.clone(), task.token.clone()));
        let Some((user, token)) = owner else { return };
        let kind_of_task = format!("{}start", prefix(kind));
        let upid = cluster.tasks.begin(node, &kind_of_task, &vmid.to_string(), (&user, token.as_deref()), clock::now());
        let mut log = Vec::new();
        let end = turn_on(cluster, kind, vmid, &mut log);
        for line in log {
            cluster.tasks.log(&upid, line);
        }
        let status = end.map_or_else(|error| error, |_| "OK".to_owned());
        cluster.tasks.end(&upid, clock::now(), &status);
    });
}
