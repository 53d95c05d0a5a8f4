//! The grammars: by example, and by property.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod examples;
mod generate;
mod hostile;
mod properties;
mod round_trips;
