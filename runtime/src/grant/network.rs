//! Decides which networks NICs may use: bridges and VNets, each untagged or with a range of VLANs.

use std::fmt;

use crate::untrusted::shown;
use crate::values::Iface;

/// The networks that a token may connect guests to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Networks {
    /// None: a call with a NIC needs a plan.
    #[default]
    None,
    /// `*`.
    All,
    /// These.
    Some(Vec<Reach>),
}

/// One bridge or VNet, written `vmbr0` (untagged), `vmbr0:20` or `vmbr0:20-29`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    bridge: Iface,
    /// First and last VLAN; none is untagged.
    vlans: Option<(u16, u16)>,
}

impl Networks {
    /// Reads the list of a token: networks, or `*` alone.
    pub fn from_texts(texts: &[String]) -> Result<Self, String> {
        if texts.iter().any(|text| text == "*") {
            return if texts.len() == 1 {
                Ok(Self::All)
            } else {
                Err("`*` stands for all, so it stands alone".to_owned())
            };
        }
        let networks: Vec<Reach> = texts.iter().map(|text| Reach::parse(text)).collect::<Result<_, _>>()?;
        Ok(if networks.is_empty() { Self::None } else { Self::Some(networks) })
    }

    /// Whether a NIC may use this bridge or VNet with this VLAN, or untagged.
    pub fn covers(&self, bridge: &str, vlan: Option<u16>) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(networks) => networks.iter().any(|network| network.covers(bridge, vlan)),
        }
    }

    /// Whether no network is granted.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// As a file lists them; nothing for nothing.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::All => vec!["*".to_owned()],
            Self::Some(networks) => networks.iter().map(Reach::to_string).collect(),
        }
    }

    /// Whether everything that `other` covers is covered here too.
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::None) => true,
            (_, Self::All) | (Self::None, _) => false,
            (Self::Some(wide), Self::Some(narrow)) => narrow.iter().all(|one| wide.iter().any(|by| by.includes(one))),
        }
    }
}

impl Reach {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{}` is no network; write `vmbr0` (untagged), `vmbr0:20` or `vmbr0:20-29`, or `*` alone",
                shown(text, 80)
            )
        };
        let (bridge, vlans) = match text.split_once(':') {
            None => (text, None),
            Some((bridge, vlans)) => {
                let (first, last) = vlans.split_once('-').unwrap_or((vlans, vlans));
                let (first, last) = (vlan(first).ok_or_else(wrong)?, vlan(last).ok_or_else(wrong)?);
                if first > last {
                    return Err(format!("`{}` ends before it begins", shown(text, 80)));
                }
                (bridge, Some((first, last)))
            }
        };
        Ok(Self { bridge: Iface::parse(bridge).map_err(|_| wrong())?, vlans })
    }

    fn covers(&self, bridge: &str, vlan: Option<u16>) -> bool {
        let covered = match (self.vlans, vlan) {
            (None, None) => true,
            (Some((first, last)), Some(vlan)) => (first..=last).contains(&vlan),
            _ => false,
        };
        covered && self.bridge.as_str() == bridge
    }

    fn includes(&self, other: &Self) -> bool {
        let covered = match (self.vlans, other.vlans) {
            (None, None) => true,
            (Some((first, last)), Some((from, to))) => first <= from && to <= last,
            _ => false,
        };
        covered && self.bridge == other.bridge
    }
}

/// A VLAN's number, 1 to 4094, without leading zeros.
fn vlan(text: &str) -> Option<u16> {
    let plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|vlan| plain && (1..=4094).contains(vlan))
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.bridge.as_str())?;
        match self.vlans {
            None => Ok(()),
            Some((first, last)) if first == last => write!(f, ":{first}"),
            Some((first, last)) => write!(f, ":{first}-{last}"),
        }
    }
}
