//! The lab answers as PVE does, over its own HTTPS listener.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may stop where it stands"
)]

mod client;

mod daemons;
mod faults;
mod guests;
mod kept;
mod logins;
mod nodes;
mod profiles;
mod reads;
mod requests;
mod tasks;
mod transport;
