//! A client that sends exactly the bytes it is given and keeps every detail of the answer.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const PATIENCE: Duration = Duration::from_secs(20);

/// An answer as it came. Status 0: none came.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u64,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// All values of a header, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// Sends a whole request on a connection of its own.
pub async fn send(lab: &lab::Lab, request: &[u8]) -> Answer {
    match tokio::time::timeout(PATIENCE, Box::pin(exchange(lab, request))).await {
        Ok(Ok(bytes)) => parse(&bytes),
        _ => Answer::default(),
    }
}

async fn exchange(lab: &lab::Lab, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(lab.ca_pem().as_bytes()).expect("the CA is PEM")).expect("the CA is fit");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(lab.address()).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    // The lab may answer and close before it has read everything.
    let _written = stream.write_all(request).await;
    stream.flush().await?;
    let mut bytes = Vec::new();
    let mut chunk = vec![0_u8; 16 * 1024];
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
        if complete(&bytes, request.starts_with(b"HEAD ")) {
            return Ok(bytes);
        }
    }
}

/// Where the final head ends, behind interim answers such as `100 Continue`.
fn head_end(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let end = from + bytes[from..].windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        if !bytes[from..].starts_with(b"HTTP/1.1 1") {
            return Some((from, end));
        }
        from = end;
    }
}

fn complete(bytes: &[u8], bodyless: bool) -> bool {
    let Some((from, end)) = head_end(bytes) else { return false };
    let head = parse_head(&bytes[from..end]);
    match head.all("content-length").first().and_then(|length| length.parse::<usize>().ok()) {
        _ if bodyless => true,
        Some(length) => bytes.len() - end >= length,
        None => !head.all("transfer-encoding").is_empty() && bytes.ends_with(b"0\r\n\r\n"),
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn parse_head(bytes: &[u8]) -> Answer {
    let head = latin1(bytes);
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().splitn(3, ' ').skip(1);
    let status = first.next().and_then(|status| status.parse().ok()).unwrap_or_default();
    let reason = first.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Answer { status, reason, headers, body: Vec::new() }
}

fn parse(bytes: &[u8]) -> Answer {
    let Some((from, end)) = head_end(bytes) else { return Answer::default() };
    let mut answer = parse_head(&bytes[from..end]);
    answer.body = bytes[end..].to_vec();
    if !answer.all("transfer-encoding").is_empty() {
        answer.body = dechunk(&answer.body);
    }
    answer
}

fn dechunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let Ok(length) = usize::from_str_radix(latin1(&bytes[..end]).trim(), 16) else { break };
        let Some(chunk) = bytes.get(end + 2..end + 2 + length) else { break };
        if length == 0 {
            break;
        }
        body.extend_from_slice(chunk);
        bytes = bytes.get(end + 4 + length..).unwrap_or_default();
    }
    body
}
