//! `cargo run -p lab`: a simulated cluster and pvegate in front of it, and how to connect.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use lab::{Front, FrontOptions, Lab, Options};
use serde_json::json;
use tracing_subscriber::EnvFilter;

/// Starts a simulated Proxmox VE cluster and pvegate in front of it, both on this machine only.
#[derive(Parser)]
struct Cli {
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Port of pvegate; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    mcp_port: u16,
    /// Port of the simulated cluster; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pve_port: u16,
    /// Which clusters to simulate.
    #[arg(long, value_enum, default_value_t = Profile::Small)]
    profile: Profile,
}

#[derive(Clone, Copy, ValueEnum)]
enum Profile {
    /// One cluster: a node, a dead peer, 40 guests of both kinds.
    Small,
    /// One node with three VMs and a container: the state that recordings of genuine PVE start from.
    Recorded,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: &Cli) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_env("PVEGATE_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let profile = match cli.profile {
        Profile::Small => lab::Profile::Small,
        Profile::Recorded => lab::Profile::Recorded,
    };
    let lab = Lab::start(Options { profile, port: cli.pve_port, ..Options::default() }).await?;
    let front = Front::start(&[("lab", &lab)], FrontOptions { port: cli.mcp_port, ..FrontOptions::default() }).await?;
    if cli.json {
        println!("{}", as_json(&lab, &front));
    } else {
        print!("{}", as_text(&lab, &front));
    }
    stopped().await?;
    front.stop().await;
    lab.stop().await;
    Ok(())
}

fn as_json(lab: &Lab, front: &Front) -> serde_json::Value {
    json!({
        "mcp_url": front.url(),
        "clusters": [{"name": "lab", "url": lab.url(), "ca_path": lab.ca_path()}],
        "tokens": {"reader": front.reader()},
        "clusters_file": front.clusters_file(),
        "tokens_file": front.tokens_file(),
    })
}

fn as_text(lab: &Lab, front: &Front) -> String {
    let (url, reader, pve) = (front.url(), front.reader(), lab.url());
    let ca = lab.ca_path().display();
    let clusters = front.clusters_file().display();
    let http = json!({"mcpServers": {"pvegate": {"type": "http", "url": url, "headers": {"Authorization": format!("Bearer {reader}")}}}});
    let stdio = json!({"mcpServers": {"pvegate": {"command": "cargo", "args": ["run", "--quiet", "--package", "pvegate", "--", "serve", "--stdio", "--clusters", front.clusters_file()]}}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_guests", "arguments": {"limit": 3}}});
    format!(
        "A simulated Proxmox VE cluster and pvegate in front of it are running. Ctrl-C stops both.

  MCP URL       {url}   (toolsets below it: {url}/x/guests, /x/nodes, …; docs/tools.md)
  reader token  {reader}
  cluster       lab at {pve}, CA in {ca}

Try it:

  curl -s {url} -H 'Authorization: Bearer {reader}' -H 'Content-Type: application/json' \\
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2025-11-25' -d '{call}'

An MCP client's configuration, over HTTP:

  {http}

or over standard input and output (from this folder, while this runs):

  {stdio}

The files that pvegate reads: {clusters} and tokens.json beside it.
"
    )
}

/// Ctrl-C or SIGTERM.
async fn stopped() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
