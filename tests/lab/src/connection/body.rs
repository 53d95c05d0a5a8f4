//! The body of a request as it arrives.

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What is still to come of a request.
pub(crate) struct Body {
    length: u64,
    chunks: UnboundedReceiver<Bytes>,
}

/// The other side went away before all of it was there.
pub(crate) struct Incomplete;

impl Body {
    pub(super) fn new(length: u64) -> (UnboundedSender<Bytes>, Self) {
        let (sender, chunks) = unbounded_channel();
        (sender, Self { length, chunks })
    }

    /// How long the head says it is.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// All of it.
    pub(crate) async fn whole(mut self) -> Result<Bytes, Incomplete> {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunks.recv().await {
            whole.extend_from_slice(&chunk);
        }
        if u64::try_from(whole.len()).is_ok_and(|read| read == self.length) {
            Ok(whole.freeze())
        } else {
            Err(Incomplete)
        }
    }

    /// Takes up to a limit, and forgets it.
    pub(crate) async fn drain(mut self, limit: usize) {
        let mut taken = 0;
        while taken < limit {
            let Some(chunk) = self.chunks.recv().await else { return };
            taken += chunk.len();
        }
    }
}
