//! pvegate in front of a lab, in the same process, through its library and from files as an operator
//! writes them.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use pvegate::audit::Audit;
use pvegate::config::Config;
use pvegate::mcp::{HttpConfig, Limits};
use pvegate::runaway::Bounds;
use pvegate::serve;
use pvegate::store::SqliteStore;
use pvegate::tokens;
use serde_json::{Map, Value, json};

use crate::lab::Lab;

/// A running pvegate with its files.
#[derive(Debug)]
pub struct Front {
    served: serve::Served,
    clusters: PathBuf,
    tokens: PathBuf,
    trail: PathBuf,
    reader: String,
}

/// How pvegate is started.
#[derive(Clone, Debug)]
pub struct FrontOptions {
    /// TCP port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Reads that are offered on request only, and are to be offered here.
    pub opt_in: Vec<String>,
    /// Hosts that nodes may be made to contact.
    pub url_allow: Vec<String>,
    /// Another PVE API token than the one with all rights, `user@realm!name=secret`, for the first lab.
    pub pve_token: Option<String>,
    /// Limits of the HTTP side.
    pub limits: Limits,
    /// Where lines about calls go; a file of the first lab's folder if absent.
    pub audit: Option<Audit>,
    /// Further entries of the token file, as an operator would write them.
    pub more_tokens: Vec<Value>,
    /// Entries of the waiver file, which is there if there are any.
    pub waivers: Vec<Value>,
}

impl Default for FrontOptions {
    fn default() -> Self {
        Self {
            port: 0,
            opt_in: Vec::new(),
            url_allow: Vec::new(),
            pve_token: None,
            // Whoever tries something out, and every test, is faster than an agent ever is.
            limits: Limits {
                requests_per_second: 0,
                strangers_per_second: 0,
                runaway: Bounds { refusals: 0, changes: 0, ..Bounds::default() },
                ..Limits::default()
            },
            audit: None,
            more_tokens: Vec::new(),
            waivers: Vec::new(),
        }
    }
}

impl Front {
    /// Writes the files into the first lab's folder and starts. Each lab becomes a cluster of its own name.
    pub async fn start(labs: &[(&str, &Lab)], options: FrontOptions) -> anyhow::Result<Self> {
        let folder = labs.first().map(|(_, lab)| lab.directory()).context("there is no lab to stand in front of")?;
        let devices = labs.iter().enumerate().map(|(at, (name, lab))| {
            let token = options.pve_token.clone().filter(|_| at == 0).unwrap_or_else(|| lab.full_token());
            let (id, secret) = token.split_once('=').unwrap_or((&token, ""));
            let endpoints: Vec<&str> = lab.endpoints().iter().map(|endpoint| endpoint.url.as_str()).collect();
            let ca = lab.ca_path();
            let device = json!({"endpoints": endpoints, "ca_pem_path": ca, "token_id": id, "token_secret": secret});
            ((*name).to_owned(), device)
        });
        Self::before(folder, devices.collect(), options).await
    }

    /// Writes the files into a folder and starts in front of `devices`, entries of a cluster file by their names.
    pub async fn before(folder: &Path, devices: Map<String, Value>, options: FrontOptions) -> anyhow::Result<Self> {
        serve::install_crypto();
        let (clusters, tokens) = (folder.join("clusters.json"), folder.join("tokens.json"));
        let (reader, hash) = tokens::generate().context("the system gave no random bytes")?;
        let policy = json!({"opt_in": options.opt_in, "url_allow": options.url_allow});
        write_secret(&clusters, &json!({"version": 1, "devices": devices, "policy": policy}))?;
        let mut entries = vec![
            json!({"name": "reader", "hash": hash, "tools": ["*"], "clusters": ["*"], "guests": ["*"], "nodes": ["*"], "storages": ["*"], "pools": ["*"], "networks": ["*"]}),
        ];
        entries.extend(options.more_tokens);
        write_secret(&tokens, &json!({"version": 1, "tokens": entries}))?;
        let waivers = folder.join("waivers.json");
        if !options.waivers.is_empty() {
            write_secret(&waivers, &json!({"version": 1, "waivers": options.waivers}))?;
        }
        let waived = Some(waivers.as_path()).filter(|_| !options.waivers.is_empty());
        let config = Config::load(&clusters, Some(&tokens), waived)?;
        let http = HttpConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, options.port)),
            limits: options.limits,
            ..HttpConfig::default()
        };
        let trail = folder.join("audit.jsonl");
        let audit = options.audit.map_or_else(|| Audit::file(&trail), Ok)?;
        let store = SqliteStore::serve(&folder.join("pvegate.db"), "pvegate of a lab").await?;
        let served = serve::http(config, http, audit, std::sync::Arc::new(store)).await?;
        Ok(Self { served, clusters, tokens, trail, reader: reader.expose().to_owned() })
    }

    /// The MCP endpoint with the gateway's tools.
    pub fn url(&self) -> String {
        self.served.running.url()
    }

    /// The secret of a token that reads everything.
    pub fn reader(&self) -> &str {
        &self.reader
    }

    /// The cluster file, for a server on standard input and output.
    pub fn clusters_file(&self) -> &Path {
        &self.clusters
    }

    /// The token file.
    pub fn tokens_file(&self) -> &Path {
        &self.tokens
    }

    /// The audit log, unless it goes elsewhere.
    pub fn audit_file(&self) -> &Path {
        &self.trail
    }

    /// Stops pvegate; the labs go on.
    pub async fn stop(self) {
        self.served.stop().await;
    }
}

/// Files with secrets are for their owner alone, from the first byte.
fn write_secret(path: &Path, value: &Value) -> anyhow::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(format!("{value:#}\n").as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}
