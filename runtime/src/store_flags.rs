//! Which file is the store.

use std::path::{Path, PathBuf};

/// The file, where it is named.
#[derive(clap::Args)]
pub(crate) struct StoreFlags {
    /// The file that remembers changes [default: pvegate.db beside the cluster file].
    #[arg(long, env = "PVEGATE_STORE", value_name = "FILE")]
    store: Option<PathBuf>,
}

impl StoreFlags {
    /// The file that is meant.
    pub(crate) fn file(&self, clusters: &Path) -> PathBuf {
        self.store.clone().unwrap_or_else(|| clusters.with_file_name("pvegate.db"))
    }
}
