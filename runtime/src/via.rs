//! Passes MCP from standard input on to a running server and its answers back, so that several clients on standard
//! input share that server's store.
//!
//! Messages go through as they are: nothing is decided here but how each travels. A call whose client cancels it is ended
//! by closing its connection, as the protocol has it over HTTP.

mod message;
mod upstream;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::message::{Message, error_line};
use self::upstream::Upstream;

/// Longest message, in bytes; a server takes less.
const LONGEST: usize = 8 << 20;
/// Answers that wait for a client that does not read.
const WAITING: usize = 64;

/// Why nothing is passed on.
#[derive(Debug, thiserror::Error)]
pub enum ViaError {
    /// The URL is not one of a server to go through.
    #[error("--via {url}: {problem}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file does not hold a token.
    #[error("the token file {file} {problem}")]
    TokenFile {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Standard input failed.
    #[error("standard input cannot be read: {0}")]
    Input(std::io::Error),
}

/// Serves one client on standard input and output by the server at `url`, until the client hangs up or `stop` fires.
pub async fn stdio(url: &str, token_file: &Path, stop: CancellationToken) -> Result<(), ViaError> {
    forward(url, token_file, crate::mcp::stdio_streams(), stop).await
}

/// Requests under way, by their ids as they are written.
type UnderWay = Arc<Mutex<HashMap<String, CancellationToken>>>;

/// The same over any pair of streams.
pub(crate) async fn forward<R, W>(
    url: &str,
    token_file: &Path,
    (input, output): (R, W),
    stop: CancellationToken,
) -> Result<(), ViaError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let upstream = Arc::new(Upstream::new(url, token_file)?);
    let (answers, queue) = mpsc::channel(WAITING);
    let writer = tokio::spawn(write(queue, output));
    let (under_way, tasks) = (UnderWay::default(), TaskTracker::new());
    let mut lines = FramedRead::new(input, LinesCodec::new_with_max_length(LONGEST));
    let ended = loop {
        let line = tokio::select! {
            () = stop.cancelled() => break Ok(()),
            // Nobody reads the answers any more.
            () = answers.closed() => break Ok(()),
            line = lines.next() => line,
        };
        let message = match line {
            None => break Ok(()),
            Some(Ok(line)) if line.trim().is_empty() => continue,
            Some(Ok(line)) => Message::read(line),
            Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                // After an error it says once that it is at an end, and then goes on with the next line.
                let _ = lines.next().await;
                Err(error_line(None, -32600, &format!("the message is longer than {LONGEST} bytes"), None))
            }
            Some(Err(LinesCodecError::Io(error))) => break Err(ViaError::Input(error)),
        };
        let message = match message {
            Ok(message) => message,
            Err(answer) => {
                // A client that is gone is seen above.
                let _ = answers.send(answer).await;
                continue;
            }
        };
        if let Some(id) = message.cancels() {
            let cancelled = under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            cancelled.inspect(CancellationToken::cancel);
            continue;
        }
        let cancel = stop.child_token();
        if let Some(id) = message.id() {
            under_way.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), cancel.clone());
        }
        // What follows is sent in the revision that this agrees on.
        let first = message.is_initialize();
        let (upstream, answers, under_way) = (Arc::clone(&upstream), answers.clone(), Arc::clone(&under_way));
        let exchange = async move {
            cancel.run_until_cancelled(upstream.exchange(&message, &answers)).await;
            if let (Some(id), false) = (message.id(), cancel.is_cancelled()) {
                under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
            }
        };
        if first {
            exchange.await;
        } else {
            tasks.spawn(exchange);
        }
    };
    // The end of input does not swallow answers.
    tasks.close();
    tasks.wait().await;
    drop(answers);
    // It ends with the last answer; that it failed means that the client is gone.
    let _ = writer.await;
    ended
}

async fn write(mut queue: mpsc::Receiver<String>, mut output: impl AsyncWrite + Unpin) {
    while let Some(mut line) = queue.recv().await {
        line.push('\n');
        if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
