//! The built program `pvegate serve` in front of labs, for tests that kill it and start it again over the same files.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lab::Lab;
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::program;

/// How long a start may take before something is wrong.
const START: Duration = Duration::from_secs(30);

/// The files of a server: clusters, tokens, and its store once it ran.
#[derive(Debug)]
pub struct Files {
    folder: tempfile::TempDir,
    secret: String,
}

impl Files {
    /// For a lab by the name `lab`, with one token called `agent` that has these further keys.
    pub fn new(lab: &Lab, keys: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token = lab.full_token();
        let (id, pve_secret) = token.split_once('=').unwrap();
        let endpoints: Vec<String> = lab.endpoints().iter().map(|endpoint| endpoint.url.clone()).collect();
        let device =
            json!({"endpoints": endpoints, "ca_pem_path": lab.ca_path(), "token_id": id, "token_secret": pve_secret});
        let (secret, hash) = pvegate::tokens::generate().unwrap();
        let mut entry: Map<String, Value> =
            json!({"name": "agent", "hash": hash, "owner": "ada"}).as_object().unwrap().clone();
        entry.extend(keys.as_object().unwrap().clone());
        let files = Self { folder, secret: secret.expose().to_owned() };
        files.write("clusters.json", &json!({"version": 1, "devices": {"lab": device}}));
        files.write("tokens.json", &json!({"version": 1, "tokens": [entry]}));
        files
    }

    /// A file's path.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The bearer secret of the token.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    fn write(&self, name: &str, value: &Value) {
        let path = self.path(name);
        std::fs::write(&path, value.to_string()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// A running program.
#[derive(Debug)]
pub struct Server {
    child: Child,
    url: String,
    secret: String,
    said: Arc<Mutex<String>>,
}

impl Server {
    /// Starts it; it listens on a free port.
    pub async fn start(files: &Files) -> Self {
        let paths = ["clusters.json", "tokens.json", "pvegate.db"].map(|name| files.path(name));
        let secret = files.secret.clone();
        tokio::task::spawn_blocking(move || Self::spawn(&paths, secret)).await.unwrap()
    }

    fn spawn([clusters, tokens, store]: &[PathBuf; 3], secret: String) -> Self {
        let flag = |name: &str, path: &Path| [name.to_owned(), path.to_str().unwrap().to_owned()];
        let mut child = Command::new(program::built("pvegate"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(flag("--clusters", clusters))
            .args(flag("--tokens", tokens))
            .args(flag("--store", store))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let (found, url) = mpsc::channel();
        let kept = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                if let Some(url) = line.split("serves MCP at ").nth(1) {
                    let _ = found.send(url.trim().to_owned());
                }
                let mut said = kept.lock().unwrap();
                said.push_str(&line);
                said.push('\n');
            }
        });
        let url = url.recv_timeout(START).unwrap_or_else(|_| {
            let _ = child.kill();
            panic!("pvegate did not start: {}", said.lock().unwrap())
        });
        Self { child, url, secret, said }
    }

    /// A client with the token of its files.
    pub fn client(&self) -> Client {
        Client::new(&self.url, &self.secret)
    }

    /// What it has written to standard error.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it where it stands: no handler of its own runs.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
