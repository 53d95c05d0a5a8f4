//! A server in the place of PVE whose answers a test writes down byte by byte, with pvegate in front: for what no
//! cluster in order answers.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex};

use pvegate::config::Config;
use pvegate::mcp::{HttpConfig, Running};
use pvegate::{serve, tokens};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::client::Client;

/// A whole answer, from the status line on.
pub type Bytes = Vec<u8>;

/// An answer with this status line's end and this body.
pub fn answer(status: &str, body: &str) -> Bytes {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json;charset=UTF-8\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A success with this data.
pub fn data(data: &Value) -> Bytes {
    answer("200 OK", &json!({"data": data}).to_string())
}

/// Answers by `METHOD /path` below `/api2/json`, without the query.
#[derive(Clone, Debug, Default)]
pub struct Script(BTreeMap<String, Bytes>);

impl Script {
    /// A cluster of two nodes, `node-a` and `node-b`, that runs 9.2 and has these resources.
    pub fn new(resources: &Value) -> Self {
        let nodes = json!([{"node": "node-a", "status": "online"}, {"node": "node-b", "status": "online"}]);
        let all = json!({"VM.Audit": 1, "Sys.Audit": 1, "Datastore.Audit": 1, "Pool.Audit": 1});
        // As PVE tells them: at each path with what is inherited.
        let rights = json!({"/": all, "/nodes": all, "/pool": all, "/storage": all, "/vms": all});
        Self::default()
            .on("GET /version", data(&json!({"version": "9.2.3", "release": "9.2"})))
            .on("GET /nodes", data(&nodes))
            .on("GET /access/permissions", data(&rights))
            .on("GET /cluster/resources", data(resources))
    }

    /// The same with an answer to this request.
    #[must_use]
    pub fn on(mut self, request: &str, answer: Bytes) -> Self {
        self.0.insert(request.to_owned(), answer);
        self
    }
}

/// The server, pvegate, and a client that reads everything.
#[derive(Debug)]
pub struct Upstream {
    /// The client.
    pub client: Client,
    heads: Arc<Mutex<Vec<String>>>,
    script: Arc<Mutex<Script>>,
    _running: Running,
    _folder: TempDir,
}

impl Upstream {
    /// Starts both.
    pub async fn start(script: Script) -> Self {
        serve::install_crypto();
        let (heads, script) = (Arc::default(), Arc::new(Mutex::new(script)));
        let (address, ca) = listen(Arc::clone(&heads), Arc::clone(&script)).await;
        let folder = tempfile::tempdir().unwrap();
        let (secret, hash) = tokens::generate().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            path
        };
        let ca = write("ca.pem", &ca);
        let cluster = json!({"endpoint": format!("https://{address}"), "ca_pem_path": ca, "token_id": "svc@pve!tok", "token_secret": "11111111-2222-3333-4444-555555555555"});
        let clusters = write("clusters.json", &json!({"version": 1, "devices": {"lab": cluster}}).to_string());
        let entry = json!({"name": "reader", "hash": hash, "tools": ["*"], "clusters": ["*"]});
        let tokens = write("tokens.json", &json!({"version": 1, "tokens": [entry]}).to_string());
        let config = Config::load(&clusters, Some(&tokens)).unwrap();
        let http = HttpConfig { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), ..HttpConfig::default() };
        let running = serve::http(config, http).await.unwrap().running;
        let client = Client::new(&running.url(), secret.expose());
        Self { client, heads, script, _running: running, _folder: folder }
    }

    /// The request lines so far, `METHOD /path?query` below `/api2/json`, without those that the server makes for
    /// itself.
    pub fn sent(&self) -> Vec<String> {
        let own = ["GET /version", "GET /nodes", "GET /access/permissions", "GET /cluster/resources"];
        self.heads.lock().unwrap().iter().filter(|line| !own.contains(&line.as_str())).cloned().collect()
    }

    /// Answers a request differently from now on.
    pub fn change(&self, request: &str, answer: Bytes) {
        let mut script = self.script.lock().unwrap();
        *script = script.clone().on(request, answer);
    }
}

async fn listen(heads: Arc<Mutex<Vec<String>>>, script: Arc<Mutex<Script>>) -> (SocketAddr, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, heads, script) = (acceptor.clone(), Arc::clone(&heads), Arc::clone(&script));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                while let Some(line) = request_line(&mut stream).await {
                    heads.lock().unwrap().push(line.clone());
                    let plain = line.split('?').next().unwrap_or_default();
                    let reply = script.lock().unwrap().0.get(plain).cloned();
                    let reply = reply.unwrap_or_else(|| {
                        answer(
                            "501 Not Implemented",
                            &json!({"data": null, "message": "not in the script\n"}).to_string(),
                        )
                    });
                    if stream.write_all(&reply).await.is_err() || reply.is_empty() {
                        return;
                    }
                }
            });
        }
    });
    (address, ca.pem())
}

/// Reads a request without a body: its line, below `/api2/json`.
async fn request_line(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ');
    let (method, url) = (words.next()?, words.next()?);
    Some(format!("{method} {}", url.strip_prefix("/api2/json").unwrap_or(url)))
}
