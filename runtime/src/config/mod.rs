//! Decides what the server is told by its operator: the clusters it reaches and the tokens it accepts.
//!
//! Every file is read as a whole and all its problems are reported together, each with the file, the
//! entry and the key. Nothing in a message repeats a secret.

mod cluster_file;
mod credential_file;
mod document;
mod problem;

pub use cluster_file::{ApiToken, Cluster, ClusterName, Clusters, Endpoint, Trust};
pub use credential_file::read_credential;
pub use problem::{ConfigError, Problem};

pub(crate) use credential_file::DOCUMENT_LIMIT;
pub(crate) use document::{Document, Table};
pub(crate) use problem::Problems;

use crate::tokens::Tokens;
use std::path::Path;

/// Everything read from files, as one whole: it is taken over completely or not at all.
#[derive(Debug)]
pub struct Config {
    /// The clusters.
    pub clusters: Clusters,
    /// The tokens; empty where no token file is used (stdio).
    pub tokens: Tokens,
}

impl Config {
    /// Reads both files. A problem in one does not hide those of the other.
    pub fn load(clusters: &Path, tokens: Option<&Path>) -> Result<Self, ConfigError> {
        let loaded = Clusters::load(clusters);
        let tokens = tokens.map_or_else(|| Ok(Tokens::default()), Tokens::load);
        match (loaded, tokens) {
            (Ok(clusters), Ok(tokens)) => {
                tokens.check_clusters(&clusters)?;
                Ok(Self { clusters, tokens })
            }
            (Err(one), Err(other)) => Err(one.and(other)),
            (Err(one), Ok(_)) | (Ok(_), Err(one)) => Err(one),
        }
    }
}

#[cfg(test)]
mod tests;
