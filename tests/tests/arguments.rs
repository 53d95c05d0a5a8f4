//! Calls that cannot be right: one clear error each, that names the thing, and nothing is sent.

use lab::FrontOptions;
use pvegate::tokens;
use serde_json::{Value, json};
use tests::client::Refused;
use tests::site::{CLUSTER, Site, quick};

const CONFIG: &str = "GET /nodes/{node}/qemu/{vmid}/config";
const STATUS: &str = "GET /nodes/{node}/status";

/// The refusal of one operation: its code, the words that have to be in it, and that nothing was sent.
async fn refused(operation: &str, arguments: Value, code: &str, named: &[&str]) -> Refused {
    let site = Site::start().await;
    let refused = site.client.read(CLUSTER, operation, arguments).await.unwrap_err();
    check(&site, refused, code, named)
}

/// The same of a tool.
async fn tool_refused(tool: &str, arguments: Value, code: &str, named: &[&str]) -> Refused {
    let site = Site::start().await;
    let refused = site.client.tool(tool, arguments).await.unwrap_err();
    check(&site, refused, code, named)
}

fn check(site: &Site, refused: Refused, code: &str, named: &[&str]) -> Refused {
    assert_eq!(refused.code, code, "{refused:?}");
    for name in named {
        assert!(refused.message.contains(name), "`{name}` is not named: {refused:?}");
    }
    assert!(code.starts_with("rpc") || !refused.next.is_empty(), "{refused:?}");
    site.nothing_sent();
    refused
}

#[tokio::test]
async fn an_unknown_tool() {
    tool_refused("delete_everything", json!({}), "rpc -32602", &["delete_everything"]).await;
}

#[tokio::test]
async fn an_unknown_operation() {
    let refused =
        refused("GET /nodes/{node}/nonsense", json!({}), "no_such_operation", &["GET /nodes/{node}/nonsense"]).await;
    assert!(refused.next.contains("search_operations"), "{refused:?}");
}

#[tokio::test]
async fn a_path_with_values_is_no_operation() {
    self::refused("GET /nodes/pve1/qemu/100/config", json!({}), "no_such_operation", &["/nodes/pve1/qemu/100/config"])
        .await;
}

#[tokio::test]
async fn an_unknown_argument() {
    refused(CONFIG, json!({"vmid": 100, "snap_name": "x"}), "invalid_arguments", &["snap_name"]).await;
    tool_refused(
        "get_vm_config",
        json!({"cluster": CLUSTER, "vmid": 100, "snap_name": "x"}),
        "invalid_arguments",
        &["snap_name"],
    )
    .await;
    tool_refused("list_guests", json!({"colour": "red"}), "invalid_arguments", &["colour"]).await;
}

#[tokio::test]
async fn a_wrong_type() {
    refused(CONFIG, json!({"vmid": 100, "current": "perhaps"}), "invalid_arguments", &["current", "perhaps"]).await;
    refused(STATUS, json!({"node": ["pve1"]}), "invalid_arguments", &["node"]).await;
    refused(CONFIG, json!({"vmid": true}), "invalid_arguments", &["vmid"]).await;
    tool_refused("get_vms", json!({"cluster": CLUSTER, "limit": "many"}), "invalid_arguments", &["limit"]).await;
    tool_refused("read", json!({"cluster": CLUSTER, "reads": "all"}), "invalid_arguments", &["sequence"]).await;
}

#[tokio::test]
async fn a_missing_argument() {
    refused(STATUS, json!({}), "invalid_arguments", &["node", "missing"]).await;
    refused(CONFIG, json!({}), "invalid_arguments", &["vmid", "missing"]).await;
    tool_refused("read", json!({"cluster": CLUSTER}), "invalid_arguments", &["reads"]).await;
    tool_refused("get_storage", json!({"cluster": CLUSTER}), "invalid_arguments", &["node", "missing"]).await;
}

#[tokio::test]
async fn all_mistakes_are_told_at_once() {
    let operation = "GET /nodes/{node}/tasks";
    refused(
        operation,
        json!({"node": "..", "limit": "x", "nonsense": 1}),
        "invalid_arguments",
        &["`node`", "`limit`", "`nonsense`"],
    )
    .await;
}

#[tokio::test]
async fn no_such_guest() {
    refused(CONFIG, json!({"vmid": 4711}), "not_found", &["4711"]).await;
    tool_refused("get_guest", json!({"cluster": CLUSTER, "vmid": 4711}), "not_found", &["4711"]).await;
    tool_refused("get_vm_config", json!({"cluster": CLUSTER, "vmid": 4711}), "not_found", &["4711"]).await;
}

#[tokio::test]
async fn a_number_that_is_no_guests() {
    for vmid in [json!(99), json!(-1), json!(1.5), json!("100/config"), json!("x"), json!(1_000_000_000)] {
        refused(CONFIG, json!({"vmid": vmid}), "invalid_arguments", &["vmid"]).await;
    }
}

