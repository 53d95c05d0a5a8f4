//! Generates pvegate's catalog from the pinned PVE API schema and the overlay.

pub mod apidoc;
pub mod diff;
pub mod pin;
mod typetext;
