//! What pvegate is measured against: servers that do the same transfer and nothing else.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};

async fn start(router: Router) -> Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let listener = listener.tap_io(|stream| {
        // A connection on which this fails is one that has just ended.
        let _ = stream.set_nodelay(true);
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// A server that answers every POST to `/` with these bytes, after reading the request's body.
pub(crate) async fn fixed(answer: Vec<u8>) -> Result<SocketAddr> {
    let answer = Bytes::from(answer);
    let reply =
        async |State(answer): State<Bytes>, _body: Bytes| ([(header::CONTENT_TYPE, "application/json")], answer);
    start(Router::new().route("/", post(reply)).with_state(answer)).await
}

/// An upstream request that is made for each request.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// A client that trusts the upstream.
    pub(crate) client: reqwest::Client,
    /// The URL.
    pub(crate) url: String,
    /// The `Authorization` header.
    pub(crate) authorization: String,
}

/// A server that answers `GET /` with what the upstream answers.
pub(crate) async fn pass_through(upstream: Upstream) -> Result<SocketAddr> {
    start(Router::new().route("/", get(forward)).with_state(Arc::new(upstream))).await
}

async fn forward(State(upstream): State<Arc<Upstream>>) -> Response {
    let request = upstream.client.get(&upstream.url).header(header::AUTHORIZATION, &upstream.authorization);
    let answer = async { request.send().await?.error_for_status()?.bytes().await };
    match answer.await {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
