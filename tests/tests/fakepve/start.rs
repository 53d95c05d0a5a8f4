//! How the fake is started: as a program of its own, with a certificate of the test's, until the test lets go of it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use lab::{Front, FrontOptions};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tests::certificate::Certificate;
use tests::client::Client;
use tests::program::root;
use tests::site;

/// The name of the cluster that the fake is.
pub const CLUSTER: &str = "fake";
/// The name of the same cluster, with a secret that the fake does not know.
pub const LOCKED_OUT: &str = "locked-out";

/// The fake with pvegate in front of it.
pub struct Fake {
    /// A client that may read everything.
    pub client: Client,
    /// The tasks that the fake has done, oldest first.
    pub tasks: Vec<String>,
    /// The operations that the fake has state for.
    pub kept: BTreeSet<String>,
    _front: Front,
    child: Child,
    _folder: TempDir,
}

impl Fake {
    /// Starts both; `None` where `PVEGATE_FAKEPVE` names no interpreter.
    pub async fn start() -> Option<Self> {
        let interpreter = std::env::var_os("PVEGATE_FAKEPVE")?;
        let folder = tempfile::tempdir().unwrap();
        let authority = certificates(folder.path());
        let mut child = Command::new(interpreter)
            .arg(root().join("tests/conformance/fakepve/start.py"))
            .args(["listener.pem", "listener.key"].map(|name| folder.path().join(name)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("fakepve did not start: {error}"));

        let device = |secret: &Value| {
            let (endpoint, token_id) = (&ready["url"], &ready["token_id"]);
            json!({"endpoint": endpoint, "ca_pem_path": authority, "token_id": token_id, "token_secret": secret})
        };
        let devices = Map::from_iter([
            (CLUSTER.to_owned(), device(&ready["token_secret"])),
            (LOCKED_OUT.to_owned(), device(&json!("00000000-0000-4000-8000-000000000000"))),
        ]);
        let options = FrontOptions { opt_in: site::all_opt_in(), ..FrontOptions::default() };
        let front = Front::before(folder.path(), devices, options).await.unwrap();
        let client = Client::new(&front.url(), front.reader());
        let names = |key: &str| serde_json::from_value::<Vec<String>>(ready[key].clone()).unwrap();
        Some(Self {
            client,
            tasks: names("tasks"),
            kept: names("kept").into_iter().collect(),
            _front: front,
            child,
            _folder: folder,
        })
    }
}

impl Drop for Fake {
    /// The fake ends with its standard input.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Writes `listener.pem` with its chain, `listener.key` and the CA's certificate, of which the path is given back.
fn certificates(folder: &Path) -> std::path::PathBuf {
    let Certificate { authority_pem, leaf, key } = Certificate::generate();
    let path = folder.join("ca.pem");
    std::fs::write(&path, &authority_pem).unwrap();
    std::fs::write(folder.join("listener.pem"), leaf.pem() + &authority_pem).unwrap();
    std::fs::write(folder.join("listener.key"), key.serialize_pem()).unwrap();
    path
}
