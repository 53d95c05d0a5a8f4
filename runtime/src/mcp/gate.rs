//! The way of one HTTP request to its handler, in the order in which it is judged.
//!
//! Host and origin, token, path, the token's limits, the server's, body; only then does the protocol begin: plain
//! tool calls on the direct way, everything else in the SDK. Whatever fails answers with a refusal of its own and
//! nothing later runs.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService, streamable_http_server::session::never::NeverSessionManager,
};
use serde::de::IgnoredAny;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    Authenticator, HttpConfig, Identity, Limits, Surface, Turned, View,
    direct::PlainCall,
    door,
    handler::{Caller, Handler},
    limits::{self, Rate, TokenLimits, TooMuch},
    reply::{Code, Response, json_body, later, refuse, rpc_error},
    splice::Slot,
};

/// Everything that the requests of one server share.
pub(super) struct Gate<S: Surface, A> {
    surface: Arc<S>,
    authenticator: Arc<A>,
    protocol: StreamableHttpService<Handler<S>, NeverSessionManager>,
    origins: Vec<String>,
    limits: Limits,
    in_flight: Arc<Semaphore>,
    tokens: TokenLimits,
    strangers: Option<Rate>,
    abort: CancellationToken,
    /// Whether plain calls are answered without the SDK. Only a test that compares both ways says no.
    direct: bool,
}

impl<S: Surface, A: Authenticator<Principal = S::Principal>> Gate<S, A> {
    /// `abort` ends whatever is still in flight.
    pub(super) fn new(surface: Arc<S>, authenticator: Arc<A>, config: &HttpConfig, abort: CancellationToken) -> Self {
        let handlers = Arc::clone(&surface);
        let answer_bytes = limits::bytes(config.limits.answer_bytes);
        let protocol = StreamableHttpService::new(
            move || Ok(Handler::per_request(Arc::clone(&handlers), answer_bytes)),
            Arc::default(),
            // Host and Origin are checked before the token here, and by the SDK for the host once more.
            StreamableHttpServerConfig::default()
                .with_legacy_session_mode(false)
                .with_json_response(true)
                .with_allowed_hosts(["localhost", "127.0.0.1", "::1", &config.listen.ip().to_string()])
                .with_max_request_body_bytes(limits::bytes(config.limits.body_bytes))
                .with_cancellation_token(abort.clone()),
        );
        Self {
            surface,
            authenticator,
            protocol,
            origins: config.allowed_origins.clone(),
            in_flight: limits::places(config.limits.in_flight),
            tokens: TokenLimits::new(&config.limits),
            strangers: Rate::new(config.limits.strangers_per_second, config.limits.strangers_burst),
            limits: config.limits.clone(),
            abort,
            direct: true,
        }
    }

    /// The same with everything going through the SDK.
    #[cfg(test)]
    pub(super) fn without_direct(self) -> Self {
        Self { direct: false, ..self }
    }

