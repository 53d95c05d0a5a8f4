//! pvegate: one MCP server in front of many Proxmox VE clusters.
//!
//! A call goes through these, in this order: [`mcp`] (who is heard), [`authorize`] (who may do what),
//! [`args`] (what is asked, decoded and encoded by the catalog), [`connection`] and [`pve`] (how PVE is
//! asked), [`redact`] and [`server`] (what leaves, in which shape). `docs/architecture.md` has the map.

pub mod args;
pub mod audit;
pub mod authorize;
pub mod change;
pub mod config;
pub mod connection;
pub mod grant;
pub mod identity;
pub mod mcp;
pub mod own_access;
pub mod protection;
pub mod pve;
pub mod redact;
pub mod runaway;
pub mod serve;
pub mod server;
pub mod sight;
pub mod snapshot;
pub mod store;
pub mod tasks;
pub mod tokens;
pub mod untrusted;
pub mod url_policy;
pub mod values;
pub mod via;
pub mod waivers;
pub mod write;
