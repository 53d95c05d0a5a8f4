//! Tools that change something are nobody's by `*`.

use pvegate_generated::terms::Tier;
use pvegate_generated::tools::TOOLS;
use serde_json::{Value, json};
use tests::client::Client;
use tests::site::Site;

const EVERYWHERE: [&str; 18] = [
    "guests",
    "power",
    "snapshots",
    "backups",
    "storage",
    "images",
    "network",
    "firewall",
    "sdn",
    "ha",
    "replication",
    "nodes",
    "disks",
    "access",
    "pools",
    "tasks",
    "agent",
    "compat",
];

async fn listed(client: &Client) -> Vec<String> {
    let mut names = Vec::new();
    let paths = EVERYWHERE.map(|toolset| format!("/mcp/x/{toolset}"));
    let exist = paths.iter().filter(|path| {
        let toolset = path.rsplit('/').next().unwrap();
        TOOLS.iter().any(|tool| tool.toolsets().any(|known| known == toolset))
    });
    for path in exist.map(String::as_str).chain(["/mcp", "/mcp/readonly"]) {
        let tools = client.at(path).tools().await;
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
    }
    names
}

#[tokio::test]
async fn what_changes_something_has_to_be_named_with_its_tier() {
    let changing: Vec<&str> = TOOLS.iter().filter(|tool| tool.tier != Tier::Read).map(|tool| tool.name).collect();
    assert!(changing.contains(&"start_vm"), "{changing:?}");
    let wide = |more: Value| {
        let mut keys = json!({"guests": ["*"], "nodes": ["*"], "storages": ["*"], "pools": ["*"]});
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        keys
    };
    let (site, [star, untiered, named, toolset]) = Site::granting([
        wide(json!({"tools": ["*"], "tiers": ["low", "destructive"]})),
        wide(json!({"tools": ["start_vm", "gateway", "power"]})),
        wide(json!({"tools": ["start_vm"], "tiers": ["low"]})),
        wide(json!({"tools": ["power"], "tiers": ["low"]})),
    ])
    .await;
    for client in [&star, &untiered] {
        let seen = listed(client).await;
        assert!(!seen.is_empty() && seen.iter().all(|name| !changing.contains(&name.as_str())), "{seen:?}");
        for tool in &changing {
            // As if there were no such tool, by a list and by a call.
            let refused = client.tool(tool, json!({"cluster": "lab", "vmid": 103})).await.unwrap_err();
            let unknown = client.tool("no_such_tool", json!({})).await.unwrap_err();
            assert_eq!(refused.text(), unknown.text().replace("no_such_tool", tool), "{tool}");
        }
    }
    assert_eq!(listed(&named).await, ["start_vm"]);
    assert!(listed(&toolset).await.contains(&"start_vm".to_owned()));
    // Nothing that changes is called at a door for reads.
    for client in [&named, &toolset] {
        let refused = client.at("/mcp/readonly").tool("start_vm", json!({"cluster": "lab", "vmid": 103})).await;
        assert_eq!(refused.unwrap_err().code, "rpc -32602");
        assert!(listed(&client.at("/mcp/readonly")).await.contains(&"start_vm".to_owned()));
        assert!(client.at("/mcp/readonly").tools().await.is_empty());
    }
    site.nothing_sent();
}

#[tokio::test]
async fn an_operation_is_described_with_what_the_token_may() {
    let (_site, [narrow]) = Site::granting([json!({"guests": ["vmid:100"]})]).await;
    let granted = async |operation: &str| {
        narrow.tool("describe_operation", json!({"operation": operation})).await.unwrap()["granted"].clone()
    };
    assert_eq!(granted("GET /nodes/{node}/qemu/{vmid}/config").await, "yes, on what the token reaches");
    assert_eq!(granted("GET /cluster/options").await, "no: it takes a token for every guest");
    assert_eq!(granted("POST /nodes/{node}/qemu/{vmid}/status/start").await, "no: the token lacks the tier");
}
