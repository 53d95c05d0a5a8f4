//! What a client gets that never reached a tool: an HTTP status and a JSON body that says what to do.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use serde_json::json;

use super::Refusal;

/// The response type of everything here.
pub(super) type Response = http::Response<BoxBody<Bytes, Infallible>>;

/// Why a request was refused, kept beside its response for who takes note of refusals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code(pub(super) &'static str);

/// A response with a JSON body.
pub(super) fn json_body(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut response = http::Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A refusal in the form that tools use too.
pub(super) fn refuse(
    status: StatusCode,
    code: &'static str,
    message: impl Into<String>,
    next: impl Into<String>,
) -> Response {
    let refusal = Refusal::new(code, message, next);
    let mut response = json_body(status, serde_json::to_vec(&refusal).unwrap_or_default());
    response.extensions_mut().insert(Code(code));
    match status {
        StatusCode::UNAUTHORIZED => {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The rest of the body was not read, so the connection is of no further use.
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
}

/// A refusal of something that can be asked again after a while.
pub(super) fn later(status: StatusCode, code: &'static str, message: impl Into<String>, after: Duration) -> Response {
    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    let next = format!("Try again in {seconds} s, with fewer calls at once.");
    let mut response = refuse(status, code, message, next);
    response.headers_mut().insert(header::RETRY_AFTER, seconds.max(1).into());
    response
}

/// A JSON-RPC error to a request whose id is not known.
pub(super) fn rpc_error(status: StatusCode, code: i32, message: &str) -> Response {
    json_body(status, json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}}).to_string())
}
