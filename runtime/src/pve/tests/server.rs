//! A TLS server that answers with bytes as they are given, to be as odd as PVE is.

use crate::config::{ApiToken, Cluster, ClusterName, Endpoint, Trust};
use crate::values::{Secret, TokenId};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(super) const SECRET: &str = "11111111-2222-3333-4444-555555555555";

/// What the server does with a request.
#[derive(Clone)]
pub(super) enum Act {
    Bytes(Vec<u8>),
    Hang,
    Cut,
}

type Script = dyn Fn(usize, &str) -> Act + Send + Sync;

pub(super) struct Server {
    pub(super) port: u16,
    pub(super) ca: Arc<[u8]>,
    pub(super) fingerprint: [u8; 32],
    pub(super) heads: Arc<Mutex<Vec<String>>>,
    pub(super) connections: Arc<Mutex<usize>>,
}

impl Server {
    /// The certificate is for `names`; `script` gets the request's number and head.
    pub(super) async fn start(names: &[&str], script: impl Fn(usize, &str) -> Act + Send + Sync + 'static) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())
            .unwrap()
            .signed_by(&key, &ca)
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            ca: ca.pem().into_bytes().into(),
            fingerprint: Sha256::digest(leaf.der()).into(),
            heads: Arc::default(),
            connections: Arc::default(),
        };
        let (heads, connections, script): (_, _, Arc<Script>) =
            (Arc::clone(&server.heads), Arc::clone(&server.connections), Arc::new(script));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *connections.lock().unwrap() += 1;
                let (acceptor, heads, script) = (acceptor.clone(), Arc::clone(&heads), Arc::clone(&script));
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    while let Some(head) = read_head(&mut stream).await {
                        let number = {
                            let mut heads = heads.lock().unwrap();
                            heads.push(head.clone());
                            heads.len()
                        };
                        match script(number, &head) {
                            Act::Bytes(bytes) => stream.write_all(&bytes).await.unwrap(),
                            Act::Hang => tokio::time::sleep(Duration::from_hours(1)).await,
                            Act::Cut => return,
                        }
                    }
                });
            }
        });
        server
    }

    /// A cluster whose only address is this server.
    pub(super) fn cluster(&self) -> Cluster {
        self.cluster_at(&[self.port])
    }

    pub(super) fn cluster_at(&self, ports: &[u16]) -> Cluster {
        Cluster {
            name: ClusterName::parse("lab").unwrap(),
            endpoints: ports.iter().map(|port| Endpoint { base: format!("https://127.0.0.1:{port}") }).collect(),
            trust: Trust { ca_pem: Some(Arc::clone(&self.ca)), fingerprints: Vec::new(), server_name: None },
            token: ApiToken { id: TokenId::parse("root@pam!mcp").unwrap(), secret: Secret::new(SECRET.to_owned()) },
            protected_vmids: BTreeSet::new(),
            protected_tags: BTreeSet::new(),
            resource_ttl: Duration::from_secs(10),
            replicas: std::num::NonZeroUsize::MIN,
            lab: false,
        }
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// A request's head, with its body behind it.
async fn read_head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let text = String::from_utf8(head.clone()).unwrap();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body).await.ok()?;
    head.extend(body);
    Some(String::from_utf8(head).unwrap())
}

/// A complete answer.
pub(super) fn answer(status: &str, kind: &str, body: &[u8]) -> Act {
    let kind = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
    let mut bytes = format!("HTTP/1.1 {status}\r\n{kind}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    Act::Bytes(bytes)
}

pub(super) fn json(body: &str) -> Act {
    answer("200 OK", "application/json;charset=UTF-8", body.as_bytes())
}
