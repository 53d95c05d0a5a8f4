//! A simulated PVE cluster: HTTPS, API tokens, requests checked against the pinned apidoc, state behind every answer.
//!
//! It answers the way PVE does, down to reason phrases and `errors` keys, and is written from the schema and from what is
//! known about PVE, independently of pvegate's own encoder and validator, so that a mistake in one shows in the other.
//! No answer is recorded: each is computed from [`state`]. Nothing here is meant to be exposed beyond loopback.

mod access;
mod answer;
mod area;
mod arrange;
mod calendar;
mod check;
mod clock;
mod connection;
mod daemon;
mod door;
mod fault;
mod front;
mod gate;
mod journal;
mod lab;
mod listener;
mod multipart;
mod options;
mod params;
mod release;
mod sample;
mod schema;
mod shared;
mod state;
mod synth;
mod tls;
mod worker;

pub use arrange::Arrange;
pub use fault::Fault;
pub use front::{Front, FrontOptions};
pub use journal::Entry;
pub use lab::{Endpoint, Lab, LabError};
pub use options::{Certificate, Options, Profile};
pub use sample::SampleRead;
