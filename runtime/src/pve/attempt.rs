//! Decides what one attempt at one address means: answered, never reached, or died on the way.

use super::reply::Answered;
use super::{Kind, PveError, Reply, Request, trust};
use crate::config::Cluster;
use bytes::BytesMut;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::ext::ReasonPhrase;
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use std::time::Duration;

/// PVE closes idle connections after 5 s, so ours are dropped before.
const IDLE: Duration = Duration::from_secs(4);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(3);
/// Largest answer, unpacked.
const BODY: usize = 8 << 20;

/// What came of one attempt.
pub(super) enum Attempt {
    Answered(Response),
    /// Nothing was reached and nothing was sent: another address may work.
    NotReached(PveError),
    /// The connection died while the answer was awaited.
    Died(PveError),
    Failed(PveError),
}

/// The HTTP side of one cluster: two pools, so that a write never meets a connection that PVE is about to close.
#[derive(Debug)]
pub(super) struct Sender {
    cluster: String,
    reads: reqwest::Client,
    writes: reqwest::Client,
}

impl Sender {
    /// The error is a sentence for the operator.
    pub(super) fn new(cluster: &Cluster) -> Result<Self, String> {
        let place = |message: String| format!("cluster `{}`: {message}", cluster.name);
        let token =
            zeroize::Zeroizing::new(format!("PVEAPIToken={}={}", cluster.token.id, cluster.token.secret.expose()));
        let mut authorization = HeaderValue::from_str(&token)
            .map_err(|_| place("the API token's id or secret cannot stand in a header".to_owned()))?;
        authorization.set_sensitive(true);
        let client = |kept: usize| {
            reqwest::Client::builder()
                .tls_backend_preconfigured(trust::client_config(&cluster.trust).map_err(place)?)
                .https_only(true)
                .http1_only()
                .no_proxy()
                .redirect(Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                .gzip(true)
                .tcp_nodelay(true)
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(kept)
                .connect_timeout(CONNECT)
                .user_agent(concat!("pvegate/", env!("CARGO_PKG_VERSION")))
                .default_headers(HeaderMap::from_iter([(AUTHORIZATION, authorization.clone())]))
                .build()
                .map_err(|error| place(format!("the HTTP client cannot be built: {error}")))
        };
        Ok(Self { cluster: cluster.name.to_string(), reads: client(usize::MAX)?, writes: client(0)? })
    }

    /// Sends a request to one address.
    pub(super) async fn attempt(&self, base: &str, request: &Request) -> Attempt {
        let url = match self.url(base, request) {
            Ok(url) => url,
            Err(error) => return Attempt::Failed(error),
        };
        let mut builder =
            if request.is_read() { self.reads.get(url) } else { self.writes.request(request.method.clone(), url) };
        if !request.form.0.is_empty() {
            // Without a body there is no content type either: PVE answers a 500 to a type without content.
            builder = builder.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(request.form.0.clone());
        }
        let error = match builder.send().await {
            Ok(response) => return Attempt::Answered(response),
            Err(error) => error.without_url(),
        };
        let place = format!("{base} of cluster {}", self.cluster);
        if let Some(complaint) = trust::complaint(&error) {
            let message = format!("{place} is not trusted: {complaint}; nothing was sent");
            return Attempt::NotReached(PveError::new(Kind::Certificate, message).not_sent());
        }
        let context = chain(&error);
        if error.is_connect() {
            let what = if error.is_timeout() { "did not accept a connection within 3 s" } else { "cannot be reached" };
            return Attempt::NotReached(
                PveError::new(
                    Kind::Unreachable,
                    format!("{place} {what}; check that the node is up and the address is right"),
                )
                .context(context)
                .not_sent(),
            );
        }
        if error.is_timeout() {
            return Attempt::Failed(timed_out(&self.cluster, request).context(context));
        }
        let next = if request.is_read() { "try again" } else { "look whether it was done before trying again" };
        Attempt::Died(
            PveError::new(
                Kind::Unreachable,
                format!("{place} closed the connection without answering {request}; {next}"),
            )
            .context(context),
        )
    }

    /// The URL, if it is still the one that was asked for: a parser that tidies paths must not change it.
    fn url(&self, base: &str, request: &Request) -> Result<Url, PveError> {
        let path = format!("/api2/json{}", request.path);
        let mut text = format!("{base}{path}");
        if !request.query.is_empty() {
            text.push('?');
            text.push_str(&request.query);
        }
        let same = |url: &Url| {
            request.path.starts_with('/')
                && url.path() == path
                && url.query().unwrap_or_default() == request.query
                && url.fragment().is_none()
        };
        Url::parse(&text).ok().filter(same).ok_or_else(|| {
            PveError::new(
                Kind::Invalid,
                format!(
                    "the arguments of {request} do not make a valid path, so nothing was sent to cluster {}",
                    self.cluster
                ),
            )
            .not_sent()
        })
    }

    /// Reads an answer to its end.
    pub(super) async fn read(&self, request: &Request, mut response: Response) -> Result<Reply, PveError> {
        let status = response.status().as_u16();
        let reason = response.extensions().get::<ReasonPhrase>().map_or_else(
            || response.status().canonical_reason().unwrap_or_default().as_bytes().to_vec(),
            |reason| reason.as_bytes().to_vec(),
        );
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned())
            .unwrap_or_default();
        let body = match self.body(request, &mut response).await {
            Ok(body) => body,
            // A failure's text is worth more than the fact that its body was cut.
            Err(_) if status != 200 => BytesMut::new(),
            Err(error) => return Err(error),
        };
        Answered { status, reason: &reason, content_type: &content_type, body: &body }.judge(&self.cluster, request)
    }

    async fn body(&self, request: &Request, response: &mut Response) -> Result<BytesMut, PveError> {
        let mut body = BytesMut::new();
        loop {
            match response.chunk().await {
                Ok(None) => return Ok(body),
                Ok(Some(chunk)) if body.len() + chunk.len() <= BODY => body.extend_from_slice(&chunk),
                Ok(Some(_)) => {
                    let message = format!(
                        "the answer to {request} is larger than {} MiB; ask for less, with a limit, a filter or a shorter time span",
                        BODY >> 20
                    );
                    return Err(PveError::new(Kind::TooLarge, message));
                }
                Err(error) => {
                    let message = format!(
                        "cluster {} broke off in the middle of its answer to {request}; try again",
                        self.cluster
                    );
                    return Err(PveError::new(Kind::Unreachable, message).context(chain(&error.without_url())));
                }
            }
        }
    }
}

/// No answer within the request's own limit.
pub(super) fn timed_out(cluster: &str, request: &Request) -> PveError {
    let next = if request.is_read() {
        "try again, or look at the node's load"
    } else {
        "it may have been done all the same: look before trying again"
    };
    PveError::new(
        Kind::Timeout,
        format!("cluster {cluster} did not answer {request} within {} s; {next}", request.within.as_secs()),
    )
}

/// An error with its causes, for the log.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
