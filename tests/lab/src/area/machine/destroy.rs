//! Removing guests with their volumes, and what names them elsewhere.

use std::sync::Arc;

use super::{found, locked, noun, power, prefix, root_only};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::disk::split;
use crate::state::guest::Kind;
use crate::worker::{self, Done};

pub(super) fn destroy(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    root_only(call, &["skiplock"])?;
    let guest = super::call_guest(shared, call, kind)?;
    let (vmid, purge, force) = (guest.vmid, call.flag("purge"), call.flag("force"));
    let noun = noun(kind);
    if guest.config.get("protection").and_then(serde_json::Value::as_i64) == Some(1) {
        return Err(Refusal::failed(format!("can't remove {noun} {vmid} - protection mode enabled")));
    }
    let sid = format!("{}:{vmid}", if kind == Kind::Qemu { "vm" } else { "ct" });
    let managed = shared.look(|cluster| cluster.sections.get("/cluster/ha/resources", &sid).is_some());
    if managed && !purge {
        let error = format!("unable to remove {noun} {vmid} - used in HA resources and purge parameter not set.");
        return Err(Refusal::failed(error));
    }
    if guest.running() && !force {
        return Err(Refusal::failed(match kind {
            Kind::Qemu => format!("VM {vmid} is running - destroy failed"),
            Kind::Lxc => format!("unable to destroy CT {vmid} - container is running"),
        }));
    }
    let task = format!("{}destroy", prefix(kind));
    Ok(worker::start(shared, call, &task, &vmid.to_string(), |worker| async move {
        worker.lock(vmid).await?;
        if guest.running() {
            power::stop(&worker, kind, vmid)?;
        }
        let gone = worker.change(|cluster| {
            let guest = found(cluster, vmid, kind)?.clone();
            locked(&guest)?;
            let volumes = guest.volumes();
            if let Some(base) = volumes.iter().find(|volume| cluster.based_on(volume)) {
                return Err(format!("base volume '{base}' is still in use by linked cloned"));
            }
            cluster.guests.remove(&vmid);
            for volume in &volumes {
                cluster.free(volume)?;
            }
            forget(cluster, vmid, purge.then_some(sid.as_str()));
            Ok(volumes)
        })?;
        for volume in gone {
            if let Some((storage, name)) = split(&volume)
                && !worker.look(|cluster| cluster.in_files(storage))
            {
                worker.log(format!("  Logical volume \"{name}\" successfully removed."));
            }
        }
        if purge && kind == Kind::Lxc {
            worker.log(format!("purging CT {vmid} from related configurations.."));
        }
        Ok(Done::Fine)
    }))
}

/// Rights and rules of a guest go with it; jobs and HA only when asked for.
fn forget(cluster: &mut Cluster, vmid: u32, purged: Option<&str>) {
    cluster
        .volumes
        .retain(|volume| volume.vmid != Some(vmid) || !matches!(volume.content.as_str(), "images" | "rootdir"));
    cluster.firewalls.remove(&format!("guest/{vmid}"));
    let path = format!("/vms/{vmid}");
    cluster.access.acl.retain(|grant| grant.path != path);
    if let Some(sid) = purged {
        cluster.sections.remove("/cluster/ha/resources", sid);
    }
}
