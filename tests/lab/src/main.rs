//! `cargo run -p lab`: simulated clusters and pvegate in front of them, and how to connect.

use std::io::{IsTerminal as _, stderr};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Parser, ValueEnum};
use lab::{Fault, Front, FrontOptions, Lab, Options};
use pvegate::tokens;
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

/// Starts simulated Proxmox VE clusters and pvegate in front of them, all on this machine only.
#[derive(Parser)]
struct Cli {
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Port of pvegate; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    mcp_port: u16,
    /// Port of the first cluster's first node; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pve_port: u16,
    /// Which clusters to simulate.
    #[arg(long, value_enum, default_value_t = Profile::Small)]
    profile: Profile,
    /// Something that goes wrong in the first cluster from the start, such as `dead-node:pve3`; docs/lab.md lists what there
    /// is. May be given more than once.
    #[arg(long)]
    fault: Vec<Fault>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Profile {
    /// Two clusters: one of three nodes with 40 guests of both kinds, and a node alone with six.
    Small,
    /// One node with three VMs and a container: the state that recordings of genuine PVE start from.
    Recorded,
    /// One cluster of three nodes that run release 8.4.
    Old,
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

/// What is started, by the name under which pvegate knows it.
fn clusters(cli: &Cli) -> Vec<(&'static str, Options)> {
    let first = Options { port: cli.pve_port, ..Options::default() };
    match cli.profile {
        Profile::Small => {
            // Half of its vmids are also those of guests in the other cluster.
            let alone =
                Options { cluster: "solo".to_owned(), nodes: 1, guests: 6, first_vmid: 137, ..Options::default() };
            vec![("lab", first), ("solo", alone)]
        }
        Profile::Recorded => vec![("lab", Options { profile: lab::Profile::Recorded, ..first })],
        Profile::Old => vec![("lab", Options { profile: lab::Profile::Old, ..first })],
    }
}

async fn run(cli: &Cli) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_env("PVEGATE_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(stderr().is_terminal()).with_writer(stderr).init();
    let mut labs = Vec::new();
    for (name, options) in clusters(cli) {
        labs.push((name, Lab::start(options).await?));
    }
    for fault in &cli.fault {
        if let Some((name, lab)) = labs.first() {
            check(fault, name, lab)?;
            lab.set_fault(fault.clone()).await;
        }
    }
    let named: Vec<(&str, &Lab)> = labs.iter().map(|(name, lab)| (*name, lab)).collect();
    let (operator, entry) = operator()?;
    let options = FrontOptions { port: cli.mcp_port, more_tokens: vec![entry], ..FrontOptions::default() };
    let front = Front::start(&named, options).await?;
    if cli.json {
        println!("{}", as_json(&named, &front, &operator));
    } else {
        print!("{}", as_text(&named, &front, &operator));
    }
    stopped().await?;
    front.stop().await;
    for (_, lab) in labs {
        lab.stop().await;
    }
    Ok(())
}

/// A fault of a node that is not there would change nothing, without a word.
fn check(fault: &Fault, cluster: &str, lab: &Lab) -> anyhow::Result<()> {
    let (Fault::DeadNode(node) | Fault::HangingNode(node)) = fault else { return Ok(()) };
    let nodes: Vec<&str> = lab.endpoints().iter().map(|endpoint| endpoint.node.as_str()).collect();
    let known = nodes.contains(&node.as_str());
    ensure!(known, "`--fault {fault}`: cluster {cluster} has no node `{node}`; it has {}", nodes.join(", "));
    Ok(())
}

/// A token that may do whatever acts at once, and its entry in the token file.
fn operator() -> anyhow::Result<(String, Value)> {
    let (secret, hash) = tokens::generate().context("the system gave no random bytes")?;
    let toolsets = [
        "agent",
        "backups",
        "firewall",
        "gateway",
        "guests",
        "images",
        "nodes",
        "power",
        "snapshots",
        "storage",
        "tasks",
    ];
    let all = json!(["*"]);
    let entry = json!({
        "name": "operator", "owner": "ada", "hash": hash, "tools": toolsets, "tiers": ["read", "low"],
        "clusters": all, "guests": all, "nodes": all, "storages": all, "pools": all, "networks": all,
    });
    Ok((secret.expose().to_owned(), entry))
}

fn as_json(labs: &[(&str, &Lab)], front: &Front, operator: &str) -> Value {
    let clusters: Vec<Value> = labs
        .iter()
        .map(|(name, lab)| {
            let endpoints = lab.endpoints().iter();
            let endpoints: Vec<Value> = endpoints
                .map(
                    |endpoint| json!({"node": endpoint.node, "url": endpoint.url, "fingerprint": endpoint.fingerprint}),
                )
                .collect();
            json!({
                "name": name,
                "url": lab.url(),
                "endpoints": endpoints,
                "ca_path": lab.ca_path(),
                "full_token": lab.full_token(),
            })
        })
        .collect();
    json!({
        "mcp_url": front.url(),
        "clusters": clusters,
        "tokens": {"reader": front.reader(), "operator": operator},
        "clusters_file": front.clusters_file(),
        "tokens_file": front.tokens_file(),
    })
}

fn as_text(labs: &[(&str, &Lab)], front: &Front, operator: &str) -> String {
    let (url, reader) = (front.url(), front.reader());
    let listed = labs.iter().map(|(name, lab)| {
        let nodes: Vec<String> =
            lab.endpoints().iter().map(|endpoint| format!("{} {}", endpoint.node, endpoint.url)).collect();
        format!("  cluster       {name}: {}; CA in {}\n", nodes.join(", "), lab.ca_path().display())
    });
    let listed: String = listed.collect();
    let clusters = front.clusters_file().display();
    let http = json!({"mcpServers": {"pvegate": {"type": "http", "url": url, "headers": {"Authorization": format!("Bearer {reader}")}}}});
    let stdio = json!({"mcpServers": {"pvegate": {"command": "cargo", "args": ["run", "--quiet", "--package", "pvegate", "--", "serve", "--stdio", "--clusters", front.clusters_file()]}}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_guests", "arguments": {"limit": 3}}});
    let backup = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "create_backup", "arguments": {"cluster": labs.first().map(|(name, _)| name), "vmid": 100, "storage": "local"}}});
    format!(
        "Simulated Proxmox VE and pvegate in front of it are running. Ctrl-C stops both.

  MCP URL       {url}   (toolsets below it: {url}/x/guests, /x/nodes, …; docs/tools.md)
  reader token  {reader}   (reads everything)
  operator token  {operator}   (and does what acts at once)
{listed}
Try it:

  curl -s {url} -H 'Authorization: Bearer {reader}' -H 'Content-Type: application/json' \\
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2025-11-25' -d '{call}'

Start a backup, as a change whose task wait_task can follow:

  curl -s {url} -H 'Authorization: Bearer {operator}' -H 'Content-Type: application/json' \\
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2025-11-25' -d '{backup}'

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
