//! What the integration tests share: a lab with pvegate in front of it, clients of both eras of the
//! protocol, and what the lab's journal tells about a call.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "only tests use this crate, and a test may stop where it stands"
)]

pub mod call;
pub mod certificate;
pub mod client;
pub mod journal;
pub mod log;
pub mod program;
pub mod server;
pub mod site;
pub mod token;
pub mod upstream;
