//! The server that messages go to: one POST for each, and what came of it in the client's terms.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use http::{StatusCode, header};
use reqwest::{Client, Response, Url, redirect};
use serde_json::Value as Json;
use sse_stream::SseStream;
use tokio::sync::mpsc;

use super::ViaError;
use super::message::Message;
use crate::config::{SECRET_LIMIT, read_credential};
use crate::values::Secret;

/// How long a connection may take: the server is on this machine, or behind a tunnel that ends on it.
const CONNECT: Duration = Duration::from_secs(5);
/// Idle connections are not used any more well before the server closes them.
const IDLE: Duration = Duration::from_secs(20);

/// A running server and the right to use it.
#[derive(Debug)]
pub(super) struct Upstream {
    client: Client,
    url: Url,
    token: Secret,
    /// The revision that a handshake agreed on.
    agreed: Mutex<Option<String>>,
}

impl Upstream {
    pub(super) fn new(url: &str, token_file: &Path) -> Result<Self, ViaError> {
        let wrong = |problem: String| ViaError::Url { url: crate::untrusted::shown(url, 200), problem };
        let mut parsed = Url::parse(url).map_err(|error| wrong(format!("is not a URL: {error}")))?;
        let here = match parsed.host() {
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if parsed.scheme() != "http" || !here {
            return Err(wrong(
                "tokens are sent to this machine only: name http://127.0.0.1, http://localhost or http://[::1] with \
                 the server's port, and reach a server elsewhere through SSH port forwarding"
                    .to_owned(),
            ));
        }
        if parsed.path() == "/" {
            parsed.set_path("/mcp");
        }
        let token = read_credential(token_file, SECRET_LIMIT).and_then(|text| match text.trim() {
            "" => Err("is empty".to_owned()),
            token if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Secret::new(token.to_owned())),
            _ => Err("holds more than one token, or something else".to_owned()),
        });
        let token = token.map_err(|problem| ViaError::TokenFile { file: token_file.display().to_string(), problem })?;
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self { client, url: parsed, token, agreed: Mutex::default() })
    }

    /// Sends one message and passes on what comes back. Whatever happens, a request is answered.
    pub(super) async fn exchange(&self, message: &Message, answers: &mpsc::Sender<String>) {
        let failed = match self.post(message).await {
            Ok(response) => self.pass_on(message, response, answers).await,
            Err(error) => Err((self.unreachable(&error), None)),
        };
        let Err((sentence, data)) = failed else { return };
        if let Some(answer) = message.error(&sentence, data) {
            // A client that is gone needs no answer.
            let _ = answers.send(answer).await;
        } else {
            tracing::warn!("a notification did not reach the server: {sentence}");
        }
    }

    async fn post(&self, message: &Message) -> Result<Response, reqwest::Error> {
        let agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.client
            .post(self.url.clone())
            .bearer_auth(self.token.expose())
            .headers(message.headers(agreed.as_deref()))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .body(message.line.clone())
            .send()
            .await
    }

    /// Passes on an answer, or says why there is none, with what the server said about it.
    async fn pass_on(
        &self,
        message: &Message,
        response: Response,
        answers: &mpsc::Sender<String>,
    ) -> Result<(), (String, Option<Json>)> {
        let status = response.status();
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            let mut events = SseStream::from_bytes_stream(Box::pin(chunks(response)));
            while let Some(Ok(event)) = events.next().await {
                let Some(Ok(json)) = event.data.map(|data| serde_json::from_str::<Json>(&data)) else { continue };
                let is_last = message.is_answered_by(&json);
                // A client that is gone ends this by itself.
                let _ = answers.send(json.to_string()).await;
                if is_last {
                    return Ok(());
                }
            }
            return if message.id().is_some() { Err((self.lost("the answer broke off"), None)) } else { Ok(()) };
        }
        let body = match response.bytes().await {
            Ok(body) => body,
            Err(error) => return Err((self.lost(&error.to_string()), None)),
        };
        match serde_json::from_slice::<Json>(&body) {
            Ok(json) if message.is_answered_by(&json) => {
                if message.is_initialize()
                    && let Some(version) = json.pointer("/result/protocolVersion").and_then(Json::as_str)
                {
                    *self.agreed.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
                }
                let _ = answers.send(json.to_string()).await;
                Ok(())
            }
            Ok(json) => Err((self.refused(status, &json), Some(json))),
            Err(_) if status.is_success() && message.id().is_none() => Ok(()),
            Err(_) => Err((format!("what answers at {} is no pvegate: it answered {status}", self.url), None)),
        }
    }

    /// What the server says about a request that reached no tool.
    fn refused(&self, status: StatusCode, json: &Json) -> String {
        let text = |path: &str| json.pointer(path).and_then(Json::as_str);
        match (text("/message").or_else(|| text("/error/message")), text("/next")) {
            (Some(message), Some(next)) => format!("{} refused: {message}. {next}", self.url),
            (Some(message), None) => format!("{} refused: {message}", self.url),
            (None, _) => format!("{} answered {status} to another request", self.url),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> String {
        if error.is_connect() {
            return format!("no server answers at {}, so nothing was sent; start it, or correct --via", self.url);
        }
        self.lost("the connection ended")
    }

    fn lost(&self, why: &str) -> String {
        format!(
            "there is no answer from {}: {why}. The call may have been done; look at what came of it (list_changes, \
             get_change) before it is sent again",
            self.url
        )
    }
}

/// A body as it comes.
fn chunks(response: Response) -> impl Stream<Item = Result<bytes::Bytes, reqwest::Error>> {
    stream::unfold(Some(response), async |response| {
        let mut response = response?;
        match response.chunk().await {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(response))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}
