//! Decides which kinds of failure callers can tell apart, and keeps what they are told apart from
//! what only the log sees.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What went wrong, in kinds that a caller can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No endpoint of the cluster could be reached.
    Unreachable,
    /// The certificate is not the configured one.
    Certificate,
    /// PVE does not accept the API token.
    Unauthorized,
    /// The API token lacks a privilege, or no API token may do this.
    Forbidden,
    /// The thing does not exist.
    NotFound,
    /// A thing of that name exists already.
    Exists,
    /// Arguments were refused, some of them by name.
    Invalid,
    /// A guest or file is locked.
    Locked,
    /// The guest is not running.
    NotRunning,
    /// The guest is running, and must not be.
    Running,
    /// PVE's own protection flag refuses it.
    Protected,
    /// Something else still uses it.
    InUse,
    /// It was changed by someone else in the meantime.
    Conflict,
    /// The guest agent is missing or failed.
    Agent,
    /// A storage or service is off, not installed or not configured.
    Unavailable,
    /// No space is left.
    NoSpace,
    /// The cluster has no quorum.
    NoQuorum,
    /// The node that should have answered did not.
    NodeDown,
    /// No answer within the time limit.
    Timeout,
    /// The answer is larger than the server takes.
    TooLarge,
    /// The answer is not PVE's (HTML, a proxy's page, cut JSON).
    NotJson,
    /// Too many requests wait already.
    Busy,
    /// This cluster's release does not have the operation.
    NotImplemented,
    /// PVE failed in a way that has no kind of its own.
    Other,
}

impl Kind {
    /// A stable word for results and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Certificate => "certificate",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Exists => "exists",
            Self::Invalid => "invalid",
            Self::Locked => "locked",
            Self::NotRunning => "not_running",
            Self::Running => "running",
            Self::Protected => "protected",
            Self::InUse => "in_use",
            Self::Conflict => "conflict",
            Self::Agent => "agent",
            Self::Unavailable => "unavailable",
            Self::NoSpace => "no_space",
            Self::NoQuorum => "no_quorum",
            Self::NodeDown => "node_down",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::NotJson => "not_json",
            Self::Busy => "busy",
            Self::NotImplemented => "not_implemented",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known about whether PVE acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing reached PVE.
    No,
    /// PVE refused it.
    Refused,
    /// It may have been done.
    Unknown,
}

/// A failed request. Its text is for the caller: masked, on one line, saying what to do.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct PveError {
    kind: Kind,
    message: String,
    context: String,
    status: Option<u16>,
    parameters: BTreeMap<String, String>,
    retry_after: Option<Duration>,
    sent: Sent,
}

impl PveError {
    /// An error with the text for the caller.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            context: String::new(),
            status: None,
            parameters: BTreeMap::new(),
            retry_after: None,
            sent: Sent::Unknown,
        }
    }

    /// What only the log sees. It must not hold secrets either.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.context = context.into();
        self
    }

    /// PVE's status code.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// What PVE says about arguments, by name.
    #[must_use]
    pub fn with_parameters(mut self, parameters: BTreeMap<String, String>) -> Self {
        self.parameters = parameters;
        self
    }

    /// When another attempt makes sense.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Nothing was sent.
    #[must_use]
    pub fn not_sent(mut self) -> Self {
        self.sent = Sent::No;
        self
    }

    /// PVE refused it.
    #[must_use]
    pub fn refused(mut self) -> Self {
        self.sent = Sent::Refused;
        self
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The text for the caller.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The text for the log.
    pub fn internal(&self) -> &str {
        &self.context
    }

    /// PVE's status code, where it answered.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// What PVE says about arguments, by name.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// When another attempt makes sense.
    pub fn retry_in(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether PVE may have acted.
    pub fn sent(&self) -> Sent {
        self.sent
    }
}
