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
        ask(cluster, guest, command)
    }))
}

fn listening(guest: &Guest) -> Result<(), Refusal> {
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

fn ask(cluster: &Cluster, guest: &Guest, command: &str) -> Outcome {
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
            json!({"version": "10.1.2", "supported_commands": [{"name": "guest-ping", "enabled": true, "success-response": true}, {"name": "guest-exec", "enabled": true, "success-response": true}]})
        }
        "network-get-interfaces" => json!([
            {"name": "lo", "hardware-address": "00:00:00:00:00:00", "ip-addresses": [{"ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8}]},
            {"name": "eth0", "hardware-address": mac(guest), "ip-addresses": [{"ip-address": address(guest), "ip-address-type": "ipv4", "prefix": 24}]},
        ]),
        "exec-status" => {
            let secret = cluster.secrets.of("agent-exec-output");
            return Ok(json!({"exited": 1, "exitcode": 0, "out-data": format!("export API_TOKEN={secret}\n"), "out-truncated": 0}).into());
        }
        "file-read" => {
            let content = format!("password={}\n", cluster.secrets.of("agent-file-content"));
            return Ok(json!({"content": content, "bytes-read": content.len()}).into());
        }
        _ => json!({}),
    };
    let data = json!({"result": result});
    Ok(data.into())
}
