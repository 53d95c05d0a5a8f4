//! Decides what an address or network is (`10.0.0.1`, `10.0.0.0/24`, `fd00::/8`).

use super::{FirewallName, ValueError, text_traits, text_value};
use std::net::IpAddr;

/// An IP address, with or without a prefix length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    text: Box<str>,
    address: IpAddr,
    prefix: Option<u8>,
}

impl Cidr {
    /// Reads `address` or `address/prefix`.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        Self::read(text).ok_or_else(|| {
            ValueError::new(
                "an address or network",
                text,
                "an IPv4 or IPv6 address, with or without `/` and a prefix length",
            )
        })
    }

    fn read(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => None,
            Some(digits) => {
                let plain = (1..=3).contains(&digits.len())
                    && digits.bytes().all(|byte| byte.is_ascii_digit())
                    && (digits == "0" || !digits.starts_with('0'));
                Some(digits.parse::<u8>().ok().filter(|bits| plain && *bits <= longest)?)
            }
        };
        Some(Self { text: text.into(), address, prefix })
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The prefix length, where one was given.
    pub fn prefix(&self) -> Option<u8> {
        self.prefix
    }
}

text_traits!(Cidr);

text_value!(
    /// An address, a network, or a firewall alias (also `dc/alias`, `guest/alias`).
    CidrOrAlias,
    "an address, network or alias",
    "an IP address, a network with its prefix length, or the name of a firewall alias",
    |text| {
        let alias = text.strip_prefix("dc/").or_else(|| text.strip_prefix("guest/")).unwrap_or(text);
        Cidr::parse(text).is_ok() || FirewallName::parse(alias).is_ok()
    }
);
