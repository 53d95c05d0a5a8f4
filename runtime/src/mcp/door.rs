//! Which requests are heard at all: by the host they name, the page that sent them, the token and type they carry.
//!
//! A web page can make a browser send requests to a server on the same machine, also under a name of its own
//! (DNS rebinding). So the `Host` must be a loopback name and an `Origin`, if there is one, must be a loopback page
//! or one that the configuration names.

use std::net::Ipv4Addr;

use http::{
    HeaderMap,
    header::{self, AsHeaderName},
    uri::Authority,
};

/// Longest `Authorization` header that is looked at.
const MAX_AUTHORIZATION: usize = 4096;

/// Names of this machine, as a `Host` or `Origin` gives them.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

fn is_loopback(authority: &str) -> bool {
    authority.parse::<Authority>().is_ok_and(|authority| {
        let host = authority.host();
        !authority.as_str().contains('@')
            && (LOOPBACK_NAMES.iter().any(|name| host.eq_ignore_ascii_case(name))
                // The server may listen on any of them, and a web page cannot give an address another meaning.
                || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback()))
    })
}

/// The one value of a header that must not be given twice.
pub(super) fn single(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<&str>, ()> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    match (first, second) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Whether the request names this machine as its host.
pub(super) fn host_is_ours(headers: &HeaderMap) -> bool {
    single(headers, header::HOST).is_ok_and(|host| host.is_some_and(is_loopback))
}

/// Whether the request comes from no page, from a page of this machine, or from one of `allowed`.
pub(super) fn origin_is_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    match single(headers, header::ORIGIN) {
        Ok(None) => true,
        Ok(Some(origin)) => {
            allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
                || ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme).is_some_and(is_loopback))
        }
        Err(()) => false,
    }
}

/// Whether the body says that it is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let essence = single(headers, header::CONTENT_TYPE).ok().flatten().and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// The bearer token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = single(headers, header::AUTHORIZATION).ok()??;
    if value.len() > MAX_AUTHORIZATION {
        return None;
    }
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

    use super::*;

    fn headers(name: &header::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn hosts() {
        for good in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.0.0.2", "[::1]", "[::1]:443"] {
            assert!(host_is_ours(&headers(&header::HOST, &[good])), "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example",
            "evil.example:80",
            "127.0.0.1@evil.example",
            "",
            "127.1",
            "128.0.0.1",
            "localhost evil",
        ] {
            assert!(!host_is_ours(&headers(&header::HOST, &[bad])), "{bad}");
        }
        assert!(!host_is_ours(&HeaderMap::new()));
        assert!(!host_is_ours(&headers(&header::HOST, &["localhost", "evil.example"])));
    }

    #[test]
    fn origins() {
        let allowed = ["https://console.example".to_owned()];
        for good in ["http://localhost:6274", "https://127.0.0.1", "https://console.example"] {
            assert!(origin_is_allowed(&headers(&header::ORIGIN, &[good]), &allowed), "{good}");
        }
        for bad in [
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
            "https://console.example.evil",
            "http://localhost@evil.example",
            "file://",
            "",
        ] {
            assert!(!origin_is_allowed(&headers(&header::ORIGIN, &[bad]), &allowed), "{bad}");
        }
        assert!(origin_is_allowed(&HeaderMap::new(), &allowed));
        assert!(!origin_is_allowed(&headers(&header::ORIGIN, &["http://localhost", "https://evil.example"]), &allowed));
    }

    #[test]
    fn tokens() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer  abc", Some("abc")),
            ("Basic abc", None),
            ("Bearer", None),
            ("Bearer ", None),
            ("", None),
        ] {
            assert_eq!(bearer(&headers(&header::AUTHORIZATION, &[value])), token, "{value}");
        }
        assert_eq!(bearer(&headers(&header::AUTHORIZATION, &["Bearer a", "Bearer b"])), None);
        assert_eq!(bearer(&headers(&header::AUTHORIZATION, &[&format!("Bearer {}", "a".repeat(5000))])), None);
    }
}
