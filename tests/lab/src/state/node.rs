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
    /// Of its certificate, as PVE shows it.
    pub(crate) fingerprint: String,
}

/// What happens to a request that is passed on to a name that is not a node of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Nothing listens there.
    Refuses,
    /// No way leads there.
    NoRoute,
    /// Nothing answers the attempt to connect.
    Silent,
    /// It accepts, and says nothing.
    Hangs,
    /// It closes during the handshake.
    Closes,
    /// It has a certificate of another cluster.
    Stranger,
}

impl Peer {
    /// Status and reason phrase.
    pub(crate) const fn answer(self) -> (u16, &'static str) {
        match self {
            Self::Refuses => (595, "Connection refused"),
            Self::NoRoute => (595, "No route to host"),
            Self::Silent => (595, "Connection timed out"),
            Self::Hangs => (596, "Connection timed out"),
            Self::Closes => (596, "Broken pipe"),
            Self::Stranger => (596, "tls_process_server_certificate: certificate verify failed"),
        }
    }

    /// How long it takes to find out.
    pub(crate) const fn seconds(self) -> u64 {
        match self {
            Self::Refuses | Self::Closes | Self::Stranger => 0,
            Self::NoRoute => 3,
            Self::Silent | Self::Hangs => 30,
        }
    }

    /// The peer that answers so.
    pub(crate) fn of(status: u16, reason: &str) -> Option<Self> {
        [Self::Refuses, Self::NoRoute, Self::Silent, Self::Hangs, Self::Closes, Self::Stranger]
            .into_iter()
            .find(|peer| peer.answer() == (status, reason))
    }
}
