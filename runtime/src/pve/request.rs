//! Decides what is known about a request before it is sent: where it goes, in which lane, for how long.

use super::Lane;
use crate::values::NodeName;
use http::Method;
use std::fmt;
use std::time::Duration;

/// A request that is ready to be sent: path, query and form are encoded and were checked against the catalog.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    /// The body. It may hold secrets and is never shown.
    pub(super) form: Form,
    pub(super) about: String,
    pub(super) lane: Lane,
    pub(super) node: Option<NodeName>,
    pub(super) within: Duration,
}

impl Request {
    /// Above the 30 s after which PVE itself gives up on a daemon or another node.
    pub const DAEMON_LIMIT: Duration = Duration::from_secs(35);

    /// A read. `path` is the encoded path below `/api2/json`, with its leading slash; `query` is encoded too and may be
    /// empty. `about` is what messages call it: the operation's name.
    pub fn new(about: impl Into<String>, path: impl Into<String>, query: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            query: query.into(),
            form: Form::default(),
            about: about.into(),
            lane: Lane::Proxy,
            node: None,
            within: Self::DAEMON_LIMIT,
        }
    }

    /// Makes it a write: with this method, and with an encoded form as body, which may be empty.
    #[must_use]
    pub fn writing(mut self, method: Method, form: impl Into<String>) -> Self {
        self.method = method;
        self.form = Form(form.into());
        self
    }

    /// Whether it changes nothing on the PVE side.
    pub fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// Who works on it on the PVE side.
    #[must_use]
    pub fn in_lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// The node whose workers it takes.
    #[must_use]
    pub fn on_node(mut self, node: NodeName) -> Self {
        self.node = Some(node);
        self
    }

    /// The time limit for everything: waiting in the lane, connecting, other endpoints, the answer's last byte.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = limit;
        self
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.about)
    }
}

/// An encoded form, which may hold secrets.
#[derive(Clone, Default)]
pub(super) struct Form(pub(super) String);

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}
