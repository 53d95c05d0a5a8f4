//! Decides what the arguments of a call name: every guest, node, storage, pool, network, volume and task in them, by the
//! roles of the catalog, also inside lists and property strings. What cannot be told counts as naming everything.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pvegate_generated::model::{Kind, Operation, Place};
use pvegate_generated::terms::{Flag, Role};

use crate::args::{Arg, Args, PropertyText, Value};
use crate::server::{Addressed, addressed};
use crate::values::{DiskSource, Held, Upid, Vmid, VolumeId};

/// What a call names. Names are as the caller wrote them; nothing says that they exist.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Guests that are to exist.
    pub guests: BTreeSet<Vmid>,
    /// Numbers of guests that are to be made.
    pub new_guests: BTreeSet<Vmid>,
    /// Nodes. The one that the server finds for a guest is not among them.
    pub nodes: BTreeSet<Box<str>>,
    /// Storages, also those of volumes and of new disks.
    pub storages: BTreeSet<Box<str>>,
    /// Pools.
    pub pools: BTreeSet<Box<str>>,
    /// Bridges and VNets, with the VLANs that they are used with.
    pub networks: BTreeSet<Network>,
    /// Volumes that are to exist.
    pub volumes: BTreeSet<VolumeId>,
    /// Tasks.
    pub tasks: BTreeSet<Upid>,
    /// Arguments that reach the node itself: devices, paths, scripts, raw options.
    pub host_reaching: BTreeSet<String>,
    /// Addresses that a node is to contact.
    pub urls: BTreeSet<String>,
    /// Whether guests are reached that no argument names, so that the call counts as naming all of them.
    pub every_guest: bool,
}

/// A network that a NIC uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    /// The bridge or VNet.
    pub bridge: Box<str>,
    /// The VLAN; none is untagged.
    pub vlan: Option<u16>,
    /// Carries VLANs that the arguments do not bound (`trunks`, or a tag that is no number).
    pub trunk: bool,
}

impl Named {
    /// What these arguments name.
    pub fn by(args: &Args) -> Self {
        let operation = args.operation();
        let mut named = Self { every_guest: reaches_every_guest(operation, args), ..Self::default() };
        let finds_node = addressed(operation) != Addressed::NoGuest;
        let of_task = args.iter().find_map(|arg| match &arg.value {
            Value::Upid(upid) if arg.parameter.place == Place::Path => Some(upid.node()),
            _ => None,
        });
        for arg in args.iter() {
            let in_path = arg.parameter.place == Place::Path && arg.parameter.name == "node";
            // The id of a task names its node, so the same name beside it says nothing more.
            let is_tasks = matches!(&arg.value, Value::Node(node) if Some(node) == of_task);
            if !(in_path && (finds_node || is_tasks)) {
                named.take(arg);
            }
        }
        named
    }

    fn take(&mut self, arg: &Arg) {
        self.value(arg.parameter.role, &arg.value, &arg.name());
        if let Value::Property(property) = &arg.value {
            self.property(arg, property);
        }
    }

    fn value(&mut self, role: Role, value: &Value, name: &str) {
        if matches!(value, Value::Property(_)) && !matches!(role, Role::HostReaching) {
            // Read key by key.
            return;
        }
        let texts = texts(value);
        match role {
            Role::GuestTarget | Role::GuestSource | Role::GuestList | Role::GuestRef => {
                for text in &texts {
                    match guest_in(text) {
                        Some(vmid) => _ = self.guests.insert(vmid),
                        None => self.every_guest = true,
                    }
                }
            }
            Role::GuestNew => self.new_guests.extend(texts.iter().filter_map(|text| Vmid::parse(text).ok())),
            // Groups of HA write `node:priority`.
            Role::Node | Role::NodeList => self.nodes.extend(texts.iter().map(|text| before_colon(text).into())),
            // `here:there`, or one for all.
            Role::Storage | Role::StorageList => {
                self.storages.extend(texts.iter().flat_map(|text| text.split(':')).map(Box::from));
            }
            Role::Pool => self.pools.extend(texts.iter().map(|text| Box::from(&**text))),
            Role::Network => {
                let bridges =
                    texts.iter().flat_map(|text| text.split([' ', ',', ';', ':'])).filter(|one| !one.is_empty());
                self.networks.extend(bridges.map(|one| Network { bridge: one.into(), vlan: None, trunk: false }));
            }
            Role::Disk | Role::Volume => texts.iter().for_each(|text| self.disk(text, name)),
            Role::Task => self.tasks.extend(texts.iter().filter_map(|text| Upid::parse(text).ok())),
            Role::HostReaching => _ = self.host_reaching.insert(name.to_owned()),
            Role::Url => self.urls.extend(texts.iter().map(ToString::to_string)),
            Role::Nic
            | Role::Snapshot
            | Role::ConfigKey
            | Role::Unset
            | Role::Object
            | Role::Secret
            | Role::Tags
            | Role::Content
            | Role::Digest
            | Role::Plain => {}
        }
    }

