//! Decides the grammars of names without inner structure: nodes, storages, pools, snapshots, interfaces, tags.

use super::{ValueError, text_traits, text_value};

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// First byte, bytes between, last byte; a single byte has to be good as the first and the last one.
fn framed(text: &str, first: fn(u8) -> bool, between: fn(u8) -> bool, last: fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => first(*only) && last(*only),
        [start, middle @ .., end] => first(*start) && middle.iter().all(|byte| between(*byte)) && last(*end),
    }
}

text_value!(
    /// A cluster node. `localhost` is refused although PVE takes it: it would mean whichever node answers.
    NodeName,
    "a node name",
    "letters, digits and inner hyphens, exactly as the cluster lists it, and not localhost",
    |text| text.len() <= 63
        && !text.eq_ignore_ascii_case("localhost")
        && framed(text, alphanumeric, |byte| alphanumeric(byte) || byte == b'-', alphanumeric)
);

/// A node in a rule of the HA manager, with or without its priority there (`pve1:2`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePriority {
    text: Box<str>,
    node: NodeName,
}

impl NodePriority {
    /// Reads `node` or `node:priority`.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let (node, priority) = text.split_once(':').map_or((text, None), |(node, priority)| (node, Some(priority)));
        let good = priority
            .is_none_or(|digits| (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()));
        match NodeName::parse(node) {
            Ok(node) if good => Ok(Self { text: text.into(), node }),
            _ => Err(ValueError::new(
                "a node with its priority",
                text,
                "a node's name, and `:` and a number for its priority",
            )),
        }
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The node.
    pub fn node(&self) -> &NodeName {
        &self.node
    }
}

text_traits!(NodePriority);

text_value!(
    /// A storage.
    StorageId,
    "a storage name",
    "a letter, then letters, digits, `-`, `_` and `.`, ending in a letter or digit",
    is_storage
);

/// Shared with volume ids, which begin with a storage.
pub(super) fn is_storage(text: &str) -> bool {
    (2..=100).contains(&text.len())
        && !text.contains("..")
        && framed(
            text,
            |byte| byte.is_ascii_alphabetic(),
            |byte| alphanumeric(byte) || matches!(byte, b'-' | b'_' | b'.'),
            alphanumeric,
        )
}

fn is_config_id(text: &str) -> bool {
    let word = |byte: u8| alphanumeric(byte) || matches!(byte, b'-' | b'_');
    text.len() >= 2 && text.len() <= 128 && framed(text, |byte| byte.is_ascii_alphabetic(), word, word)
}

text_value!(
    /// The id of an entry in PVE's configuration files.
    ConfigId,
    "an id",
    "a letter, then letters, digits, `-` and `_`, at least two characters",
    is_config_id
);

text_value!(
    /// A snapshot of a guest.
    SnapshotName,
    "a snapshot name",
    "a letter, then letters, digits, `-` and `_`, 2 to 40 characters",
    |text| text.len() <= 40 && is_config_id(text)
);

text_value!(
    /// A resource pool; nested ones hold slashes (`lab/web/front`, three levels at most).
    PoolId,
    "a pool name",
    "up to three parts of letters, digits, `.`, `-` and `_`, with `/` between them",
    |text| text.len() <= 200
        && text.split('/').count() <= 3
        && text.split('/').all(|part| {
            !part.is_empty() && !matches!(part, "." | "..") && part.bytes().all(|byte| alphanumeric(byte) || matches!(byte, b'-' | b'_' | b'.'))
        })
);

text_value!(
    /// A network interface or bridge, with VLAN or alias part (`eno1.20`, `vmbr0:1`).
    Iface,
    "a network interface name",
    "letters, digits, `_`, `-`, `.` and `:`, beginning with a letter or digit, up to 40 characters",
    |text| (1..=40).contains(&text.len())
        && !text.contains("..")
        && framed(text, alphanumeric, |byte| alphanumeric(byte) || matches!(byte, b'_' | b'-' | b'.' | b':'), |byte| alphanumeric(byte) || byte == b'_')
);

text_value!(
    /// A host name, with or without its domain. PVE takes it for the names of guests.
    DnsName,
    "a DNS name",
    "letters, digits and inner hyphens, with dots between labels, up to 255 characters; no underscores",
    |text| text.len() <= 255
        && text.split('.').all(|label| framed(label, alphanumeric, |byte| alphanumeric(byte) || byte == b'-', alphanumeric))
);

text_value!(
    /// A firewall alias, IP set or security group.
    FirewallName,
    "a firewall object name",
    "a letter, then letters, digits, `-` and `_`, 2 to 64 characters",
    |text| text.len() <= 64 && is_config_id(text)
);

text_value!(
    /// A guest tag. PVE compares tags without case.
    Tag,
    "a tag",
    "letters, digits, `_`, and after the first character also `-`, `+` and `.`",
    |text| text.len() <= 124
        && text.bytes().next().is_some_and(|byte| alphanumeric(byte) || byte == b'_')
        && text.bytes().all(|byte| alphanumeric(byte) || matches!(byte, b'_' | b'-' | b'+' | b'.'))
);

text_value!(
    /// A MAC address of one interface.
    Mac,
    "a MAC address",
    "six pairs of hex digits with `:` between them, not a multicast address",
    |text| {
        let mut pairs = 0;
        let shape = text.split(':').all(|pair| {
            pairs += 1;
            pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        // The lowest bit of the first octet marks groups.
        let group = text.get(..2).and_then(|first| u8::from_str_radix(first, 16).ok()).is_none_or(|first| first & 1 == 1);
        shape && pairs == 6 && !group
    }
);
