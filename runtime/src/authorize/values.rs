//! Decides whether the values of a call keep it low. What is absent counts as what PVE would take for it, or as the worst
//! that a file on the node can set, which is why some values are always sent.

use pvegate_generated::internal;
use pvegate_generated::model::{Operation, Runs};
use pvegate_generated::terms::Role;
use pvegate_generated::tools::TOOLS;

use super::{Named, disks, needs_a_plan, tool};
use crate::args::{Args, InvalidArguments, PropertyText, Value, decode_text};
use crate::grant::Networks;
use crate::mcp::Refusal;
use crate::tokens::Principal;
use crate::values::VolumeId;

pub(super) fn is(operation: &Operation, one_of: &[&Operation]) -> bool {
    one_of.iter().any(|other| other.name == operation.name)
}

/// Adds what is sent unless the caller gave it: a file on the node could set another default, and releases differ.
pub(super) fn complete(args: &mut Args) -> Result<(), InvalidArguments> {
    let pair = if is(args.operation(), &[internal::CREATE_BACKUP]) {
        (internal::create_backup::MODE, "snapshot")
    } else if is(args.operation(), &[internal::CREATE_CONTAINER]) {
        (internal::create_container::UNPRIVILEGED, "1")
    } else {
        return Ok(());
    };
    if args.get(pair.0).is_some() { Ok(()) } else { decode_text(args, &[pair]) }
}

/// Whether it interrupts a guest, by itself or by an argument.
pub(super) fn interrupts(args: &Args) -> bool {
    let operation = args.operation();
    let takes_memory = is(operation, &[internal::SNAPSHOT_VM]) && is_on(args, internal::snapshot_vm::VMSTATE);
    let takes_down = is(operation, &[internal::CREATE_BACKUP])
        && args.get(internal::create_backup::MODE).is_none_or(|mode| mode.wire() != "snapshot");
    operation.interrupts || takes_memory || takes_down
}

/// Refuses values that are more than a low call, naming the argument and why.
pub(super) fn stay_low(principal: &Principal, args: &Args, named: &Named) -> Result<(), Refusal> {
    if let Some(name) = named.host_reaching.iter().next() {
        return Err(needs_a_plan(&format!("`{name}` reaches the node itself")));
    }
    for arg in args.iter() {
        let why = match arg.parameter.role {
            Role::Disk => disks::why_not_new(arg),
            Role::Nic => nic(&principal.grant.networks, &arg.name(), &arg.value),
            Role::Secret => Some(format!("`{}` is a secret", arg.name())),
            Role::Unset => Some(format!("`{}` takes settings away", arg.name())),
            _ => None,
        };
        if let Some(why) = why {
            return Err(needs_a_plan(&why));
        }
    }
    by_operation(principal, args)
}

fn by_operation(principal: &Principal, args: &Args) -> Result<(), Refusal> {
    let operation = args.operation();
    if is(operation, &[internal::CREATE_VM]) {
        only_keys(args, internal::create_vm::CPU, &["cputype"])?;
        only_keys(args, internal::create_vm::MACHINE, &["type"])?;
    }
    if is(operation, &[internal::CREATE_CONTAINER]) {
        container(args)?;
    }
    if is(operation, &[internal::CREATE_BACKUP]) {
        backup(args)?;
    }
    if is(operation, &[internal::CHANGE_VOLUME]) && is_off(args, internal::change_volume::PROTECTED) {
        return Err(needs_a_plan("`protected` set to false lets the volume be removed"));
    }
    if is(operation, &[internal::RESIZE_VM, internal::RESIZE_CONTAINER]) {
        match args.get(internal::resize_vm::SIZE) {
            Some(Value::Growth(growth)) if growth.is_relative() => {}
            _ => {
                return Err(needs_a_plan(
                    "`size` without `+` sets a size; write what is added, like `+2G`. A size that is set",
                ));
            }
        }
    }
    if is(operation, &[internal::DOWNLOAD]) {
        for name in [internal::download::CHECKSUM, internal::download::CHECKSUM_ALGORITHM] {
            if args.get(name).is_none() {
                return Err(missing(operation, name, "what is downloaded has to be what was meant"));
            }
        }
    }
    let stop = match () {
        () if is(operation, &[internal::SHUTDOWN_VM]) => internal::STOP_VM,
        () if is(operation, &[internal::SHUTDOWN_CONTAINER]) => internal::STOP_CONTAINER,
        () => return Ok(()),
    };
    if is_on(args, internal::shutdown_vm::FORCE_STOP) && !may_run(principal, stop) {
        return Err(Refusal::new(
            "not_granted",
            format!(
                "`{}` stops a guest that does not shut down, and this token may not stop guests",
                internal::shutdown_vm::FORCE_STOP
            ),
            "Leave it out, or ask an operator for a token that may.",
        ));
    }
    Ok(())
}