    fn property(&mut self, arg: &Arg, property: &PropertyText) {
        let Some(shape) = shape(&arg.parameter.kind) else { return };
        if arg.parameter.role == Role::Nic {
            self.nic(property);
        }
        for key in shape.keys.iter().filter(|key| key.alias.is_none()) {
            let Some(text) = property.get(key.name) else { continue };
            match key.role {
                // A NIC's bridge counts with its VLAN.
                Role::Network if arg.parameter.role == Role::Nic => {}
                // `fuse=0` switches nothing on.
                Role::HostReaching if matches!(key.kind, Kind::Boolean) && text == "0" => {}
                role => {
                    self.value(role, &Value::Text(text.into()), &format!("{}.{}", arg.name(), key.name));
                }
            }
        }
    }

    fn nic(&mut self, property: &PropertyText) {
        let Some(bridge) = property.get("bridge") else { return };
        let tag = property.get("tag");
        let vlan = tag.and_then(|tag| tag.parse().ok());
        let trunk = property.get("trunks").is_some() || tag.is_some() && vlan.is_none();
        self.networks.insert(Network { bridge: bridge.into(), vlan, trunk });
    }

    fn disk(&mut self, text: &str, name: &str) {
        match DiskSource::parse(text).map(|source| source.held().clone()) {
            Ok(Held::Nothing) => {}
            Ok(Held::New { storage, .. }) => _ = self.storages.insert(storage.as_str().into()),
            // What a cloud-init drive is made as: the volume gets its guest's number.
            Ok(Held::Volume(volume)) if volume.path() == "cloudinit" => {
                self.storages.insert(volume.storage().into());
            }
            Ok(Held::Volume(volume)) => {
                self.storages.insert(volume.storage().into());
                match volume.owner() {
                    Some(vmid) => _ = self.guests.insert(vmid),
                    None => self.every_guest |= !volume.is_nobodys(),
                }
                self.volumes.insert(volume);
            }
            Ok(Held::HostDrive | Held::Path) | Err(_) => _ = self.host_reaching.insert(name.to_owned()),
        }
    }
}

/// Whether a call reaches guests that it does not name.
fn reaches_every_guest(operation: &Operation, args: &Args) -> bool {
    let listed = || args.iter().any(|arg| arg.parameter.role == Role::GuestList && !texts(&arg.value).is_empty());
    operation.has(Flag::Bulk) || operation.has(Flag::BulkUnlessListed) && !listed()
}

/// The single values in one.
fn texts(value: &Value) -> Vec<Cow<'_, str>> {
    match value {
        Value::List(items) | Value::Array(items) => items.iter().flat_map(texts).collect(),
        other => vec![other.wire()],
    }
}

/// `100`, `vm:100` and `ct:100` of HA, `100-0` of replication.
pub(super) fn guest_in(text: &str) -> Option<Vmid> {
    let number = text.strip_prefix("vm:").or_else(|| text.strip_prefix("ct:")).unwrap_or(text);
    let number = match number.split_once('-') {
        Some((guest, job)) if !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit()) => guest,
        _ => number,
    };
    Vmid::parse(number).ok()
}

fn before_colon(text: &str) -> &str {
    text.split(':').next().unwrap_or(text)
}

fn shape(kind: &Kind) -> Option<&'static pvegate_generated::model::PropertyString> {
    match kind {
        Kind::Property(shape) => Some(shape),
        _ => None,
    }
}
