//! The releases of PVE that can be simulated, and in what they differ.

use serde_json::{Value, json};

/// The releases that can be simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Release {
    /// 8.4: groups instead of rules in HA, and errors that only the reason phrase tells.
    Old,
    /// 9.2
    #[default]
    Present,
}

impl Release {
    /// Its pinned apidoc.
    pub(crate) const fn apidoc(self) -> &'static str {
        match self {
            Self::Old => include_str!("../../../schema/pve-8.4/apidoc.json"),
            Self::Present => include_str!("../../../schema/pve-9.2/apidoc.json"),
        }
    }

    const fn number(self) -> (&'static str, &'static str) {
        match self {
            Self::Old => ("8.4.16", "8.4"),
            Self::Present => ("9.2.11", "9.2"),
        }
    }

    /// What `GET /version` answers.
    pub(crate) fn version(self) -> Value {
        let (version, release) = self.number();
        json!({"version": version, "release": release, "repoid": "1a2b3c4d"})
    }

    /// The package that a node's state names.
    pub(crate) fn manager(self) -> String {
        format!("pve-manager/{}/1a2b3c4d", self.number().0)
    }

    pub(crate) const fn kernel(self) -> &'static str {
        match self {
            Self::Old => "6.8.12-17-pve",
            Self::Present => "6.17.4-1-pve",
        }
    }

    /// Whether HA has rules instead of groups.
    pub(crate) const fn has_rules(self) -> bool {
        matches!(self, Self::Present)
    }

    /// Whether the body of an error tells it too.
    pub(crate) const fn tells_errors(self) -> bool {
        matches!(self, Self::Present)
    }
}
