//! Starts the server from a configuration: over HTTP for many clients, or over stdio for one.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use crate::audit::{Audit, AuditError, Event, Record};
use crate::config::{Config, ConfigError};
use crate::grant::Grant;
use crate::mcp::{HttpConfig, Running, ServeError, StdioError, Surface as _, View, serve_http, serve_stdio};
use crate::runaway::Bounds;
use crate::server::{Live, State, TokenFile, Tools};
use crate::store::Store;
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
    /// There is no trail to write.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] crate::store::OpenError),
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
    audit: Audit,
    drain_time: Duration,
}

impl Served {
    /// Stops: nothing new is taken in or begun, and what is under way gets the time to drain.
    pub async fn stop(self) {
        let Self { running, live, drain_time, .. } = self;
        let work = Arc::clone(live.load().work());
        work.stop();
        let ((), left) = tokio::join!(running.stop(), work.drained(drain_time));
        if left > 0 {
            tracing::warn!(changes = left, "changes are still under way; the next start finds out what came of them");
        }
    }

    /// Takes over another configuration as a whole, or keeps the present one and says why. Calls that are under way
    /// go on with what they began with; everything that was known of the clusters is learned anew.
    ///
    /// The file of the trail is opened anew, since it may have been moved away, whether the rest is taken over or not.
    pub fn reload(&self, config: Result<Config, ConfigError>) -> Result<(), StartError> {
        let reopened = self.audit.reopen();
        let taken = config.map_err(StartError::from).and_then(|config| self.take_over(config));
        let outcome = if taken.is_ok() { "ok" } else { "kept" };
        self.audit.record(Event::Reload, &Record { outcome: Some(outcome.into()), ..Record::default() })?;
        taken.and(reopened.map_err(StartError::from))
    }

    fn take_over(&self, config: Config) -> Result<(), StartError> {
        if config.tokens.is_empty() {
            return Err(StartError::NoTokens);
        }
        self.live.store(Arc::new(
            State::new(config, Arc::clone(self.live.load().store()))
                .map_err(StartError::State)?
                .with_audit(self.audit.clone())
                .with_work(Arc::clone(self.live.load().work())),
        ));
        Ok(())
    }
}

/// Serves over HTTP until the returned value's listener is stopped or dropped.
pub async fn http(config: Config, http: HttpConfig, audit: Audit, store: Arc<dyn Store>) -> Result<Served, StartError> {
    if config.tokens.is_empty() {
        return Err(StartError::NoTokens);
    }
    let state = State::new(config, store).map_err(StartError::State)?.with_audit(audit.clone());
    let live: Live = Arc::new(ArcSwap::from_pointee(state));
    let (tools, tokens) = (Tools::new(Arc::clone(&live), http.limits.runaway.clone()), TokenFile(Arc::clone(&live)));
    crate::change::watch(Arc::clone(&live));
    let drain_time = http.limits.drain_time;
    let running = serve_http(http, Arc::new(tools), Arc::new(tokens)).await?;
    audit.record(Event::Start, &Record { outcome: Some("http".into()), ..Record::default() })?;
    Ok(Served { running, live, audit, drain_time })
}

/// Serves one client on standard input and output until it hangs up or `stop` fires. That client is one
/// fixed principal, an agent, which reaches every read of every configured cluster.
pub async fn stdio(
    config: Config,
    toolset: Option<&str>,
    audit: Audit,
    store: Arc<dyn Store>,
    stop: CancellationToken,
) -> Result<(), StartError> {
    let state = State::new(config, store).map_err(StartError::State)?.with_audit(audit.clone());
    let tools = Arc::new(Tools::new(Arc::new(ArcSwap::from_pointee(state)), Bounds::default()));
    let view = match toolset {
        None => View::Gateway,
        Some(name) if tools.has_toolset(name) => View::Toolset(name.into()),
        Some(name) => return Err(StartError::NoToolset(name.to_owned())),
    };
    let principal =
        Principal { name: "stdio".to_owned(), actor: Actor::Agent { owner: None }, grant: Grant::all(), expires: None };
    audit.record(Event::Start, &Record { outcome: Some("stdio".into()), ..Record::default() })?;
    Ok(serve_stdio(tools, Arc::new(principal), view, stop).await?)
}

/// The TLS library needs its cryptography chosen once for the process; choosing twice changes nothing.
pub fn install_crypto() {
    // An error says that one is installed already, and there is only this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
