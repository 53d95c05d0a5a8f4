//! The HTTPS listener of a node: accepts, tells TLS from plain HTTP, and goes away when told to.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::connection::{self, IDLE};
use crate::gate::{Shared, Via};
use crate::lab::LabError;

/// How a TLS handshake begins.
const HANDSHAKE: u8 = 0x16;

/// What a listener is for.
pub(crate) struct Place {
    pub(crate) node: Arc<str>,
    pub(crate) server: Arc<ServerConfig>,
}

/// Binds the port; 0 takes a free one.
pub(crate) async fn bind(port: u16) -> Result<(TcpListener, SocketAddr), LabError> {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = async {
        let listener = TcpListener::bind(wanted).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|error| LabError::Listen { address: wanted, error })
}

/// Accepts until `open` is cancelled, which also closes every connection.
pub(crate) fn accept(
    shared: &Arc<Shared>,
    listener: TcpListener,
    place: Place,
    open: CancellationToken,
) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    let tracker = shared.running.clone();
    tracker.spawn(async move {
        let acceptor = TlsAcceptor::from(place.server);
        loop {
            let accepted = tokio::select! {
                () = open.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors, most likely: give others time to close some.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let connection = connection(Arc::clone(&shared), Arc::clone(&place.node), acceptor.clone(), stream);
            let open = open.clone();
            shared.running.spawn(async move {
                tokio::select! {
                    () = open.cancelled() => {}
                    () = connection => {}
                }
            });
        }
    })
}

async fn connection(shared: Arc<Shared>, node: Arc<str>, acceptor: TlsAcceptor, stream: TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was not set");
    }
    let mut first = [0];
    if !matches!(timeout(IDLE, stream.peek(&mut first)).await, Ok(Ok(1))) {
        return;
    }
    if first != [HANDSHAKE] {
        return connection::redirect(&shared, stream).await;
    }
    match acceptor.accept(stream).await {
        Ok(stream) => {
            let via = Via { node, connection: shared.connections.fetch_add(1, Ordering::Relaxed) };
            connection::serve(&shared, &via, stream).await;
        }
        Err(error) => tracing::debug!(%error, "TLS handshake failed"),
    }
}
