//! What is inside a VM, as far as its agent shows it: files, processes, whether it shuts down when told to.

use std::collections::BTreeMap;

/// A process that the agent started, until its end has been read.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// When it ends.
    pub(crate) until: i64,
    pub(crate) code: Option<i64>,
    pub(crate) signal: Option<i64>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
}

/// The inside of a guest.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    /// Whether it shuts down when asked to.
    pub(crate) obeys: bool,
    pub(crate) frozen: bool,
    /// Whether it is a system with next to nothing: no file systems, no programs to set passwords with.
    pub(crate) bare: bool,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) processes: BTreeMap<i64, Process>,
    pub(crate) last_pid: i64,
}

impl Default for Inside {
    fn default() -> Self {
        Self {
            obeys: true,
            frozen: false,
            bare: false,
            files: BTreeMap::from([("/root/hello.txt".to_owned(), b"hello\n".to_vec())]),
            processes: BTreeMap::new(),
            last_pid: 143,
        }
    }
}
