//! Decides which guests a grant selects: by number, tag, pool, node or kind, or all of them.

use std::fmt;

use crate::snapshot::{GuestKind, GuestRow};
use crate::untrusted::shown;
use crate::values::{NodeName, PoolId, Tag, Vmid};

/// The guests that a token reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Guests {
    /// No guest.
    #[default]
    None,
    /// `*`.
    All,
    /// Those that at least one of these selects.
    Some(Vec<Selector>),
}

/// One way to select guests, written `vmid:600-699`, `tag:ci`, `pool:lab`, `node:a` or `type:qemu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By number, both ends included.
    Vmids(Vmid, Vmid),
    /// By a tag, in lower case: PVE's tags have no case unless an administrator gives them one.
    Tag(String),
    /// By pool; pools below it are not meant.
    Pool(PoolId),
    /// By the node that they are on.
    Node(NodeName),
    /// By kind.
    Kind(GuestKind),
}

impl Guests {
    /// Reads the list of a token: selectors, or `*` alone.
    pub fn from_texts(texts: &[String]) -> Result<Self, String> {
        if texts.iter().any(|text| text == "*") {
            return if texts.len() == 1 {
                Ok(Self::All)
            } else {
                Err("`*` stands for all, so it stands alone".to_owned())
            };
        }
        let selectors: Vec<Selector> = texts.iter().map(|text| Selector::parse(text)).collect::<Result<_, _>>()?;
        Ok(if selectors.is_empty() { Self::None } else { Self::Some(selectors) })
    }

    /// Whether it is `*`.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether it selects this guest as it is listed.
    pub fn covers(&self, guest: &GuestRow) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(selectors) => selectors.iter().any(|selector| selector.covers(guest)),
        }
    }

    /// Whether a guest of this number may be made, in this pool if any. Tags, nodes and kinds cover no guest that is not
    /// there yet: whoever makes it could choose them.
    pub fn covers_new(&self, vmid: Vmid, pool: Option<&str>) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(selectors) => selectors.iter().any(|selector| match selector {
                Selector::Vmids(first, last) => (*first..=*last).contains(&vmid),
                Selector::Pool(selected) => pool == Some(selected.as_str()),
                Selector::Tag(_) | Selector::Node(_) | Selector::Kind(_) => false,
            }),
        }
    }

    /// The selectors, none for `*`.
    pub fn selectors(&self) -> &[Selector] {
        match self {
            Self::Some(selectors) => selectors,
            Self::None | Self::All => &[],
        }
    }

    /// As a file lists them; nothing for nothing.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::All => vec!["*".to_owned()],
            Self::Some(selectors) => selectors.iter().map(Selector::to_string).collect(),
        }
    }

    /// Whether everything that `other` selects is selected here too, as far as the texts tell.
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::None) => true,
            (_, Self::All) | (Self::None, _) => false,
            (Self::Some(wide), Self::Some(narrow)) => narrow.iter().all(|one| wide.iter().any(|by| by.includes(one))),
        }
    }
}

impl Selector {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{}` selects no guests; write `vmid:600`, `vmid:600-699`, `tag:NAME`, `pool:NAME`, `node:NAME`, `type:qemu` or `type:lxc`, or `*` alone",
                shown(text, 80)
            )
        };
        let (kind, value) = text.split_once(':').ok_or_else(wrong)?;
        match kind {
            "vmid" => {
                let (first, last) = value.split_once('-').unwrap_or((value, value));
                let (first, last) = (Vmid::parse(first).map_err(|_| wrong())?, Vmid::parse(last).map_err(|_| wrong())?);
                if first > last {
                    return Err(format!("`{}` ends before it begins", shown(text, 80)));
                }
                Ok(Self::Vmids(first, last))
            }
            "tag" => Tag::parse(value).map(|tag| Self::Tag(tag.as_str().to_lowercase())).map_err(|_| wrong()),
            "pool" => PoolId::parse(value).map(Self::Pool).map_err(|_| wrong()),
            "node" => NodeName::parse(value).map(Self::Node).map_err(|_| wrong()),
            "type" => match value {
                "qemu" => Ok(Self::Kind(GuestKind::Qemu)),
                "lxc" => Ok(Self::Kind(GuestKind::Lxc)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    fn covers(&self, guest: &GuestRow) -> bool {
        match self {
            Self::Vmids(first, last) => (*first..=*last).contains(&guest.vmid),
            Self::Tag(tag) => guest.has_tag(tag),
            Self::Pool(pool) => guest.pool.as_deref() == Some(pool.as_str()),
            Self::Node(node) => guest.node == *node,
            Self::Kind(kind) => guest.kind == *kind,
        }
    }

    fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Vmids(first, last), Self::Vmids(from, to)) => first <= from && to <= last,
            _ => self == other,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vmids(first, last) if first == last => write!(f, "vmid:{first}"),
            Self::Vmids(first, last) => write!(f, "vmid:{first}-{last}"),
            Self::Tag(tag) => write!(f, "tag:{tag}"),
            Self::Pool(pool) => write!(f, "pool:{}", pool.as_str()),
            Self::Node(node) => write!(f, "node:{node}"),
            Self::Kind(kind) => write!(f, "type:{kind}"),
        }
    }
}
