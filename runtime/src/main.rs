//! The command line.

mod end_time;
mod freeze_command;
mod limit_flags;
mod store_flags;
mod token_command;

use std::io::{IsTerminal as _, stderr};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use pvegate::audit::{Audit, Event, Record};
use pvegate::config::{Config, ConfigError};
use pvegate::mcp::{HttpConfig, LOG_DIRECTIVE, Limits};
use pvegate::serve::{self, Server};
use pvegate::store::SqliteStore;
use pvegate::via;
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
    /// Refuses every change at once, also on a running server, or shows whether that is so.
    Freeze(freeze_command::Freeze),
    /// Makes changes possible again.
    Unfreeze(freeze_command::Unfreeze),
}

#[derive(clap::Args)]
struct Serve {
    /// The cluster file (docs/configuration.md).
    #[arg(long, env = "PVEGATE_CLUSTERS", default_value = "clusters.json")]
    clusters: PathBuf,
    /// The token file [default: tokens.json]; with --stdio, serves over HTTP too where it is given.
    #[arg(long, env = "PVEGATE_TOKENS")]
    tokens: Option<PathBuf>,
    /// The waiver file; `waivers.json` if there is one.
    #[arg(long, env = "PVEGATE_WAIVERS", value_name = "FILE")]
    waivers: Option<PathBuf>,
    #[command(flatten)]
    store: store_flags::StoreFlags,
    /// The file that gets a line for every call, refusal and write; standard error if absent.
    #[arg(long, env = "PVEGATE_AUDIT_LOG", value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Where to listen. Loopback only.
    #[arg(long, default_value = "127.0.0.1:8790")]
    listen: SocketAddr,
    /// An origin of web pages that may send requests; may be given more than once.
    #[arg(long = "allowed-origin")]
    allowed_origins: Vec<String>,
    #[command(flatten)]
    limits: limit_flags::LimitFlags,
    /// Serve one client on standard input and output.
    #[arg(long)]
    stdio: bool,
    /// With --stdio: the toolset to show instead of the gateway.
    #[arg(long, requires = "stdio", conflicts_with = "via")]
    toolset: Option<String>,
    /// With --stdio: serve nothing here, and pass everything on to the running server at this URL.
    #[arg(long, value_name = "URL", requires_all = ["stdio", "token_file"])]
    via: Option<String>,
    /// With --via: the file that holds the token for that server, and nothing else.
    #[arg(long, value_name = "FILE", requires = "via")]
    token_file: Option<PathBuf>,
}

impl Serve {
    /// The files as they are now.
    fn config(&self) -> Result<Config, ConfigError> {
        let beside = Some(PathBuf::from("waivers.json")).filter(|path| path.symlink_metadata().is_ok());
        let waivers = self.waivers.clone().or(beside);
        Config::load(&self.clusters, self.tokens_file().as_deref(), waivers.as_deref())
    }

    /// The token file. On standard input alone nobody shows a token.
    fn tokens_file(&self) -> Option<PathBuf> {
        self.tokens.clone().or_else(|| (!self.stdio).then(|| PathBuf::from("tokens.json")))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Serve(arguments) => {
            log();
            serve::install_crypto();
            run(arguments).await
        }
        Command::Token(token) => token_command::run(token),
        Command::Freeze(freeze) => freeze_command::freeze(freeze).await,
        Command::Unfreeze(unfreeze) => freeze_command::unfreeze(unfreeze).await,
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

async fn run(arguments: Serve) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    tokio::spawn({
        let stop = stop.clone();
        async move {
            signalled().await;
            stop.cancel();
        }
    });
    if let (Some(url), Some(token_file)) = (&arguments.via, &arguments.token_file) {
        return Ok(via::stdio(url, token_file, stop).await?);
    }
    let audit = arguments.audit_log.as_deref().map_or_else(|| Ok(Audit::stderr()), Audit::file)?;
    let config = arguments.config()?;
    let tokens = arguments.tokens_file();
    let about = if arguments.stdio { "pvegate serve --stdio" } else { "pvegate serve" };
    let about = if tokens.is_some() { format!("{about} --listen {}", arguments.listen) } else { about.to_owned() };
    let store = Arc::new(SqliteStore::serve(&arguments.store.file(&arguments.clusters), &about).await?);
    if let Some(holder) = store.held_by() {
        eprintln!("pvegate only reads: {} is held by another process ({holder})", store.path().display());
    }
    // Who approves talks to the server that holds the store.
    let listens = tokens.is_some() && (!arguments.stdio || store.held_by().is_none());
    let limits: Limits = arguments.limits.clone().into();
    let (writes, drain_time) = (store.held_by().is_none(), limits.drain_time);
    let server = Server::new(config, limits.runaway.clone(), audit.clone(), store)?;
    if writes {
        server.watch();
    }
    let running = if listens {
        let http = HttpConfig { listen: arguments.listen, allowed_origins: arguments.allowed_origins.clone(), limits };
        let running = server.listen(http).await?;
        eprintln!("pvegate serves MCP at {}", running.url());
        Some(running)
    } else {
        None
    };
    let serving = async {
        if arguments.stdio {
            return server.stdio(arguments.toolset.as_deref(), stop.clone()).await;
        }
        stop.cancelled().await;
        Ok(())
    };
    let ended = tokio::select! {
        ended = serving => ended,
        () = reloading(&server, &arguments) => Ok(()),
    };
    server.stop(running, drain_time).await;
    audit.record(Event::Stop, &Record::default())?;
    Ok(ended?)
}

/// Reads the files again at each SIGHUP. What is wrong with them is said, and changes nothing.
async fn reloading(server: &Server, arguments: &Serve) {
    let mut hangup = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => {
            tracing::warn!(%error, "cannot wait for SIGHUP, so changed files count at the next start");
            return std::future::pending().await;
        }
    };
    while hangup.recv().await.is_some() {
        match server.reload(arguments.config()) {
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
