//! Decides how one read gets its answer: parked or not, in its lane, from the first endpoint that works,
//! once more only where the connection died before an answer began.

use super::endpoint::Address;
use super::lanes::Lanes;
use super::reply::Envelope;
use super::told::{Answered, error_from};
use super::{Kind, PveError, Reply, Request, trust};
use crate::config::Cluster;
use bytes::BytesMut;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::ext::ReasonPhrase;
use reqwest::redirect::Policy;
use reqwest::{Response, Url};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// PVE closes idle connections after 5 s, so ours are dropped before.
const IDLE: Duration = Duration::from_secs(4);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a refused API token is not used again: every attempt costs 3 s on the PVE side.
const PARKED: Duration = Duration::from_secs(30);
/// Largest answer, unpacked.
const BODY: usize = 8 << 20;

/// The connection to one cluster.
#[derive(Debug)]
pub struct Client {
    cluster: String,
    addresses: Vec<Address>,
    http: reqwest::Client,
    lanes: Lanes,
    parked: Mutex<Option<Instant>>,
}

/// One attempt at one address.
enum Attempt {
    Answered(Response),
    /// Nothing was reached: another address may work.
    NotReached(PveError),
    /// The connection died while the answer was awaited.
    Died(PveError),
    Failed(PveError),
}

impl Client {
    /// Builds the client; the error is a sentence for the operator.
    pub fn new(cluster: &Cluster) -> Result<Self, String> {
        let place = |message: String| format!("cluster `{}`: {message}", cluster.name);
        let tls = trust::client_config(&cluster.trust).map_err(place)?;
        let token =
            zeroize::Zeroizing::new(format!("PVEAPIToken={}={}", cluster.token.id, cluster.token.secret.expose()));
        let mut authorization = HeaderValue::from_str(&token)
            .map_err(|_| place("the API token's id or secret cannot stand in a header".to_owned()))?;
        authorization.set_sensitive(true);
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(true)
            .http1_only()
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .gzip(true)
            .tcp_nodelay(true)
            .pool_idle_timeout(IDLE)
            .connect_timeout(CONNECT)
            .user_agent(concat!("pvegate/", env!("CARGO_PKG_VERSION")))
            .default_headers(HeaderMap::from_iter([(AUTHORIZATION, authorization)]))
            .build()
            .map_err(|error| place(format!("the HTTP client cannot be built: {error}")))?;
        Ok(Self {
            cluster: cluster.name.to_string(),
            addresses: cluster.endpoints.iter().map(|endpoint| Address::new(endpoint.base.clone())).collect(),
            http,
            lanes: Lanes::new(),
            parked: Mutex::new(None),
        })
    }

    /// The cluster's name.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Sends a read and reads its answer.
    pub async fn get(&self, request: &Request) -> Result<Reply, PveError> {
        self.check_parked(request)?;
        let deadline = Instant::now() + request.within;
        let _leave = self.lanes.enter(request, deadline).await?;
        // A caller that waited in the lane may have been overtaken by a 401.
        self.check_parked(request)?;
        match tokio::time::timeout_at(deadline, self.fetch(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.timed_out(request)),
        }
    }

    async fn fetch(&self, request: &Request) -> Result<Reply, PveError> {
        let mut last = None;
        let mut paused: Option<(Duration, PveError)> = None;
        for address in &self.addresses {
            if let Some((pause, error)) = address.pause(Instant::now()) {
                if paused.as_ref().is_none_or(|(shortest, _)| pause < *shortest) {
                    paused = Some((pause, error));
                }
                continue;
            }
            let mut attempt = self.attempt(address, request).await;
            if matches!(attempt, Attempt::Died(_)) {
                attempt = self.attempt(address, request).await;
            }
            match attempt {
                Attempt::Answered(response) => {
                    address.answered();
                    return self.read(request, response).await;
                }
                Attempt::NotReached(error) => {
                    address.failed(Instant::now(), error.clone());
                    last = Some(error);
                }
                Attempt::Died(error) | Attempt::Failed(error) => return Err(error),
            }
        }
        let known = || match paused {
            // Every address failed a moment ago: the same answer at once, instead of the same wait.
            Some((pause, error)) => error.retry_after(pause),
            None => PveError::new(Kind::Unreachable, format!("cluster {} has no address", self.cluster)).not_sent(),
        };
        Err(last.unwrap_or_else(known))
    }

