//! What changes the cluster, area by area, and a task that is always under way.

use std::sync::Arc;
use std::time::Duration;

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::clock;
use crate::gate::Shared;

/// Answers a call that is not a read. It has passed the schema; what is not simulated says so.
pub(super) fn answer(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    super::machine::write(shared, call).unwrap_or_else(|| Err(Refusal::failed("the lab does not simulate this yet")))
}

/// Keeps a backup under way for as long as the lab runs: each finishes after a hundred steps, and the next begins.
pub(crate) fn background(shared: &Arc<Shared>, tick: Duration) {
    if !shared.look(|cluster| cluster.guests.contains_key(&101)) {
        return;
    }
    let work = Arc::clone(shared);
    spawn(shared, async move {
        loop {
            let upid = work.change(|cluster| {
                let upid = cluster.tasks.begin("pve1", "vzdump", "101", ("root@pam", None), clock::now());
                cluster.tasks.log(&upid, "INFO: starting new backup job: vzdump 101 --storage pbs --mode snapshot");
                cluster.tasks.log(&upid, "INFO: Starting Backup of VM 101 (qemu)");
                upid
            });
            for percent in 0..=100 {
                tokio::time::sleep(tick).await;
                work.change(|cluster| {
                    let line = format!(
                        "INFO: {percent:3}% ({percent}.0 GiB of 100.0 GiB), read: 100.0 MiB/s, write: 80.0 MiB/s"
                    );
                    cluster.tasks.log(&upid, line);
                });
            }
            work.change(|cluster| cluster.tasks.end(&upid, clock::now(), "OK"));
        }
    });
}

/// Runs a piece of work until it is done or the lab stops.
fn spawn(shared: &Arc<Shared>, work: impl Future<Output = ()> + Send + 'static) {
    let stop = shared.stop.clone();
    shared.running.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    });
}
