//! Writes on the wire: sent once, on a connection of their own, and honest about what is not known.

use super::server::{Act, Server, answer, json};
use crate::pve::{Client, Kind, PveError, Reply, Request, Sent};
use http::Method;
use std::time::Duration;

fn write() -> Request {
    Request::new("POST /pools", "/pools", "").writing(Method::POST, "poolid=a%2Fb&comment=x%3Dy%3Bz")
}

async fn once(act: Act) -> (Result<Reply, PveError>, usize) {
    let server = Server::start(&["127.0.0.1"], move |_, _| act.clone()).await;
    let outcome = Client::new(&server.cluster()).unwrap().write(&write().within(Duration::from_millis(800))).await;
    (outcome, server.heads().len())
}

#[tokio::test]
async fn a_write_is_sent_as_pve_wants_it_on_a_fresh_connection() {
    let server = Server::start(&["127.0.0.1"], |_, _| json(r#"{"data": null}"#)).await;
    let client = Client::new(&server.cluster()).unwrap();
    for _ in 0..3 {
        client.get(&Request::new("GET /version", "/version", "")).await.unwrap();
    }
    assert_eq!(*server.connections.lock().unwrap(), 1, "reads share a connection");
    client.write(&write()).await.unwrap();
    client.write(&write()).await.unwrap();
    assert_eq!(*server.connections.lock().unwrap(), 3, "each write has its own");
    let head = server.heads().pop().unwrap();
    assert!(head.starts_with("POST /api2/json/pools HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/x-www-form-urlencoded\r\n"), "{head}");
    assert!(head.ends_with("\r\n\r\npoolid=a%2Fb&comment=x%3Dy%3Bz"), "{head}");

    // DELETE has its parameters in the query and nothing else; a POST without parameters has no content type.
    client.write(&Request::new("DELETE /x", "/x", "purge=1").writing(Method::DELETE, "")).await.unwrap();
    let head = server.heads().pop().unwrap();
    assert!(head.starts_with("DELETE /api2/json/x?purge=1 HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("content-type") && head.ends_with("\r\n\r\n"), "{head}");
    client.write(&Request::new("POST /x", "/x", "").writing(Method::POST, "")).await.unwrap();
    assert!(!server.heads().pop().unwrap().contains("content-type"));
}

#[tokio::test]
async fn what_is_known_about_a_failed_write() {
    let text = |status: &str, message: &str| {
        answer(status, "application/json", format!("{{\"data\":null,\"message\":\"{message}\\n\"}}").as_bytes())
    };
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"data\":".to_vec();
    for (act, kind, sent) in [
        (Act::Cut, Kind::Unreachable, Sent::Unknown),
        (Act::Hang, Kind::Timeout, Sent::Unknown),
        (answer("200 OK", "application/json", b""), Kind::NotJson, Sent::Unknown),
        (answer("200 OK", "text/html", b"<html>"), Kind::NotJson, Sent::Unknown),
        (answer("200 OK", "text/plain", b"ok"), Kind::NotJson, Sent::Unknown),
        (Act::Bytes(cut), Kind::Timeout, Sent::Unknown),
        (answer("595 Connection refused", "", b""), Kind::NodeDown, Sent::No),
        (answer("595 No route to host", "", b""), Kind::NodeDown, Sent::No),
        (answer("595 Connection timed out", "", b""), Kind::Timeout, Sent::Unknown),
        (answer("596 Connection timed out", "", b""), Kind::Timeout, Sent::Unknown),
        (answer("596 Broken pipe", "", b""), Kind::NodeDown, Sent::Unknown),
        (
            answer("596 tls_process_server_certificate: certificate verify failed", "", b""),
            Kind::NodeDown,
            Sent::Unknown,
        ),
        (answer("599 Too many redirections", "", b""), Kind::NodeDown, Sent::Unknown),
        (answer("502 Bad Gateway", "text/html", b"<html>"), Kind::NodeDown, Sent::Unknown),
        (answer("503 Service Unavailable", "text/html", b"<html>"), Kind::Busy, Sent::Unknown),
        (answer("504 Gateway Timeout", "text/html", b"<html>"), Kind::NodeDown, Sent::Unknown),
        // The agent or a program that PVE ran was not heard to the end, whatever else its words say.
        (text("500 Agent error", "Agent error: timed out while freezing"), Kind::Agent, Sent::Unknown),
        (
            text(
                "500 start failed",
                "start failed: command 'kvm -drive if=x' failed: got timeout (cpu is not available)",
            ),
            Kind::Unavailable,
            Sent::Unknown,
        ),
        (
            text("500 lock", "can't lock file '/var/lock/qemu-server/lock-200.conf' - got timeout"),
            Kind::Locked,
            Sent::Refused,
        ),
        // Not PVE's: what stands between may have passed the request on.
        (answer("500 Internal Server Error", "text/html", b"<html>"), Kind::Other, Sent::Unknown),
        (answer("500 Internal Server Error", "", b""), Kind::Other, Sent::Unknown),
        (answer("408 Request Timeout", "text/html", b"<html>"), Kind::Timeout, Sent::Unknown),
        (answer("520 Web Server Returned an Unknown Error", "", b""), Kind::Other, Sent::Unknown),
        (answer("202 Accepted", "application/json", b"{\"data\":null}"), Kind::NotJson, Sent::Unknown),
        (answer("204 No Content", "", b""), Kind::NotJson, Sent::Unknown),
        (answer("500 malformed request", "text/plain", b"malformed request"), Kind::Other, Sent::Refused),
        // Of older releases there is the reason alone, and it is PVE's.
        (answer("500 strange", "application/json", b"{\"data\":null}"), Kind::Other, Sent::Refused),
        (text("500 VM is locked (backup)", "VM is locked (backup)"), Kind::Locked, Sent::Refused),
        (text("500 got timeout", "something - got timeout"), Kind::Timeout, Sent::Unknown),
        (
            text("403 Permission check failed", "Permission check failed (/pool/a, Pool.Allocate)"),
            Kind::Forbidden,
            Sent::Refused,
        ),
        (text("400 Parameter verification failed.", "Parameter verification failed."), Kind::Invalid, Sent::Refused),
        (answer("401 Authentication failed!", "", b""), Kind::Unauthorized, Sent::Refused),
        (answer("501 for data too large", "", b""), Kind::Invalid, Sent::Refused),
        (answer("301 Moved Permanently", "", b""), Kind::NotJson, Sent::Refused),
    ] {
        let what = match &act {
            Act::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Act::Hang => "no answer".to_owned(),
            Act::Cut => "cut".to_owned(),
        };
        let (outcome, requests) = once(act).await;
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.sent(), requests), (kind, sent, 1), "{what}: {error}");
    }
}

#[tokio::test]
async fn what_pve_repeats_of_secrets_is_masked_line_by_line() {
    let body = serde_json::json!({"data": null, "message": "error in configuration\ncipassword: hunter2\nargs: -object secret,id=hunter3\nlast line\n"});
    let (outcome, _) =
        once(answer("500 error in configuration", "application/json", body.to_string().as_bytes())).await;
    let error = outcome.unwrap_err();
    assert!(!error.message().contains("hunter") && error.message().contains("last line"), "{error}");
    let body = serde_json::json!({"data": null, "errors": {"password": "value 'hunter2' is too short", "name": "value 'x' is too short"}});
    let (outcome, _) =
        once(answer("400 Parameter verification failed.", "application/json", body.to_string().as_bytes())).await;
    let error = outcome.unwrap_err();
    assert!(!format!("{error:?}").contains("hunter") && error.message().contains("password: (hidden)"), "{error}");
    assert!(error.message().contains("name: value 'x' is too short"), "{error}");
}

#[tokio::test]
async fn a_write_goes_to_another_address_only_if_nothing_was_sent() {
    let server = Server::start(&["127.0.0.1"], |_, _| json(r#"{"data": null}"#)).await;
    let closed = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() };
    Client::new(&server.cluster_at(&[closed, server.port])).unwrap().write(&write()).await.unwrap();
    assert_eq!(server.heads().len(), 1);

    let cutting = Server::start(&["127.0.0.1"], |_, _| Act::Cut).await;
    let error =
        Client::new(&cutting.cluster_at(&[cutting.port, cutting.port])).unwrap().write(&write()).await.unwrap_err();
    assert_eq!((error.sent(), cutting.heads().len()), (Sent::Unknown, 1));
    assert!(error.message().contains("look whether it was done"), "{error}");
}

#[tokio::test]
async fn a_write_goes_on_when_its_caller_hangs_up() {
    let server = Server::start(&["127.0.0.1"], |_, _| json(r#"{"data": null}"#)).await;
    let client = Client::new(&server.cluster()).unwrap();
    let write = write();
    {
        let mut call = std::pin::pin!(client.write(&write));
        // Begun and dropped before it could connect.
        assert!(futures_util::poll!(&mut call).is_pending());
    }
    for _ in 0..100 {
        if !server.heads().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nothing was sent");
}

#[tokio::test]
async fn halves_of_the_client_do_not_mix() {
    let server = Server::start(&["127.0.0.1"], |_, _| json(r#"{"data": null}"#)).await;
    let client = Client::new(&server.cluster()).unwrap();
    assert_eq!(client.get(&write()).await.unwrap_err().sent(), Sent::No);
    assert_eq!(client.write(&Request::new("GET /x", "/x", "")).await.unwrap_err().sent(), Sent::No);
    assert!(server.heads().is_empty());
    assert!(!format!("{:?}", write()).contains("comment"), "a form may hold secrets");
}
