//! Decides what a single value may look like: one type for each kind of name that PVE has.
//!
//! A value is parsed once, when a call is decoded, and printed exactly as it was given. PVE decodes
//! `%2F` before it routes, so encoding protects no path; these grammars do. Only [`VolumeId`],
//! [`Cidr`] and [`PoolId`] may hold a slash, each with its own rules.

mod cidr;
mod disk;
pub mod encoded;
mod error;
pub mod list;
mod names;
mod properties;
pub mod scalar;
mod secret;
mod segment;
mod size;
pub mod tags;
mod upid;
mod user;
mod vmid;
mod volume;

#[cfg(test)]
mod tests;

pub use cidr::{Cidr, CidrOrAlias};
pub use disk::{DiskSource, Held};
pub use encoded::EncodedText;
pub use error::ValueError;
pub use names::{
    ConfigId, DnsName, FirewallName, Iface, Mac, NodeName, NodePriority, PoolId, SnapshotName, StorageId, Tag,
};
pub use properties::{Part, Properties};
pub use secret::Secret;
pub use segment::PathSegment;
pub use size::{Gib, Growth, Size};
pub use tags::Tags;
pub use upid::{PbsUpid, Upid};
pub use user::{TokenId, UserId};
pub use vmid::Vmid;
pub use volume::VolumeId;

/// Defines a string type that is checked once and printed as it was given.
macro_rules! text_value {
    ($(#[$doc:meta])* $name:ident, $what:literal, $expected:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Checks the grammar; the error says what is expected.
            pub fn parse(text: &str) -> Result<Self, $crate::values::ValueError> {
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err($crate::values::ValueError::new($what, text, $expected))
                }
            }

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        $crate::values::text_traits!($name);
    };
}

/// The traits that every checked string has.
macro_rules! text_traits {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::values::ValueError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use {text_traits, text_value};
