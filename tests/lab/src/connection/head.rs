//! The head of a request: what is read of it, what is too long, and what PVE says of one that it cannot read.

use bytes::{Buf as _, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Uri};

use super::body::Body;
use crate::answer::{Answer, Ending};

/// The most bytes and lines of headers that PVE reads; a request with more is never answered.
const HEADER_LIMIT: usize = 8 * 1024;
const HEADER_LINES: usize = 64;
/// The most that a request line and headers together may take here.
const HEAD_LIMIT: usize = 64 * 1024;

/// A head that was read.
pub(super) struct Head {
    method: Method,
    uri: Uri,
    /// As it was written.
    target: String,
    headers: HeaderMap,
    /// HTTP/1.0, where a connection ends with its answer.
    old: bool,
    pub(super) length: u64,
    pub(super) chunked: bool,
}

/// How far reading has come.
pub(super) enum Reading {
    Part,
    Whole(Box<Head>),
    Wrong(Answer),
    TooLong,
}

/// Takes a head from what has arrived, if all of it has.
pub(super) fn read(buffer: &mut BytesMut) -> Reading {
    if buffer.starts_with(b"PRI * HTTP/2.0\r\n") {
        return Reading::Wrong(Answer::proxy(506, "http protocol version 2.0 not supported"));
    }
    let mut lines = [httparse::EMPTY_HEADER; HEADER_LINES];
    let mut request = httparse::Request::new(&mut lines);
    let end = match request.parse(buffer) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) if buffer.len() <= HEAD_LIMIT => return Reading::Part,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Reading::TooLong,
        Err(_) => return Reading::Wrong(bad_request()),
    };
    let length: usize = request.headers.iter().map(|line| line.name.len() + line.value.len() + 4).sum();
    if length > HEADER_LIMIT {
        return Reading::TooLong;
    }
    let head = head(&request);
    buffer.advance(end);
    head.map_or_else(|| Reading::Wrong(bad_request()), |head| Reading::Whole(Box::new(head)))
}

fn bad_request() -> Answer {
    Answer::proxy(400, "bad request")
}

fn head(request: &httparse::Request<'_, '_>) -> Option<Head> {
    let mut headers = HeaderMap::new();
    for line in request.headers.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(line.value).ok()?);
    }
    let length = match headers.get(CONTENT_LENGTH) {
        Some(length) => length.to_str().ok()?.trim().parse().ok()?,
        None => 0,
    };
    let target = request.path?;
    Some(Head {
        method: Method::from_bytes(request.method?.as_bytes()).ok()?,
        uri: target.parse().ok()?,
        target: target.to_owned(),
        old: request.version == Some(0),
        length,
        chunked: headers.contains_key(TRANSFER_ENCODING),
        headers,
    })
}

impl Head {
    pub(super) const fn method(&self) -> &Method {
        &self.method
    }

    /// What stands on the request line.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.headers.get(HOST)?.to_str().ok()
    }

    /// What becomes of the connection, as far as the request decides.
    pub(super) fn ending(&self, last: bool) -> Ending {
        let wished = self.headers.get(CONNECTION).and_then(|value| value.to_str().ok());
        let closes =
            wished.is_some_and(|wished| wished.split(',').any(|word| word.trim().eq_ignore_ascii_case("close")));
        if last || closes || self.old { Ending::Close } else { Ending::Keep }
    }

    /// Whether the answer may have a body.
    pub(super) fn wants_body(&self) -> bool {
        self.method != Method::HEAD
    }

    /// Whether the body waits for a word.
    pub(super) fn expects_go_ahead(&self) -> bool {
        let expected = self.headers.get(EXPECT).and_then(|value| value.to_str().ok());
        self.length > 0 && expected.is_some_and(|expected| expected.eq_ignore_ascii_case("100-continue"))
    }

    /// The request with its body to come.
    pub(super) fn request(&self, body: Body) -> http::Request<Body> {
        let mut request = http::Request::new(body);
        request.method_mut().clone_from(&self.method);
        request.uri_mut().clone_from(&self.uri);
        request.headers_mut().clone_from(&self.headers);
        request
    }
}
