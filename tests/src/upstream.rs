//! A server in the place of PVE whose answers a test writes down byte by byte, with pvegate in front: for what no
//! cluster in order answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use lab::{Front, FrontOptions};
use pvegate::serve;
use pvegate_generated::internal;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::certificate::Certificate;
use crate::client::Client;
use crate::token::Token;

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
            .on(internal::VERSION.name, data(&json!({"version": "9.2.3", "release": "9.2"})))
            .on(internal::NODES.name, data(&nodes))
            .on(internal::PERMISSIONS.name, data(&rights))
            .on(internal::RESOURCES.name, data(resources))
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
    _front: Front,
    _folder: TempDir,
}

impl Upstream {
    /// Starts both.
    pub async fn start(script: Script) -> Self {
        Self::with(script, FrontOptions::default()).await
    }

    /// The same with a client whose token has these keys.
    pub async fn granting(script: Script, keys: &Value) -> Self {
        let token = Token::new("narrow", keys);
        let options = FrontOptions { more_tokens: vec![token.entry], ..FrontOptions::default() };
        let mut upstream = Self::with(script, options).await;
        upstream.client = upstream.client.with_token(&token.secret);
        upstream
    }

    async fn with(script: Script, options: FrontOptions) -> Self {
        serve::install_crypto();
        let (heads, script) = (Arc::default(), Arc::new(Mutex::new(script)));
        let (address, ca) = listen(Arc::clone(&heads), Arc::clone(&script)).await;
        let folder = tempfile::tempdir().unwrap();
        let authority = folder.path().join("ca.pem");
        std::fs::write(&authority, ca).unwrap();
        let device = json!({
            "endpoint": format!("https://{address}"),
            "ca_pem_path": authority,
            "token_id": "svc@pve!tok",
            "token_secret": "11111111-2222-3333-4444-555555555555",
        });
        let devices = Map::from_iter([("lab".to_owned(), device)]);
        let front = Front::before(folder.path(), devices, options).await.unwrap();
        let client = Client::new(&front.url(), front.reader());
        Self { client, heads, script, _front: front, _folder: folder }
    }

    /// The request lines so far, `METHOD /path?query` below `/api2/json`, without those that the server makes for
    /// itself.
    pub fn sent(&self) -> Vec<String> {
        let own = [internal::VERSION.name, internal::NODES.name, internal::PERMISSIONS.name, internal::RESOURCES.name];
        self.heads.lock().unwrap().iter().filter(|line| !own.contains(&line.as_str())).cloned().collect()
    }

    /// Answers a request differently from now on.
    pub fn change(&self, request: &str, answer: Bytes) {
        let mut script = self.script.lock().unwrap();
        *script = script.clone().on(request, answer);
    }
}

async fn listen(heads: Arc<Mutex<Vec<String>>>, script: Arc<Mutex<Script>>) -> (SocketAddr, String) {
    let certificate = Certificate::generate();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certificate.key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.leaf.der().clone()], key)
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
    (address, certificate.authority_pem)
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
