//! Starts the server from a configuration: over HTTP for many clients, or over stdio for one.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigError};
use crate::grant::{Grant, Scope};
use crate::mcp::{HttpConfig, Running, ServeError, StdioError, Surface as _, View, serve_http, serve_stdio};
use crate::server::{Live, State, TokenFile, Tools};
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

/// A server over HTTP, and the state that it decides by.
#[derive(Debug)]
pub struct Served {
    /// The listener.
    pub running: Running,
    live: Live,
}

impl Served {
    /// Takes over another configuration as a whole, or keeps the present one and says why. Calls that are under way
    /// go on with what they began with; everything that was known of the clusters is learned anew.
    pub fn reload(&self, config: Config) -> Result<(), StartError> {
        if config.tokens.is_empty() {
            return Err(StartError::NoTokens);
        }
        self.live.store(Arc::new(State::new(config).map_err(StartError::State)?));
        Ok(())
    }
}

/// Serves over HTTP until the returned value's listener is stopped or dropped.
pub async fn http(config: Config, http: HttpConfig) -> Result<Served, StartError> {
    if config.tokens.is_empty() {
        return Err(StartError::NoTokens);
    }
    let live: Live = Arc::new(ArcSwap::from_pointee(State::new(config).map_err(StartError::State)?));
    let (tools, tokens) = (Tools::new(Arc::clone(&live)), TokenFile(Arc::clone(&live)));
    Ok(Served { running: serve_http(http, Arc::new(tools), Arc::new(tokens)).await?, live })
}

/// Serves one client on standard input and output until it hangs up or `stop` fires. That client is one
/// fixed principal, an agent, which reaches every read of every configured cluster.
pub async fn stdio(config: Config, toolset: Option<&str>, stop: CancellationToken) -> Result<(), StartError> {
    let state = State::new(config).map_err(StartError::State)?;
    let tools = Arc::new(Tools::new(Arc::new(ArcSwap::from_pointee(state))));
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
