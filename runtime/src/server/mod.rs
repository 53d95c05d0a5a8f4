//! The running server's state: clusters, tokens, and what must never leave. One whole, exchanged as one.

mod describe;
mod gateway;
mod get_change;
mod guests;
mod named;
mod page;
mod reading;
mod run_operation;
mod search;
mod shape;
mod spread;
mod surface;
mod wait_task;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pvegate_generated::catalog;
use pvegate_generated::model::Offered;
use pvegate_generated::terms::Tier;
use pvegate_generated::tools::TOOLS;

use crate::audit::Audit;
use crate::change::Work;
use crate::config::{Clusters, Config};
use crate::connection::Connection;
use crate::redact::{self, Redactor};
use crate::store::Store;
use crate::tokens::{Principal, Tokens};
use crate::url_policy::UrlPolicy;
use crate::waivers::Waivers;

pub use reading::{Addressed, addressed, refusal, vmid};
pub use surface::{Live, TokenFile, Tools};

/// Everything that calls are decided by.
#[derive(Debug)]
pub struct State {
    connections: BTreeMap<String, Arc<Connection>>,
    opt_in: BTreeSet<String>,
    tokens: Tokens,
    waivers: Waivers,
    redactor: Redactor,
    audit: Audit,
    store: Arc<dyn Store>,
    work: Arc<Work>,
    url_policy: UrlPolicy,
}

impl State {
    /// Takes over a configuration. Every problem is a sentence for the operator; all are told at once.
    pub fn new(config: Config, store: Arc<dyn Store>) -> Result<Self, Vec<String>> {
        let Config { clusters, tokens, waivers } = config;
        let mut problems = check_opt_in(&clusters);
        if !redact::is_ready() {
            problems.push("masking of secrets does not work in this build; use another".to_owned());
        }
        if let Err(error) = tokens.check_tools(known_tool) {
            problems.push(error.to_string());
        }
        let mut connections = BTreeMap::new();
        for cluster in clusters.iter() {
            if cluster.lab {
                tracing::warn!(cluster = %cluster.name, "this cluster is a lab: protection only warns there, and people may approve their own plans");
            }
            match Connection::new(cluster) {
                Ok(connection) => {
                    connections.insert(cluster.name.to_string(), Arc::new(connection));
                }
                Err(problem) => problems.push(problem),
            }
        }
        let url_policy = UrlPolicy::new(clusters.url_allow()).unwrap_or_else(|wrong| {
            problems.extend(wrong.into_iter().map(|problem| format!("policy `url_allow`: {problem}")));
            UrlPolicy::default()
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        let redactor = Redactor::new(clusters.secrets());
        Ok(Self {
            connections,
            opt_in: clusters.opt_in().clone(),
            tokens,
            waivers,
            redactor,
            audit: Audit::default(),
            store,
            work: Arc::default(),
            url_policy,
        })
    }

    /// The same with another trail than standard error.
    #[must_use]
    pub fn with_audit(self, audit: Audit) -> Self {
        Self { audit, ..self }
    }

    /// The same with the work of the state before it.
    #[must_use]
    pub fn with_work(self, work: Arc<Work>) -> Self {
        Self { work, ..self }
    }

    /// What is remembered about changes.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What is under way.
    pub fn work(&self) -> &Arc<Work> {
        &self.work
    }

    /// Where calls, refusals and writes leave their lines.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Which addresses nodes may be made to contact.
    pub fn url_policy(&self) -> &UrlPolicy {
        &self.url_policy
    }

    /// All clusters, by name.
    pub fn connections(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.connections.values()
    }

    /// Whether the operator asked for this operation.
    pub fn opted_in(&self, operation: &str) -> bool {
        self.opt_in.contains(operation)
    }

    /// Masks what never leaves.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// What the operator released from protection.
    pub fn waivers(&self) -> &Waivers {
        &self.waivers
    }

    /// All tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// All principals.
    pub fn principals(&self) -> impl Iterator<Item = &Arc<Principal>> {
        self.tokens.principals()
    }
}

/// Whether a name in a token's `tools` means something.
pub fn known_tool(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name || tool.toolsets().any(|toolset| toolset == name))
}

/// Whether no tool that a name in `tools` stands for changes anything.
pub fn reads_only(name: &str) -> bool {
    let meant =
        |tool: &&pvegate_generated::model::Tool| tool.name == name || tool.toolsets().any(|toolset| toolset == name);
    TOOLS.iter().filter(|tool| meant(tool)).all(|tool| tool.tier == Tier::Read)
}

/// An opt-in that asks for nothing is a mistake that somebody relies on.
fn check_opt_in(clusters: &Clusters) -> Vec<String> {
    clusters
        .opt_in()
        .iter()
        .filter_map(|name| match catalog::operation(name).map(|operation| operation.offered) {
            Some(Offered::OptIn(_)) => None,
            Some(Offered::Yes) => Some(format!("policy `opt_in`: {name} is offered already; remove it")),
            Some(Offered::Never(reason)) => {
                Some(format!("policy `opt_in`: {name} is never offered ({reason}); remove it"))
            }
            None => Some(format!(
                "policy `opt_in`: there is no operation `{}`; write `GET /path` as describe_operation has it",
                crate::untrusted::shown(name, 120)
            )),
        })
        .collect()
}
