//! pvegate: one MCP server in front of many Proxmox VE clusters.
pub mod mcp;
pub mod values;
pub mod untrusted;
pub mod config;
pub mod grant;
pub mod tokens;
pub mod pve;
pub mod redact;
pub mod snapshot;
pub mod args;
