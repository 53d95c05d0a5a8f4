//! The load: keep-alive connections that each send one prepared request after another.
//!
//! A client that parses and allocates as little as possible, because it shares the machine with what it measures.

use std::{
    fmt::Write,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// What is asked, and how a right answer ends.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Where.
    pub(crate) address: SocketAddr,
    /// The whole request, head and body.
    pub(crate) request: Vec<u8>,
    /// The last bytes of a right answer's body: a fast refusal must not count as an answer.
    pub(crate) ends_with: &'static [u8],
}

impl Target {
    /// A request with a body, or a GET if the body is empty.
    pub(crate) fn new(
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
        ends_with: &'static [u8],
    ) -> Self {
        let verb = if body.is_empty() { "GET" } else { "POST" };
        let mut request = format!("{verb} {path} HTTP/1.1\r\nhost: {address}\r\n");
        for (name, value) in headers {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        if !body.is_empty() {
            let _ = write!(request, "content-length: {}\r\n", body.len());
        }
        request.push_str("\r\n");
        request.push_str(body);
        Self { address, request: request.into_bytes(), ends_with }
    }

    /// Sends the request once and returns the body of the answer.
    pub(crate) async fn once(&self) -> Result<Vec<u8>> {
        let mut connection = Connection::open(self).await?;
        connection.exchange(self).await?;
        Ok(connection.body().to_vec())
    }
}

/// What one run of a target showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// Requests per second.
    pub(crate) rate: f64,
    /// How long each request took.
    pub(crate) times: Vec<Duration>,
}

/// Sends `requests` requests over `in_flight` connections.
pub(crate) async fn run(target: &Target, requests: usize, in_flight: usize) -> Result<Run> {
    let mut connections = Vec::with_capacity(in_flight);
    for _ in 0..in_flight {
        connections.push(Connection::open(target).await?);
    }
    let share = requests.div_ceil(in_flight);
    let start = Instant::now();
    let clients: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let target = target.clone();
            tokio::spawn(async move {
                let mut times = Vec::with_capacity(share);
                for _ in 0..share {
                    let sent = Instant::now();
                    connection.exchange(&target).await?;
                    times.push(sent.elapsed());
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    let mut times = Vec::with_capacity(share * in_flight);
    for client in clients {
        times.extend(client.await??);
    }
    // A measured number of requests is far below 2^52.
    #[allow(clippy::cast_precision_loss)]
    let rate = times.len() as f64 / start.elapsed().as_secs_f64();
    Ok(Run { rate, times })
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    head: usize,
}

impl Connection {
    async fn open(target: &Target) -> Result<Self> {
        let stream = TcpStream::connect(target.address)
            .await
            .with_context(|| format!("cannot connect to {}", target.address))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(1 << 16), head: 0 })
    }

    async fn exchange(&mut self, target: &Target) -> Result<()> {
        self.stream.write_all(&target.request).await?;
        self.buffer.clear();
        let mut whole = None;
        while whole.is_none_or(|whole| self.buffer.len() < whole) {
            let read = self.stream.read_buf(&mut self.buffer).await?;
            ensure!(read > 0, "{} closed the connection before its answer was whole", target.address);
            if whole.is_none()
                && let Some(head) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n")
            {
                self.head = head + 4;
                whole = Some(self.head + content_length(self.buffer.get(..head).unwrap_or_default())?);
            }
        }
        if !self.buffer.starts_with(b"HTTP/1.1 200 ") || !self.body().ends_with(target.ends_with) {
            bail!(
                "not the answer that is measured: {}",
                String::from_utf8_lossy(self.buffer.get(..2000).unwrap_or(&self.buffer))
            );
        }
        Ok(())
    }

    fn body(&self) -> &[u8] {
        self.buffer.get(self.head..).unwrap_or_default()
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    let head = std::str::from_utf8(head)?;
    head.split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .with_context(|| format!("an answer without a content-length: {head}"))
}
