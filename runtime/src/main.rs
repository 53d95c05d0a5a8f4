//! The command line.

mod limit_flags;
mod token_command;

use std::io::{IsTerminal as _, stderr};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pvegate::audit::{Audit, Event, Record};
use pvegate::config::{Config, ConfigError};
use pvegate::mcp::{HttpConfig, LOG_DIRECTIVE};
use pvegate::serve;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// One MCP server in front of many Proxmox VE clusters.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves MCP over HTTP, or over stdio for one client.
    Serve(Serve),
    /// Makes, shows, changes and ends tokens.
    Token(token_command::Token),
}

#[derive(clap::Args)]
struct Serve {
    /// The cluster file (docs/configuration.md).
    #[arg(long, env = "PVEGATE_CLUSTERS", default_value = "clusters.json")]
    clusters: PathBuf,
    /// The token file; not used with --stdio.
    #[arg(long, env = "PVEGATE_TOKENS", default_value = "tokens.json")]
    tokens: PathBuf,
    /// The waiver file; `waivers.json` if there is one.
    #[arg(long, env = "PVEGATE_WAIVERS", value_name = "FILE")]
    waivers: Option<PathBuf>,
    /// The file that gets a line for every call, refusal and write; standard error if absent.
    #[arg(long, env = "PVEGATE_AUDIT_LOG", value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// What is remembered about changes.
    #[arg(long, env = "PVEGATE_STORE", default_value = "pvegate.db")]
    store: PathBuf,
    /// Where to listen. Loopback only.
    #[arg(long, default_value = "127.0.0.1:8790", conflicts_with = "stdio")]
    listen: SocketAddr,
    /// An origin of web pages that may send requests; may be given more than once.
    #[arg(long = "allowed-origin", conflicts_with = "stdio")]
    allowed_origins: Vec<String>,
    #[command(flatten)]
    limits: limit_flags::LimitFlags,
    /// Serve one client on standard input and output.
    #[arg(long)]
    stdio: bool,
    /// With --stdio: the toolset to show instead of the gateway.
    #[arg(long, requires = "stdio")]
    toolset: Option<String>,
}

impl Serve {
    /// The files as they are now.
    fn config(&self) -> Result<Config, ConfigError> {
        let beside = Some(PathBuf::from("waivers.json")).filter(|path| path.symlink_metadata().is_ok());
        let waivers = self.waivers.clone().or(beside);
        Config::load(&self.clusters, (!self.stdio).then_some(&*self.tokens), waivers.as_deref())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Serve(arguments) => {
            log();
            serve::install_crypto();
            run(arguments).await.map_err(anyhow::Error::from)
        }
        Command::Token(token) => token_command::run(token),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pvegate: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Logs go to standard error: standard output belongs to the protocol. Colors are for terminals: files and journals get none.
fn log() {
    let filter = EnvFilter::try_from_env("PVEGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = match LOG_DIRECTIVE.parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    };
    let colored = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colored).with_writer(stderr).init();
}

async fn run(arguments: Serve) -> Result<(), serve::StartError> {
    let stop = CancellationToken::new();
    tokio::spawn({
        let stop = stop.clone();
        async move {
            signalled().await;
            stop.cancel();
        }
    });
    let store: std::sync::Arc<dyn pvegate::store::Store> =
        std::sync::Arc::new(pvegate::store::SqliteStore::serve(&arguments.store, "pvegate serve").await?);
    let audit = arguments.audit_log.as_deref().map_or_else(|| Ok(Audit::stderr()), Audit::file)?;
    if arguments.stdio {
        let config = arguments.config()?;
        return serve::stdio(config, arguments.toolset.as_deref(), audit, store, stop).await;
    }
    let config = arguments.config()?;
    let http = HttpConfig {
        listen: arguments.listen,
        allowed_origins: arguments.allowed_origins.clone(),
        limits: arguments.limits.clone().into(),
    };
    let served = serve::http(config, http, audit.clone(), store).await?;
    eprintln!("pvegate serves MCP at {}", served.running.url());
    tokio::select! {
        () = stop.cancelled() => {}
        () = reloading(&served, &arguments) => {}
    }
    served.stop().await;
    audit.record(Event::Stop, &Record::default())?;
    Ok(())
}

/// Reads the files again at each SIGHUP. What is wrong with them is said, and changes nothing.
async fn reloading(served: &serve::Served, arguments: &Serve) {
    let mut hangup = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => {
            tracing::warn!(%error, "cannot wait for SIGHUP, so changed files count at the next start");
            return std::future::pending().await;
        }
    };
    while hangup.recv().await.is_some() {
        match served.reload(arguments.config()) {
            Ok(()) => eprintln!("pvegate reads its files again: clusters, policy, tokens and waivers are those of now"),
            Err(error) => eprintln!("pvegate keeps what it knew, clusters, policy, tokens and waivers: {error}"),
        }
    }
    std::future::pending::<()>().await;
}

/// Ctrl-C, or SIGTERM from a service manager. Where neither can be waited for, the process still ends by force.
async fn signalled() {
    let mut terminate = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => {
            tracing::warn!(%error, "cannot wait for SIGTERM");
            let _ = tokio::signal::ctrl_c().await;
            return;
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
