//! (skeleton)
pub mod mcp;
pub mod values;
pub mod untrusted;
