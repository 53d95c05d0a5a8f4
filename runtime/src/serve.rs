//! Starts the server from a configuration: over HTTP for many clients, or over stdio for one.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigError};
use crate::grant::{Grant, Scope};
use crate::mcp::{HttpConfig, Running, ServeError, StdioError, Surface as _, View, serve_http, serve_stdio};
use crate::server::{State, TokenFile, Tools};
use crate::tokens::{Actor, Principal};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file is not in order.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What the files say does not work together.
    #[error("the configuration cannot be used:\n  {}", .0.join("\n  "))]
    State(Vec<String>),
    /// Without a token nobody could call.
    #[error("the token file names no token, so nobody could call; add one, or serve over stdio")]
    NoTokens,
    /// No toolset of this name.
    #[error("there is no toolset `{0}`; docs/tools.md lists them")]
    NoToolset(String),
    /// The listener did not start.
    #[error(transparent)]
    Http(#[from] ServeError),
    /// Standard input or output failed.
    #[error(transparent)]
    Stdio(#[from] StdioError),
}

/// Serves over HTTP until the returned value is stopped or dropped.
pub async fn http(config: Config, http: HttpConfig) -> Result<Running, StartError> {
    if config.tokens.is_empty() {
        return Err(StartError::NoTokens);
    }
    let state = Arc::new(State::new(config).map_err(StartError::State)?);
    Ok(serve_http(http, Arc::new(Tools::new(Arc::clone(&state))), Arc::new(TokenFile(state))).await?)
}

/// Serves one client on standard input and output until it hangs up or `stop` fires. That client is one
/// fixed principal, an agent, which reaches every read of every configured cluster.
pub async fn stdio(config: Config, toolset: Option<&str>, stop: CancellationToken) -> Result<(), StartError> {
    let state = Arc::new(State::new(config).map_err(StartError::State)?);
    let tools = Arc::new(Tools::new(state));
    let view = match toolset {
        None => View::Gateway,
        Some(name) if tools.has_toolset(name) => View::Toolset(name.into()),
        Some(name) => return Err(StartError::NoToolset(name.to_owned())),
    };
    let principal = Principal {
        name: "stdio".to_owned(),
        actor: Actor::Agent { owner: None },
        grant: Grant { tools: Scope::All, clusters: Scope::All },
        expires: None,
    };
    Ok(serve_stdio(tools, Arc::new(principal), view, stop).await?)
}

/// The TLS library needs its cryptography chosen once for the process; choosing twice changes nothing.
pub fn install_crypto() {
    // An error says that one is installed already, and there is only this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
