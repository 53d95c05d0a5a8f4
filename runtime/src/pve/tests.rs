//! The client against recorded failures and against a server that misbehaves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod health;
mod recordings;
mod server;
mod wire;
mod writes;
