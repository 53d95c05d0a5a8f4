//! The generator over the real `schema/` and over small made-up ones: what it writes, and what it refuses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed"
)]

#[path = "generate/schema.rs"]
mod schema;

#[path = "generate/additions.rs"]
mod additions;
#[path = "generate/arbitrary.rs"]
mod arbitrary;
#[path = "generate/committed.rs"]
mod committed;
#[path = "generate/releases.rs"]
mod releases;
#[path = "generate/removals.rs"]
mod removals;
#[path = "generate/requests.rs"]
mod requests;
#[path = "generate/tools.rs"]
mod tools;
#[path = "generate/undecided.rs"]
mod undecided;
#[path = "generate/writing.rs"]
mod writing;
