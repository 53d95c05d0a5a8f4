//! Decides what a guest's row holds and how it is written out. PVE's types vary, so everything but
//! number, kind and node may be missing.

use super::Protection;
use crate::redact;
use crate::values::{NodeName, Vmid, scalar, tags};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Which of PVE's two kinds of guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestKind {
    /// A virtual machine.
    Qemu,
    /// A container.
    Lxc,
}

impl GuestKind {
    /// As it stands in paths and rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }
}

impl fmt::Display for GuestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One guest as the cluster's resource list has it.
#[derive(Clone, Debug)]
pub struct GuestRow {
    /// Its number.
    pub vmid: Vmid,
    /// Virtual machine or container.
    pub kind: GuestKind,
    /// The node it is on.
    pub node: NodeName,
    /// Its name; guests choose it, so it is not to be trusted.
    pub name: Arc<str>,
    /// `running`, `stopped`, `unknown`, … as PVE says.
    pub status: Arc<str>,
    /// Its tags in PVE's order.
    pub tags: Arc<[Box<str>]>,
    /// Its pool.
    pub pool: Option<Arc<str>>,
    /// Whether it is a template.
    pub template: bool,
    /// Protected by the operator's rules. `false` means unknown: PVE's own flag is not in the list.
    pub protected: bool,
    /// The row as JSON text.
    pub json: Arc<str>,
}

/// What [`GuestRow::json`] holds, in this order.
#[derive(Serialize)]
struct Written<'a> {
    cluster: &'a str,
    vmid: Vmid,
    name: &'a str,
    #[serde(rename = "type")]
    kind: GuestKind,
    status: &'a str,
    node: &'a NodeName,
    tags: &'a [Box<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'a str>,
    template: bool,
    protected: Value,
    #[serde(flatten)]
    measures: Map<String, Value>,
}

/// Numbers that a row passes on as they are.
const MEASURES: &[&str] = &["cpu", "maxcpu", "mem", "maxmem", "disk", "maxdisk", "uptime"];
/// Words that a row passes on where they are set.
const WORDS: &[&str] = &["hastate", "lock"];

impl GuestRow {
    /// Reads an item of the resource list; `None` if it cannot be a guest that one could act on.
    pub(super) fn read(cluster: &str, protection: &Protection, kind: GuestKind, item: &Value) -> Option<Self> {
        let vmid = match item.get("vmid") {
            Some(Value::Number(number)) => Vmid::from_number(number.as_u64()?).ok()?,
            Some(Value::String(text)) => Vmid::parse(text).ok()?,
            // Rows of some releases have it in the id only (`qemu/100`).
            _ => Vmid::parse(text(item, "id")?.rsplit('/').next()?).ok()?,
        };
        let node = NodeName::parse(text(item, "node")?).ok()?;
        let written = text(item, "tags").unwrap_or_default();
        let tags: Vec<Box<str>> = tags::names(written).map(Box::from).collect();
        // What is not understood counts as yes: templates are protected.
        let template = item.get("template").is_some_and(|value| scalar::boolean(value).unwrap_or(true));
        let protected = template
            || protection.vmids.contains(&vmid)
            || protection.tags.iter().any(|protects| tags::has(written, protects));
        let mut row = Self {
            vmid,
            kind,
            node,
            // Written out without another pass of the redactor, so it is masked here.
            name: redact::text(text(item, "name").unwrap_or_default()).into(),
            status: text(item, "status").unwrap_or("unknown").into(),
            tags: tags.into(),
            pool: text(item, "pool").filter(|pool| !pool.is_empty()).map(Arc::from),
            template,
            protected,
            json: "{}".into(),
        };
        row.json = row.written(cluster, item)?;
        Some(row)
    }

    fn written(&self, cluster: &str, item: &Value) -> Option<Arc<str>> {
        let numbers = MEASURES.iter().filter_map(|name| Some((*name, measure(item.get(*name)?)?)));
        let words = WORDS.iter().filter_map(|name| {
            Some((*name, item.get(*name).filter(|value| value.as_str().is_some_and(|text| !text.is_empty()))?.clone()))
        });
        let written = Written {
            cluster,
            vmid: self.vmid,
            name: &self.name,
            kind: self.kind,
            status: &self.status,
            node: &self.node,
            tags: &self.tags,
            pool: self.pool.as_deref(),
            template: self.template,
            // The list does not show PVE's own protection flag, so "no" is never known.
            protected: if self.protected { Value::Bool(true) } else { Value::String("unknown".to_owned()) },
            measures: numbers.chain(words).map(|(name, value)| (name.to_owned(), value)).collect(),
        };
        serde_json::to_string(&written).ok().map(Arc::from)
    }

    /// Whether it has this tag; PVE compares without case.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| tags::same(own, tag))
    }
}

/// PVE has numbers in text in some rows of some releases.
fn measure(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        _ => scalar::measure(value).map(Value::from),
    }
}

pub(super) fn text<'a>(item: &'a Value, key: &str) -> Option<&'a str> {
    item.get(key)?.as_str()
}
