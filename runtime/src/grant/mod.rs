//! Decides what a token reaches: tools, clusters, guests, nodes, storages, pools, networks, tiers, and how much of them.
//!
//! A kind that a token does not name grants nothing of that kind; without tiers it reads.

mod network;
mod selector;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use pvegate_generated::terms::Tier;

pub use network::{Networks, Reach};
pub use selector::{Guests, Selector};

/// What a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Tools and toolsets.
    pub tools: Scope,
    /// Clusters.
    pub clusters: Scope,
    /// Guests.
    pub guests: Guests,
    /// Nodes that calls may name. The one that the server finds for a guest needs no grant.
    pub nodes: Scope,
    /// Storages.
    pub storages: Scope,
    /// Pools.
    pub pools: Scope,
    /// Networks of NICs.
    pub networks: Networks,
    /// How much calls may hurt.
    pub tiers: Tiers,
    /// How much calls may use up.
    pub caps: Caps,
    /// Operations that may be planned though the tier `destructive` is not granted, by the words of the seed's files
    /// (`delete_vm`). They open nothing else.
    pub plans: BTreeSet<String>,
}

impl Grant {
    /// Everything that reads: what a caller without a token has on stdio.
    pub fn all() -> Self {
        Self {
            tools: Scope::All,
            clusters: Scope::All,
            guests: Guests::All,
            nodes: Scope::All,
            storages: Scope::All,
            pools: Scope::All,
            networks: Networks::All,
            tiers: Tiers::default(),
            caps: Caps::default(),
            plans: BTreeSet::new(),
        }
    }
}

/// The tiers that a token reaches beside reads, which every token does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Calls that act at once.
    pub low: bool,
    /// Plans, which a person approves.
    pub destructive: bool,
}

impl Tiers {
    /// Reads the list of a token.
    pub fn from_texts(texts: &[String]) -> Result<Self, String> {
        let mut tiers = Self::default();
        for text in texts {
            match text.as_str() {
                "read" => {}
                "low" => tiers.low = true,
                "destructive" => tiers.destructive = true,
                _ => {
                    let shown = crate::untrusted::shown(text, 80);
                    return Err(format!("`{shown}` is no tier; there are `read`, `low` and `destructive`"));
                }
            }
        }
        Ok(tiers)
    }

    /// As a file lists them.
    pub fn texts(self) -> Vec<String> {
        let granted = [("read", true), ("low", self.low), ("destructive", self.destructive)];
        granted.into_iter().filter(|(_, granted)| *granted).map(|(tier, _)| tier.to_owned()).collect()
    }

    /// Whether all tiers of `other` are here too.
    pub fn includes(self, other: Self) -> bool {
        (self.low || !other.low) && (self.destructive || !other.destructive)
    }

    /// Whether calls of this tier are granted.
    pub fn allows(self, tier: Tier) -> bool {
        match tier {
            Tier::Read => true,
            Tier::Low => self.low,
            Tier::Destructive => self.destructive,
        }
    }
}

/// Most that the guests which a grant selects may use in a cluster together. None is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Memory of all of them, in MiB.
    pub max_memory_mib: Option<u64>,
    /// Disks of all of them, in GiB.
    pub max_disk_gib: Option<u64>,
    /// How many there are.
    pub max_guests: Option<u64>,
    /// Snapshots of each.
    pub max_snapshots: Option<u64>,
}

impl Caps {
    /// Each with its key in the file.
    pub fn named(self) -> [(&'static str, Option<u64>); 4] {
        [
            ("max_memory_mib", self.max_memory_mib),
            ("max_disk_gib", self.max_disk_gib),
            ("max_guests", self.max_guests),
            ("max_snapshots", self.max_snapshots),
        ]
    }
}

/// A list of names, or all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Nothing.
    #[default]
    None,
    /// `*`. For tools it covers those that change nothing.
    All,
    /// These, at least one.
    Names(BTreeSet<String>),
}

impl Scope {
    /// Most names in one list.
    const MOST: usize = 256;
    /// Longest name, in bytes.
    const LONGEST: usize = 128;

    /// Reads a list from a file: names, or `*` alone.
    pub fn from_names(names: Vec<String>) -> Result<Self, String> {
        if names.is_empty() {
            return Err("has to name something, or `*` for all".to_owned());
        }
        if names.iter().any(|name| name == "*") {
            return if names.len() == 1 {
                Ok(Self::All)
            } else {
                Err("`*` stands for all, so it stands alone".to_owned())
            };
        }
        if names.len() > Self::MOST {
            return Err(format!("holds more than {} names", Self::MOST));
        }
        if let Some(name) = names.iter().find(|name| {
            name.len() > Self::LONGEST
                || name.contains('*')
                || name.chars().any(|c| c.is_control() || c.is_whitespace())
        }) {
            return Err(format!(
                "`{}` is not a name; write whole names, or `*` alone for all",
                crate::untrusted::shown(name, 80)
            ));
        }
        Ok(Self::Names(names.into_iter().collect()))
    }

    /// Whether the name is covered.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Names(names) => names.contains(name),
        }
    }

    /// Whether it is `*`.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// As a file lists them; nothing for nothing.
    pub fn texts(&self) -> Vec<String> {
        if self.is_all() { vec!["*".to_owned()] } else { self.names().map(str::to_owned).collect() }
    }

    /// Whether everything that `other` covers is covered here too.
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::None) => true,
            (_, Self::All) => false,
            (_, Self::Names(names)) => names.iter().all(|name| self.allows(name)),
        }
    }

    /// The names, none for `*`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::None | Self::All => None,
            Self::Names(names) => Some(names),
        };
        names.into_iter().flatten().map(String::as_str)
    }
}
