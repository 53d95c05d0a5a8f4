//! The client against a server that behaves and one that does not.

use super::server::{Act, SECRET, Server, answer, json};
use crate::pve::{Client, Kind, Lane, Nodes, PveError, Reply, Request, Sent};
use crate::values::NodeName;
use serde_json::json as value;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn request() -> Request {
    Request::new("GET /version", "/version", "")
}

async fn once(act: Act) -> Result<Reply, PveError> {
    let server = Server::start(&["127.0.0.1"], move |_, _| act.clone()).await;
    Client::new(&server.cluster()).unwrap().get(&request()).await
}

#[tokio::test]
async fn a_read_is_sent_as_pve_wants_it() {
    let server = Server::start(&["127.0.0.1"], |_, _| json(r#"{"data": [1], "total": "7", "changes": "x"}"#)).await;
    let client = Client::new(&server.cluster()).unwrap();
    let request =
        Request::new("GET /nodes/{node}/x", "/nodes/pve1/storage/local/content/local%3Aiso%2Fa.iso", "a=1&b=%2C");
    let reply = client.get(&request).await.unwrap();
    assert_eq!((reply.data, reply.total, reply.changes.as_deref()), (value!([1]), Some(7), Some("x")));
    client.get(&request).await.unwrap();
    let heads = server.heads();
    let head = heads.first().unwrap();
    assert!(
        head.starts_with("GET /api2/json/nodes/pve1/storage/local/content/local%3Aiso%2Fa.iso?a=1&b=%2C HTTP/1.1\r\n"),
        "{head}"
    );
    let lower = head.to_lowercase();
    assert!(
        lower.contains(&format!("authorization: pveapitoken=root@pam!mcp={SECRET}"))
            && lower.contains("accept-encoding: gzip"),
        "{head}"
    );
    assert!(!lower.contains("content-type") && !lower.contains("content-length"), "{head}");
    assert_eq!(*server.connections.lock().unwrap(), 1);
    assert!(!format!("{client:?}").contains(SECRET));
}

#[tokio::test]
async fn a_path_that_a_parser_would_tidy_is_not_sent() {
    let server = Server::start(&["127.0.0.1"], |_, _| json("{}")).await;
    let client = Client::new(&server.cluster()).unwrap();
    for (path, query) in [
        ("/nodes/../access", ""),
        ("/nodes/%2e%2E/access", ""),
        ("/a\\b", ""),
        ("@evil/x", ""),
        ("/a#b", ""),
        ("/a?x=1", ""),
        ("/a\tb", ""),
        ("/a", "x=1#y"),
        ("/ä", ""),
    ] {
        let error = client.get(&Request::new("GET /x", path, query)).await.unwrap_err();
        assert_eq!((error.kind(), error.sent()), (Kind::Invalid, Sent::No), "{path}");
    }
    assert!(server.heads().is_empty());
}

#[tokio::test]
async fn certificates_are_recognised() {
    let server = Server::start(&["pve1.lan"], |_, _| json(r#"{"data": 1}"#)).await;
    let told = |cluster| async move { Client::new(&cluster).unwrap().get(&request()).await.unwrap_err() };
    let error = told(server.cluster()).await;
    assert_eq!((error.kind(), error.sent()), (Kind::Certificate, Sent::No));
    assert!(error.message().contains("is for another name; set server_name"), "{error}");

    let mut named = server.cluster();
    named.trust.server_name = Some("pve1.lan".try_into().unwrap());
    assert!(Client::new(&named).unwrap().get(&request()).await.is_ok());

    let mut pinned = server.cluster();
    pinned.trust.ca_pem = None;
    pinned.trust.fingerprints = vec![server.fingerprint];
    assert!(Client::new(&pinned).unwrap().get(&request()).await.is_ok());
    pinned.trust.fingerprints = vec![[7; 32]];
    assert!(told(pinned).await.message().contains("does not have the configured fingerprint"));

    let mut both = server.cluster();
    both.trust.server_name = Some("pve1.lan".try_into().unwrap());
    both.trust.fingerprints = vec![[7; 32]];
    assert_eq!(told(both).await.kind(), Kind::Certificate);

    let other = Server::start(&["pve1.lan"], |_, _| json("{}")).await;
    let mut foreign = server.cluster();
    foreign.trust.ca_pem = Some(Arc::clone(&other.ca));
    assert!(told(foreign).await.message().contains("not signed by the configured CA"));

    let mut none = server.cluster();
    none.trust.ca_pem = Some(Arc::from(&b"no certificate"[..]));
    assert!(Client::new(&none).unwrap_err().contains("cluster `lab`: the CA file holds no certificate"));
    assert_eq!(server.heads().len(), 2);
}

#[tokio::test]
async fn another_endpoint_takes_over_and_a_dead_one_is_left_alone() {
    let server = Server::start(&["127.0.0.1"], |_, _| json(r#"{"data": 1}"#)).await;
    let closed = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() };
    let client = Client::new(&server.cluster_at(&[closed, server.port])).unwrap();
    assert!(client.get(&request()).await.is_ok());
    assert!(client.get(&request()).await.is_ok());

    let alone = Client::new(&server.cluster_at(&[closed])).unwrap();
    let first = alone.get(&request()).await.unwrap_err();
    assert_eq!((first.kind(), first.sent()), (Kind::Unreachable, Sent::No));
    let second = alone.get(&request()).await.unwrap_err();
    assert!(second.retry_in().is_some() && second.message().contains("cannot be reached"), "{second}");
}

#[tokio::test]
async fn a_401_parks_the_token_and_never_fails_over() {
    let server = Server::start(&["127.0.0.1"], |_, _| answer("401 Authentication failed!", "", b"")).await;
    let client = Client::new(&server.cluster_at(&[server.port, server.port])).unwrap();
    let first = client.get(&request()).await.unwrap_err();
    assert_eq!((first.kind(), first.status()), (Kind::Unauthorized, Some(401)));
    assert!(first.message().contains("(Authentication failed!)"), "{first}");
    let second = client.get(&request()).await.unwrap_err();
    assert_eq!((second.kind(), second.sent()), (Kind::Unauthorized, Sent::No));
    assert_eq!(server.heads().len(), 1);
}

#[tokio::test]
async fn a_read_is_sent_once_more_if_the_connection_died() {
    let server =
        Server::start(&["127.0.0.1"], |number, _| if number == 1 { Act::Cut } else { json(r#"{"data": 1}"#) }).await;
    let client = Client::new(&server.cluster()).unwrap();
    assert!(client.get(&request()).await.is_ok());
    assert_eq!(server.heads().len(), 2);

    let server = Server::start(&["127.0.0.1"], |_, _| Act::Cut).await;
    let error = Client::new(&server.cluster()).unwrap().get(&request()).await.unwrap_err();
    assert_eq!((error.kind(), server.heads().len()), (Kind::Unreachable, 2));

    // An answer that began is not asked for again.
    let server = Server::start(&["127.0.0.1"], |number, _| {
        if number == 1 {
            Act::Bytes(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"data\":".to_vec(),
            )
        } else {
            Act::Cut
        }
    })
    .await;
    let error =
        Client::new(&server.cluster()).unwrap().get(&request().within(Duration::from_millis(500))).await.unwrap_err();
    assert_eq!((error.kind(), server.heads().len()), (Kind::Timeout, 1));
}

#[tokio::test]
async fn answers_that_are_not_pves_are_told() {
    let html = once(answer("200 OK", "text/html", b"<html>welcome</html>")).await.unwrap_err();
    assert_eq!(html.kind(), Kind::NotJson);
    assert!(html.message().contains("not another web server"), "{html}");
    assert_eq!(once(answer("200 OK", "application/json", b"{\"data\": [1,")).await.unwrap_err().kind(), Kind::NotJson);
    let page = once(answer("502 Bad Gateway", "text/html", b"<html>PASSWORDPAGE</html>")).await.unwrap_err();
    assert_eq!(page.kind(), Kind::NodeDown);
    assert!(!page.message().contains("PASSWORDPAGE"));
    let moved = once(Act::Bytes(
        b"HTTP/1.1 301 Moved Permanently\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\n\r\n".to_vec(),
    ))
    .await
    .unwrap_err();
    assert!(moved.message().contains("redirect (301)"), "{moved}");
    // Bytes that are not UTF-8 do not lose an answer.
    assert_eq!(
        once(answer("200 OK", "application/json", b"{\"data\":\"a\xe4b\"}")).await.unwrap().data,
        value!("a\u{fffd}b")
    );
    // The HTTP parser drops a reason phrase with such bytes; the body has it in all but old releases.
    let body = "{\"data\":null,\"message\":\"no such user ('jürgen')\\n\"}".as_bytes();
    let mut raw =
        format!("HTTP/1.1 500 no such user ('j\u{fc}rgen')\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    raw.extend_from_slice(body);
    let user = once(Act::Bytes(raw)).await.unwrap_err();
    assert_eq!(user.kind(), Kind::NotFound);
    assert!(user.message().contains("jürgen"), "{user}");
    let bare = once(Act::Bytes(b"HTTP/1.1 500 j\xfcrgen\r\nContent-Length: 0\r\n\r\n".to_vec())).await.unwrap_err();
    assert_eq!((bare.kind(), bare.status()), (Kind::Other, Some(500)));
}

#[tokio::test]
async fn large_and_packed_answers() {
    let big = format!("{{\"data\":\"{}\"}}", "x".repeat(9 << 20));
    let error = once(json(&big)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::TooLarge);
    assert!(error.message().contains("8 MiB"), "{error}");
    // gzip of {"data":1}, sent although nothing says that it must be.
    let packed: &[u8] = &[
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 74, 73, 44, 73, 84, 178, 50, 172, 5, 0, 198, 73, 139, 199, 10, 0, 0,
        0,
    ];
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        packed.len()
    )
    .into_bytes();
    bytes.extend_from_slice(packed);
    match once(Act::Bytes(bytes)).await {
        Ok(reply) => assert_eq!(reply.data, value!(1)),
        Err(error) => panic!("{error} {}", error.internal()),
    }
}

#[tokio::test]
async fn time_limits_and_lanes() {
    let server = Server::start(
        &["127.0.0.1"],
        |_, head| if head.contains("/slow") { Act::Hang } else { json(r#"{"data": 1}"#) },
    )
    .await;
    let client = Arc::new(Client::new(&server.cluster()).unwrap());
    let node = NodeName::parse("pve1").unwrap();
    let slow =
        Request::new("GET /slow", "/slow", "").in_lane(Lane::Slow).on_node(node.clone()).within(Duration::from_secs(2));
    let waiting: Vec<_> = (0..12)
        .map(|_| {
            tokio::spawn({
                let (client, slow) = (Arc::clone(&client), slow.clone());
                async move { client.get(&slow).await.unwrap_err().kind() }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    // Twelve slow requests take one worker; the next short one finds another.
    let started = Instant::now();
    client.get(&Request::new("GET /fast", "/fast", "").in_lane(Lane::Daemon).on_node(node)).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(server.heads().iter().filter(|head| head.contains("/slow")).count(), 1);
    let mut kinds = Vec::new();
    for one in waiting {
        kinds.push(one.await.unwrap());
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Timeout).count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Busy).count(), 11, "{kinds:?}");
}

#[tokio::test]
async fn node_names_come_from_the_cluster() {
    let nodes = Nodes::new("lab", || {
        Box::pin(async { Ok(value!([{"node": "pve1"}, {"node": "PVE2"}, {"node": "../x"}, {}])) })
    });
    let name = |text| NodeName::parse(text).unwrap();
    assert!(nodes.check(&name("pve1")).await.is_ok());
    let error = nodes.check(&name("PVE1")).await.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (Kind::NotFound, Sent::No));
    assert!(error.message().contains("no node `PVE1`; it has PVE2, pve1"), "{error}");
    let blind = Nodes::new("lab", || Box::pin(async { Ok(value!([])) }));
    assert_eq!(blind.list().await.unwrap_err().kind(), Kind::Forbidden);
}
