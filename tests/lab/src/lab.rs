//! A running lab: start it, talk to it, break it, stop it.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::arrange::Arrange;
use crate::fault::{Fault, Faults};
use crate::gate::Shared;
use crate::journal::{Entry, Journal};
use crate::listener;
use crate::options::{Options, Profile};
use crate::sample::{self, SampleRead};
use crate::schema::Schema;
use crate::state::{Cluster, Logins};
use crate::tls::{self, Identity};

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

/// A simulated cluster that listens. Dropping it stops it too.
pub struct Lab {
    shared: Arc<Shared>,
    identity: Identity,
    address: SocketAddr,
    options: Options,
    logins: Logins,
    directory: TempDir,
    ca_path: PathBuf,
    /// Absent while nothing listens.
    open: Mutex<Option<Open>>,
}

/// A listener that accepts until its token is cancelled.
struct Open {
    token: CancellationToken,
    accepting: JoinHandle<()>,
}

impl Open {
    fn accept(shared: &Arc<Shared>, listener: TcpListener, identity: &Identity) -> Self {
        let token = shared.stop.child_token();
        let server = Arc::clone(&identity.server);
        let accepting = listener::accept(shared, listener, server, token.clone());
        Self { token, accepting }
    }
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lab").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Lab {
    /// Starts a cluster and its listener.
    pub async fn start(options: Options) -> Result<Self, LabError> {
        let identity = tls::identity("pve1", options.certificate)?;
        let logins = Logins::generate()?;
        let (listener, address) = listener::bind(options.port).await?;
        let directory = tempfile::Builder::new().prefix("pve-lab-").tempdir().map_err(LabError::Write)?;
        let ca_path = directory.path().join("pve-root-ca.pem");
        std::fs::File::create(&ca_path)
            .and_then(|mut file| file.write_all(identity.ca_pem.as_bytes()))
            .map_err(LabError::Write)?;

        let mut faults = Faults::default();
        faults.set(Fault::DeadNode("pve2".to_owned()));
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            schema: Schema::pinned(),
            cluster: RwLock::new(Cluster::seeded(&options, &logins, &identity.fingerprint)),
            journal: Journal::default(),
            faults: RwLock::new(faults),
            latency: options.latency,
            stop: stop.clone(),
            running: TaskTracker::new(),
            workers: crate::worker::Workers::default(),
        });
        let open = Open::accept(&shared, listener, &identity);
        if options.profile == Profile::Small {
            crate::area::work::background(&shared, options.task_tick);
        }
        Ok(Self { shared, identity, address, options, logins, directory, ca_path, open: Mutex::new(Some(open)) })
    }

    /// `https://127.0.0.1:PORT`; the API is below `/api2/json`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CA's certificate, as a PEM file that goes away with the lab.
    pub fn ca_path(&self) -> &Path {
        &self.ca_path
    }

    /// The CA's certificate as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.identity.ca_pem
    }

    /// SHA-256 of the listener's certificate, upper-case hex with colons.
    pub fn fingerprint(&self) -> &str {
        &self.identity.fingerprint
    }

    /// A directory that goes away with the lab, for files of those who use it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The credential of the profile's own token for a purpose.
    fn own_token(&self, id: &str, secret: &str, recorded: &str) -> String {
        match self.options.profile {
            Profile::Small => format!("{id}={secret}"),
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
            let fresh = Cluster::seeded(&self.options, &self.logins, &self.identity.fingerprint);
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

    /// Makes something go wrong until it is cleared.
    pub async fn set_fault(&self, fault: Fault) {
        let down = fault == Fault::ClusterDown;
        self.shared.faults.write().unwrap_or_else(PoisonError::into_inner).set(fault);
        if down && let Some(open) = self.replace_open(None) {
            open.token.cancel();
            // The task only ends; it has nothing to report.
            let _ended = open.accepting.await;
        }
    }

    /// Ends a fault. After [`Fault::ClusterDown`] the same port listens again, if it is still free.
    pub async fn clear_fault(&self, fault: &Fault) -> Result<(), LabError> {
        self.shared.faults.write().unwrap_or_else(PoisonError::into_inner).clear(fault);
        let listening = self.open.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if *fault == Fault::ClusterDown && !listening {
            let (listener, _) = listener::bind(self.address.port()).await?;
            self.replace_open(Some(Open::accept(&self.shared, listener, &self.identity)));
        }
        Ok(())
    }

    fn replace_open(&self, open: Option<Open>) -> Option<Open> {
        std::mem::replace(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner), open)
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

    /// Closes the listener and its connections, ends the tasks, and waits for all of them.
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
