//! Which IP addresses are public: reachable by everybody, and no way into a network that is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is a public one.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

fn v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        // Broadcast is in the last block, which is reserved as a whole.
        || a >= 240
        // Shared by carriers.
        || (a == 100 && (64..128).contains(&b))
        // Protocol assignments, relays to IPv6, measurements.
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b)))
}

fn v6(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return v4(mapped);
    }
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() {
        // Translated to IPv4.
        return v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    }
    let [first, second, ..] = address.segments();
    // Global unicast, without what tunnels into IPv4, is reserved, or stands in documents.
    (0x2000..0x4000).contains(&first)
        && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
        && first != 0x2002
        && !(first == 0x3fff && second < 0x1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_everybody_reaches_is_public() {
        let parse = |text: &&str| text.parse().ok().is_some_and(is_public);
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "100.63.255.255",
            "100.128.0.0",
            "172.32.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00::1",
            "2001:200::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(parse(&public), "{public}");
        }
        for other in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "3fff::1",
            "4000::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!parse(&other), "{other}");
        }
    }
}
