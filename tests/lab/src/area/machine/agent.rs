//! What the agent inside a VM is told to do.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{found, power, process};
use crate::answer::Refusal;
use crate::area::{Call, Outcome, agent};
use crate::clock;
use crate::gate::Shared;
use crate::state::guest::{Guest, Kind};

pub(super) fn write(shared: &Arc<Shared>, call: &Call<'_>, command: &str) -> Outcome {
    let command = if command.is_empty() { call.text("command") } else { command };
    shared.change(|cluster| {
        let vmid = call.guest(cluster, Kind::Qemu).and_then(|guest| {
            agent::listening(guest)?;
            Ok(guest.vmid)
        })?;
        let reads = !matches!(
            command,
            "exec"
                | "file-write"
                | "set-user-password"
                | "fsfreeze-freeze"
                | "fsfreeze-thaw"
                | "shutdown"
                | "suspend-disk"
                | "suspend-hybrid"
                | "suspend-ram"
        );
        if reads {
            let guest = call.guest(cluster, Kind::Qemu)?;
            return agent::ask(cluster, call, guest, command);
        }
        let guest = found(cluster, vmid, Kind::Qemu).map_err(Refusal::failed)?;
        match command {
            "exec" => exec(call, guest),
            "file-write" => file_write(call, guest),
            "set-user-password" => set_password(call, guest),
            "fsfreeze-freeze" => {
                guest.inside.frozen = !guest.inside.bare;
                result(json!(u8::from(!guest.inside.bare)))
            }
            "fsfreeze-thaw" => {
                let thawed = u8::from(guest.inside.frozen);
                guest.inside.frozen = false;
                result(json!(thawed))
            }
            "shutdown" => {
                if guest.inside.obeys {
                    power::turn_off(guest);
                }
                result(Value::Null)
            }
            _ => {
                guest.paused = true;
                result(Value::Null)
            }
        }
    })
}

fn result(data: Value) -> Outcome {
    let mut whole = Map::new();
    whole.insert("result".to_owned(), data);
    Ok(Value::Object(whole).into())
}

/// Starts a program. The agent's own message about one that is not there holds quotes that the daemon cannot pass on.
fn exec(call: &Call<'_>, guest: &mut Guest) -> Outcome {
    let command: Vec<String> = match call.params.get("command") {
        Some(Value::Array(parts)) => parts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(text)) => vec![text.clone()],
        _ => Vec::new(),
    };
    let input = call.given("input-data");
    if input.is_some_and(|text| text.chars().any(|c| u32::from(c) > 0xff)) {
        return Err(wide(527));
    }
    let Some(process) = process::run(&guest.inside, clock::now(), &command, input) else {
        let program = command.first().map(String::as_str).unwrap_or_default();
        return Err(Refusal::failed(format!(
            "Agent error: Guest agent command failed, error was 'Failed to execute child process \u{201c}{program}\u{201d} (No such file or directory)'"
        )));
    };
    guest.inside.last_pid += 2;
    let pid = guest.inside.last_pid;
    guest.inside.processes.insert(pid, process);
    Ok(json!({"pid": pid}).into())
}

fn wide(line: u32) -> Refusal {
    Refusal::failed(format!(
        "Wide character in subroutine entry at /usr/share/perl5/PVE/API2/Qemu/Agent.pm line {line}."
    ))
}

/// How a program ended, which is told once.
pub(super) fn exec_status(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    shared.change(|cluster| {
        let vmid = call.guest(cluster, Kind::Qemu).and_then(|guest| {
            agent::listening(guest)?;
            Ok(guest.vmid)
        })?;
        let guest = found(cluster, vmid, Kind::Qemu).map_err(Refusal::failed)?;
        let pid = call.number("pid").unwrap_or_default();
        let Some(process) = guest.inside.processes.get(&pid) else {
            if pid == 1 && !guest.inside.bare {
                let guest = call.guest(cluster, Kind::Qemu)?;
                return agent::ask(cluster, call, guest, "exec-status");
            }
            return Err(Refusal::failed("Agent error: PID ld does not exist"));
        };
        if clock::now() < process.until {
            return Ok(json!({"exited": 0}).into());
        }
        let mut data = Map::new();
        data.insert("exited".to_owned(), json!(1));
        if let Some(code) = process.code {
            data.insert("exitcode".to_owned(), json!(code));
        }
        if let Some(signal) = process.signal {
            data.insert("signal".to_owned(), json!(signal));
        }
        for (name, bytes) in [("out", &process.out), ("err", &process.err)] {
            if !bytes.is_empty() {
                data.insert(format!("{name}-data"), json!(super::shown(bytes)));
                data.insert(format!("{name}-truncated"), json!(0));
            }
        }
        guest.inside.processes.remove(&pid);
        Ok(Value::Object(data).into())
    })
}

fn file_write(call: &Call<'_>, guest: &mut Guest) -> Outcome {
    let content = call.text("content");
    let bytes = if call.given("encode") == Some("0") {
        STANDARD.decode(content).map_err(|_| Refusal::failed("Agent error: Invalid base64 data"))?
    } else if content.chars().any(|c| u32::from(c) > 0xff) {
        return Err(wide(624));
    } else {
        process::latin1(content)
    };
    let file = call.text("file");
    let folder = file.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    let known = matches!(folder, "" | "/root" | "/tmp" | "/etc" | "/var/tmp" | "/home");
    if !known || !file.starts_with('/') {
        return Err(Refusal::failed(format!(
            "Agent error: failed to open file '{file}' (mode: 'w'): No such file or directory"
        )));
    }
    guest.inside.files.insert(file.to_owned(), bytes);
    Ok(Value::Null.into())
}

fn set_password(call: &Call<'_>, guest: &Guest) -> Outcome {
    if guest.inside.bare {
        let error = "Agent error: child process has failed to set user password: failed to exec 'chpasswd': No such file or directory\n";
        return Err(Refusal::failed(error));
    }
    if !matches!(call.text("username"), "root" | "admin") {
        return Err(Refusal::failed(
            "Agent error: child process has failed to set user password: chpasswd: user does not exist",
        ));
    }
    result(json!({}))
}
