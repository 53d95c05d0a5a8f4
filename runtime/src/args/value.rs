//! The value of one argument: typed where PVE has a grammar, and printed for the wire in one way.

use std::borrow::Cow;

use super::property::PropertyText;
use crate::values::{
    Cidr, CidrOrAlias, ConfigId, DiskSource, DnsName, EncodedText, Growth, Iface, Mac, NodeName, NodePriority,
    PathSegment, PoolId, Secret, Size, SnapshotName, StorageId, Tag, Tags, Upid, UserId, Vmid, VolumeId, list,
};

/// A checked value.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each variant is the type that it is named after")]
pub enum Value {
    Boolean(bool),
    Integer(i64),
    /// Kept as written, so that printing loses nothing.
    Number(Box<str>),
    Text(Box<str>),
    Choice(&'static str),
    Vmid(Vmid),
    Node(NodeName),
    NodePriority(NodePriority),
    Storage(StorageId),
    Volume(VolumeId),
    Snapshot(SnapshotName),
    Pool(PoolId),
    Upid(Upid),
    User(UserId),
    ConfigId(ConfigId),
    Iface(Iface),
    Cidr(Cidr),
    CidrOrAlias(CidrOrAlias),
    Mac(Mac),
    Size(Size),
    Growth(Growth),
    Disk(DiskSource),
    DnsName(DnsName),
    /// Plain here, encoded in PVE's configuration.
    Encoded(EncodedText),
    Tag(Tag),
    /// Sent as one string, with `;` between them.
    Tags(Tags),
    /// Text in a path that has no grammar of its own.
    Segment(PathSegment),
    Property(PropertyText),
    /// Sent as one string, elements joined by commas.
    List(Vec<Value>),
    /// Sent as one pair for each element.
    Array(Vec<Value>),
    Secret(Secret),
}

impl Value {
    /// The value as PVE takes it. Arrays have no single text; their elements are sent one by one.
    pub fn wire(&self) -> Cow<'_, str> {
        match self {
            Self::Boolean(flag) => Cow::Borrowed(if *flag { "1" } else { "0" }),
            Self::Integer(number) => Cow::Owned(number.to_string()),
            Self::Number(text) | Self::Text(text) => Cow::Borrowed(text),
            Self::Choice(text) => Cow::Borrowed(text),
            Self::Vmid(value) => Cow::Owned(value.to_string()),
            Self::Node(value) => Cow::Borrowed(value.as_str()),
            Self::NodePriority(value) => Cow::Borrowed(value.as_str()),
            Self::Storage(value) => Cow::Borrowed(value.as_str()),
            Self::Volume(value) => Cow::Borrowed(value.as_str()),
            Self::Snapshot(value) => Cow::Borrowed(value.as_str()),
            Self::Pool(value) => Cow::Borrowed(value.as_str()),
            Self::Upid(value) => Cow::Borrowed(value.as_str()),
            Self::User(value) => Cow::Borrowed(value.as_str()),
            Self::ConfigId(value) => Cow::Borrowed(value.as_str()),
            Self::Iface(value) => Cow::Borrowed(value.as_str()),
            Self::Cidr(value) => Cow::Borrowed(value.as_str()),
            Self::CidrOrAlias(value) => Cow::Borrowed(value.as_str()),
            Self::Mac(value) => Cow::Borrowed(value.as_str()),
            Self::Size(value) => Cow::Borrowed(value.as_str()),
            Self::Growth(value) => Cow::Borrowed(value.as_str()),
            Self::Disk(value) => Cow::Borrowed(value.as_str()),
            Self::DnsName(value) => Cow::Borrowed(value.as_str()),
            Self::Encoded(value) => Cow::Owned(value.to_string()),
            Self::Tag(value) => Cow::Borrowed(value.as_str()),
            Self::Tags(value) => Cow::Borrowed(value.as_str()),
            Self::Segment(value) => Cow::Borrowed(value.as_str()),
            Self::Property(value) => Cow::Borrowed(value.as_str()),
            Self::List(items) | Self::Array(items) => Cow::Owned(list::join(items.iter().map(Self::wire))),
            Self::Secret(secret) => Cow::Borrowed(secret.expose()),
        }
    }
}
