//! What the agent inside a VM answers.

use serde_json::{Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::clock;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind};

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let (Kind::Qemu, rest) = super::guest::split(call.path())? else {
        return None;
    };
    let command = rest.strip_prefix("/agent/")?;
    Some(call.guest(cluster, Kind::Qemu).and_then(|guest| {
        listening(guest)?;
        ask(cluster, call, guest, command)
    }))
}

pub(super) fn listening(guest: &Guest) -> Result<(), Refusal> {
    if !guest.config.contains_key("agent") {
        return Err(Refusal::failed("No QEMU guest agent configured"));
    }
    if !guest.running() {
        return Err(Refusal::failed(format!("VM {} is not running", guest.vmid)));
    }
    if !guest.agent {
        return Err(Refusal::failed("QEMU guest agent is not running"));
    }
    Ok(())
}

/// An address from the documentation range, by vmid.
pub(super) fn address(guest: &Guest) -> String {
    format!("198.51.100.{}", guest.vmid % 250 + 2)
}

/// The address of the first network card, in the case in which guests report it.
pub(super) fn mac(guest: &Guest) -> String {
    guest
        .text("net0")
        .and_then(|net| {
            net.split(',').find_map(|part| part.strip_prefix("virtio=").or_else(|| part.strip_prefix("hwaddr=")))
        })
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// What the agent answers to a command that changes nothing.
pub(super) fn ask(cluster: &Cluster, call: &Call<'_>, guest: &Guest, command: &str) -> Outcome {
    if guest.inside.bare
        && let Some(result) = bare(guest, command)
    {
        return Ok(json!({"result": result}).into());
    }
    let result = match command {
        "get-osinfo" => {
            json!({"id": "debian", "name": "Debian GNU/Linux", "pretty-name": "Debian GNU/Linux 13 (trixie)", "version": "13 (trixie)", "version-id": "13", "machine": "x86_64", "kernel-release": "6.12.57+deb13-amd64", "kernel-version": "#1 SMP PREEMPT_DYNAMIC"})
        }
        "get-host-name" => json!({"host-name": guest.name()}),
        "get-time" => json!(clock::now() * 1_000_000_000),
        "get-timezone" => json!({"zone": "UTC", "offset": 0}),
        "get-users" => json!([{"user": "admin", "login-time": 1_790_000_000.5}]),
        "get-vcpus" => Value::Array(
            (0..guest.cores()).map(|at| json!({"logical-id": at, "online": true, "can-offline": at > 0})).collect(),
        ),
        "get-fsinfo" => {
            json!([{"name": "sda1", "mountpoint": "/", "type": "ext4", "total-bytes": guest.disk_size(), "used-bytes": guest.disk_size() / 4, "disk": []}])
        }
        "get-memory-blocks" => json!([{"phys-index": 0, "online": true, "can-offline": true}]),
        "get-memory-block-info" => json!({"size": 134_217_728}),
        "info" => {
            let command = |name: &&str| json!({"name": format!("guest-{name}"), "enabled": true, "success-response": *name != "shutdown"});
            json!({"version": "10.1.2", "supported_commands": COMMANDS.iter().map(command).collect::<Vec<_>>()})
        }
        "network-get-interfaces" => json!([
            {"name": "lo", "hardware-address": "00:00:00:00:00:00", "statistics": counted(0), "ip-addresses": [
                {"ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8},
                {"ip-address": "::1", "ip-address-type": "ipv6", "prefix": 128},
            ]},
            {"name": "eth0", "hardware-address": mac(guest), "statistics": counted(9), "ip-addresses": [
                {"ip-address": address(guest), "ip-address-type": "ipv4", "prefix": 24},
                {"ip-address": format!("fe80::be24:11ff:fe00:{:x}", guest.vmid), "ip-address-type": "ipv6", "prefix": 64},
            ]},
        ]),
        // What a first process, which nobody has to start, would tell: looking at it leaves it there.
        "exec-status" => {
            let secret = cluster.secrets.of("agent-exec-output");
            return Ok(json!({"exited": 1, "exitcode": 0, "out-data": format!("export API_TOKEN={secret}\n"), "out-truncated": 0}).into());
        }
        "file-read" => return file_read(cluster, guest, call.text("file")),
        "fsfreeze-status" => json!(if guest.inside.frozen { "frozen" } else { "thawed" }),
        "fstrim" => json!({"paths": [{"path": "/", "trimmed": 0, "minimum": 0}]}),
        "suspend-disk" | "suspend-ram" | "suspend-hybrid" => Value::Null,
        _ => json!({}),
    };
    let data = json!({"result": result});
    Ok(data.into())
}

/// Commands that the agent says it knows.
const COMMANDS: [&str; 12] = [
    "ping",
    "exec",
    "exec-status",
    "get-osinfo",
    "get-host-name",
    "get-time",
    "get-users",
    "get-fsinfo",
    "file-read",
    "file-write",
    "fsfreeze-freeze",
    "shutdown",
];

fn counted(packets: u64) -> Value {
    json!({
        "rx-bytes": packets * 80, "rx-packets": packets, "rx-errs": 0, "rx-dropped": 0,
        "tx-bytes": packets * 80, "tx-packets": packets, "tx-errs": 0, "tx-dropped": 0,
    })
}

/// What a system with next to nothing answers otherwise.
fn bare(guest: &Guest, command: &str) -> Option<Value> {
    let result = match command {
        "get-osinfo" => {
            json!({"id": "lab", "name": "Lab Linux", "pretty-name": "Lab Linux 1.0", "version": "1.0", "version-id": "1.0", "machine": "x86_64", "kernel-release": "6.12.117+deb13-cloud-amd64", "kernel-version": "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-12)"})
        }
        "get-host-name" => json!({"host-name": "labguest"}),
        "get-users" | "get-fsinfo" => json!([]),
        "fstrim" => json!({"paths": []}),
        "get-memory-blocks" => {
            let blocks = guest.memory() >> 27;
            Value::Array(
                (0..blocks.max(1)).map(|at| json!({"phys-index": at, "online": true, "can-offline": true})).collect(),
            )
        }
        _ => return None,
    };
    Some(result)
}

/// A file's bytes, each shown as a character of Latin-1.
fn file_read(cluster: &Cluster, guest: &Guest, file: &str) -> Outcome {
    if let Some(content) = guest.inside.files.get(file) {
        let shown = super::machine::shown(content);
        return Ok(json!({"content": shown, "bytes-read": content.len()}).into());
    }
    let folder = file.rsplit_once('/').map(|(folder, _)| folder);
    if guest.inside.bare || folder == Some("/root") || folder == Some("/tmp") {
        return Err(Refusal::failed(format!(
            "Agent error: failed to open file '{file}' (mode: 'r'): No such file or directory"
        )));
    }
    // Configuration of an ordinary guest holds what configuration often holds.
    let content = format!("password={}\n", cluster.secrets.of("agent-file-content"));
    Ok(json!({"content": content, "bytes-read": content.len()}).into())
}
