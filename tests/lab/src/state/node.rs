//! A node of the cluster.

/// A node and what it is made of.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) ip: String,
    pub(crate) online: bool,
    pub(crate) cpus: u32,
    pub(crate) memory: u64,
    pub(crate) disk: u64,
}
