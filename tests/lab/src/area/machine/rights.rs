//! What each option of a guest needs beyond the schema's check, and which options only `root@pam` itself may set.

use crate::answer::Refusal;
use crate::area::Call;
use crate::state::Cluster;
use crate::state::disk::{is_drive, is_mount};
use crate::state::guest::Guest;
use crate::state::property::Property;

/// Options of a VM that no token may set.
const ROOT: [&str; 13] = [
    "affinity",
    "amd-sev",
    "arch",
    "args",
    "hookscript",
    "hugepages",
    "intel-tdx",
    "ivshmem",
    "keephugepages",
    "lock",
    "parallel",
    "spice_enhancements",
    "vmgenid",
];

/// The name of an option without its index.
pub(super) fn stem(key: &str) -> &str {
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    if matches!(
        stem,
        "net"
            | "ide"
            | "scsi"
            | "sata"
            | "virtio"
            | "ipconfig"
            | "serial"
            | "usb"
            | "hostpci"
            | "numa"
            | "mp"
            | "dev"
            | "unused"
            | "parallel"
            | "virtiofs"
            | "efidisk"
            | "tpmstate"
            | "audio"
            | "rng"
    ) {
        stem
    } else {
        key
    }
}

/// Checks an option of a VM that is set to a value, or removed where there is none. Drives are looked at by their values.
pub(super) fn qemu(
    cluster: &Cluster,
    call: &Call<'_>,
    path: &str,
    guest: Option<&Guest>,
    (key, value): (&str, Option<&str>),
) -> Result<(), Refusal> {
    let need = |privilege: &str| need(cluster, call, path, &[privilege]);
    let old = guest.and_then(|guest| guest.value(key));
    match stem(key) {
        name if ROOT.contains(&name) => {
            // A drawn generation id is everyone's.
            if name == "vmgenid" && value == Some("1") {
                return need("VM.Config.HWType");
            }
            let verb = if value.is_some() { "set" } else { "delete" };
            Err(Refusal::failed(format!("only root can {verb} '{key}' config")))
        }
        "cores" | "cpu" | "cpulimit" | "cpuunits" | "numa" | "smp" | "sockets" | "vcpus" => need("VM.Config.CPU"),
        "memory" | "balloon" | "shares" | "allow-ksm" => need("VM.Config.Memory"),
        "acpi" | "hotplug" | "kvm" | "machine" | "scsihw" | "smbios1" | "tablet" | "vga" | "watchdog" | "audio"
        | "rng" => need("VM.Config.HWType"),
        "serial" => {
            let socket = |text: Option<&str>| text.is_none_or(|text| text == "socket");
            if socket(value) && socket(old.as_deref()) {
                need("VM.Config.HWType")
            } else {
                let verb = if value.is_some() { "modify" } else { "delete" };
                Err(Refusal::failed(format!("only root can {verb} '{key}' config for real devices")))
            }
        }
        "usb" | "hostpci" => {
            need("VM.Config.HWType")?;
            for text in [value, old.as_deref()].into_iter().flatten() {
                device(cluster, call, key, text)?;
            }
            Ok(())
        }
        "freeze" => need("VM.PowerMgmt"),
        "boot" | "bootdisk" | "vmstatestorage" | "unused" | "virtiofs" => need("VM.Config.Disk"),
        "vmstate" => {
            need("VM.Config.Disk")?;
            need("VM.PowerMgmt")
        }
        "net" => {
            need("VM.Config.Network")?;
            plugged(cluster, call, [value, old.as_deref()])
        }
        "cicustom" | "cipassword" | "citype" | "ciuser" | "ciupgrade" | "nameserver" | "searchdomain" | "sshkeys"
        | "ipconfig" => self::need(cluster, call, path, &["VM.Config.Cloudinit", "VM.Config.Network"]),
        "startup" => {
            need("VM.Config.Options")?;
            self::need(cluster, call, "/", &["Sys.Modify"])
        }
        _ if is_drive(key) => {
            if guest.is_none() {
                return Ok(());
            }
            let all: Vec<&str> = [value, old.as_deref()].into_iter().flatten().collect();
            for text in &all {
                need(if text.contains("media=cdrom") { "VM.Config.CDROM" } else { "VM.Config.Disk" })?;
            }
            if all.is_empty() { need("VM.Config.Disk") } else { Ok(()) }
        }
        _ => need("VM.Config.Options"),
    }
}

