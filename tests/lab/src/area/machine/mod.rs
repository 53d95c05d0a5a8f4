//! What changes guests: configuration, power, snapshots, disks, copies, moves, and commands to the agent inside.

mod agent;
mod apply;
mod bulk;
mod clone;
mod config;
mod console;
mod create;
mod destroy;
mod disk;
mod drive;
mod lxc_config;
mod lxc_create;
mod migrate;
mod net;
mod power;
mod process;
mod restore;
mod rights;
mod shutdown;
mod snapshot;
mod template;

use std::sync::Arc;

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind};

/// Answers a write below a guest, or one that makes a guest.
pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    if let Some(outcome) = bulk::write(shared, call) {
        return Some(outcome);
    }
    match call.operation.name.as_str() {
        "POST /nodes/{node}/qemu" => return Some(create::create(shared, call)),
        "POST /nodes/{node}/lxc" => return Some(lxc_create::create(shared, call)),
        _ => {}
    }
    let (kind, rest) = super::guest::split(call.path())?;
    if let Some(command) = rest.strip_prefix("/agent") {
        return Some(agent::write(shared, call, command.trim_start_matches('/')));
    }
    let verb = call.operation.verb.as_str();
    let outcome = match (verb, rest) {
        ("DELETE", "") => destroy::destroy(shared, call, kind),
        ("PUT" | "POST", "/config") if kind == Kind::Qemu => config::update(shared, call, verb == "POST"),
        ("PUT", "/config") => lxc_config::update(shared, call),
        ("POST", "/clone") => clone::clone(shared, call, kind),
        ("POST", "/template") => template::template(shared, call, kind),
        ("PUT", "/resize") => disk::resize(shared, call, kind),
        ("POST", "/move_disk" | "/move_volume") => disk::relocate(shared, call, kind),
        ("PUT", "/unlink") => disk::unlink(shared, call),
        ("POST", "/migrate") => migrate::migrate(shared, call, kind),
        ("POST", "/snapshot") => snapshot::create(shared, call, kind),
        ("DELETE", "/snapshot/{snapname}") => snapshot::delete(shared, call, kind),
        ("POST", "/snapshot/{snapname}/rollback") => snapshot::rollback(shared, call, kind),
        ("PUT", "/snapshot/{snapname}/config") => snapshot::describe(shared, call, kind),
        ("PUT", "/cloudinit") => call_guest(shared, call, kind).map(|_| serde_json::Value::Null.into()),
        ("POST", "/monitor") => console::monitor(shared, call),
        ("PUT", "/sendkey") => console::sendkey(shared, call),
        ("POST", "/vncproxy" | "/termproxy" | "/spiceproxy") => console::proxy(shared, call, kind, rest),
        ("POST", _) => match rest.strip_prefix("/status/")? {
            "shutdown" => shutdown::shutdown(shared, call, kind),
            "reboot" => shutdown::reboot(shared, call, kind),
            verb => power::power(shared, call, kind, verb),
        },
        _ => return None,
    };
    Some(outcome)
}

/// The guest of a call as it is now.
fn call_guest(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Result<Guest, Refusal> {
    shared.look(|cluster| call.guest(cluster, kind).cloned())
}

/// `qm` or `vz`, as task types begin.
const fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Qemu => "qm",
        Kind::Lxc => "vz",
    }
}

/// `VM` or `CT`, as messages name it.
const fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Qemu => "VM",
        Kind::Lxc => "CT",
    }
}

/// What PVE says about a guest that is locked.
fn locked(guest: &Guest) -> Result<(), String> {
    match &guest.lock {
        None => Ok(()),
        Some(lock) if guest.kind == Kind::Qemu => Err(format!("VM is locked ({lock})")),
        Some(lock) => Err(format!("CT is locked ({lock})")),
    }
}

/// The guest of a task that began a moment ago.
fn found(cluster: &mut Cluster, vmid: u32, kind: Kind) -> Result<&mut Guest, String> {
    let local = cluster.local.clone();
    cluster
        .guests
        .get_mut(&vmid)
        .filter(|guest| guest.kind == kind)
        .ok_or_else(|| format!("Configuration file 'nodes/{local}/{}/{vmid}.conf' does not exist", kind.folder()))
}

/// The vmid of a path.
fn vmid(call: &Call<'_>) -> u32 {
    call.text("vmid").parse().unwrap_or_default()
}

/// Options that only `root@pam` itself may give.
fn root_only(call: &Call<'_>, names: &[&str]) -> Result<(), Refusal> {
    match names.iter().find(|name| call.flag(name)) {
        Some(name) => Err(Refusal::parameter(name, "Only root may use this option.")),
        None => Ok(()),
    }
}

/// A digest that was given and is not the present one. An empty one protects nothing.
fn unchanged(call: &Call<'_>, guest: &Guest) -> Result<(), Refusal> {
    match call.given("digest") {
        Some(digest) if digest != guest.digest() => {
            Err(Refusal::failed("checksum mismatch (file change by other user?)"))
        }
        _ => Ok(()),
    }
}

/// A number that differs from call to call, for addresses and ids that PVE draws at random.
fn random() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// A random UUID.
fn uuid() -> String {
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// Bytes as PVE shows them: each a character of Latin-1.
pub(super) fn shown(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

pub(super) use power::agent_enabled;
pub(super) use snapshot::able;

/// A read that takes what it reads away: how a program inside a VM ended.
pub(super) fn read_once(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    (call.path() == "/nodes/{node}/qemu/{vmid}/agent/exec-status").then(|| agent::exec_status(shared, call))
}