#[tokio::test]
async fn a_guest_of_the_other_kind() {
    let refused = refused(CONFIG, json!({"vmid": 102}), "wrong_kind", &["102", "container"]).await;
    assert!(refused.next.contains("GET /nodes/{node}/lxc/{vmid}/config"), "{refused:?}");
    tool_refused("get_container_config", json!({"cluster": CLUSTER, "vmid": 100}), "wrong_kind", &["100", "VM"]).await;
}

#[tokio::test]
async fn a_node_that_is_more_than_a_node() {
    refused(STATUS, json!({"node": "pve1/qemu/999"}), "invalid_arguments", &["node", "pve1/qemu/999"]).await;
}

#[tokio::test]
async fn a_node_that_climbs() {
    refused(STATUS, json!({"node": ".."}), "invalid_arguments", &["node", "`..`"]).await;
}

#[tokio::test]
async fn localhost_is_no_node() {
    refused(STATUS, json!({"node": "localhost"}), "invalid_arguments", &["node", "localhost"]).await;
}

#[tokio::test]
async fn node_names_are_exact() {
    refused(STATUS, json!({"node": "PVE1"}), "not_found", &["PVE1", "pve1"]).await;
    refused(STATUS, json!({"node": "pve9"}), "not_found", &["pve9", "pve1"]).await;
}

#[tokio::test]
async fn a_nested_pool_has_no_path() {
    // PVE has no operation at that path; the list of pools takes the name in its query.
    refused("GET /pools/{poolid}", json!({"poolid": "lab/inner"}), "invalid", &["poolid", "GET /pools/{poolid}"]).await;
    let site = Site::start().await;
    assert!(site.client.read(CLUSTER, "GET /pools", json!({"poolid": "lab/inner"})).await.is_ok());
}

#[tokio::test]
async fn a_guest_is_named_without_its_node() {
    refused(CONFIG, json!({"vmid": 100, "node": "pve1"}), "invalid_arguments", &["node"]).await;
    tool_refused(
        "get_vm_config",
        json!({"cluster": CLUSTER, "vmid": 100, "node": "pve1"}),
        "invalid_arguments",
        &["node"],
    )
    .await;
}

#[tokio::test]
async fn a_task_belongs_to_its_node() {
    let upid = "UPID:pve2:00000001:00000001:00000001:qmstart:100:root@pam:";
    refused(
        "GET /nodes/{node}/tasks/{upid}/status",
        json!({"node": "pve1", "upid": upid}),
        "invalid_arguments",
        &["node", "pve2"],
    )
    .await;
}

#[tokio::test]
async fn an_unknown_cluster() {
    let refused = tool_refused("get_nodes", json!({"cluster": "elsewhere"}), "no_such_cluster", &["elsewhere"]).await;
    assert!(refused.next.contains("list_clusters"), "{refused:?}");
    tool_refused(
        "read",
        json!({"cluster": "elsewhere", "reads": [{"operation": "GET /nodes"}]}),
        "no_such_cluster",
        &["elsewhere"],
    )
    .await;
}

#[tokio::test]
async fn what_changes_something_is_not_read() {
    for operation in
        ["POST /nodes/{node}/qemu/{vmid}/status/start", "DELETE /nodes/{node}/qemu/{vmid}", "PUT /cluster/options"]
    {
        refused(operation, json!({"vmid": 100}), "not_a_read", &[operation]).await;
    }
}

#[tokio::test]
async fn what_is_never_offered() {
    refused("GET /nodes/{node}/syslog", json!({"node": "pve1"}), "not_offered", &["GET /nodes/{node}/syslog"]).await;
}

#[tokio::test]
async fn what_nobody_opted_in() {
    let refused = refused("GET /access/users", json!({}), "not_offered", &["GET /access/users"]).await;
    assert!(refused.next.contains("opt_in"), "{refused:?}");
}

#[tokio::test]
async fn a_cursor_of_another_question() {
    let site = Site::start().await;
    let page = site.client.tool("list_guests", json!({"limit": 3})).await.unwrap();
    let cursor = page["next_cursor"].clone();
    site.lab.clear_journal();
    for arguments in [json!({"cursor": "nonsense"}), json!({"cursor": cursor, "type": "lxc"})] {
        let refused = site.client.tool("list_guests", arguments).await.unwrap_err();
        check(&site, refused, "invalid_arguments", &["cursor"]);
    }
    let refused = site.client.tool("get_vms", json!({"cluster": CLUSTER, "cursor": cursor})).await.unwrap_err();
    check(&site, refused, "invalid_arguments", &["cursor"]);
    let refused = site.client.tool("get_nodes", json!({"cluster": CLUSTER, "cursor": "AAAA"})).await.unwrap_err();
    check(&site, refused, "invalid_arguments", &["cursor"]);
}

#[tokio::test]
async fn too_many_reads_at_once() {
    let reads: Vec<Value> = (0..21).map(|_| json!({"operation": "GET /version"})).collect();
    tool_refused("read", json!({"cluster": CLUSTER, "reads": reads}), "invalid_arguments", &["reads", "21"]).await;
    tool_refused("read", json!({"cluster": CLUSTER, "reads": []}), "invalid_arguments", &["reads", "0"]).await;
}