/// The networks that a card is plugged into, and was, have to be the caller's to use.
fn plugged(cluster: &Cluster, call: &Call<'_>, cards: [Option<&str>; 2]) -> Result<(), Refusal> {
    for card in cards.into_iter().flatten() {
        let card = Property::read(card, &[]);
        let Some(bridge) = card.get("bridge") else { continue };
        let zone = cluster.sections.get("/cluster/sdn/vnets", bridge).and_then(|vnet| vnet.get("zone")?.as_str());
        let path = format!("/sdn/zones/{}/{bridge}", zone.unwrap_or("localnetwork"));
        let trunks = card.get("trunks").unwrap_or_default().split(';').filter(|trunk| !trunk.is_empty());
        let vlans: Vec<&str> = card.get("tag").into_iter().chain(trunks).collect();
        if vlans.is_empty() {
            need(cluster, call, &path, &["SDN.Use"])?;
        }
        for vlan in vlans {
            need(cluster, call, &format!("{path}/{vlan}"), &["SDN.Use"])?;
        }
    }
    Ok(())
}

/// A device of the host is root's; a mapped one belongs to who may use the mapping.
fn device(cluster: &Cluster, call: &Call<'_>, key: &str, text: &str) -> Result<(), Refusal> {
    let kind = if key.starts_with("usb") { "usb" } else { "pci" };
    let property = Property::read(text, &["host"]);
    match property.get("mapping") {
        Some(mapping) => need(cluster, call, &format!("/mapping/{kind}/{mapping}"), &["Mapping.Use"]),
        None if property.first.eq_ignore_ascii_case("spice") => Ok(()),
        None => Err(Refusal::failed(format!("only root can set '{key}' config for non-mapped devices"))),
    }
}

/// Checks an option of a container.
pub(super) fn lxc(
    cluster: &Cluster,
    call: &Call<'_>,
    path: &str,
    unprivileged: bool,
    (key, value): (&str, Option<&str>),
) -> Result<(), Refusal> {
    let need = |privilege: &str| need(cluster, call, path, &[privilege]);
    match stem(key) {
        "cores" | "cpulimit" | "cpuunits" => need("VM.Config.CPU"),
        "memory" | "swap" => need("VM.Config.Memory"),
        "net" => {
            need("VM.Config.Network")?;
            plugged(cluster, call, [value, None])
        }
        "hostname" | "nameserver" | "searchdomain" => need("VM.Config.Network"),
        _ if is_mount(key) => {
            need("VM.Config.Disk")?;
            if value.is_some_and(|text| text.starts_with('/')) {
                return Err(Refusal::forbidden(&format!(
                    "mount point type {} is only allowed for root@pam",
                    kind_of(value)
                )));
            }
            Ok(())
        }
        "features" if !unprivileged => {
            Err(Refusal::forbidden("changing feature flags for privileged container is only allowed for root@pam"))
        }
        "features" => {
            let only_nesting = value.is_none_or(|text| text.split(',').all(|part| part.starts_with("nesting=")));
            if only_nesting {
                need("VM.Allocate")
            } else {
                Err(Refusal::forbidden("changing feature flags (except nesting) is only allowed for root@pam"))
            }
        }
        "dev" => Err(Refusal::forbidden("configuring device passthrough is only allowed for root@pam")),
        "hookscript" => Err(Refusal::forbidden("changing the hookscript is only allowed for root@pam")),
        _ => need("VM.Config.Options"),
    }
}

fn kind_of(value: Option<&str>) -> &'static str {
    if value.is_some_and(|text| text.starts_with("/dev/")) { "device" } else { "bind" }
}

/// One of some privileges at a path.
pub(super) fn need(cluster: &Cluster, call: &Call<'_>, path: &str, privileges: &[&str]) -> Result<(), Refusal> {
    if call.may(cluster, path, privileges) {
        Ok(())
    } else {
        Err(Refusal::forbidden(&format!("{path}, {}", privileges.join("|"))))
    }
}

/// Where the rights to a new or existing guest are looked up.
pub(super) fn place(vmid: u32, pool: Option<&str>, cluster: &Cluster, call: &Call<'_>) -> String {
    let own = format!("/vms/{vmid}");
    match pool {
        Some(pool) if !call.may(cluster, &own, &["VM.Allocate"]) => format!("/pool/{pool}"),
        _ => own,
    }
}

/// What making a new guest of either kind needs.
pub(super) fn make(cluster: &Cluster, call: &Call<'_>, vmid: u32) -> Result<(), Refusal> {
    let pool = call.given("pool");
    if let Some(pool) = pool
        && !cluster.pools.contains_key(pool)
    {
        return Err(Refusal::failed(format!("pool '{pool}' does not exist")));
    }
    if call.may(cluster, &format!("/vms/{vmid}"), &["VM.Allocate"])
        || pool.is_some_and(|pool| call.may(cluster, &format!("/pool/{pool}"), &["VM.Allocate"]))
    {
        return Ok(());
    }
    let restores = cluster.guests.contains_key(&vmid)
        && call.flag("force")
        && (call.given("archive").is_some() || call.flag("restore"))
        && call.may(cluster, &format!("/vms/{vmid}"), &["VM.Backup"]);
    if restores { Ok(()) } else { Err(Refusal::new(403, "Permission check failed")) }
}
