//! Addresses and nodes that failed: who pays for trying them again.

use super::server::{Act, Server, answer, json};
use crate::pve::{Client, Kind, Lane, Request, Sent};
use crate::values::NodeName;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn at(node: &str) -> Request {
    Request::new("GET /nodes/{node}/version", format!("/nodes/{node}/version"), "")
        .on_node(NodeName::parse(node).unwrap())
}

async fn until(mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..200 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came to that");
}

#[tokio::test]
async fn a_dead_node_is_left_alone_and_found_again() {
    let dead = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&dead);
    let server = Server::start(&["127.0.0.1"], move |_, head| {
        if head.contains("/pve2/") && now.load(Ordering::SeqCst) {
            answer("595 No route to host", "", b"")
        } else {
            json(r#"{"data": 1}"#)
        }
    })
    .await;
    let client = Client::new(&server.cluster()).unwrap();
    let first = client.get(&at("pve2")).await.unwrap_err();
    assert_eq!((first.kind(), first.status()), (Kind::NodeDown, Some(595)));
    let second = client.get(&at("pve2")).await.unwrap_err();
    assert_eq!((second.kind(), second.sent(), second.status()), (Kind::NodeDown, Sent::No, None));
    assert!(second.retry_in().is_some() && second.message().contains("left alone"), "{second}");
    assert_eq!(server.heads().len(), 1, "the second call was not sent");
    client.get(&at("pve1")).await.unwrap();
    dead.store(false, Ordering::SeqCst);
    until(async || client.get(&at("pve2")).await.is_ok()).await;
}

#[tokio::test]
async fn one_timeout_is_no_dead_node_and_an_agents_never_is() {
    let server = Server::start(&["127.0.0.1"], |_, _| answer("596 Connection timed out", "", b"")).await;
    let client = Client::new(&server.cluster()).unwrap();
    for _ in 0..2 {
        assert_eq!(client.get(&at("pve1")).await.unwrap_err().status(), Some(596));
    }
    assert_eq!(client.get(&at("pve1")).await.unwrap_err().status(), None);
    let agent = at("pve3").in_lane(Lane::Slow);
    for _ in 0..4 {
        assert_eq!(client.get(&agent).await.unwrap_err().status(), Some(596));
    }
}

#[tokio::test]
async fn who_has_patience_for_less_is_told_and_the_node_counts_as_late() {
    let server =
        Server::start(
            &["127.0.0.1"],
            |_, head| {
                if head.contains("/pve2/") { Act::Hang } else { json(r#"{"data": 1}"#) }
            },
        )
        .await;
    let client = Client::new(&server.cluster()).unwrap();
    let node = NodeName::parse("pve2").unwrap();
    assert!(client.trouble(&node, &at("pve2")).is_none());
    let slow = at("pve2").within(Duration::from_secs(2));
    let error = client.get_within(&slow, Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Timeout);
    until(async || client.trouble(&node, &slow).is_some_and(|error| error.message().contains("earlier"))).await;
    until(async || client.trouble(&node, &slow).is_none()).await;
    assert!(client.get_within(&at("pve1"), Duration::from_secs(5)).await.is_ok());
}

/// An address that failed costs the callers nothing as long as another one works, and is used again once it is back.
#[tokio::test]
async fn a_dead_address_is_tried_behind_the_callers_back() {
    let first = Server::start(&["127.0.0.1"], |_, _| json(r#"{"data": 1}"#)).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client = Client::new(&first.cluster_at(&[closed, first.port])).unwrap();
    let read = Request::new("GET /version", "/version", "");
    client.get(&read).await.unwrap();
    // Where nothing listened, something does now: another server of the same cluster.
    let hello = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&hello);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", closed)).await.unwrap();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            seen.store(true, Ordering::SeqCst);
        }
    });
    let before = first.heads().len();
    let mut calls = 0;
    until(async || {
        calls += 1;
        client.get(&read).await.unwrap();
        hello.load(Ordering::SeqCst)
    })
    .await;
    assert_eq!(first.heads().len(), before + calls, "every caller was answered by the address that works");
}

