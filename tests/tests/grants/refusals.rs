//! What is not granted and what does not exist are refused alike: asking tells nothing.

use serde_json::{Value, json};
use tests::client::{Client, Refused};
use tests::site::{CLUSTER, Site};

fn narrow() -> Value {
    json!({
        "guests": ["vmid:100", "tag:linux"],
        "nodes": ["pve1"],
        "storages": ["local"],
        "pools": ["ci"],
        "networks": ["vmbr0"],
    })
}

/// A read or a named tool, `{}` in whose arguments stands for a name.
async fn refused(client: &Client, call: &str, arguments: &str, name: &str) -> Refused {
    let arguments: Value = serde_json::from_str(&arguments.replace("{}", name)).unwrap();
    let answer = if call.contains('/') {
        client.read(CLUSTER, call, arguments).await
    } else {
        client.tool(call, arguments).await
    };
    answer.expect_err(&format!("{call} {name} has to be refused"))
}

#[tokio::test]
async fn what_is_forbidden_reads_like_what_is_not_there() {
    const GUEST: (&str, &str) = ("105", "899");
    const NODE: (&str, &str) = ("pve2", "pve9");
    const STORAGE: (&str, &str) = ("nas", "nat");
    const POOL: (&str, &str) = ("lab/inner", "lab/other");
    let (site, [client]) = Site::granting([narrow()]).await;
    let tasks = site.client.tool("list_tasks", json!({"node": "pve1"})).await.unwrap();
    let of_103 = tasks["items"].as_array().unwrap().iter().find(|row| row["id"] == "103").unwrap();
    let task = (of_103["upid"].as_str().unwrap(), "UPID:pve1:0BADBAD0:0BADBAD0:638071CE:qmstart:103:root@pam:");
    let elsewhere = (
        "UPID:pve2:0008366C:01665026:638071CE:qmstart:103:a@pam:",
        "UPID:pve9:0008366C:01665026:638071CE:qmstart:103:a@pam:",
    );
    let volume = ("local:105/vm-105-disk-0.raw", "local:899/vm-899-disk-0.raw");
    let cases = [
        ("guest", "get_guest", r#"{"vmid": {}}"#, GUEST),
        ("guest", "get_guest", r#"{"vmid": "{}"}"#, GUEST),
        ("guest", "get_container_config", r#"{"cluster": "lab", "vmid": {}}"#, GUEST),
        ("guest", "get_vm_config", r#"{"cluster": "lab", "vmid": {}}"#, GUEST),
        ("guest", "list_snapshots", r#"{"cluster": "lab", "vmid": {}}"#, GUEST),
        ("guest", "get_guest_status", r#"{"cluster": "lab", "vmid": {}}"#, GUEST),
        // Whether it is a VM or a container is not told either.
        ("guest", "GET /nodes/{node}/qemu/{vmid}/config", r#"{"vmid": {}}"#, GUEST),
        ("guest", "GET /nodes/{node}/lxc/{vmid}/config", r#"{"vmid": {}}"#, GUEST),
        ("guest", "GET /nodes/{node}/qemu/{vmid}/agent/info", r#"{"vmid": {}}"#, GUEST),
        ("guest", "GET /nodes/{node}/tasks", r#"{"node": "pve1", "vmid": {}}"#, GUEST),
        (
            "guest",
            "GET /nodes/{node}/storage/{storage}/content",
            r#"{"node": "pve1", "storage": "local", "vmid": {}}"#,
            GUEST,
        ),
        ("guest", "GET /nodes/{node}/replication/{id}", r#"{"node": "pve1", "id": "{}-0"}"#, GUEST),
        ("guest", "GET /cluster/replication/{id}", r#"{"id": "{}-0"}"#, GUEST),
        ("guest", "GET /cluster/ha/resources/{sid}", r#"{"sid": "ct:{}"}"#, GUEST),
        ("node", "get_node_status", r#"{"cluster": "lab", "node": "{}"}"#, NODE),
        ("node", "GET /nodes/{node}/qemu", r#"{"node": "{}"}"#, NODE),
        ("node", "GET /nodes/{node}/tasks", r#"{"node": "{}"}"#, NODE),
        ("node", "GET /nodes/{node}/storage/{storage}/status", r#"{"node": "{}", "storage": "local"}"#, NODE),
        ("node", "GET /nodes/{node}/qemu/{vmid}/migrate", r#"{"vmid": 100, "target": "{}"}"#, NODE),
        ("storage", "GET /storage/{storage}", r#"{"storage": "{}"}"#, STORAGE),
        ("storage", "GET /nodes/{node}/storage/{storage}/content", r#"{"node": "pve1", "storage": "{}"}"#, STORAGE),
        ("storage", "list_isos", r#"{"cluster": "lab", "node": "pve1", "storage": "{}"}"#, STORAGE),
        ("storage", "GET /nodes/{node}/vzdump/defaults", r#"{"node": "pve1", "storage": "{}"}"#, STORAGE),
        ("pool", "GET /pools/{poolid}", r#"{"poolid": "{}"}"#, POOL),
        ("pool", "GET /pools", r#"{"poolid": "{}"}"#, POOL),
        ("network", "GET /nodes/{node}/sdn/vnets/{vnet}", r#"{"node": "pve1", "vnet": "{}"}"#, ("vnet1", "vnet7")),
        ("network", "GET /cluster/sdn/vnets/{vnet}", r#"{"vnet": "{}"}"#, ("vnet1", "vnet7")),
        (
            "volume",
            "GET /nodes/{node}/storage/{storage}/content/{volume}",
            r#"{"node": "pve1", "storage": "local", "volume": "{}"}"#,
            volume,
        ),
        ("task", "wait_task", r#"{"upid": "{}"}"#, task),
        ("task", "wait_task", r#"{"upid": "{}"}"#, elsewhere),
        ("task", "get_task_status", r#"{"cluster": "lab", "node": "pve1", "upid": "{}"}"#, task),
        ("task", "get_task_log", r#"{"cluster": "lab", "node": "pve1", "upid": "{}"}"#, task),
        ("cluster", "get_nodes", r#"{"cluster": "{}"}"#, ("els", "lat")),
    ];
    // A vnet on a node, and what its list says, is for a grant of everything.
    let everything = ["GET /nodes/{node}/sdn/vnets/{vnet}"];
    site.lab.clear_journal();
    for (kind, call, arguments, (forbidden, missing)) in cases {
        let (one, other) =
            (refused(&client, call, arguments, forbidden).await, refused(&client, call, arguments, missing).await);
        assert_eq!(one.text().replace(forbidden, missing), other.text(), "{call} {arguments}");
        let code = match kind {
            "cluster" => "no_such_cluster",
            _ if everything.contains(&call) => "not_granted",
            _ => "not_found",
        };
        assert_eq!(one.code, code, "{call} {arguments}: {one:?}");
        if code == "not_found" {
            assert!(one.message.contains(&format!("no {kind} `{}", forbidden.get(..3).unwrap())), "{call}: {one:?}");
        }
    }
    site.nothing_sent();
}

/// The same from the other side: who reaches a guest is told what is wrong with the call, and no task that is not there.
#[tokio::test]
async fn what_is_granted_is_told_about() {
    let (_site, [client]) = Site::granting([narrow()]).await;
    let wrong = refused(&client, "GET /nodes/{node}/lxc/{vmid}/config", r#"{"vmid": {}}"#, "100").await;
    assert_eq!((wrong.code.as_str(), wrong.next.as_str()), ("wrong_kind", "Use GET /nodes/{node}/qemu/{vmid}/config."));
    // A task of a guest that is reached, which never ran, and one of a guest that is not.
    let (mine, others) = (
        "UPID:pve1:0BADBAD0:0BADBAD0:638071CE:qmstart:100:root@pam:",
        "UPID:pve1:0BADBAD0:0BADBAD0:638071CE:qmstart:103:root@pam:",
    );
    for (call, arguments) in [
        ("wait_task", r#"{"upid": "{}"}"#),
        ("get_task_status", r#"{"cluster": "lab", "node": "pve1", "upid": "{}"}"#),
        ("get_task_log", r#"{"cluster": "lab", "node": "pve1", "upid": "{}"}"#),
    ] {
        let (one, other) =
            (refused(&client, call, arguments, mine).await, refused(&client, call, arguments, others).await);
        assert_eq!(one.text().replace(mine, others), other.text(), "{call}");
    }
}

/// A node that a grant names and the cluster does not have: the others are not listed for it.
#[tokio::test]
async fn a_granted_name_that_is_not_there_shows_no_others() {
    let keys = json!({"guests": ["vmid:100"], "nodes": ["pve9"]});
    let (site, [client]) = Site::granting([keys]).await;
    let node = refused(&client, "GET /nodes/{node}/status", r#"{"node": "{}"}"#, "pve9").await;
    let hidden = refused(&client, "GET /nodes/{node}/status", r#"{"node": "{}"}"#, "pve1").await;
    assert_eq!(node.text().replace("pve9", "pve1"), hidden.text());
    // Nor for a task of a guest that is reached.
    let task =
        refused(&client, "wait_task", r#"{"upid": "{}"}"#, "UPID:pve8:0BADBAD0:0BADBAD0:638071CE:qmstart:100:a@pam:")
            .await;
    assert!(!task.text().contains("pve1") && task.code == "not_found", "{task:?}");
    // To who reaches every node they are no secret.
    let wide = refused(&site.client, "GET /nodes/{node}/status", r#"{"node": "{}"}"#, "pve9").await;
    assert!(wide.message.contains("pve1"), "{wide:?}");
}

/// A read of which nothing tells whose it is takes the grant of everything, before anything is asked.
#[tokio::test]
async fn what_belongs_to_nobody_takes_everything() {
    let keys = json!({"guests": ["vmid:100-999999999"], "nodes": ["*"], "storages": ["*"], "pools": ["*"]});
    let (site, [client]) = Site::granting([keys]).await;
    for operation in
        ["GET /cluster/options", "GET /cluster/tasks", "GET /access/users", "GET /cluster/ha/resources", "GET /version"]
    {
        let refused = client.read(CLUSTER, operation, json!({})).await.unwrap_err();
        let expected = if operation == "GET /access/users" { "not_offered" } else { "not_granted" };
        assert_eq!(refused.code, expected, "{operation}: {refused:?}");
    }
    assert!(site.lab.journal().is_empty(), "{:?}", site.lab.journal());
}
