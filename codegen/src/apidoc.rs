//! The typed form of a release's apidoc: what PVE says about each of its operations.
//!
//! Reading is strict. Whatever this module does not know (a key, verb, flag, type or shape) is an
//! error with its place, and all places are reported together, so that an upgrade of PVE cannot add
//! a fact that the generator silently ignores.

mod composed;
mod decode;
mod errors;
mod permission;
mod reader;
mod scalar;
mod schema;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

pub use decode::{decode, decode_source};
pub use errors::{ApidocErrors, Place};
pub use permission::{Check, GroupsParam, Permissions, UserIdParam};
pub use schema::{Additional, Format, Kind, Link, Schema};

use reader::Mode;

/// Verb of an operation. PVE has no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads.
    Get,
    /// Usually creates or starts something.
    Post,
    /// Usually changes something.
    Put,
    /// Usually removes something.
    Delete,
}

impl Verb {
    /// The verb as it stands on the request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Get, Self::Post, Self::Put, Self::Delete].into_iter().find(|verb| verb.as_str() == text)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Everything that the apidoc says about one operation.
#[expect(clippy::struct_excessive_bools, reason = "PVE's own flags, independent of each other")]
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// Its verb.
    pub verb: Verb,
    /// Its path template below `/api2/json`.
    pub path: String,
    /// PVE's own name for it. Neither unique nor reliable; never a tool's name.
    pub name: String,
    /// Whether API tokens may call it at all.
    pub allow_token: bool,
    /// Whether it runs in pvedaemon, which has three blocking workers.
    pub protected: bool,
    /// The parameter that names the node it is forwarded to.
    pub proxyto: Option<String>,
    /// Whether PVE re-uses the caller's credentials to call other nodes.
    pub expose_credentials: bool,
    /// Whether it can answer with a raw download.
    pub download_allowed: bool,
    /// An object schema; its properties are the parameters.
    pub parameters: Schema,
    /// What it answers with.
    pub returns: Schema,
    /// PVE's own check. Absent: only `root@pam` itself, so no API token passes.
    pub permissions: Option<Permissions>,
}

/// A release's apidoc.
#[derive(Clone, Debug, PartialEq)]
pub struct Apidoc {
    /// The operations by name (`GET /version`).
    pub methods: BTreeMap<String, Method>,
    /// The paths that have at least one operation.
    pub paths: BTreeSet<String>,
    /// Known mistakes of PVE's schema (`min` for `minimum`, `enum: null`, `default: null`) that were
    /// left out here; `fixups.toml` repairs them before [`Apidoc::from_value`].
    pub defects: Vec<Place>,
}

impl Apidoc {
    /// Reads a pinned apidoc as it is committed.
    ///
    /// Known mistakes of PVE's schema are listed in [`Apidoc::defects`] instead of failing: the pin
    /// keeps them, since it keeps every fact.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, ApidocErrors> {
        let value = decode(text, source_name)?;
        tree::read(&value, source_name, Mode { prose: false, defects: true })
    }

    /// Reads a pinned apidoc to which the fixups have been applied; a mistake that is still there is an error.
    pub fn from_value(value: &Value, source_name: &str) -> Result<Self, ApidocErrors> {
        tree::read(value, source_name, Mode { prose: false, defects: false })
    }

    /// Reads an apidoc as PVE has it, prose included; what the pin checks before it removes the prose.
    pub fn from_source(value: &Value, source_name: &str) -> Result<Self, ApidocErrors> {
        tree::read(value, source_name, Mode { prose: true, defects: true })
    }
}
