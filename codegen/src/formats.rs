//! The apidoc's named formats. The apidoc gives a format's name and nothing of its grammar,
//! so every name has to be registered here; one that is not fails the build.

use crate::terms::Value;

/// What a named format means for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One string.
    One(Value),
    /// Several in one string.
    Many(Value),
    /// A property string whose grammar the apidoc does not have: passed on as it is.
    Opaque,
}

/// Looks a format up.
pub fn format(name: &str) -> Option<Format> {
    REGISTRY
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()
        .and_then(|at| REGISTRY.get(at))
        .map(|(_, format)| *format)
}

use Format::{Many, One, Opaque};

/// Sorted by name.
const REGISTRY: &[(&str, Format)] = &[
    ("CIDR", One(Value::Cidr)),
    ("CIDRv4", One(Value::Cidr)),
    ("CIDRv6", One(Value::Cidr)),
    ("FullRangeCIDR", One(Value::Plain)),
    ("IPorCIDR", One(Value::Cidr)),
    ("IPorCIDRorAlias", One(Value::CidrOrAlias)),
    ("address", One(Value::Plain)),
    ("address-list", Many(Value::Plain)),
    ("backup-fleecing", Opaque),
    ("backup-performance", Opaque),
    ("bridge-pair-list", Many(Value::Plain)),
    ("disk-size", One(Value::Size)),
    ("dns-name", One(Value::DnsName)),
    ("dns-name-list", Many(Value::DnsName)),
    ("email-list", Many(Value::Plain)),
    ("email-opt", One(Value::Plain)),
    ("email-or-username", One(Value::Plain)),
    ("email-or-username-list", Many(Value::Plain)),
    ("graphite-path", One(Value::Plain)),
    ("ip", One(Value::Plain)),
    ("ip-list", Many(Value::Plain)),
    ("ipv4", One(Value::Plain)),
    ("ipv4mask", One(Value::Plain)),
    ("ipv6", One(Value::Plain)),
    ("ldap-simple-attr", One(Value::Plain)),
    ("ldap-simple-attr-list", Many(Value::Plain)),
    ("lxc-ip-with-ll-iface-list", Many(Value::Plain)),
    ("mac-addr", One(Value::Mac)),
    ("mac-prefix", One(Value::Plain)),
    ("pem-certificate-chain", One(Value::Plain)),
    ("pem-string", One(Value::Plain)),
    ("proxmox-remote", Opaque),
    ("prune-backups", Opaque),
    ("pve-acme-alias", One(Value::Plain)),
    ("pve-acme-domain", One(Value::Plain)),
    ("pve-acme-domain-list", Many(Value::Plain)),
    ("pve-bridge-id", One(Value::Iface)),
    ("pve-bridge-id-list", Many(Value::Iface)),
    ("pve-calendar-event", One(Value::Plain)),
    ("pve-command-batch", One(Value::Plain)),
    ("pve-configid", One(Value::ConfigId)),
    ("pve-configid-list", Many(Value::ConfigId)),
    ("pve-cpuset", One(Value::Plain)),
    ("pve-ct-timezone", One(Value::Plain)),
    ("pve-day-of-week-list", Many(Value::Plain)),
    ("pve-dir-override-list", Many(Value::Plain)),
    ("pve-fw-addr-spec", One(Value::Plain)),
    ("pve-fw-conntrack-helper", One(Value::Plain)),
    ("pve-fw-dport-spec", One(Value::Plain)),
    ("pve-fw-icmp-type-spec", One(Value::Plain)),
    ("pve-fw-protocol-spec", One(Value::Plain)),
    ("pve-fw-sport-spec", One(Value::Plain)),
    ("pve-groupid", One(Value::Plain)),
    ("pve-groupid-list", Many(Value::Plain)),
    ("pve-ha-group-node-list", Many(Value::NodePriority)),
    ("pve-ha-node-list", Many(Value::NodePriority)),
    ("pve-ha-resource-id-list", Many(Value::Plain)),
    ("pve-ha-resource-or-vm-id", One(Value::Plain)),
    ("pve-hotplug-features", One(Value::Plain)),
    ("pve-iface", One(Value::Iface)),
    ("pve-iface-list", Many(Value::Iface)),
    ("pve-ipv4-config", One(Value::Plain)),
    ("pve-ipv6-config", One(Value::Plain)),
    ("pve-lxc-dev-string", Opaque),
    ("pve-lxc-mp-string", Opaque),
    ("pve-node", One(Value::Node)),
    ("pve-node-list", Many(Value::Node)),
    ("pve-phys-bits", One(Value::Plain)),
    ("pve-poolid", One(Value::Pool)),
    ("pve-priv-list", Many(Value::Plain)),
    ("pve-qemu-sev-fmt", Opaque),
    ("pve-qemu-tdx-fmt", Opaque),
    ("pve-qm-boot", Opaque),
    ("pve-qm-bootdisk", One(Value::Plain)),
    ("pve-qm-cicustom", Opaque),
    ("pve-qm-hostpci", Opaque),
    ("pve-qm-ide", Opaque),
    ("pve-qm-ipconfig", Opaque),
    ("pve-qm-rng", Opaque),
    ("pve-qm-smbios1", Opaque),
    ("pve-qm-watchdog", Opaque),
    ("pve-realm", One(Value::Plain)),
    ("pve-replication-job-id", One(Value::Plain)),
    ("pve-roleid", One(Value::Plain)),
    ("pve-roleid-list", Many(Value::Plain)),
    ("pve-sdn-bgp-rt-list", Many(Value::Plain)),
    ("pve-sdn-controller-id", One(Value::Plain)),
    ("pve-sdn-dhcp-range", One(Value::Plain)),
    ("pve-sdn-dns-id", One(Value::Plain)),
    ("pve-sdn-fabric-id", One(Value::Plain)),
    ("pve-sdn-fabric-wireguard-interface", One(Value::Plain)),
    ("pve-sdn-ipam-id", One(Value::Plain)),
    ("pve-sdn-isis-net", One(Value::Plain)),
    ("pve-sdn-prefix-list-id", One(Value::Plain)),
    ("pve-sdn-route-map-id", One(Value::Plain)),
    ("pve-sdn-subnet-id", One(Value::Plain)),
    ("pve-sdn-vnet-id", One(Value::Plain)),
    ("pve-sdn-zone-id", One(Value::Plain)),
    ("pve-startup-order", Opaque),
    ("pve-storage-content", One(Value::Plain)),
    ("pve-storage-content-list", Many(Value::Plain)),
    ("pve-storage-id", One(Value::Storage)),
    ("pve-storage-id-list", Many(Value::Storage)),
    ("pve-storage-options", Opaque),
    ("pve-storage-path", One(Value::Plain)),
    ("pve-storage-path-in-property-string", One(Value::Plain)),
    ("pve-storage-portal-dns", One(Value::Plain)),
    ("pve-storage-portal-dns-list", Many(Value::Plain)),
    ("pve-storage-server", One(Value::Plain)),
    ("pve-storage-vgname", One(Value::Plain)),
    ("pve-storage-zfs-blocksize", One(Value::Plain)),
    ("pve-tag-list", Many(Value::Tag)),
    ("pve-task-status-type-list", Many(Value::Plain)),
    ("pve-tfa-config", Opaque),
    ("pve-tokenid-list", Many(Value::Plain)),
    ("pve-userid", One(Value::User)),
    ("pve-userid-list", Many(Value::User)),
    ("pve-vlan-id-or-range-list", Many(Value::Plain)),
    ("pve-vm-cpu-conf", Opaque),
    ("pve-vmid", One(Value::Vmid)),
    ("pve-vmid-list", Many(Value::Vmid)),
    ("pve-volume-id", One(Value::Volume)),
    ("pve-volume-id-or-absolute-path", One(Value::VolumeOrPath)),
    ("pve-volume-id-or-qm-path", One(Value::Drive)),
    ("realm-sync-options", Opaque),
    ("storage-pair-list", Many(Value::Plain)),
    ("string", One(Value::Plain)),
    ("string-list", Many(Value::Plain)),
    ("urlencoded", One(Value::Encoded)),
];

#[cfg(test)]
mod tests {
    use super::REGISTRY;

    #[test]
    fn the_registry_is_sorted_for_its_search() {
        assert!(REGISTRY.is_sorted_by(|(one, _), (next, _)| one < next));
    }
}
