//! Brings the lab into the state that a recording was made in, as far as its request and answer tell.
//!
//! Within one session of recording the numbers follow the names, not what happened first: a list may come before what
//! created its rows. So each recording says itself what has to be there before. Nothing here is about a single
//! recording: each rule is for a kind of request and answer. Each area has a file of its own.

mod access;
mod guests;

use crate::recording::Recording;
use crate::stage::Stage;

pub async fn before(stage: &mut Stage<'_>, recording: &Recording) {
    access::before(stage, recording).await;
    guests::before(stage, recording).await;
}
