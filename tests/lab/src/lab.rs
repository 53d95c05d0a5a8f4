//! A running lab: start it, talk to it, break it, stop it.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::arrange::Arrange;
use crate::door::Door;
use crate::fault::{self, Fault};
use crate::gate::Shared;
use crate::journal::Entry;
use crate::options::{Options, Profile};
use crate::sample::{self, SampleRead};
use crate::state::{Cluster, Logins};
use crate::tls;

/// Why a lab does not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// Keys or certificates could not be made.
    Tls(String),
    /// The port could not be bound.
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// The CA's certificate could not be written.
    Write(std::io::Error),
}

impl std::fmt::Display for LabError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tls(what) => write!(f, "the lab has no certificate: {what}"),
            Self::Listen { address, error } => {
                write!(f, "the lab cannot listen on {address}: {error}; choose another port")
            }
            Self::Write(error) => write!(f, "the lab cannot write its CA certificate: {error}"),
        }
    }
}

impl std::error::Error for LabError {}

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The node's name, which its certificate holds.
    pub node: String,
    /// `https://127.0.0.1:PORT`
    pub url: String,
    /// The same as an address.
    pub address: SocketAddr,
    /// SHA-256 of its certificate, upper-case hex with colons.
    pub fingerprint: String,
}

/// A simulated cluster that listens. Dropping it stops it too.
pub struct Lab {
    shared: Arc<Shared>,
    doors: Vec<Door>,
    endpoints: Vec<Endpoint>,
    /// Of the first node.
    url: String,
    address: SocketAddr,
    options: Options,
    logins: Logins,
    ca_pem: String,
    directory: TempDir,
    ca_path: PathBuf,
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lab").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

impl Lab {
    /// Starts a cluster and the listeners of its nodes.
    pub async fn start(options: Options) -> Result<Self, LabError> {
        let authority = tls::authority()?;
        let logins = Logins::generate()?;
        let nodes = if options.profile == Profile::Recorded { 1 } else { options.nodes.max(1) };
        let mut doors = Vec::new();
        for number in 1..=nodes {
            let node = format!("pve{number}");
            let identity = tls::identity(&authority, &node, options.certificate)?;
            doors.push(Door::bind(&node, identity, if number == 1 { options.port } else { 0 }).await?);
        }
        let directory = tempfile::Builder::new().prefix("pve-lab-").tempdir().map_err(LabError::Write)?;
        let ca_path = directory.path().join("pve-root-ca.pem");
        std::fs::File::create(&ca_path)
            .and_then(|mut file| file.write_all(authority.pem.as_bytes()))
            .map_err(LabError::Write)?;

        let endpoints: Vec<Endpoint> = doors.iter().map(Door::endpoint).collect();
        let fingerprints: Vec<String> = endpoints.iter().map(|endpoint| endpoint.fingerprint.clone()).collect();
        let shared = Arc::new(Shared::new(&options, Cluster::seeded(&options, &logins, &fingerprints)));
        for door in &doors {
            door.open(&shared);
        }
        if options.profile != Profile::Recorded {
            crate::area::work::background(&shared, options.task_tick);
        }
        let address = doors.first().map_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)), Door::address);
        Ok(Self {
            shared,
            doors,
            endpoints,
            url: format!("https://{address}"),
            address,
            options,
            logins,
            ca_pem: authority.pem,
            directory,
            ca_path,
        })
    }

    /// `https://127.0.0.1:PORT` of the first node; the API is below `/api2/json`.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Where the first node listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where each node listens, the first node first.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The CA's certificate, as a PEM file that goes away with the lab.
    pub fn ca_path(&self) -> &Path {
        &self.ca_path
    }

    /// The CA's certificate as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// SHA-256 of the first node's certificate, upper-case hex with colons.
    pub fn fingerprint(&self) -> &str {
        self.endpoints.first().map_or("", |endpoint| &endpoint.fingerprint)
    }

    /// A directory that goes away with the lab, for files of those who use it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The credential of the profile's own token for a purpose.
    fn own_token(&self, id: &str, secret: &str, recorded: &str) -> String {
        match self.options.profile {
            Profile::Small | Profile::Old => format!("{id}={secret}"),
            Profile::Recorded => format!("{recorded}={}", self.logins.other),
        }
    }

    /// A token with all rights, `user@realm!name=secret`.
    pub fn full_token(&self) -> String {
        self.own_token("pvegate@pve!full", &self.logins.full, "automation@pve!full")
    }

    /// A token that may see, and change nothing (`PVEAuditor` on `/`).
    pub fn audit_token(&self) -> String {
        self.own_token("auditor@pve!audit", &self.logins.audit, "auditor@pve!ro")
    }

    /// A separated token that sees and starts the guests of pool `ci`, and nothing else. In the recorded cluster one that
    /// has no right yet.
    pub fn scoped_token(&self) -> String {
        self.own_token("ci@pve!ci", &self.logins.scoped, "automation@pve!sep")
    }

    /// A token without any right: PVE shows it empty lists.
    pub fn blind_token(&self) -> String {
        self.own_token("nobody@pve!none", &self.logins.blind, "nobody@pve!none")
    }

    /// Puts the cluster into a state that a test needs.
    pub fn arrange(&self, what: Arrange) {
        if matches!(what, Arrange::Baseline | Arrange::NoTasks) {
            self.shared.workers.interrupt_all();
        }
        if matches!(what, Arrange::Baseline) {
            let fingerprints: Vec<String> =
                self.endpoints.iter().map(|endpoint| endpoint.fingerprint.clone()).collect();
            let fresh = Cluster::seeded(&self.options, &self.logins, &fingerprints);
            self.shared.change(|cluster| {
                let tasks = std::mem::take(&mut cluster.tasks);
                *cluster = fresh;
                cluster.tasks = tasks;
            });
            return;
        }
        self.shared.change(|cluster| crate::arrange::apply(cluster, what));
    }

    /// The credential of any token, `user@realm!name=secret`, if there is such a token.
    pub fn token(&self, id: &str) -> Option<String> {
        let (user, name) = id.rsplit_once('!')?;
        let secret = self.shared.look(|cluster| {
            let token = cluster.access.users.get(user)?.tokens.get(name)?;
            Some(token.secret.clone())
        })?;
        Some(format!("{id}={secret}"))
    }

    /// Every request so far.
    pub fn journal(&self) -> Vec<Entry> {
        self.shared.journal.entries()
    }

    /// Forgets every request so far.
    pub fn clear_journal(&self) {
        self.shared.journal.clear();
    }

    /// Makes something go wrong until it is cleared, or as often as its limit says.
    pub async fn set_fault(&self, fault: Fault) {
        fault::arm(&self.shared, fault);
        for door in self.doors.iter().filter(|door| door.is_open() && self.shut(door)) {
            door.close().await;
        }
    }

    /// Ends a fault, with whatever limit it was set. Nodes that listen again do so on their old ports, if these are still
    /// free.
    pub async fn clear_fault(&self, fault: &Fault) -> Result<(), LabError> {
        fault::disarm(&self.shared, fault);
        for door in self.doors.iter().filter(|door| !door.is_open() && !self.shut(door)) {
            door.open_again(&self.shared).await?;
        }
        Ok(())
    }

    /// How many requests [`Fault::HoldBefore`] and [`Fault::HoldAfter`] hold now. They are in the journal only when
    /// they are over.
    pub fn held(&self) -> usize {
        self.shared.held.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Whether a node is not to listen.
    fn shut(&self, door: &Door) -> bool {
        self.shared.faulty(|faults| faults.has(&Fault::ClusterDown) || faults.dead(door.node()))
    }

    /// One call of every read of the schema, with arguments that exist here.
    pub fn sample_reads(&self) -> Vec<SampleRead> {
        self.shared.look(|cluster| sample::reads(self.shared.schema, cluster))
    }

    /// Where secrets stand in the answers to [`Lab::sample_reads`], as `OPERATION: PATH` with `[]` for any element, for
    /// example `GET /access/users: data[].keys`. Errors and log lines are among them.
    pub fn canary_fields(&self) -> Vec<String> {
        self.shared.look(|cluster| sample::secret_fields(self.shared.schema, cluster))
    }

    /// Closes the listeners and their connections, ends the tasks, and waits for all of them.
    pub async fn stop(self) {
        self.shared.stop.cancel();
        self.shared.running.close();
        self.shared.running.wait().await;
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}
