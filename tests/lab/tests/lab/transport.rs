//! How connections are kept and closed, and what is answered to those who do not speak as they should.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::Options;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::client::{Bench, quick};

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

/// One answer with its body; empty where the connection ended instead.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte).await, Ok(1)) {
            return String::new();
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8_lossy(&body)
}

async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), head: &str) -> String {
    stream.write_all(format!("{head}\r\nHost: pve1\r\n\r\n").as_bytes()).await.unwrap();
    answer(stream).await
}

/// How long it takes until the other side closes, without another word.
async fn closed_after(stream: &mut TlsStream<TcpStream>) -> Duration {
    let since = Instant::now();
    let mut rest = Vec::new();
    // An end without a TLS farewell is an error and an end all the same.
    let _ended = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    since.elapsed()
}

fn get(bench: &Bench, path: &str) -> String {
    format!("GET /api2/json{path} HTTP/1.1\r\nAuthorization: PVEAPIToken={}", bench.lab.full_token())
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_five_seconds_and_a_failed_one_at_once() {
    let bench = Bench::quick().await;
    let mut kept = connect(&bench).await;
    for _ in 0..3 {
        let answer = ask(&mut kept, &get(&bench, "/version")).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\r\nConnection: Keep-Alive\r\n"),
            "{answer}"
        );
    }
    assert!(closed_after(&mut kept).await >= Duration::from_secs(4));

    let mut failed = connect(&bench).await;
    let answer = ask(&mut failed, &get(&bench, "/pools/nope")).await;
    assert!(answer.starts_with("HTTP/1.1 500 pool 'nope' does not exist\r\n"), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    closed_after(&mut failed).await;
}

#[tokio::test]
async fn a_head_that_does_not_end_is_given_five_seconds() {
    let bench = Bench::quick().await;
    let mut stream = connect(&bench).await;
    stream.write_all(b"GET /api2/json/version HTTP/1.1\r\nHost:").await.unwrap();
    assert!(closed_after(&mut stream).await >= Duration::from_secs(4));
}

#[tokio::test]
async fn a_connection_serves_a_hundred_requests() {
    let bench = Bench::quick().await;
    let mut stream = connect(&bench).await;
    for nth in 1..=100 {
        let answer = ask(&mut stream, &get(&bench, "/version")).await;
        let word = if nth == 100 { "close" } else { "Keep-Alive" };
        assert!(answer.contains(&format!("\r\nConnection: {word}\r\n")), "{nth}: {answer}");
    }
    closed_after(&mut stream).await;
    let journal = bench.lab.journal();
    assert!(journal.len() == 100 && journal.iter().all(|entry| entry.connection == journal[0].connection));
}

#[tokio::test]
async fn what_the_daemon_answered_says_that_it_closes_and_does_not() {
    let bench = Bench::quick().await;
    let mut stream = connect(&bench).await;
    for _ in 0..3 {
        let answer = ask(&mut stream, &get(&bench, "/nodes/pve1/qemu/100/status/current")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\r\nConnection: close\r\nConnection: Keep-Alive\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn requests_may_be_sent_ahead() {
    let bench = Bench::quick().await;
    let mut stream = connect(&bench).await;
    let one = format!("{}\r\nHost: pve1\r\n\r\n", get(&bench, "/version"));
    stream.write_all(one.repeat(10).as_bytes()).await.unwrap();
    for _ in 0..10 {
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

#[tokio::test]
async fn who_asks_for_an_end_gets_it() {
    let bench = Bench::quick().await;
    for head in
        [get(&bench, "/version") + "\r\nConnection: close", get(&bench, "/version").replace("HTTP/1.1", "HTTP/1.0")]
    {
        let mut stream = connect(&bench).await;
        let answer = ask(&mut stream, &head).await;
        assert!(answer.contains(" 200 OK\r\n") && answer.contains("\r\nConnection: close\r\n"), "{answer}");
        closed_after(&mut stream).await;
    }
}

#[tokio::test]
async fn bodies_that_pve_does_not_read_are_refused_before_they_arrive() {
    let bench = Bench::quick().await;
    let put = get(&bench, "/nodes/pve1/qemu/100/config").replace("GET", "PUT");
    let mut stream = connect(&bench).await;
    let answer = ask(&mut stream, &format!("{put}\r\nContent-Length: 524289")).await;
    assert!(answer.starts_with("HTTP/1.1 501 for data too large\r\n"), "{answer}");
    let mut stream = connect(&bench).await;
    let answer = ask(&mut stream, &format!("{put}\r\nTransfer-Encoding: chunked")).await;
    assert!(answer.starts_with("HTTP/1.1 501 chunked"), "{answer}");
    let mut stream = connect(&bench).await;
    let answer = ask(&mut stream, &format!("{}\r\nContent-Length: 1", get(&bench, "/version"))).await;
    assert!(answer.starts_with("HTTP/1.1 501 Unexpected content for method 'GET'\r\n"), "{answer}");
}

#[tokio::test]
async fn a_body_may_wait_for_a_word_and_come_in_pieces() {
    let bench = Bench::quick().await;
    let mut stream = connect(&bench).await;
    let post = get(&bench, "/pools").replace("GET", "POST");
    let head = format!("{post}\r\nContent-Length: 8\r\nExpect: 100-continue\r\nHost: pve1\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut word = [0; 25];
    stream.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"HTTP/1.1 100 Continue\r\n\r\n");
    for piece in ["pool", "id=z"] {
        stream.write_all(piece.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(bench.get("/pools/z").await.status, 200);
}

#[tokio::test]
async fn too_many_or_too_long_headers_are_never_answered() {
    let bench = Bench::quick().await;
    let many = "\r\nX: y".repeat(65);
    let long = format!("\r\nX: {}", "y".repeat(8200));
    for headers in [&many, &long] {
        let mut stream = connect(&bench).await;
        let head = format!("{}{headers}\r\n\r\n", get(&bench, "/version"));
        stream.write_all(head.as_bytes()).await.unwrap();
        closed_after(&mut stream).await;
    }
    let mut stream = connect(&bench).await;
    let long = format!("/version?{}", "a".repeat(7000));
    assert!(ask(&mut stream, &get(&bench, &long)).await.starts_with("HTTP/1.1 400 "), "a long line is another matter");
    let patient = Bench::start(Options { latency: true, ..quick() }).await;
    let mut stream = connect(&patient).await;
    stream.write_all(format!("{}{many}\r\n\r\n", get(&patient, "/version")).as_bytes()).await.unwrap();
    assert!(closed_after(&mut stream).await >= Duration::from_secs(4));
}

#[tokio::test]
async fn an_upload_that_is_none_is_never_answered() {
    let bench = Bench::quick().await;
    let mut stream = connect(&bench).await;
    let upload = get(&bench, "/nodes/pve1/storage/local/upload").replace("GET", "POST");
    let form =
        "\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 11\r\nHost: pve1\r\n\r\ncontent=iso";
    stream.write_all(format!("{upload}{form}").as_bytes()).await.unwrap();
    closed_after(&mut stream).await;
    let entry = bench.lab.journal().pop().unwrap();
    assert_eq!((entry.operation.as_deref(), entry.status), (Some("POST /nodes/{node}/storage/{storage}/upload"), 0));
}

#[tokio::test]
async fn other_protocols_are_refused() {
    let bench = Bench::quick().await;
    for (sent, status, said) in [
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "506 http protocol version 2.0 not supported",
            "http protocol version 2.0 not supported",
        ),
        ("what is this\r\n\r\n", "400 bad request", "bad request"),
    ] {
        let mut stream = connect(&bench).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        let answer = answer(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")) && answer.ends_with(&format!("\r\n\r\n{said}")),
            "{answer}"
        );
        assert!(answer.contains("\r\nConnection: close\r\n") && !answer.contains("Content-Type"), "{answer}");
    }
}

#[tokio::test]
async fn without_tls_there_is_only_the_way_to_it() {
    let bench = Bench::quick().await;
    for (method, status) in [("GET", "301 Moved Permanently"), ("POST", "308 Permanent Redirect")] {
        let mut stream = TcpStream::connect(bench.lab.address()).await.unwrap();
        let answer = ask(&mut stream, &format!("{method} /api2/json/pools?x=1 HTTP/1.1")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
        assert!(answer.contains("\r\nLocation: https://pve1/api2/json/pools?x=1\r\n"), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{}", &status[4..])) && !answer.contains("Content-Type"), "{answer}");
    }
    assert!(bench.lab.journal().is_empty(), "nothing reached the API");
}
