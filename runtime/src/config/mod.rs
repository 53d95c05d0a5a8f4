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

pub(crate) use credential_file::{DOCUMENT_LIMIT, SECRET_LIMIT};
pub(crate) use document::{Document, Table};
pub(crate) use problem::Problems;

use crate::tokens::Tokens;
use crate::waivers::Waivers;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Everything read from files, as one whole: it is taken over completely or not at all.
#[derive(Debug)]
pub struct Config {
    /// The clusters.
    pub clusters: Clusters,
    /// The tokens; empty where no token file is used (stdio).
    pub tokens: Tokens,
    /// What the operator released from protection.
    pub waivers: Waivers,
}

impl Config {
    /// Reads all files. A problem in one does not hide those of the others.
    pub fn load(clusters: &Path, tokens: Option<&Path>, waivers: Option<&Path>) -> Result<Self, ConfigError> {
        let loaded = Clusters::load(clusters);
        let tokens = tokens.map_or_else(|| Ok(Tokens::default()), Tokens::load);
        let waivers = waivers.map_or_else(|| Ok(Waivers::default()), |path| Waivers::load(path, SystemTime::now()));
        let (clusters, (tokens, waivers)) = both(loaded, both(tokens, waivers))?;
        let ((), ()) = both(tokens.check_clusters(&clusters), waivers.check_clusters(&clusters))?;
        Ok(Self { clusters, tokens, waivers })
    }
}

/// Both, or all that is wrong with either.
fn both<A, B>(one: Result<A, ConfigError>, other: Result<B, ConfigError>) -> Result<(A, B), ConfigError> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) => Err(one.and(other)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

/// A time with its zone, as files write it.
pub(crate) fn time(text: &str) -> Option<SystemTime> {
    let seconds = chrono::DateTime::parse_from_rfc3339(text).ok()?.timestamp();
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).ok()?))
}

#[cfg(test)]
mod tests;
