//! Work that goes on in the background under a UPID: it logs, holds the guest's lock, can be interrupted, and ends as its
//! state says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::answer::Reply;
use crate::area::Call;
use crate::clock;
use crate::gate::Shared;
use crate::state::Cluster;

/// How long PVE waits for the lock of a guest's configuration.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// Where waits are switched off, they are this many times shorter, and single steps of work take no longer than this.
const HURRY: u32 = 20;
const STEP: Duration = Duration::from_millis(20);

/// How a piece of work that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Fine,
    Warnings(usize),
}

/// The end of a piece of work: what the exit status says where it failed.
pub(crate) type End = Result<Done, String>;

/// The work under way, by UPID, and who holds which guest's lock.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    running: Mutex<BTreeMap<String, CancellationToken>>,
    locks: Mutex<BTreeMap<u32, String>>,
}

impl Workers {
    /// Interrupts a task; whether there was one.
    pub(crate) fn interrupt(&self, upid: &str) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(upid).is_some_and(|token| {
            token.cancel();
            true
        })
    }

    /// Interrupts everything, and frees every lock.
    pub(crate) fn interrupt_all(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().for_each(CancellationToken::cancel);
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn begin(&self, upid: &str) -> CancellationToken {
        let token = CancellationToken::new();
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(upid.to_owned(), token.clone());
        token
    }

    fn end(&self, upid: &str) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(upid);
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, holder| holder != upid);
    }

    /// Holds the lock of a guest, once nobody else does, until it is released.
    pub(crate) fn hold(&self, vmid: u32) {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).entry(vmid).or_default();
    }

    /// Releases what is held.
    pub(crate) fn release(&self, vmid: u32) {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).retain(|held, by| *held != vmid || !by.is_empty());
    }

    /// Whether a task holds the lock of a guest.
    pub(crate) fn locked(&self, vmid: u32) -> bool {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&vmid)
    }

    fn take(&self, vmid: u32, upid: &str) -> bool {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.entry(vmid).or_insert_with(|| upid.to_owned()) == upid
    }
}

/// What work has in its hands.
#[derive(Clone)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    pub(crate) upid: String,
}

impl Worker {
    /// The process id that the UPID tells.
    pub(crate) fn pid(&self) -> u32 {
        let pid = self.upid.split(':').nth(2).and_then(|pid| u32::from_str_radix(pid, 16).ok());
        pid.unwrap_or_default()
    }

    pub(crate) fn log(&self, line: impl Into<String>) {
        self.shared.change(|cluster| cluster.tasks.log(&self.upid, line));
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        self.shared.change(change)
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Cluster) -> T) -> T {
        self.shared.look(look)
    }

    /// Interrupts another task.
    pub(crate) fn interrupt(&self, upid: &str) -> bool {
        self.shared.workers.interrupt(upid)
    }

    /// A moment of work, which is over at once where waits are switched off.
    pub(crate) async fn step(&self, time: Duration) {
        tokio::time::sleep(if self.shared.latency { time } else { time.min(STEP) }).await;
    }

    /// A wait that others can observe: shorter, but there, where waits are switched off.
    pub(crate) async fn wait(&self, time: Duration) {
        tokio::time::sleep(self.shared.hurried(time)).await;
    }

    /// Takes the lock of a guest until the task ends.
    pub(crate) async fn lock(&self, vmid: u32) -> Result<(), String> {
        let by = tokio::time::Instant::now() + self.shared.hurried(LOCK_WAIT);
        let mut said = false;
        while !self.shared.workers.take(vmid, &self.upid) {
            if !said {
                self.log("trying to acquire lock...");
                said = true;
            }
            if tokio::time::Instant::now() >= by {
                return Err(self.look(|cluster| lock_timeout(cluster, vmid)));
            }
            tokio::time::sleep(STEP).await;
        }
        if said {
            self.log(" OK");
        }
        Ok(())
    }
}

/// What PVE says when it does not get the lock of a guest.
fn lock_timeout(cluster: &Cluster, vmid: u32) -> String {
    use crate::state::guest::Kind;
    let file = match cluster.guests.get(&vmid).map(|guest| guest.kind) {
        Some(Kind::Lxc) => format!("/run/lock/lxc/pve-config-{vmid}.lock"),
        _ => format!("/var/lock/qemu-server/lock-{vmid}.conf"),
    };
    format!("can't lock file '{file}' - got timeout")
}

impl Shared {
    /// A wait as it is here.
    pub(crate) fn hurried(&self, time: Duration) -> Duration {
        if self.latency { time } else { time / HURRY }
    }

    /// Waits as PVE does until no task holds the lock of a guest; the error where it stays held.
    pub(crate) async fn unlocked(&self, vmid: u32) -> Result<(), String> {
        let by = tokio::time::Instant::now() + self.hurried(LOCK_WAIT);
        while self.workers.locked(vmid) {
            if tokio::time::Instant::now() >= by {
                return Err(self.look(|cluster| lock_timeout(cluster, vmid)));
            }
            tokio::time::sleep(STEP).await;
        }
        Ok(())
    }
}

/// Begins a task as the caller and answers with its UPID. `work` gets a [`Worker`]; what it ends with is the exit status.
pub(crate) fn start<F>(
    shared: &Arc<Shared>,
    call: &Call<'_>,
    kind: &str,
    id: &str,
    work: impl FnOnce(Worker) -> F,
) -> Reply
where
    F: Future<Output = End> + Send + 'static,
{
    let owner = (call.caller.user.as_str(), Some(call.caller.token.as_str()));
    let node = shared.look(|cluster| cluster.node(call.text("node")).map(|node| node.name.clone()));
    let node = node.unwrap_or_else(|| call.here.to_owned());
    let upid = shared.change(|cluster| cluster.tasks.begin(&node, kind, id, owner, clock::now()));
    let interrupted = shared.workers.begin(&upid);
    let work = work(Worker { shared: Arc::clone(shared), upid: upid.clone() });
    let (worker, task) = (Arc::clone(shared), upid.clone());
    let stop = shared.stop.clone();
    shared.running.spawn(async move {
        let end = tokio::select! {
            () = stop.cancelled() => return,
            () = interrupted.cancelled() => Err("received interrupt".to_owned()),
            end = work => end,
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = worker.holds_tasks() => {}
        }
        let status = match end {
            Ok(Done::Fine) => "OK".to_owned(),
            Ok(Done::Warnings(count)) => format!("WARNINGS: {count}"),
            Err(error) => error,
        };
        worker.workers.end(&task);
        worker.change(|cluster| cluster.tasks.end(&task, clock::now(), &status));
    });
    json!(upid).into()
}
