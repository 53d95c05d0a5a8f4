//! The named formats of the schema: what PVE's own verifiers accept, and what they say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Checks a text against a named format. A name that is not known here accepts everything: its grammar is looser than a
/// list of characters, and the handlers look at it.
pub(super) fn check(name: &str, text: &str) -> Result<(), String> {
    if let Some(item) = name.strip_suffix("-list")
        && !matches!(name, "pve-ha-node-list")
    {
        return text
            .split([',', ';', ' ', '\0', '\t', '\n'])
            .filter(|part| !part.is_empty())
            .try_for_each(|part| check(item, part));
    }
    if let Some(item) = name.strip_suffix("-opt") {
        return if text.is_empty() { Ok(()) } else { check(item, text) };
    }
    let (fits, complaint) = judge(name, text);
    if fits { Ok(()) } else { Err(complaint) }
}

fn judge(name: &str, text: &str) -> (bool, String) {
    let like = |what: &str| format!("value does not look like a valid {what}");
    match name {
        "pve-vmid" => (vmid(text), like("VM ID")),
        "pve-node" => (label(text), like("node name")),
        "pve-configid" => {
            (text.len() > 1 && starts_alpha(text) && all(text, "_-"), format!("invalid configuration ID '{text}'"))
        }
        "pve-storage-id" => (
            text.len() > 1 && starts_alpha(text) && all(text, "_.-") && ends_alnum(text),
            format!("storage ID '{text}' contains illegal characters"),
        ),
        "pve-poolid" => (
            !text.is_empty()
                && text.split('/').count() <= 3
                && text.split('/').all(|step| !step.is_empty() && all(step, "_.-")),
            format!("value '{text}' does not look like a valid pool name"),
        ),
        "pve-groupid" => {
            (!text.is_empty() && all(text, "_.-"), format!("group name '{text}' contains invalid characters"))
        }
        "pve-roleid" => {
            (!text.is_empty() && all(text, "_.-"), format!("role name '{text}' contains invalid characters"))
        }
        "pve-realm" => (text.len() > 1 && starts_alpha(text) && all(text, "_.-"), like("realm")),
        "pve-userid" => (userid(text), format!("value '{text}' does not look like a valid user name")),
        "pve-tokenid" => (
            text.split_once('!').is_some_and(|(user, token)| userid(user) && starts_alpha(token) && all(token, "_.-")),
            format!("value '{text}' does not look like a valid token ID"),
        ),
        "pve-priv" => (crate::access::is_privilege(text), format!("invalid privilege '{text}'")),
        "dns-name" | "pve-storage-portal-dns" => (dns(text), like("DNS name")),
        "email" | "email-or-username" => (
            text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
                || (name == "email-or-username" && userid(text)),
            like("email address"),
        ),
        "ip" | "address" => (text.parse::<IpAddr>().is_ok() || (name == "address" && dns(text)), like("IP address")),
        "ipv4" => (text.parse::<Ipv4Addr>().is_ok(), like("IPv4 address")),
        "ipv6" => (text.parse::<Ipv6Addr>().is_ok(), like("IPv6 address")),
        "CIDR" | "FullRangeCIDR" => (cidr(text, None), like("CIDR network")),
        "CIDRv4" => (cidr(text, Some(32)), like("IPv4 network")),
        "CIDRv6" => (cidr(text, Some(128)), like("IPv6 network")),
        "IPorCIDR" => (text.parse::<IpAddr>().is_ok() || cidr(text, None), like("IP address or CIDR network")),
        "IPorCIDRorAlias" => (
            text.parse::<IpAddr>().is_ok()
                || cidr(text, None)
                || (starts_alpha(text) && all(text, "_-"))
                || text.starts_with("dc/")
                || text.starts_with("guest/"),
            like("IP address, CIDR network or alias"),
        ),
        "pve-ipv4-config" => {
            (text == "dhcp" || text == "manual" || cidr(text, Some(32)), like("ipv4 network configuration"))
        }
        "pve-ipv6-config" => {
            (matches!(text, "auto" | "dhcp" | "manual") || cidr(text, Some(128)), like("ipv6 network configuration"))
        }
        "mac-addr" => (mac(text), like("unicast MAC address")),
        "pve-iface" | "pve-bridge-id" => (
            (2..=20).contains(&text.len()) && starts_alpha(text) && all(text, "_.:-"),
            format!("invalid network interface name '{text}'"),
        ),
        "pve-tag" => (
            !text.is_empty() && all(text, "_-+.") && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'),
            "invalid characters in tag".to_owned(),
        ),
        "pve-storage-content" => (
            matches!(text, "images" | "rootdir" | "vztmpl" | "iso" | "backup" | "snippets" | "import" | "none"),
            format!("invalid content type '{text}'"),
        ),
        "pve-volume-id" => (volume(text), format!("unable to parse volume ID '{text}'")),
        "pve-ha-resource-id" | "pve-ha-resource-or-vm-id" => (
            text.split_once(':').is_some_and(|(kind, id)| starts_alpha(kind) && !id.is_empty() && all(id, "_.-"))
                || (name == "pve-ha-resource-or-vm-id" && vmid(text)),
            like("ha resource id"),
        ),
        "pve-replication-job-id" => (
            text.split_once('-').is_some_and(|(guest, number)| {
                vmid(guest) && !number.is_empty() && number.len() < 10 && number.bytes().all(|b| b.is_ascii_digit())
            }),
            format!("invalid replication job id '{text}'"),
        ),
        "urlencoded" => (
            text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.!~*'()%".contains(&b)),
            format!("invalid urlencoded string: {text}"),
        ),
        "disk-size" => (size(text), like("disk size")),
        _ => (true, String::new()),
    }
}

pub(crate) fn vmid(text: &str) -> bool {
    (3..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0')
}

fn all(text: &str, also: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

fn starts_alpha(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn ends_alnum(text: &str) -> bool {
    text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

fn label(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && ends_alnum(text) && all(text, "-")
}

fn dns(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63 && label(part))
}

pub(crate) fn userid(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(user, realm)| {
        !user.is_empty()
            && text.len() <= 64
            && !user.contains([':', '/', ' ', '!'])
            && starts_alpha(realm)
            && all(realm, "_.-")
    })
}

fn cidr(text: &str, bits: Option<u8>) -> bool {
    let Some((address, mask)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.is_none_or(|bits| bits == most) && mask.parse::<u8>().is_ok_and(|mask| mask <= most)
}

fn mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6
        && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))
        && parts.first().is_some_and(|first| u8::from_str_radix(first, 16).is_ok_and(|byte| byte & 1 == 0))
}

fn volume(text: &str) -> bool {
    text.split_once(':').is_some_and(|(storage, name)| starts_alpha(storage) && all(storage, "_.-") && !name.is_empty())
}

fn size(text: &str) -> bool {
    let digits = text.strip_suffix(['K', 'M', 'G', 'T']).unwrap_or(text);
    !digits.is_empty() && digits.parse::<f64>().is_ok()
}
