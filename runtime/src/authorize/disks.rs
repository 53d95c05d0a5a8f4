//! Decides which disks a low call may make, and reads those that a guest has: where they are, how large they are, and
//! whether one of them reaches the node.

use std::collections::BTreeMap;

use pvegate_generated::model::{Kind, Operation, PropertyString};
use pvegate_generated::terms::Role;
use serde_json::{Map, Value as Json};

use crate::args::{Arg, Args, Value};
use crate::values::{DiskSource, Held, Properties, Size, VolumeId};

/// What a cloud-init drive is made as.
const CLOUD_INIT: &str = "cloudinit";

/// Why a disk that a caller gives is more than a new volume, an installation image or a cloud-init drive; nothing if it
/// is one of these.
pub(super) fn why_not_new(arg: &Arg) -> Option<String> {
    let name = arg.name();
    let (Value::Property(given), Kind::Property(shape)) = (&arg.value, &arg.parameter.kind) else {
        return Some(format!("`{name}` is not a disk that could be looked at"));
    };
    let Some(main) = shape.default_key else {
        return Some(format!("what `{name}` holds cannot be told"));
    };
    let beside = shape.keys.iter().filter(|key| key.alias.is_none() && key.name != main);
    if let Some(key) = beside.clone().find(|key| !is_plain(key.role) && given.get(key.name).is_some()) {
        return Some(format!("`{}` of `{name}` brings in more than a new volume", key.name));
    }
    let is_cdrom = given.get("media") == Some("cdrom");
    match DiskSource::parse(given.get(main).unwrap_or_default()).map(|source| source.held().clone()) {
        Ok(Held::New { .. }) if !is_cdrom => None,
        Ok(Held::Nothing) if is_cdrom => None,
        Ok(Held::Volume(volume)) if volume.path() == CLOUD_INIT => None,
        Ok(Held::Volume(volume)) if is_cdrom && volume.path().starts_with("iso/") => None,
        _ => Some(format!(
            "`{name}` is not a new volume (`STORAGE:GiB`), an ISO image with `media=cdrom`, or a cloud-init drive"
        )),
    }
}

fn is_plain(role: Role) -> bool {
    matches!(role, Role::Plain | Role::Content)
}

/// How many bytes a call makes anew on each storage.
pub(super) fn made(args: &Args) -> BTreeMap<String, u64> {
    let mut made = BTreeMap::new();
    for arg in args.iter().filter(|arg| arg.parameter.role == Role::Disk) {
        let (Value::Property(given), Kind::Property(shape)) = (&arg.value, &arg.parameter.kind) else { continue };
        let source = shape.default_key.and_then(|main| given.get(main)).map(DiskSource::parse);
        if let Some(Ok(source)) = source
            && let Held::New { storage, size } = source.held()
        {
            let bytes: &mut u64 = made.entry(storage.as_str().to_owned()).or_default();
            *bytes = bytes.saturating_add(size.bytes());
        }
    }
    made
}

/// A volume that a guest has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// Its key in the configuration.
    pub key: String,
    /// The volume.
    pub volume: VolumeId,
    /// How large it is, where the configuration says so.
    pub bytes: Option<u64>,
    /// Whether it is only put into a drive: an ISO image.
    pub image: bool,
}

/// The volumes in a guest's configuration. `change` is the operation that would change it, which knows its keys.
pub(super) fn of(change: &Operation, config: &Map<String, Json>) -> Vec<Disk> {
    let found = config.iter().filter_map(|(key, value)| {
        let parameter = change.parameter(key).filter(|parameter| parameter.role == Role::Disk)?;
        let Kind::Property(shape) = &parameter.kind else { return None };
        let properties = Properties::parse(shape, value.as_str()?).ok()?;
        let source = DiskSource::parse(properties.get(shape.default_key?)?).ok()?;
        let Held::Volume(volume) = source.held() else { return None };
        Some(Disk {
            key: key.clone(),
            image: properties.get("media") == Some("cdrom") && volume.path().starts_with("iso/"),
            bytes: properties.get("size").and_then(|size| Size::parse(size).ok()).map(|size| size.bytes()),
            volume: volume.clone(),
        })
    });
    found.collect()
}

/// The first key of a configuration that reaches the node, or that nothing is known about; nothing if there is none.
pub(super) fn reaches_node(change: &Operation, config: &Map<String, Json>) -> Option<String> {
    config.iter().find(|(key, value)| is_reaching(change, key, value)).map(|(key, _)| key.clone())
}

/// What PVE itself writes into a configuration.
const PVES_OWN: [&str; 12] = [
    "digest",
    "lock",
    "meta",
    "parent",
    "running-nets-host-mtu",
    "runningcpu",
    "runningmachine",
    "snaptime",
    "snapstate",
    "template",
    "vmstate",
    "unprivileged",
];

fn is_reaching(change: &Operation, key: &str, value: &Json) -> bool {
    let Some(parameter) = change.parameter(key) else {
        return !PVES_OWN.contains(&key);
    };
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Number(_) | Json::Bool(_) => value.to_string(),
        Json::Null => return false,
        // Raw lines of a container, which have no key of their own.
        Json::Array(_) | Json::Object(_) => return true,
    };
    match (parameter.role, &parameter.kind) {
        // A serial line and a USB port that end inside the VM's own process.
        (Role::HostReaching, _) => {
            !(key.starts_with("serial") && text == "socket" || key.starts_with("usb") && is_spice(&text))
        }
        (Role::Disk, Kind::Property(shape)) => match Properties::parse(shape, &text) {
            Ok(properties) => {
                let source = shape.default_key.and_then(|main| properties.get(main)).map(DiskSource::parse);
                let is_volume = source.is_some_and(|source| {
                    source.is_ok_and(|source| matches!(source.held(), Held::Volume(_) | Held::Nothing))
                });
                !is_volume || loosens(shape, &properties)
            }
            Err(_) => true,
        },
        (_, Kind::Property(shape)) => {
            Properties::parse(shape, &text).map_or(true, |properties| loosens(shape, &properties))
        }
        _ => false,
    }
}

/// Whether a key inside reaches the node; what is switched off does not.
fn loosens(shape: &PropertyString, properties: &Properties) -> bool {
    shape
        .keys
        .iter()
        .any(|key| key.role == Role::HostReaching && properties.get(key.name).is_some_and(|text| text != "0"))
}

fn is_spice(text: &str) -> bool {
    let first = text.split(',').next().unwrap_or_default();
    first == "spice" || first == "host=spice"
}