/// A proxy that takes connections and says nothing holds up nobody for long, and nobody twice.
#[tokio::test]
async fn a_silent_address_is_left_alone() {
    let silent = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&silent);
    let server = Server::start(&["127.0.0.1", "localhost"], move |_, head| {
        if head.contains("host: localhost") && now.load(Ordering::SeqCst) { Act::Hang } else { json(r#"{"data": 1}"#) }
    })
    .await;
    let mut cluster = server.cluster_at(&[server.port, server.port]);
    cluster.endpoints.first_mut().unwrap().base = format!("https://localhost:{}", server.port);
    let client = Client::new(&cluster).unwrap();
    let asked = || server.heads().iter().filter(|head| head.contains("host: localhost")).count();
    let read = Request::new("GET /cluster/resources", "/cluster/resources", "");
    client.get(&read).await.unwrap();
    assert_eq!((asked(), server.heads().len()), (1, 2));
    for _ in 0..5 {
        client.get(&read).await.unwrap();
    }
    assert_eq!(asked(), 1, "it is resting");
    silent.store(false, Ordering::SeqCst);
    until(async || {
        client.get(&read).await.unwrap();
        asked() > 2
    })
    .await;
}

/// C032: a host that takes connections and never greets is given up as one that was not reached, and left alone then.
#[tokio::test]
async fn a_connection_that_never_comes_about_is_given_up() {
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::start(&["127.0.0.1"], |_, _| json(r#"{"data": 1}"#)).await;
    let client = Client::new(&server.cluster_at(&[mute.local_addr().unwrap().port()])).unwrap();
    let read = Request::new("GET /version", "/version", "");
    let first = client.get(&read).await.unwrap_err();
    assert_eq!((first.kind(), first.sent()), (Kind::Unreachable, Sent::No), "{first}");
    let second = client.get(&read).await.unwrap_err();
    assert!(second.retry_in().is_some(), "{second}");
}

/// Privileges are checked by the node that is asked first, so a refusal does not mean that the other one lives.
#[tokio::test]
async fn a_refusal_by_the_entry_says_nothing_about_the_node_behind_it() {
    let server = Server::start(&["127.0.0.1"], |number, _| match number {
        2 => answer("403 Permission check failed", "", b""),
        3 => answer("501 Method not implemented", "", b""),
        _ => answer("596 Connection timed out", "", b""),
    })
    .await;
    let client = Client::new(&server.cluster()).unwrap();
    for status in [596, 403, 501, 596] {
        assert_eq!(client.get(&at("pve2")).await.unwrap_err().status(), Some(status));
    }
    assert_eq!(client.get(&at("pve2")).await.unwrap_err().status(), None, "it was silent twice and is left alone");
}

/// Whoever happens to be the first after a failure may have asked for something that takes long.
#[tokio::test]
async fn a_slow_request_that_tries_an_address_does_not_hold_up_the_others() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server =
        Server::start(
            &["127.0.0.1"],
            |_, head| {
                if head.contains("/agent/") { Act::Hang } else { json(r#"{"data": 1}"#) }
            },
        )
        .await;
    let client = Client::new(&server.cluster_at(&[port])).unwrap();
    let read = Request::new("GET /version", "/version", "");
    assert_eq!(client.get(&read).await.unwrap_err().kind(), Kind::Unreachable);
    // The address is back: what connects to it reaches the server.
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let behind = server.port;
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut to = tokio::net::TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
                let _ended = tokio::io::copy_bidirectional(&mut from, &mut to).await;
            });
        }
    });
    let slow = Request::new("GET agent", "/nodes/pve1/qemu/100/agent/info", "").in_lane(Lane::Slow);
    let asking = client.clone();
    tokio::spawn(async move {
        while asking.get(&slow).await.is_err_and(|error| error.sent() == Sent::No) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    until(async || !server.heads().is_empty()).await;
    until(async || client.get(&read).await.is_ok()).await;
}

/// What takes a worker of a node's daemon is sent in its lane or not at all.
#[tokio::test]
async fn an_address_is_not_tried_with_requests_that_have_a_lane_of_their_own() {
    let server = Server::start(&["127.0.0.1", "localhost"], |_, head| {
        if head.contains("host: localhost") { Act::Hang } else { json(r#"{"data": 1}"#) }
    })
    .await;
    let mut cluster = server.cluster_at(&[server.port, server.port]);
    cluster.endpoints.first_mut().unwrap().base = format!("https://localhost:{}", server.port);
    let client = Client::new(&cluster).unwrap();
    let read = Request::new("GET /cluster/resources", "/cluster/resources", "");
    client.get(&read).await.unwrap();
    let tried = |path: &str| {
        let heads = server.heads();
        heads.iter().filter(|head| head.contains("host: localhost") && head.contains(path)).count()
    };
    let agent = Request::new("GET agent", "/nodes/pve1/qemu/100/agent/info", "").in_lane(Lane::Slow);
    // Long enough for its rest to be over, after which the first request of any kind would try it.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    client.get(&agent).await.unwrap();
    until(async || {
        client.get(&read).await.unwrap();
        tried("/cluster/resources") > 1
    })
    .await;
    assert_eq!(tried("/agent/"), 0);
}

/// An address that takes connections and hangs up is no reason to leave a read unanswered, and a request that makes
/// every address hang up is none to keep others waiting.
#[tokio::test]
async fn a_read_goes_on_where_an_address_hangs_up() {
    let cutting = Arc::new(AtomicBool::new(true));
    let now = Arc::clone(&cutting);
    let server = Server::start(&["127.0.0.1", "localhost"], move |_, head| {
        let first = head.contains("host: localhost") && now.load(Ordering::SeqCst);
        if first || head.contains("/poison") { Act::Cut } else { json(r#"{"data": 1}"#) }
    })
    .await;
    let mut cluster = server.cluster_at(&[server.port, server.port]);
    cluster.endpoints.first_mut().unwrap().base = format!("https://localhost:{}", server.port);
    let client = Client::new(&cluster).unwrap();
    let read = Request::new("GET /version", "/version", "");
    client.get(&read).await.unwrap();
    let error = client.get(&Request::new("GET /poison", "/poison", "")).await.unwrap_err();
    assert_eq!((error.kind(), error.sent()), (Kind::Unreachable, Sent::Unknown));
    client.get(&read).await.unwrap();
    cutting.store(false, Ordering::SeqCst);
    client.get(&read).await.unwrap();
    assert!(server.heads().last().unwrap().contains("host: localhost"), "it is used again at once");
}
