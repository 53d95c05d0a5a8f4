//! A node's listener as it opens and closes while the lab runs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::gate::Shared;
use crate::lab::{Endpoint, LabError};
use crate::listener;
use crate::tls::Identity;

/// Where one node listens, or does not at the moment.
pub(crate) struct Door {
    node: Arc<str>,
    address: SocketAddr,
    identity: Identity,
    state: Mutex<State>,
}

enum State {
    /// Bound, and nobody accepts yet.
    Bound(TcpListener),
    Open {
        token: CancellationToken,
        accepting: JoinHandle<()>,
    },
    Closed,
}

impl Door {
    /// Takes the port; 0 takes a free one.
    pub(crate) async fn bind(node: &str, identity: Identity, port: u16) -> Result<Self, LabError> {
        let (listener, address) = listener::bind(port).await?;
        Ok(Self { node: node.into(), address, identity, state: Mutex::new(State::Bound(listener)) })
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint {
            node: self.node.to_string(),
            url: format!("https://{}", self.address),
            address: self.address,
            fingerprint: self.identity.fingerprint.clone(),
        }
    }

    fn swap(&self, state: State) -> State {
        std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Open { .. })
    }

    /// Begins to accept on what was bound.
    pub(crate) fn open(&self, shared: &Arc<Shared>) {
        match self.swap(State::Closed) {
            State::Bound(listener) => self.accept(shared, listener),
            other => {
                self.swap(other);
            }
        }
    }

    /// Takes the same port once more, and accepts.
    pub(crate) async fn open_again(&self, shared: &Arc<Shared>) -> Result<(), LabError> {
        let (listener, _) = listener::bind(self.address.port()).await?;
        self.accept(shared, listener);
        Ok(())
    }

    fn accept(&self, shared: &Arc<Shared>, listener: TcpListener) {
        let token = shared.stop.child_token();
        let place = listener::Place { node: Arc::clone(&self.node), server: Arc::clone(&self.identity.server) };
        let accepting = listener::accept(shared, listener, place, token.clone());
        self.swap(State::Open { token, accepting });
    }

    /// Stops listening and closes every connection.
    pub(crate) async fn close(&self) {
        if let State::Open { token, accepting } = self.swap(State::Closed) {
            token.cancel();
            // The task only ends; it has nothing to report.
            let _ended = accepting.await;
        }
    }
}
