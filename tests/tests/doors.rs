//! Requests that are not heard: from other hosts and pages, without a token, of another type, to other paths.

use serde_json::{Value, json};
use tests::client::{Era, Refused};
use tests::site::Site;

async fn sent(request: reqwest::RequestBuilder) -> (u16, Refused) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, Refused::read(&response.json::<Value>().await.unwrap()))
}

fn call(site: &Site) -> reqwest::RequestBuilder {
    site.client.request("tools/call", json!({"name": "list_guests", "arguments": {}}))
}

#[tokio::test]
async fn an_evil_host() {
    let site = Site::start().await;
    for host in ["evil.test", "127.0.0.1.evil.test", "localhost.evil.test:80"] {
        let (status, refused) = sent(call(&site).header("host", host)).await;
        assert_eq!((status, refused.code.as_str()), (403, "host_not_allowed"), "{host}");
        assert!(refused.message.contains("Host") && refused.next.contains("127.0.0.1"), "{refused:?}");
    }
    assert!(site.lab.journal().is_empty());
}

#[tokio::test]
async fn an_evil_origin() {
    let site = Site::start().await;
    for origin in ["https://evil.test", "null", "http://localhost.evil.test"] {
        let (status, refused) = sent(call(&site).header("origin", origin)).await;
        assert_eq!((status, refused.code.as_str()), (403, "origin_not_allowed"), "{origin}");
        assert!(refused.message.contains("page") && refused.next.contains("origins"), "{refused:?}");
    }
    assert!(site.lab.journal().is_empty());
}

#[tokio::test]
async fn another_path_or_toolset() {
    let site = Site::start().await;
    for (path, code) in [("/elsewhere", "no_such_path"), ("/mcp/x/nothing", "no_such_toolset")] {
        let (status, refused) = sent(site.client.at(path).request("tools/list", json!({}))).await;
        assert_eq!((status, refused.code.as_str()), (404, code));
        assert!(refused.next.contains("/mcp"), "{refused:?}");
    }
}

#[tokio::test]
async fn both_eras_answer_alike() {
    let site = Site::start().await;
    for (tool, arguments) in [
        ("list_guests", json!({"limit": 5})),
        ("get_guest", json!({"cluster": "lab", "vmid": 4711})),
        ("nothing", json!({})),
    ] {
        let older = site.client.of(Era::Older).tool(tool, arguments.clone()).await;
        let newer = site.client.of(Era::Newer).tool(tool, arguments).await;
        assert_eq!(older, newer, "{tool}");
    }
}

#[tokio::test]
async fn a_toolset_calls_its_own_tools_only() {
    let site = Site::start().await;
    let snapshots = site.client.at("/mcp/x/snapshots");
    let arguments = json!({"cluster": "lab", "vmid": 100});
    assert!(snapshots.tool("list_snapshots", arguments.clone()).await.is_ok());
    assert_eq!(snapshots.tool("get_vm_config", arguments.clone()).await.unwrap_err().code, "rpc -32602");
    assert!(site.client.tool("get_vm_config", arguments).await.is_ok(), "the gateway takes every name");
}
