//! The HTTPS listener: accepts, keeps connections alive for as long as PVE does, and goes away when told to.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::gate::{self, Shared};
use crate::lab::LabError;

/// PVE closes a connection that is idle for this long.
const IDLE: Duration = Duration::from_secs(5);

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
    server: Arc<ServerConfig>,
    open: CancellationToken,
) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    let tracker = shared.running.clone();
    tracker.spawn(async move {
        let acceptor = TlsAcceptor::from(server);
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
            let connection = connection(Arc::clone(&shared), acceptor.clone(), stream);
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

async fn connection(shared: Arc<Shared>, acceptor: TlsAcceptor, stream: TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was not set");
    }
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "TLS handshake failed");
            return;
        }
    };
    let service = service_fn(move |request| gate::serve(Arc::clone(&shared), request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
}
