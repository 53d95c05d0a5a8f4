//! A lab and a pvegate in front of it, each test with its own.

use std::collections::BTreeSet;

use lab::{Entry, Front, FrontOptions, Lab, Options};
use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Offered, Tool};
use pvegate_generated::terms::Tier;
use pvegate_generated::tools::TOOLS;
use serde_json::{Value, json};

use crate::client::Client;
use crate::journal;
use crate::token::Token;

/// The name of the cluster in [`Site`].
pub const CLUSTER: &str = "lab";

/// One cluster and one server.
#[derive(Debug)]
pub struct Site {
    /// The cluster.
    pub lab: Lab,
    /// The server.
    pub front: Front,
    /// A client that may read everything.
    pub client: Client,
}

impl Site {
    /// The ordinary one.
    pub async fn start() -> Self {
        Self::with(quick(), FrontOptions::default()).await
    }

    /// One with options.
    pub async fn with(options: Options, front: FrontOptions) -> Self {
        let lab = Lab::start(options).await.unwrap();
        let front = Front::start(&[(CLUSTER, &lab)], front).await.unwrap();
        let client = Client::new(&front.url(), front.reader());
        Self { lab, front, client }
    }

    /// The ordinary one, with a client for each of these grants, given as the keys of a token.
    pub async fn granting<const N: usize>(grants: [Value; N]) -> (Self, [Client; N]) {
        let mut at = 0;
        let tokens = grants.map(|keys| {
            at += 1;
            Token::new(&format!("token-{at}"), &keys)
        });
        let more_tokens = tokens.iter().map(|token| token.entry.clone()).collect();
        let site = Self::with(quick(), FrontOptions { more_tokens, ..FrontOptions::default() }).await;
        let clients = tokens.map(|token| site.client.with_token(&token.secret));
        (site, clients)
    }

    /// One whose client may do everything that acts at once.
    pub async fn low() -> Self {
        Self::low_with(quick(), FrontOptions::default()).await
    }

    /// The same with options.
    pub async fn low_with(options: Options, mut front: FrontOptions) -> Self {
        let (secret, entry) = low_token("operator");
        front.more_tokens.push(entry);
        let mut site = Self::with(options, front).await;
        site.client = site.client.with_token(&secret);
        site
    }

    /// The requests that change something.
    pub fn writes(&self) -> Vec<Entry> {
        self.lab.journal().into_iter().filter(|entry| entry.method != "GET").collect()
    }

    /// The requests that callers caused, without those that the server makes for itself.
    pub fn sent(&self) -> Vec<Entry> {
        self.lab.journal().into_iter().filter(|entry| !journal::is_internal(entry)).collect()
    }

    /// Fails if a caller caused any request.
    pub fn nothing_sent(&self) {
        let sent = self.sent();
        assert!(sent.is_empty(), "nothing may be sent, but this was: {sent:?}");
    }
}

/// A token that may do everything that acts at once, and its entry in a token file.
pub fn low_token(name: &str) -> (String, Value) {
    let (secret, hash) = pvegate::tokens::generate().unwrap();
    let everything = json!(["*"]);
    let toolsets: BTreeSet<&str> = TOOLS.iter().flat_map(Tool::toolsets).collect();
    let entry = json!({
        "name": name, "owner": "ada", "hash": hash, "tools": toolsets, "clusters": everything, "tiers": ["read", "low"],
        "guests": everything, "nodes": everything, "storages": everything, "pools": everything, "networks": everything,
    });
    (secret.expose().to_owned(), entry)
}

/// A lab without the waits of a real cluster.
pub fn quick() -> Options {
    Options { latency: false, ..Options::default() }
}

/// Every read that is offered where an operator asks for it.
pub fn all_opt_in() -> Vec<String> {
    let opt_in = OPERATIONS
        .iter()
        .filter(|operation| operation.tier == Tier::Read && matches!(operation.offered, Offered::OptIn(_)));
    opt_in.map(|operation| operation.name.to_owned()).collect()
}
