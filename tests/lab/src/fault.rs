//! What can be made to go wrong while a lab runs, by name, and whether it is for every request or for a few.

mod force;
mod parse;

use std::fmt;
use std::time::Duration;

pub(crate) use force::{Faults, arm, disarm};

/// Something that goes wrong until it is cleared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// The node is off: its listener refuses connections, requests that are proxied to it answer `595 Connection
    /// refused`, the cluster lists it as offline and its guests as unknown.
    DeadNode(String),
    /// The node's proxy accepts and never answers. Requests that are proxied to it answer `596 Connection timed out`
    /// after 30 s.
    HangingNode(String),
    /// Nothing listens, and open connections are closed.
    ClusterDown,
    /// Writes are refused, as where most nodes are gone.
    NoQuorum,
    /// Nothing more fits onto the storage.
    FullStorage(String),
    /// The guest's agent does not answer.
    AgentOff(u32),
    /// The guest is locked: by `backup` or another word in its configuration, or, where the word is `file`, by somebody
    /// who holds the lock of its configuration file.
    LockedGuest(u32, String),
    /// The guest is moved to another node just before a request about it is answered.
    MovedGuest(u32),
    /// A call of an agent takes this long.
    SlowAgent(Duration),
    /// A read takes this long.
    Slow(Duration),
    /// Tasks do their work, and do not end until this is cleared.
    HoldTasks,
    /// Every request is answered by a page, as a misconfigured reverse proxy does.
    HtmlInsteadOfJson,
    /// The connection is closed after the request was read, without an answer and before anything was done.
    CutBefore,
    /// What was asked for is done, and the connection closed without an answer.
    CutAfter,
    /// The request was read and is held, with nothing done, until this is cleared. Nothing is done where whoever asked
    /// hangs up meanwhile.
    HoldBefore,
    /// What was asked for is done, and its answer held until this is cleared.
    HoldAfter,
    /// What was asked for is done, and answered with 200 and nothing.
    EmptyBody,
    /// What was asked for is done, and answered with `599 Too many redirections`.
    Late599,
    /// One of those that happen to requests, for some of them only.
    Limited {
        /// What happens.
        fault: Box<Fault>,
        /// To which operation of the schema, such as `GET /nodes/{node}/status`; none: to all.
        operation: Option<String>,
        /// How many times before it is over; none: until it is cleared.
        times: Option<u32>,
    },
}

impl Fault {
    /// For requests of one operation only. Of no effect on what is no matter of requests, such as a dead node.
    #[must_use]
    pub fn on(self, operation: &str) -> Self {
        let (fault, _, times) = self.parts();
        Self::limited(fault, Some(operation.to_owned()), times)
    }

    /// For the next so many requests that it would happen to. Of no effect on what is no matter of requests.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        let (fault, operation, _) = self.parts();
        Self::limited(fault, operation, Some(times))
    }

    fn limited(fault: Self, operation: Option<String>, times: Option<u32>) -> Self {
        if fault.is_of_requests() { Self::Limited { fault: Box::new(fault), operation, times } } else { fault }
    }

    /// The fault itself, and its limits.
    fn parts(self) -> (Self, Option<String>, Option<u32>) {
        match self {
            Self::Limited { fault, operation, times } => (*fault, operation, times),
            fault => (fault, None, None),
        }
    }

    /// Whether it is decided for each request anew.
    const fn is_of_requests(&self) -> bool {
        matches!(
            self,
            Self::MovedGuest(_)
                | Self::SlowAgent(_)
                | Self::Slow(_)
                | Self::HtmlInsteadOfJson
                | Self::CutBefore
                | Self::CutAfter
                | Self::HoldBefore
                | Self::HoldAfter
                | Self::EmptyBody
                | Self::Late599
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadNode(node) => write!(f, "dead-node:{node}"),
            Self::HangingNode(node) => write!(f, "hanging-node:{node}"),
            Self::ClusterDown => f.write_str("cluster-down"),
            Self::NoQuorum => f.write_str("no-quorum"),
            Self::FullStorage(storage) => write!(f, "full-storage:{storage}"),
            Self::AgentOff(vmid) => write!(f, "agent-off:{vmid}"),
            Self::LockedGuest(vmid, kind) => write!(f, "locked-guest:{vmid}:{kind}"),
            Self::MovedGuest(vmid) => write!(f, "moved-guest:{vmid}"),
            Self::SlowAgent(time) => write!(f, "slow-agent:{}", time.as_secs_f64()),
            Self::Slow(time) => write!(f, "slow:{}", time.as_secs_f64()),
            Self::HtmlInsteadOfJson => f.write_str("html-instead-of-json"),
            Self::CutBefore => f.write_str("cut-before"),
            Self::CutAfter => f.write_str("cut-after"),
            Self::HoldBefore => f.write_str("hold-before"),
            Self::HoldAfter => f.write_str("hold-after"),
            Self::HoldTasks => f.write_str("hold-tasks"),
            Self::EmptyBody => f.write_str("empty-body"),
            Self::Late599 => f.write_str("late-599"),
            Self::Limited { fault, operation, times } => {
                write!(f, "{fault}")?;
                if let Some(operation) = operation {
                    write!(f, "@{operation}")?;
                }
                times.map_or(Ok(()), |times| write!(f, "*{times}"))
            }
        }
    }
}