    /// Answers one request.
    pub(super) async fn answer<B>(&self, request: http::Request<B>) -> Response
    where
        B: BodyExt<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send,
    {
        let mut who = None;
        let response = self.admit(request, &mut who).await.unwrap_or_else(|refusal| *refusal);
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            // Without a code of ours it is the SDK that found something wrong with the message.
            let code = response.extensions().get::<Code>().map_or("protocol", |code| code.0);
            self.surface.turned_away(Turned { principal: who.as_deref(), code, status: Some(status.as_u16()) });
        }
        response
    }

    /// `who` is told as soon as it is known.
    async fn admit<B>(
        &self,
        request: http::Request<B>,
        who: &mut Option<Arc<S::Principal>>,
    ) -> Result<Response, Box<Response>>
    where
        B: BodyExt<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send,
    {
        let (mut parts, body) = request.into_parts();
        self.check_sender(&parts.headers)?;
        if parts.uri.path() == "/healthz" {
            return Ok(json_body(StatusCode::OK, r#"{"status":"ok"}"#));
        }
        let principal = self.principal(&parts.headers).await?;
        *who = Some(Arc::clone(&principal));
        let view = self.view(parts.uri.path())?;
        let permit = self
            .tokens
            .enter(principal.id())
            .await
            .map_err(|reason| Box::new(self.too_much(reason, principal.id())))?;
        // Only now: those who wait for their token's turn must not take the places of others.
        let place = limits::place(&self.in_flight, self.limits.wait).await.ok_or_else(|| {
            let message = format!("the server has {} requests in flight, its limit", self.limits.in_flight);
            Box::new(later(StatusCode::SERVICE_UNAVAILABLE, "server_busy", message, Duration::from_secs(1)))
        })?;
        if parts.method == Method::POST && !door::is_json(&parts.headers) {
            return Err(Box::new(refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not_json",
                "the request's Content-Type is not application/json",
                "Send one JSON-RPC 2.0 message as application/json.",
            )));
        }
        let body = self.read_body(&parts.method, body).await?;
        if self.direct
            && parts.method == Method::POST
            && let Some(call) = PlainCall::read(&parts.headers, &body)
            && !call.tells_progress(&*self.surface)
        {
            let answer_bytes = limits::bytes(self.limits.answer_bytes);
            return Ok(call.answer(&*self.surface, principal, view, answer_bytes, &self.abort).await);
        }

        // A token in the headers is of no use from here on, and must not be in what a handler could print.
        parts.headers.remove(http::header::AUTHORIZATION);
        let caller = Arc::new(Caller { principal, view, slot: Some(Slot::default()) });
        parts.extensions.insert(Arc::clone(&caller));
        let request = http::Request::from_parts(parts, Full::new(body.clone()));
        // Boxed, so that the rarer way does not make the other's future larger.
        let response = Box::pin(self.protocol.handle(request)).await;
        let response = finish(response, &caller, &body).await;
        // A stream goes on when this function is over, and counts as in flight until its end.
        Ok(response.map(|body| {
            body.map_frame(move |frame| {
                let _ = (&place, &permit);
                frame
            })
            .boxed()
        }))
    }

    fn check_sender(&self, headers: &http::HeaderMap) -> Result<(), Box<Response>> {
        if !door::host_is_ours(headers) {
            return Err(Box::new(refuse(
                StatusCode::FORBIDDEN,
                "host_not_allowed",
                "the request's Host is not a name of this machine",
                "Use http://127.0.0.1, http://localhost or http://[::1] with the server's port.",
            )));
        }
        if !door::origin_is_allowed(headers, &self.origins) {
            return Err(Box::new(refuse(
                StatusCode::FORBIDDEN,
                "origin_not_allowed",
                "the request comes from a web page that is not allowed to use this server",
                "Add the page's origin to the server's allowed origins if it should be.",
            )));
        }
        Ok(())
    }

    async fn principal(&self, headers: &http::HeaderMap) -> Result<Arc<S::Principal>, Box<Response>> {
        let token = door::bearer(headers);
        let recognised = match token {
            Some(token) => self.authenticator.authenticate(token),
            None => Err("the request carries no bearer token".to_owned()),
        };
        let message = match recognised {
            Ok(principal) => return Ok(principal),
            Err(message) => message,
        };
        if let Some(Err(after)) = self.strangers.as_ref().map(Rate::check) {
            let message = "too many requests without a token of this server came in a short time";
            return Err(Box::new(later(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message, after)));
        }
        let slow = match token {
            Some(token) => self.authenticator.authenticate_slowly(token).await,
            None => None,
        };
        slow.unwrap_or(Err(message)).map_err(|message| {
            let next = "Send the header `Authorization: Bearer …` with a token of this server.";
            Box::new(refuse(StatusCode::UNAUTHORIZED, "unauthorized", message, next))
        })
    }

    fn view(&self, path: &str) -> Result<View, Box<Response>> {
        match path {
            "/mcp" | "/mcp/" => return Ok(View::Gateway),
            "/mcp/readonly" => return Ok(View::ReadOnly),
            _ => {}
        }
        match path.strip_prefix("/mcp/x/") {
            Some(name) if self.surface.has_toolset(name) => Ok(View::Toolset(name.into())),
            Some(_) => Err(Box::new(refuse(
                StatusCode::NOT_FOUND,
                "no_such_toolset",
                "there is no toolset of this name",
                "docs/tools.md lists the toolsets; /mcp reaches every operation without them.",
            ))),
            None => Err(Box::new(refuse(
                StatusCode::NOT_FOUND,
                "no_such_path",
                "nothing is served at this path",
                "MCP is at /mcp, /mcp/readonly and /mcp/x/{toolset}.",
            ))),
        }
    }

    fn too_much(&self, reason: TooMuch, id: &str) -> Response {
        tracing::warn!(token = id, ?reason, "a token reached its limit");
        let (message, after) = match reason {
            TooMuch::InFlight => (
                format!("this token has {} requests in flight, its limit", self.limits.in_flight_per_token),
                Duration::from_secs(1),
            ),
            TooMuch::Rate { after } => {
                (format!("this token sent more than {} requests a second", self.limits.requests_per_second), after)
            }
        };
        later(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message, after)
    }

    async fn read_body<B>(&self, method: &Method, body: B) -> Result<Bytes, Box<Response>>
    where
        B: BodyExt<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send,
    {
        if method != Method::POST {
            return Ok(Bytes::new());
        }
        let limit = limits::bytes(self.limits.body_bytes);
        let read = tokio::time::timeout(self.limits.body_time, Limited::new(body, limit).collect()).await;
        let refusal = match read {
            Ok(Ok(collected)) => return Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                format!("the request's body is larger than {limit} bytes"),
                "Send less in one request.",
            ),
            Ok(Err(_)) => {
                refuse(StatusCode::BAD_REQUEST, "body_unreadable", "the request's body broke off", "Send it again.")
            }
            Err(_) => refuse(
                StatusCode::REQUEST_TIMEOUT,
                "body_too_slow",
                format!("the request's body did not arrive within {} s", self.limits.body_time.as_secs()),
                "Send it again.",
            ),
        };
        Err(Box::new(refusal))
    }
}

/// Puts the handler's result into the SDK's response.
async fn finish<P>(response: Response, caller: &Caller<P>, request_body: &Bytes) -> Response {
    // What is left of this status is the SDK's word for a body that is not a message.
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return match serde_json::from_slice::<IgnoredAny>(request_body) {
            Err(error) => rpc_error(StatusCode::BAD_REQUEST, -32700, &format!("the body is not JSON: {error}")),
            Ok(_) => rpc_error(StatusCode::BAD_REQUEST, -32600, "the body is not one JSON-RPC 2.0 message"),
        };
    }
    let Some(insert) = caller.slot.as_ref().and_then(Slot::take) else { return response };
    let (mut parts, body) = response.into_parts();
    let Ok(collected) = body.collect().await;
    let written = collected.to_bytes();
    // A response without a place for it is an error that the SDK made of it; it goes out as it is.
    let body = insert.into_response(&written).unwrap_or(written);
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Response::from_parts(parts, Full::new(body).boxed())
}
