//! (skeleton)
pub mod mcp;
pub mod values;
pub mod untrusted;
pub mod config;
pub mod grant;
pub mod tokens;
pub mod pve;
pub mod redact;
