//! A connection as PVE's proxy keeps it: HTTP/1.1, 100 requests at most, closed when it is idle, after every error, and
//! without a word where a head is too long.
//!
//! The framing is the lab's own since it has to differ from what libraries hold to be right: answers that came through the
//! daemon say `close` and `Keep-Alive` at once and leave the connection open, and a head that cannot be read is answered in
//! PVE's words or not at all.

pub(crate) mod body;
mod head;

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::answer::{Answer, Ending};
use crate::gate::{self, Shared, Via};
use body::Body;
use head::{Head, Reading};

/// PVE closes a connection on which nothing happens for this long.
pub(crate) const IDLE: Duration = Duration::from_secs(5);
/// How many requests it answers on one.
const REQUESTS: u32 = 100;
/// How much of the next requests is read while one is answered.
const AHEAD: usize = 64 * 1024;

/// Why a connection ends where no answer says so.
struct Over;

/// Answers the requests of a connection until it ends.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(shared: &Arc<Shared>, via: &Via, stream: S) {
    let mut wire = Wire { stream, buffer: BytesMut::new() };
    for nth in 1..=REQUESTS {
        let Ok(head) = wire.head(shared).await else { break };
        let ending = head.ending(nth == REQUESTS);
        let Ok(answer) = wire.answer(shared, via, &head).await else { break };
        let ending = answer.ending(ending);
        if wire.send(&answer.on_wire(ending, head.wants_body())).await.is_err() || ending == Ending::Close {
            break;
        }
    }
    // The other side may be gone already.
    let _closed = wire.stream.shutdown().await;
}

/// Sends those who speak without TLS to the same place with it.
pub(crate) async fn redirect<S: AsyncRead + AsyncWrite + Unpin>(shared: &Arc<Shared>, stream: S) {
    let mut wire = Wire { stream, buffer: BytesMut::new() };
    for nth in 1..=REQUESTS {
        let Ok(head) = wire.head(shared).await else { break };
        let ending = head.ending(nth == REQUESTS || head.length > 0);
        let answer = Answer::moved(head.method(), head.host(), head.target());
        if wire.send(&answer.on_wire(ending, head.wants_body())).await.is_err() || ending == Ending::Close {
            break;
        }
    }
    let _closed = wire.stream.shutdown().await;
}

/// A stream and what was read from it and not used yet.
struct Wire<S> {
    stream: S,
    buffer: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// The next head. What is wrong with one has been answered where PVE does that.
    async fn head(&mut self, shared: &Shared) -> Result<Head, Over> {
        loop {
            match head::read(&mut self.buffer) {
                Reading::Whole(head) => return Ok(*head),
                Reading::Wrong(answer) => {
                    let _sent = self.send(&answer.on_wire(Ending::Close, true)).await;
                    return Err(Over);
                }
                Reading::TooLong => {
                    tokio::time::sleep(shared.hurried(IDLE)).await;
                    return Err(Over);
                }
                Reading::Part => {}
            }
            match timeout(IDLE, self.stream.read_buf(&mut self.buffer)).await {
                Ok(Ok(count)) if count > 0 => {}
                _ => return Err(Over),
            }
        }
    }

    /// Has a request answered, while its body and what follows it is read. None where the other side went away, or the
    /// connection is to be cut.
    async fn answer(&mut self, shared: &Arc<Shared>, via: &Via, head: &Head) -> Result<Answer, Over> {
        if head.expects_go_ahead() && self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err() {
            return Err(Over);
        }
        let (sender, body) = Body::new(head.length);
        let mut sender = Some(sender);
        let mut left = usize::try_from(head.length).unwrap_or(usize::MAX);
        let serving = gate::serve(Arc::clone(shared), via.clone(), head.request(body));
        tokio::pin!(serving);
        let answer = loop {
            if left > 0 && !self.buffer.is_empty() {
                let chunk = self.buffer.split_to(left.min(self.buffer.len()));
                left -= chunk.len();
                if let Some(sender) = &sender {
                    // Whoever refused the request does not want its body any more.
                    let _taken = sender.send(chunk.freeze());
                }
            }
            if left == 0 {
                sender = None;
            }
            let reads = left > 0 || self.buffer.len() < AHEAD;
            tokio::select! {
                answer = &mut serving => break answer,
                read = self.stream.read_buf(&mut self.buffer), if reads => {
                    if !matches!(read, Ok(count) if count > 0) {
                        return Err(Over);
                    }
                }
                () = tokio::time::sleep(IDLE), if left > 0 => return Err(Over),
            }
        };
        let mut answer = answer.map_err(|_| Over)?;
        // What follows an answer to half a request is no request.
        answer.unread |= left > 0 || head.chunked;
        Ok(answer)
    }
}
