//! Starts the server from a configuration: over HTTP for many clients, over stdio for one, or both.

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

/// A server and the state that it decides by. It serves nobody before it is told to, and begins nothing once dropped.
#[derive(Debug)]
pub struct Server {
    live: Live,
    tools: Arc<Tools>,
    audit: Audit,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.live.load().work().stop();
    }
}

impl Server {
    /// From a configuration, bounds for what one token does in a row, a trail and a store.
    pub fn new(config: Config, bounds: Bounds, audit: Audit, store: Arc<dyn Store>) -> Result<Self, StartError> {
        let state = State::new(config, store).map_err(StartError::State)?.with_audit(audit.clone());
        let live: Live = Arc::new(ArcSwap::from_pointee(state));
        Ok(Self { tools: Arc::new(Tools::new(Arc::clone(&live), bounds)), live, audit })
    }

    /// Sees to changes that were left behind, from now on. For the one server that may write the store.
    pub fn watch(&self) {
        crate::change::watch(Arc::clone(&self.live));
    }

    /// Takes over another configuration as a whole, or keeps the present one and says why. Calls that are under way
    /// go on with what they began with; everything that was known of the clusters is learned anew. The store stays.
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
        let now = self.live.load();
        // A server on standard input alone has none, and needs none.
        if config.tokens.is_empty() && now.principals().next().is_some() {
            return Err(StartError::NoTokens);
        }
        self.live.store(Arc::new(
            State::new(config, Arc::clone(now.store()))
                .map_err(StartError::State)?
                .with_audit(self.audit.clone())
                .with_work(Arc::clone(now.work())),
        ));
        Ok(())
    }

    /// Serves over HTTP until the returned listener is stopped or dropped.
    pub async fn listen(&self, http: HttpConfig) -> Result<Running, StartError> {
        if self.live.load().principals().next().is_none() {
            return Err(StartError::NoTokens);
        }
        let tokens = TokenFile(Arc::clone(&self.live));
        let running = serve_http(http, Arc::clone(&self.tools), Arc::new(tokens)).await?;
        self.audit.record(Event::Start, &Record { outcome: Some("http".into()), ..Record::default() })?;
        Ok(running)
    }

    /// Serves one client on standard input and output until it hangs up or `stop` fires. That client is one
    /// fixed principal, an agent, which reaches every read of every configured cluster.
    pub async fn stdio(&self, toolset: Option<&str>, stop: CancellationToken) -> Result<(), StartError> {
        let view = match toolset {
            None => View::Gateway,
            Some(name) if self.tools.has_toolset(name) => View::Toolset(name.into()),
            Some(name) => return Err(StartError::NoToolset(name.to_owned())),
        };
        let principal = Principal {
            name: "stdio".to_owned(),
            actor: Actor::Agent { owner: None },
            grant: Grant::all(),
            expires: None,
        };
        self.audit.record(Event::Start, &Record { outcome: Some("stdio".into()), ..Record::default() })?;
        Ok(serve_stdio(Arc::clone(&self.tools), Arc::new(principal), view, stop).await?)
    }

    /// Stops: nothing new is taken in or begun, and what is under way gets the time to drain.
    pub async fn stop(self, running: Option<Running>, drain_time: Duration) {
        let work = Arc::clone(self.live.load().work());
        work.stop();
        let listener = async {
            if let Some(running) = running {
                running.stop().await;
            }
        };
        let ((), left) = tokio::join!(listener, work.drained(drain_time));
        if left > 0 {
            tracing::warn!(changes = left, "changes are still under way; the next start finds out what came of them");
        }
    }
}

/// A server over HTTP alone.
#[derive(Debug)]
pub struct Served {
    /// The listener.
    pub running: Running,
    server: Server,
    drain_time: Duration,
}

impl Served {
    /// Stops it, as [`Server::stop`] does.
    pub async fn stop(self) {
        self.server.stop(Some(self.running), self.drain_time).await;
    }
}

/// Serves over HTTP until the returned value is stopped or dropped.
pub async fn http(config: Config, http: HttpConfig, audit: Audit, store: Arc<dyn Store>) -> Result<Served, StartError> {
    let (bounds, drain_time) = (http.limits.runaway.clone(), http.limits.drain_time);
    let server = Server::new(config, bounds, audit, store)?;
    let running = server.listen(http).await?;
    server.watch();
    Ok(Served { running, server, drain_time })
}

/// The TLS library needs its cryptography chosen once for the process; choosing twice changes nothing.
pub fn install_crypto() {
    // An error says that one is installed already, and there is only this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