    async fn attempt(&self, address: &Address, request: &Request) -> Attempt {
        let url = match self.url(address, request) {
            Ok(url) => url,
            Err(error) => return Attempt::Failed(error),
        };
        let error = match self.http.get(url).send().await {
            Ok(response) => return Attempt::Answered(response),
            Err(error) => error.without_url(),
        };
        let place = format!("{} of cluster {}", address.base, self.cluster);
        if let Some(complaint) = trust::complaint(&error) {
            let message = format!("{place} is not trusted: {complaint}; nothing was sent");
            return Attempt::NotReached(PveError::new(Kind::Certificate, message).not_sent());
        }
        let context = chain(&error);
        if error.is_connect() {
            let what = if error.is_timeout() { "did not accept a connection within 5 s" } else { "cannot be reached" };
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
            return Attempt::Failed(self.timed_out(request).context(context));
        }
        Attempt::Died(
            PveError::new(
                Kind::Unreachable,
                format!("{place} closed the connection without answering {request}; try again"),
            )
            .context(context),
        )
    }

    /// The URL, if it is still the one that was asked for: a parser that tidies paths must not change it.
    fn url(&self, address: &Address, request: &Request) -> Result<Url, PveError> {
        let path = format!("/api2/json{}", request.path);
        let mut text = format!("{}{path}", address.base);
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

    async fn read(&self, request: &Request, mut response: Response) -> Result<Reply, PveError> {
        let status = response.status().as_u16();
        let json = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.starts_with("application/json"));
        let reason = response.extensions().get::<ReasonPhrase>().map_or_else(
            || response.status().canonical_reason().unwrap_or_default().as_bytes().to_vec(),
            |reason| reason.as_bytes().to_vec(),
        );
        let body = match self.body(request, &mut response).await {
            Ok(body) => body,
            // A failure's text is worth more than the fact that its body was cut.
            Err(_) if status != 200 => BytesMut::new(),
            Err(error) => return Err(error),
        };
        if status == 401 {
            *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PARKED);
        }
        if (300..400).contains(&status) {
            let message = format!(
                "cluster {} answered {request} with a redirect ({status}); name the API address itself as endpoint",
                self.cluster
            );
            return Err(PveError::new(Kind::NotJson, message).with_status(status).refused());
        }
        if status != 200 {
            let error = error_from(&self.cluster, request, Answered { status, reason: &reason, body: &body });
            return Err(if status == 401 { error.retry_after(PARKED) } else { error });
        }
        Envelope::read(&body).map(Envelope::into_reply).map_err(|error| {
            let what = if json { "an answer that is not complete JSON" } else { "something that is not JSON" };
            let message = format!("cluster {} answered {request} with {what}; check that the endpoint is a PVE node's API and not another web server", self.cluster);
            PveError::new(Kind::NotJson, message).with_status(status).context(format!("{:?} at line {}", error.classify(), error.line()))
        })
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

    fn check_parked(&self, request: &Request) -> Result<(), PveError> {
        let until = *self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left) =
            until.and_then(|until| until.checked_duration_since(Instant::now())).filter(|left| !left.is_zero())
        else {
            return Ok(());
        };
        let message = format!(
            "cluster {} did not accept the server's API token a moment ago, so {request} was not sent; an operator has to check the token, the next attempt is made in {} s",
            self.cluster,
            left.as_secs() + 1
        );
        Err(PveError::new(Kind::Unauthorized, message).not_sent().retry_after(left))
    }

    fn timed_out(&self, request: &Request) -> PveError {
        PveError::new(
            Kind::Timeout,
            format!(
                "cluster {} did not answer {request} within {} s; try again, or look at the node's load",
                self.cluster,
                request.within.as_secs()
            ),
        )
    }
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
