//! How connections are kept and closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::Bench;

async fn connect(bench: &Bench) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(bench.lab.ca_pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(bench.lab.address()).await.unwrap();
    let name = ServerName::try_from("pve1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

async fn ask(stream: &mut TlsStream<TcpStream>, head: &str) -> String {
    stream.write_all(format!("{head}\r\nHost: pve1\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// How long it takes until the other side closes.
async fn closed_after(stream: &mut TlsStream<TcpStream>) -> Duration {
    let since = Instant::now();
    let mut rest = Vec::new();
    // An end without a TLS farewell is an error and an end all the same.
    let _ended = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await.unwrap();
    since.elapsed()
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_five_seconds_and_a_failed_one_at_once() {
    let bench = Bench::quick().await;
    let login = format!("Authorization: PVEAPIToken={}", bench.lab.full_token());

    let mut kept = connect(&bench).await;
    for _ in 0..3 {
        let answer = ask(&mut kept, &format!("GET /api2/json/version HTTP/1.1\r\n{login}")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    let idle = closed_after(&mut kept).await;
    assert!((4..7).contains(&idle.as_secs()), "{idle:?}");

    let mut failed = connect(&bench).await;
    let answer = ask(&mut failed, &format!("GET /api2/json/pools/nope HTTP/1.1\r\n{login}")).await;
    assert!(answer.starts_with("HTTP/1.1 500 pool 'nope' does not exist\r\n"), "{answer}");
    assert!(closed_after(&mut failed).await < Duration::from_secs(1));
}

#[tokio::test]
async fn bodies_that_pve_does_not_read_are_refused_before_they_arrive() {
    let bench = Bench::quick().await;
    let login = format!("Authorization: PVEAPIToken={}", bench.lab.full_token());
    let put = format!("PUT /api2/json/nodes/pve1/qemu/100/config HTTP/1.1\r\n{login}");
    let mut stream = connect(&bench).await;
    let answer = ask(&mut stream, &format!("{put}\r\nContent-Length: 524289")).await;
    assert!(answer.starts_with("HTTP/1.1 501 for data too large\r\n"), "{answer}");
    let mut stream = connect(&bench).await;
    let answer = ask(&mut stream, &format!("{put}\r\nTransfer-Encoding: chunked")).await;
    assert!(answer.starts_with("HTTP/1.1 501 chunked"), "{answer}");
}
