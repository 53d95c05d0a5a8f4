//! Consoles, keys, and QEMU's own monitor.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{prefix, root_only};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::guest::Kind;
use crate::worker;

/// Keys that QEMU knows by more than one letter or figure.
const KEYS: [&str; 38] = [
    "ctrl",
    "ctrl_r",
    "alt",
    "alt_r",
    "shift",
    "shift_r",
    "delete",
    "insert",
    "home",
    "end",
    "pgup",
    "pgdn",
    "left",
    "right",
    "up",
    "down",
    "esc",
    "ret",
    "tab",
    "spc",
    "backspace",
    "caps_lock",
    "num_lock",
    "scroll_lock",
    "print",
    "sysrq",
    "pause",
    "menu",
    "meta_l",
    "meta_r",
    "minus",
    "equal",
    "comma",
    "dot",
    "slash",
    "backslash",
    "semicolon",
    "apostrophe",
];

pub(super) fn monitor(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let guest = super::call_guest(shared, call, Kind::Qemu)?;
    let vmid = guest.vmid;
    if !guest.running() {
        return Ok(json!(format!("ERROR: VM {vmid} not running\n")).into());
    }
    let text = match call.text("command").trim() {
        "info status" if guest.paused => "VM status: paused\r\n".to_owned(),
        "info status" => "VM status: running\r\n".to_owned(),
        "info name" => format!("{}\r\n", guest.name()),
        "info uuid" => format!("{}\r\n", guest.value("smbios1").unwrap_or_default().trim_start_matches("uuid=")),
        command if command.starts_with("info") || command == "help" => String::new(),
        command => format!("unknown command: '{}'\r\n", command.split(' ').next().unwrap_or_default()),
    };
    Ok(json!(text).into())
}

/// What QEMU says of a key that it does not know ends in its own line end, which the daemon cannot pass on.
pub(super) fn sendkey(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    root_only(call, &["skiplock"])?;
    let guest = super::call_guest(shared, call, Kind::Qemu)?;
    if !guest.running() {
        return Err(Refusal::failed(format!("VM {} not running", guest.vmid)));
    }
    let known = |key: &str| {
        KEYS.contains(&key)
            || (key.len() == 1 && key.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            || key
                .strip_prefix('f')
                .is_some_and(|number| number.parse::<u8>().is_ok_and(|number| (1..=24).contains(&number)))
            || key.starts_with("kp_")
            || key.starts_with("0x")
    };
    match call.text("key").split('-').find(|key| !known(key)) {
        None => Ok(Value::Null.into()),
        Some(key) => Err(Refusal::failed(format!("invalid parameter: {key}\r"))),
    }
}

/// A console: its port, its ticket, and the task that waits for somebody to come.
pub(super) fn proxy(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind, rest: &str) -> Outcome {
    let guest = super::call_guest(shared, call, kind)?;
    let vmid = guest.vmid;
    if rest == "/spiceproxy" {
        return Err(Refusal::failed(if guest.running() {
            format!("VM {vmid} - no spice port")
        } else {
            format!("VM {vmid} not running")
        }));
    }
    let has_serial = guest.config.keys().any(|key| key.starts_with("serial"));
    let term = rest == "/termproxy";
    if term && kind == Kind::Qemu {
        if !guest.running() {
            return Err(Refusal::failed(format!("VM {vmid} not running")));
        }
        if !has_serial {
            return Err(Refusal::failed("unable to find a serial interface"));
        }
    }
    let used = shared.look(|cluster| {
        let consoles = cluster.tasks.all.iter().filter(|task| task.ended.is_none() && task.kind.contains("proxy"));
        consoles.count()
    });
    let port = 5900 + used;
    if term && !shared.look(|cluster| cluster.host.own_qemu) {
        return Err(Refusal::failed(format!("Timeout while waiting for port '{port}' to get ready!")));
    }
    let task = match (kind, term) {
        (Kind::Qemu, _) | (Kind::Lxc, false) => "vncproxy".to_owned(),
        (Kind::Lxc, true) => format!("{}proxy", prefix(kind)),
    };
    let reply = worker::start(shared, call, &task, &vmid.to_string(), |worker| async move {
        worker.wait(Duration::from_secs(10)).await;
        Err("connection timed out".to_owned())
    });
    let ticket = format!("PVEVNC:{:08X}::{:016x}{:016x}", crate::clock::now(), super::random(), super::random());
    let password = format!("{:08x}", super::random() & 0xffff_ffff);
    let mut data = json!({"port": port.to_string(), "upid": reply.data, "ticket": ticket, "user": call.caller.id()});
    if let Some(fields) = data.as_object_mut()
        && !term
    {
        fields.insert(
            "cert".to_owned(),
            json!(shared.look(|cluster| cluster.node(call.text("node")).map(|node| node.fingerprint.clone()))),
        );
        if kind == Kind::Qemu && (call.flag("websocket") || call.flag("generate-password")) {
            fields.insert("ticket".to_owned(), json!(format!("{password}:{ticket}")));
            fields.insert("password".to_owned(), json!(password));
        }
    }
    Ok(data.into())
}
