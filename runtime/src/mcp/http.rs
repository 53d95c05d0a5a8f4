//! The HTTP listener: loopback only, one task for each connection, and an orderly end.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Authenticator, Limits, Surface, gate::Gate, limits};

/// How long a connection may take to send a request's head, which is also how long it may be idle.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// Largest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// How the HTTP server is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where to listen; port 0 takes a free one. Anything but loopback is refused.
    pub listen: SocketAddr,
    /// Origins of web pages that may send requests, beyond pages of this machine: `https://console.example`.
    pub allowed_origins: Vec<String>,
    /// Limits.
    pub limits: Limits,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            allowed_origins: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// Why the HTTP server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can be reached from elsewhere.
    #[error(
        "will not listen on {0}: tokens would cross the network unencrypted, so only loopback addresses are served. \
         Listen on 127.0.0.1 or [::1] and reach it through SSH port forwarding"
    )]
    NotLoopback(SocketAddr),
    /// The address is taken or not this machine's.
    #[error("cannot listen on {address}: {source}. Choose another address or port, or stop what uses it")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A server that is running. Dropping it stops the server too, without waiting for it.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Running {
    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the gateway's tools.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Stops accepting at once, waits for requests in flight up to the drain time, then ends them.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // It can only have failed by panicking, and then it has stopped.
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts serving MCP over Streamable HTTP.
pub async fn serve_http<S, A>(config: HttpConfig, surface: Arc<S>, authenticator: Arc<A>) -> Result<Running, ServeError>
where
    S: Surface,
    A: Authenticator<Principal = S::Principal>,
{
    let address = config.listen;
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let listener = TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
    let address = listener.local_addr().map_err(|source| ServeError::Bind { address, source })?;
    let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
    let gate = Arc::new(Gate::new(surface, authenticator, &config, abort.clone()));
    let task = tokio::spawn(accept_all(listener, gate, config.limits, stop.clone(), abort));
    tracing::info!(%address, "serving MCP over HTTP");
    Ok(Running { address, stop, task: Some(task) })
}

async fn accept_all<S, A>(
    listener: TcpListener,
    gate: Arc<Gate<S, A>>,
    limits: Limits,
    stop: CancellationToken,
    abort: CancellationToken,
) where
    S: Surface,
    A: Authenticator<Principal = S::Principal>,
{
    let places = limits::places(limits.connections);
    let connections = TaskTracker::new();
    while let Some(Ok(place)) = stop.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
        let Some(stream) = stop.run_until_cancelled(accept(&listener)).await else { break };
        let connection = serve_connection(stream, Arc::clone(&gate), stop.clone(), abort.clone());
        connections.spawn(async move {
            connection.await;
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(limits.drain_time, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "requests still in flight after the drain time are ended");
        abort.cancel();
        connections.wait().await;
    }
}

/// The next connection, set to send small answers without delay: with Nagle's algorithm each would wait some 40 ms
/// for the client's delayed acknowledgement.
pub(super) async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => match stream.set_nodelay(true) {
                Ok(()) => return stream,
                Err(error) => tracing::debug!(%error, "a connection was gone before it was served"),
            },
            Err(error) => {
                // Most often the process has no file descriptors left; some come back when connections end.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn serve_connection<S, A>(
    stream: TcpStream,
    gate: Arc<Gate<S, A>>,
    stop: CancellationToken,
    abort: CancellationToken,
) where
    S: Surface,
    A: Authenticator<Principal = S::Principal>,
{
    let service = hyper::service::service_fn(move |request| {
        let gate = Arc::clone(&gate);
        async move { Ok::<_, Infallible>(gate.answer(request).await) }
    });
    // More than 100 headers are refused without saying so here; saying it would cost an allocation for each request.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = abort.cancelled() => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
