//! Decides how the server talks to PVE: one [`Client`] per cluster, which knows addresses, certificates,
//! lanes, time limits and PVE's ways of failing, and no path of its own.

pub mod encode;

mod attempt;
mod client;
mod error;
mod fresh;
mod health;
mod lanes;
mod nodes;
mod reading;
mod reply;
mod request;
mod told;
mod trust;

#[cfg(test)]
mod tests;

pub use client::Client;
pub use error::{Kind, PveError, Sent};
pub use fresh::{Fetch, Fresh};
pub use lanes::Lane;
pub use nodes::{ListedNode, Nodes};
pub use reply::{Answered, Reply};
pub use request::Request;
pub use told::error_from;
