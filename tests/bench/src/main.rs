//! Measures pvegate against bare servers that make the same transfer, in one process and one run.
//!
//! Only ratios mean something: both sides share the machine with the client and the lab, and take turns.
//! `docs/performance.md` says how to read the numbers.

mod bare;
mod load;
mod protocol;
mod report;
mod site;
mod trouble;

use anyhow::Result;
use clap::Parser;
use serde_json::json;

use load::Target;
use report::{Comparison, TABLE_HEAD};
use site::Site;

/// Measures pvegate against bare servers that make the same transfer.
#[derive(Parser)]
struct Options {
    /// Requests of each run.
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    requests: u32,
    /// Runs of each side, in turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Requests in flight; may be given more than once.
    #[arg(long, default_values_t = [1, 32], value_parser = clap::value_parser!(u32).range(1..=256))]
    in_flight: Vec<u32>,
    /// Only what callers wait for where a part of the cluster is down or busy; takes two minutes.
    #[arg(long)]
    trouble: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Two servers that are asked for the same.
struct Pair {
    row: &'static str,
    target: Option<f64>,
    pvegate: Target,
    bare: Target,
}

/// How an answer of a tool that did what it was asked to ends.
const TOOL_OK: &[u8] = br#""isError":false}}"#;

/// A `tools/call` as clients of the 2026-07-28 revision send it.
fn tool_call(address: std::net::SocketAddr, token: &str, name: &str, arguments: &serde_json::Value) -> Target {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    });
    let params = json!({"name": name, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", &*authorization),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ];
    Target::new(address, "/mcp", &headers, &body, TOOL_OK)
}

/// A bare server that answers with exactly what pvegate answered, to the same request.
async fn same_bytes(pvegate: &Target) -> Result<Target> {
    let address = bare::fixed(pvegate.once().await?).await?;
    let body = pvegate
        .request
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .and_then(|end| pvegate.request.get(end + 4..));
    let body = String::from_utf8(body.unwrap_or_default().to_vec())?;
    Ok(Target::new(address, "/", &[("content-type", "application/json")], &body, TOOL_OK))
}

async fn compare(pair: &Pair, in_flight: usize, requests: usize, rounds: u32) -> Result<Comparison> {
    let warm_up = (requests / 4).max(in_flight);
    load::run(&pair.pvegate, warm_up, in_flight).await?;
    load::run(&pair.bare, warm_up, in_flight).await?;
    let mut comparison = Comparison { row: pair.row, in_flight, target: pair.target, ..Comparison::default() };
    for round in 0..rounds {
        // Whoever goes second may find a warmer machine, so they change places.
        if round % 2 == 0 {
            comparison.pvegate.push(load::run(&pair.pvegate, requests, in_flight).await?);
            comparison.bare.push(load::run(&pair.bare, requests, in_flight).await?);
        } else {
            comparison.bare.push(load::run(&pair.bare, requests, in_flight).await?);
            comparison.pvegate.push(load::run(&pair.pvegate, requests, in_flight).await?);
        }
    }
    Ok(comparison)
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    if cfg!(debug_assertions) && !options.json {
        eprintln!("This is a debug build: its numbers say nothing. Use `cargo run --release -p bench`.");
    }
    pvegate::serve::install_crypto();
    if options.trouble {
        let waits = trouble::measure().await?;
        if options.json {
            println!("{}", json!({"waits": waits.iter().map(trouble::Wait::json).collect::<Vec<_>>()}));
        } else {
            println!("{}", trouble::TABLE_HEAD);
            for wait in &waits {
                println!("{}", wait.markdown());
            }
        }
        return Ok(());
    }
    let (site, protocol) = (Site::start().await?, protocol::start().await?);
    let (read, upstream) = site.read_of_one_guest().await?;
    let bare_read = Target::new(bare::pass_through(upstream).await?, "/", &[], "", b"}");
    let page = site.page_from_the_snapshot().await?;
    let prepared = tool_call(protocol.address(), protocol::TOKEN, "list_guests", &json!({}));
    let (bare_page, bare_prepared) = (same_bytes(&page).await?, same_bytes(&prepared).await?);
    let pairs = [
        Pair { row: "read of one guest", target: Some(0.7), pvegate: read, bare: bare_read },
        Pair { row: "page from the snapshot", target: Some(0.3), pvegate: page, bare: bare_page },
        Pair { row: "protocol alone", target: None, pvegate: prepared, bare: bare_prepared },
    ];

    let mut comparisons = Vec::new();
    if !options.json {
        println!("{TABLE_HEAD}");
    }
    for pair in &pairs {
        for &in_flight in &options.in_flight {
            let comparison = compare(pair, in_flight as usize, options.requests as usize, options.rounds).await?;
            if options.json {
                comparisons.push(comparison.json());
            } else {
                println!("{}", comparison.markdown());
            }
        }
    }
    if options.json {
        println!("{}", json!({"debug_build": cfg!(debug_assertions), "comparisons": comparisons}));
    }
    protocol.stop().await;
    site.stop().await;
    Ok(())
}