#[tokio::test]
async fn an_answer_that_is_too_large() {
    let site = Site::with(lab::Options { guests: 3000, ..quick() }, FrontOptions::default()).await;
    // Rows are not cut silently: what is missing is said.
    let resources = site.client.read(CLUSTER, "GET /cluster/resources", json!({})).await.unwrap();
    assert_eq!(resources["partial"], true);
    assert!(resources["missing"][0].as_str().unwrap().contains("do not fit"), "{}", resources["missing"]);
    assert!(resources.to_string().len() <= 64 * 1024);
    assert!(resources["total"].as_u64().unwrap() > 3000);
    // Twenty answers share the room of one; a single object that has none is refused.
    let mut reads = vec![json!({"operation": CONFIG, "arguments": {"vmid": 100}}); 19];
    reads.push(json!({"operation": "GET /access/permissions"}));
    let answer = site.client.tool("read", json!({"cluster": CLUSTER, "reads": reads})).await.unwrap();
    assert!(answer.to_string().len() <= 64 * 1024 + 4096, "{}", answer.to_string().len());
    let large: Vec<&Value> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result["error"]["code"] == "answer_too_large")
        .collect();
    println!("{} of 20 did not fit", large.len());
    for result in large {
        assert!(result["error"]["next"].as_str().unwrap().contains("fields"), "{result}");
    }
}

fn token(tools: &Value, clusters: &Value, more: &Value) -> (String, Value) {
    let (secret, hash) = tokens::generate().unwrap();
    let mut entry =
        json!({"name": "narrow", "hash": hash, "tools": tools, "clusters": clusters, "guests": ["*"], "nodes": ["*"]});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    (secret.expose().to_owned(), entry)
}

async fn site_with(entry: Value) -> Site {
    Site::with(quick(), FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() }).await
}

#[tokio::test]
async fn a_token_without_the_tool() {
    let (secret, entry) = token(&json!(["list_clusters", "get_vms", "snapshots"]), &json!(["*"]), &json!({}));
    let site = site_with(entry).await;
    let client = site.client.with_token(&secret);
    for tool in ["read", "list_guests", "get_nodes", "no_such_tool"] {
        let refused = client.tool(tool, json!({})).await.unwrap_err();
        check(&site, refused, "rpc -32602", &[tool, "this token"]);
    }
    let names =
        |tools: Vec<Value>| tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(client.tools().await), ["list_clusters"]);
    assert_eq!(names(client.at("/mcp/x/snapshots").tools().await), ["list_snapshots"]);
    assert_eq!(names(client.at("/mcp/x/guests").tools().await), ["get_vms"]);
    assert!(names(client.at("/mcp/x/nodes").tools().await).is_empty());
    assert!(client.tool("get_vms", json!({"cluster": CLUSTER})).await.is_ok());
}

#[tokio::test]
async fn a_token_without_the_cluster() {
    use lab::{Front, Lab};
    let (one, other) = (Lab::start(quick()).await.unwrap(), Lab::start(quick()).await.unwrap());
    let (secret, entry) = token(&json!(["*"]), &json!(["one"]), &json!({}));
    let options = FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() };
    let front = Front::start(&[("one", &one), ("other", &other)], options).await.unwrap();
    let client = tests::client::Client::new(&front.url(), &secret);
    let unknown = client.tool("get_nodes", json!({"cluster": "nowhere"})).await.unwrap_err();
    let known = client.tool("get_nodes", json!({"cluster": "other"})).await.unwrap_err();
    // What is not granted and what does not exist read alike.
    assert_eq!(known.code, "no_such_cluster");
    assert_eq!(known.text().replace("other", "nowhere"), unknown.text());
    for tool in ["list_clusters", "list_guests"] {
        let seen = client.tool(tool, json!({})).await.unwrap();
        assert!(!seen.to_string().contains("other"), "{tool}: {seen}");
        assert!(seen["items"].as_array().unwrap().iter().all(|row| row["cluster"] == "one"));
    }
    // One cluster is granted, so it need not be named.
    assert!(client.tool("get_nodes", json!({})).await.is_ok());
    assert!(other.journal().is_empty(), "{:?}", other.journal());
}

#[tokio::test]
async fn an_unknown_or_expired_token() {
    let (secret, entry) = token(&json!(["*"]), &json!(["*"]), &json!({"expires": "2020-01-01T00:00:00Z"}));
    let site = site_with(entry).await;
    for (token, named) in [("pvegate_unknown", "not known"), (secret.as_str(), "expired")] {
        let client = site.client.with_token(token);
        let (status, body) = client.raw("tools/call", json!({"name": "list_guests", "arguments": {}})).await;
        assert_eq!(status, 401, "{body}");
        let refused = Refused::read(&serde_json::from_str(&body).unwrap());
        assert!(!refused.text().contains(token), "a token is not repeated: {refused:?}");
        check(&site, refused, "unauthorized", &[named]);
    }
    assert!(site.lab.journal().is_empty());
}