fn container(args: &Args) -> Result<(), Refusal> {
    let operation = args.operation();
    if args.get(internal::create_container::ROOTFS).is_none() {
        return Err(missing(operation, internal::create_container::ROOTFS, "PVE would choose a storage itself"));
    }
    if is_off(args, internal::create_container::UNPRIVILEGED) {
        return Err(needs_a_plan("`unprivileged` set to false makes root in the container root on the node"));
    }
    only_keys(args, internal::create_container::FEATURES, &["nesting"])?;
    let template = args.get(internal::create_container::OSTEMPLATE).map(|value| value.wire().into_owned());
    match template.map(|text| VolumeId::parse(&text)) {
        Some(Ok(volume)) if volume.path().starts_with("vztmpl/") => Ok(()),
        _ => Err(needs_a_plan(&format!(
            "`{}` is not a container template (`STORAGE:vztmpl/FILE`)",
            internal::create_container::OSTEMPLATE
        ))),
    }
}

fn backup(args: &Args) -> Result<(), Refusal> {
    let operation = args.operation();
    match args.get(internal::create_backup::VMID) {
        Some(Value::List(guests)) if guests.len() == 1 => {}
        Some(Value::List(_)) => return Err(needs_a_plan("a backup of several guests is more than a low call")),
        _ => return Err(missing(operation, internal::create_backup::VMID, "a low call backs up one guest")),
    }
    if args.get(internal::create_backup::STORAGE).is_none() {
        return Err(missing(operation, internal::create_backup::STORAGE, "a file on the node would choose it"));
    }
    if is_off(args, internal::create_backup::PROTECTED) {
        return Err(needs_a_plan("`protected` set to false lets the backup be removed"));
    }
    Ok(())
}

/// Why a NIC needs a plan; nothing if it is on a granted network.
fn nic(granted: &Networks, name: &str, value: &Value) -> Option<String> {
    let Value::Property(given) = value else {
        return Some(format!("`{name}` is not a NIC that could be looked at"));
    };
    let Some(bridge) = given.get("bridge") else {
        return Some(format!("`{name}` has no bridge, so PVE or the node would give it a network"));
    };
    if given.get("trunks").is_some() {
        return Some(format!("`{name}` has `trunks`, which carry VLANs of the guest's choice"));
    }
    let vlan = match given.get("tag").map(str::parse::<u16>) {
        None => None,
        Some(Ok(vlan)) => Some(vlan),
        Some(Err(_)) => return Some(format!("`{name}` has a VLAN that is no number")),
    };
    if granted.covers(bridge, vlan) {
        return None;
    }
    let vlan = vlan.map_or_else(|| "untagged".to_owned(), |vlan| format!("VLAN {vlan}"));
    Some(format!(
        "`{name}` is on a network that this token does not have (`{}`, {vlan})",
        crate::untrusted::shown(bridge, 40)
    ))
}

/// Refuses every key of a property string but these.
fn only_keys(args: &Args, name: &str, allowed: &[&str]) -> Result<(), Refusal> {
    match args.get(name) {
        None => Ok(()),
        Some(Value::Property(given)) => match other_key(given, allowed) {
            None => Ok(()),
            Some(key) => Err(needs_a_plan(&format!(
                "`{}` of `{name}` is more than a low call",
                crate::untrusted::shown(key, 40)
            ))),
        },
        Some(_) => Err(needs_a_plan(&format!("`{name}` could not be looked at"))),
    }
}

/// The first key that is none of these. The text is taken apart as it stands: of some property strings the catalog has no
/// grammar. What has no key is the value of the first of `allowed`.
fn other_key<'a>(given: &'a PropertyText, allowed: &[&str]) -> Option<&'a str> {
    given
        .as_str()
        .split(',')
        .filter_map(|part| part.split_once('=').map(|(key, _)| key))
        .find(|key| !allowed.contains(key))
}

/// Whether one of the principal's tools runs this operation.
fn may_run(principal: &Principal, operation: &Operation) -> bool {
    TOOLS.iter().filter(|one| tool(principal, one)).any(|one| match one.runs {
        // It runs every low operation.
        Runs::Gateway => one.tier == pvegate_generated::terms::Tier::Low,
        Runs::One(name) => name == operation.name,
        Runs::ByKind { qemu, lxc } => qemu == operation.name || lxc == operation.name,
    })
}

pub(super) fn is_on(args: &Args, name: &str) -> bool {
    args.get(name).is_some_and(|value| value.wire() != "0")
}

pub(super) fn is_off(args: &Args, name: &str) -> bool {
    args.get(name).is_some_and(|value| value.wire() == "0")
}

fn missing(operation: &Operation, name: &str, why: &str) -> Refusal {
    Refusal::new(
        "invalid_arguments",
        format!("{} needs `{name}`: {why}", operation.name),
        format!("describe_operation {{\"operation\": \"{}\"}} shows its arguments.", operation.name),
    )
}
