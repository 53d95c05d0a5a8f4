//! Whom a request is from: an API token, or a ticket with its token against forged requests.

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE, HeaderName};
use http::request::Parts;
use percent_encoding::percent_decode_str;

use super::Shared;
use crate::access::Caller;
use crate::clock;

const SCHEME: &str = "PVEAPIToken";
const TICKET: &str = "PVEAuthCookie=";

/// The caller, or the reason phrase of the refusal.
pub(super) fn log_in(shared: &Shared, head: &Parts) -> Result<Caller, &'static str> {
    if let Some(credential) = credential(&headers(&head.headers, &AUTHORIZATION)) {
        return shared
            .look(|cluster| cluster.access.authenticate(credential, clock::now()))
            .ok_or("Authentication failed!");
    }
    let cookies = headers(&head.headers, &COOKIE);
    let ticket = cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix(TICKET)).ok_or("No ticket")?;
    let ticket = percent_decode_str(ticket).decode_utf8_lossy();
    let user = shared
        .look(|cluster| cluster.access.tickets.get(&*ticket).cloned())
        .ok_or("permission denied - invalid PVE ticket")?;
    let guard = headers(&head.headers, &HeaderName::from_static("csrfpreventiontoken"));
    if head.method != "GET" && guard != crate::area::guard_of(&ticket) {
        return Err("Permission denied - invalid csrf token");
    }
    Ok(Caller { user, token: String::new() })
}

/// All values of a header as one text, as the daemon sees them.
fn headers(headers: &HeaderMap, name: &HeaderName) -> String {
    let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(", ")
}

/// What follows the scheme, wherever in the header it stands.
fn credential(header: &str) -> Option<&str> {
    let at = header.match_indices(SCHEME).map(|(at, _)| at).find(|at| {
        let before = header.get(..*at).unwrap_or_default();
        before.is_empty() || before.ends_with(char::is_whitespace)
    })?;
    let rest = header.get(at + SCHEME.len()..)?.strip_prefix(['=', ' '])?;
    rest.split(';').next().map(str::trim)
}
