//! Decides whether a guest is still the one that was meant: numbers are used again, and guests move. What it is
//! recognised by stays the same for as long as it lives.

use pvegate_generated::internal;
use serde_json::{Value as Json, json};

use crate::authorize::Write;
use crate::connection::Connection;
use crate::mcp::Refusal;
use crate::pve::PveError;
use crate::server::{Addressed, addressed};
use crate::snapshot::{GuestKind, GuestRow};
use crate::untrusted::shown;
use crate::write::vmid_of;

/// A guest as its own node has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What does not change while it lives, and the name.
    identity: Identity,
    /// PVE's lock on what was read.
    pub digest: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    vmid: u32,
    kind: GuestKind,
    name: String,
    /// A VM's UUID and the time it was made; a container's root file system.
    born: Vec<String>,
}

impl Seen {
    /// Reads a guest from its node.
    pub async fn read(connection: &Connection, guest: &GuestRow) -> Result<Self, PveError> {
        let operation = match guest.kind {
            GuestKind::Qemu => internal::QEMU_CONFIG,
            GuestKind::Lxc => internal::LXC_CONFIG,
        };
        let given = [("node", Json::from(guest.node.as_str())), ("vmid", Json::from(guest.vmid.get()))];
        let config = connection.ask(operation, given).await?.data;
        Ok(Self::of(guest, &config))
    }

    fn of(guest: &GuestRow, config: &Json) -> Self {
        let text = |key: &str| config.get(key).and_then(Json::as_str).unwrap_or_default();
        let (name, born) = match guest.kind {
            GuestKind::Qemu => {
                let (uuid, made) = (part(text("smbios1"), "uuid"), part(text("meta"), "ctime"));
                // Neither is set on some: then it is known by its disks.
                let disks = if uuid.is_none() && made.is_none() { volumes(config) } else { Vec::new() };
                (text("name"), uuid.into_iter().chain(made).map(str::to_owned).chain(disks).collect())
            }
            GuestKind::Lxc => (text("hostname"), vec![text("rootfs").split(',').next().unwrap_or_default().to_owned()]),
        };
        let identity = Identity { vmid: guest.vmid.get(), kind: guest.kind, name: name.to_owned(), born };
        Self { identity, digest: config.get("digest").and_then(Json::as_str).map(str::to_owned) }
    }

    /// Whether it is the guest that was listed when the call was authorized.
    fn is_listed_as(&self, guest: &GuestRow) -> bool {
        // Lists call a guest without a name by its number.
        self.identity.name.is_empty() || *guest.name == *self.identity.name || guest.name.is_empty()
    }

    /// Whether this is the same guest, a moment later.
    pub fn is_same(&self, later: &Self) -> bool {
        self.identity == later.identity
    }

    /// For the record.
    pub fn told(&self) -> Json {
        let Identity { vmid, kind, name, born } = &self.identity;
        json!({"vmid": vmid, "type": kind.as_str(), "name": name, "known_by": born})
    }
}

/// `key=value` of a property string.
fn part<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split(',').find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
}

fn volumes(config: &Json) -> Vec<String> {
    let is_disk =
        |key: &str| ["scsi", "virtio", "sata", "ide"].iter().any(|bus| key.starts_with(bus)) && key != "scsihw";
    let disks = config.as_object().into_iter().flatten().filter(|(key, _)| is_disk(key));
    let mut volumes: Vec<String> =
        disks.filter_map(|(_, value)| Some(value.as_str()?.split(',').next()?.to_owned())).collect();
    volumes.sort_unstable();
    volumes
}

/// The guest that a write is about and that exists.
pub fn guest(write: &Write) -> Option<&GuestRow> {
    let vmid = vmid_of(&write.args)?;
    write.guests.iter().find(|guest| guest.vmid.to_string() == vmid)
}

/// Looks at the guest of a write. A guest of the other kind, or another than was listed, is refused.
pub async fn look(write: &Write) -> Result<Option<Seen>, NotSeen> {
    let Some(guest) = guest(write) else { return Ok(None) };
    if let Addressed::Guest(kind) = addressed(write.args.operation())
        && kind != guest.kind
    {
        let message = format!(
            "guest {} is of type {}, and {} is for guests of type {kind}",
            guest.vmid,
            guest.kind,
            write.args.operation().name
        );
        return Err(NotSeen::Refused(Refusal::new("wrong_kind", message, "Use the operation for its type.")));
    }
    let seen = Seen::read(&write.connection, guest).await.map_err(NotSeen::Pve)?;
    if seen.is_listed_as(guest) { Ok(Some(seen)) } else { Err(NotSeen::Refused(another(guest))) }
}

/// Why a guest was not seen as it should be.
pub enum NotSeen {
    /// It is not the right one.
    Refused(Refusal),
    /// Its node does not have it, or does not say.
    Pve(PveError),
}

/// The refusal where a number has passed to another guest.
pub fn another(guest: &GuestRow) -> Refusal {
    Refusal::new(
        "conflict",
        format!(
            "guest {} is not the one that it was a moment ago (`{}`): it was renamed, or another guest has its number now; nothing was sent",
            guest.vmid,
            shown(&guest.name, 80)
        ),
        "Look at it with get_guest, and call again if it is the one that you mean.",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn a_guest_is_known_by_what_stays() {
        let inside = |text, key| part(text, key).map(str::to_owned);
        assert_eq!(inside("creation-qemu=10.1.2,ctime=1700000000", "ctime").as_deref(), Some("1700000000"));
        assert_eq!(inside("uuid=a-b,serial=x", "uuid").as_deref(), Some("a-b"));
        assert_eq!(inside("base64=1,uuid2=a", "uuid"), None);
        let config = json!({"scsihw": "virtio-scsi-pci", "scsi0": "local-lvm:vm-100-disk-0,size=8G", "ide2": "none,media=cdrom", "memory": "512"});
        assert_eq!(volumes(&config), ["local-lvm:vm-100-disk-0", "none"]);
    }
}
