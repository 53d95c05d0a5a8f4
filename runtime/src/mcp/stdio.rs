//! MCP over standard input and output: one client, one fixed principal.
//!
//! Standard output carries the protocol and nothing else; logs belong on standard error.

use std::sync::Arc;

use rmcp::{ServiceExt, transport::stdio_pipes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{
    Surface, View,
    handler::{Caller, Handler},
};

/// Why a stdio server ended early.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// What came first was not a request of the protocol.
    #[error("the client on standard input did not begin as MCP clients do: {0}")]
    Start(String),
    /// The server's own task failed.
    #[error("serving on standard input and output failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Serves standard input until it ends or `stop` fires.
pub async fn serve_stdio<S: Surface>(
    surface: Arc<S>,
    principal: Arc<S::Principal>,
    view: View,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    serve_streams(surface, principal, view, stop, streams()).await
}

/// Standard input and output, read without a thread that would outlive the server.
pub(crate) fn streams() -> (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static) {
    stdio_pipes()
}

/// The same over any pair of streams.
pub(super) async fn serve_streams<S, R, W>(
    surface: Arc<S>,
    principal: Arc<S::Principal>,
    view: View,
    stop: CancellationToken,
    streams: (R, W),
) -> Result<(), StdioError>
where
    S: Surface,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let handler = Handler::fixed(surface, Caller { principal, view, slot: None });
    let running = match handler.serve_with_ct(streams, stop.clone()).await {
        Ok(running) => running,
        Err(error) if stop.is_cancelled() => {
            tracing::debug!(%error, "stopped before a client began");
            return Ok(());
        }
        // A client that hangs up without a word has not done anything wrong.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StdioError::Start(error.to_string())),
    };
    running.waiting().await?;
    Ok(())
}
