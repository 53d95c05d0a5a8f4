//! Every low operation, by its name and by each named tool that runs it: exactly one write arrives, with exactly the
//! values that were given, and nothing is read but what the server itself needs.

use std::collections::BTreeMap;
use std::time::Duration;

use lab::{Arrange, Entry, FrontOptions, Options};
use pvegate_generated::catalog::{self, OPERATIONS};
use pvegate_generated::model::{Operation, Runs, Tool, Verb};
use pvegate_generated::terms::{Role, Tier};
use pvegate_generated::tools::TOOLS;
use serde_json::{Map, Value, json};
use tests::call::by_vmid;
use tests::site::{CLUSTER, Site, quick};

use super::{run, until};

fn low() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().copied().filter(|operation| operation.tier == Tier::Low)
}

/// Brings the lab to where the call can succeed, and answers what it is called with. A low operation that is new needs
/// a line here.
pub(crate) async fn sample(site: &Site, operation: &Operation) -> Value {
    match operation.name {
        "POST /nodes/{node}/qemu/{vmid}/status/start" => json!({"vmid": 118, "timeout": 30}),
        "POST /nodes/{node}/qemu/{vmid}/status/stop" => json!({"vmid": 112, "timeout": 30, "overrule-shutdown": true}),
        "POST /nodes/{node}/qemu/{vmid}/status/shutdown" => json!({"vmid": 112, "timeout": 30, "forceStop": true}),
        "POST /nodes/{node}/qemu/{vmid}/status/reboot" => json!({"vmid": 112, "timeout": 30}),
        "POST /nodes/{node}/qemu/{vmid}/status/reset" | "POST /nodes/{node}/qemu/{vmid}/status/suspend" => {
            json!({"vmid": 112})
        }
        "POST /nodes/{node}/qemu/{vmid}/status/resume" => {
            run(site, "POST /nodes/{node}/qemu/{vmid}/status/suspend", json!({"vmid": 112})).await.unwrap();
            json!({"vmid": 112})
        }
        "POST /nodes/{node}/lxc/{vmid}/status/start" => json!({"vmid": 114}),
        "POST /nodes/{node}/lxc/{vmid}/status/stop" => json!({"vmid": 111, "overrule-shutdown": false}),
        "POST /nodes/{node}/lxc/{vmid}/status/shutdown" => json!({"vmid": 111, "timeout": 30, "forceStop": true}),
        "POST /nodes/{node}/lxc/{vmid}/status/reboot" => json!({"vmid": 111, "timeout": 30}),
        "POST /nodes/{node}/qemu/{vmid}/snapshot" => {
            json!({"vmid": 112, "snapname": "before", "description": "a=b;c&d\n100 %", "vmstate": false})
        }
        "POST /nodes/{node}/lxc/{vmid}/snapshot" => json!({"vmid": 111, "snapname": "before", "description": "notes"}),
        "PUT /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config" => {
            json!({"vmid": 100, "snapname": "before-upgrade", "description": "the old state"})
        }
        "PUT /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config" => {
            json!({"vmid": 102, "snapname": "clean", "description": "the old state"})
        }
        "POST /nodes/{node}/vzdump" => json!({
            "vmid": 112, "storage": "nas", "mode": "snapshot", "compress": "zstd", "zstd": 1, "bwlimit": 100_000,
            "notes-template": "{{guestname}}", "protected": true,
        }),
        "POST /nodes/{node}/qemu" => json!({
            "node": "pve1", "vmid": 900, "name": "new", "description": "made", "memory": "512", "cores": 1,
            "scsihw": "virtio-scsi-single", "scsi0": "local-lvm:4", "net0": "virtio,bridge=vmbr0", "onboot": false,
        }),
        "POST /nodes/{node}/lxc" => json!({
            "node": "pve1", "vmid": 901, "hostname": "new", "memory": 512, "swap": 0, "rootfs": "local-lvm:4",
            "ostemplate": "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst",
            "net0": "name=eth0,bridge=vmbr0,ip=dhcp", "unprivileged": true, "features": "nesting=1",
        }),
        "POST /nodes/{node}/qemu/{vmid}/clone" => json!({"vmid": 112, "newid": 902, "name": "copy", "full": true}),
        "POST /nodes/{node}/lxc/{vmid}/clone" => json!({"vmid": 114, "newid": 903, "hostname": "copy", "full": true}),
        "PUT /nodes/{node}/qemu/{vmid}/config" => json!({
            "vmid": 118, "description": "changed", "name": "app-x", "onboot": true, "cores": 3, "sockets": 1,
            "memory": "3072", "balloon": 1024, "cpulimit": 2, "cpuunits": 200,
        }),
        "PUT /nodes/{node}/lxc/{vmid}/config" => json!({
            "vmid": 114, "description": "changed", "hostname": "cache-x", "onboot": true, "cores": 2, "memory": 1024,
            "swap": 256, "cpulimit": 1, "cpuunits": 200,
        }),
        "PUT /nodes/{node}/qemu/{vmid}/resize" => json!({"vmid": 112, "disk": "scsi0", "size": "+1G"}),
        "PUT /nodes/{node}/lxc/{vmid}/resize" => json!({"vmid": 111, "disk": "rootfs", "size": "+1G"}),
        "PUT /nodes/{node}/qemu/{vmid}/cloudinit" => json!({"vmid": 112}),
        "POST /nodes/{node}/qemu/{vmid}/agent/fstrim" | "POST /nodes/{node}/qemu/{vmid}/agent/fsfreeze-thaw" => {
            json!({"vmid": 100})
        }
        "POST /nodes/{node}/storage/{storage}/download-url" => json!({
            "node": "pve1", "storage": "local", "content": "iso", "filename": "small.iso",
            "url": "https://images.lab.test/small.iso", "checksum": "0".repeat(64), "checksum-algorithm": "sha256",
        }),
        "POST /nodes/{node}/aplinfo" => {
            json!({"node": "pve1", "storage": "local", "template": "debian-13-standard_13.1-2_amd64.tar.zst"})
        }
        "PUT /nodes/{node}/storage/{storage}/content/{volume}" => {
            let asked = json!({"cluster": CLUSTER, "node": "pve1", "storage": "nas", "vmid": 102});
            let backups = site.client.tool("list_backups", asked).await.unwrap();
            json!({"node": "pve1", "storage": "nas", "volume": backups["items"][0]["volid"], "notes": "keep", "protected": true})
        }
        "DELETE /nodes/{node}/tasks/{upid}" => json!({"upid": long_task(site).await}),
        other => panic!("no call of {other} is known here"),
    }
}

/// A backup of this token's that goes on, begun by a client that does not wait for it.
async fn long_task(site: &Site) -> Value {
    let client = site.client.clone();
    tokio::spawn(async move {
        let backup = json!({"cluster": CLUSTER, "vmid": 115, "storage": "nas", "mode": "snapshot"});
        let _ = client.tool("create_backup", backup).await;
    });
    let mut found = Value::Null;
    while found.is_null() {
        let asked = json!({"cluster": CLUSTER, "node": "pve1", "vmid": 115, "source": "active"});
        let tasks = site.client.tool("list_tasks", asked).await.unwrap();
        found = tasks["items"][0]["upid"].clone();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It is on record before anybody stops it.
    let upid = found.as_str().unwrap().to_owned();
    until("the task is on record", async || {
        let stop = json!({"cluster": CLUSTER, "upid": &upid, "timeout": 0});
        site.client.tool("wait_task", stop).await.unwrap()["outcome"] == "running"
    })
    .await;
    found
}

/// What is sent for these arguments.
fn expected(operation: &Operation, arguments: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => u8::from(*flag).to_string(),
        other => other.to_string(),
    };
    let fixed = operation.fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    arguments.iter().map(|(name, value)| (name.clone(), text(value))).chain(fixed).collect()
}

/// Fails if anything but the one write arrived.
fn check(what: &str, operation: &Operation, arguments: &Map<String, Value>, journal: &[Entry]) {
    let writes: Vec<&Entry> = journal.iter().filter(|entry| entry.method != "GET").collect();
    let [write] = writes.as_slice() else { panic!("{what}: {writes:#?}") };
    assert_eq!(write.operation.as_deref(), Some(operation.name), "{what}");
    let mut sent: BTreeMap<String, String> =
        write.params.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
    if by_node_of_the_servers(operation, arguments) {
        assert!(sent.remove("node").is_some_and(|node| node.starts_with("pve")), "{what}: {write:?}");
    }
    let takes_lock = operation.params.iter().any(|parameter| parameter.role == Role::Digest);
    let lock = sent.remove("digest");
    let is_guests = by_vmid(operation);
    assert_eq!(lock.is_some_and(|lock| lock.len() == 40), takes_lock && is_guests, "{what}: {write:?}");
    assert_eq!(sent, expected(operation, arguments), "{what}");
    for read in journal.iter().filter(|entry| entry.method == "GET") {
        let name = read.operation.as_deref().unwrap();
        let operation = catalog::operation(name).unwrap_or_else(|| panic!("{what}: {read:?}"));
        assert!(operation.verb == Verb::Get && read.status == 200, "{what}: {read:?}");
    }
}

fn by_node_of_the_servers(operation: &Operation, arguments: &Map<String, Value>) -> bool {
    operation.parameter("node").is_some() && !arguments.contains_key("node")
}

/// The lab's options for this operation's sample.
pub(crate) fn options(operation: &Operation) -> Options {
    // A task that is to be stopped has to take its time.
    let slow = operation.verb == Verb::Delete;
    let tick = if slow { Duration::from_secs(5) } else { quick().task_tick };
    Options { task_tick: tick, ..quick() }
}

/// Makes the guests such that the sample can succeed.
pub(crate) fn arrange(site: &Site, operation: &Operation) {
    if operation.path.contains("/lxc/{vmid}/") {
        // As it is, but not protected, and without lines that the container file passes on unread.
        let config =
            json!({"hostname": "cache", "unprivileged": 1, "memory": 512, "rootfs": "local-lvm:vm-114-disk-0,size=8G"});
        site.lab.arrange(Arrange::Guest { vmid: 114, kind: "lxc".to_owned(), config });
    }
}

async fn site(operation: &Operation) -> Site {
    // The lab has no name server, and its hosts are inside.
    let url_allow = vec!["internal:images.lab.test".to_owned()];
    let front = FrontOptions { url_allow, ..FrontOptions::default() };
    let site = Site::low_with(options(operation), front).await;
    arrange(&site, operation);
    site
}

fn succeeded(what: &str, answer: &Value) {
    assert_eq!((&answer["state"], &answer["outcome"]), (&json!("applied"), &json!("ok")), "{what}: {answer:#}");
    assert!(answer["change_id"].as_str().is_some_and(|id| id.starts_with("chg_")), "{what}: {answer:#}");
    assert!(answer.get("partial").is_none(), "{what}: {answer:#}");
}

#[tokio::test]
async fn by_its_name() {
    for operation in low() {
        let site = site(operation).await;
        let arguments = sample(&site, operation).await;
        site.lab.clear_journal();
        let answer = run(&site, operation.name, arguments.clone()).await;
        let answer = answer.unwrap_or_else(|refused| panic!("{} {arguments}: {refused:?}", operation.name));
        succeeded(operation.name, &answer);
        let journal: Vec<Entry> = site.lab.journal();
        check(operation.name, operation, arguments.as_object().unwrap(), &journal);
    }
}

#[tokio::test]
async fn by_each_named_tool() {
    let mut seen = Vec::new();
    for tool in TOOLS.iter().filter(|tool| tool.tier == Tier::Low && tool.runs != Runs::Gateway) {
        let operations = match tool.runs {
            Runs::Gateway => continue,
            Runs::One(name) => vec![name],
            Runs::ByKind { qemu, lxc } => vec![qemu, lxc],
        };
        for name in operations {
            let operation = catalog::operation(name).unwrap();
            seen.push(name);
            let site = site(operation).await;
            let Value::Object(mut arguments) = sample(&site, operation).await else { panic!("{name}") };
            let by_guest = operation.parameter("vmid").is_some() && !tool.args.contains(&"node");
            arguments.retain(|name, _| tool.args.contains(&name.as_str()) || by_guest && name == "vmid");
            site.lab.clear_journal();
            call(&site, tool, operation, arguments).await;
        }
    }
    let missing: Vec<&str> = low().map(|operation| operation.name).filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "no named tool runs {missing:?}");
}

async fn call(site: &Site, tool: &Tool, operation: &Operation, arguments: Map<String, Value>) {
    let mut given = arguments.clone();
    given.insert("cluster".to_owned(), json!(CLUSTER));
    given.insert("idempotency_key".to_owned(), json!("k1"));
    let definition: Value = serde_json::from_str(tool.definition).unwrap();
    let given = Value::Object(given);
    let valid = jsonschema::validator_for(&definition["inputSchema"]).unwrap();
    assert!(valid.is_valid(&given), "{}: the test's own arguments are not valid: {given}", tool.name);
    let answer = site.client.tool(tool.name, given.clone()).await;
    let answer = answer.unwrap_or_else(|refused| panic!("{} {given}: {refused:?}", tool.name));
    succeeded(tool.name, &answer);
    let output = jsonschema::validator_for(&definition["outputSchema"]).unwrap();
    assert!(output.is_valid(&answer), "{}: {answer:#}", tool.name);
    check(tool.name, operation, &arguments, &site.lab.journal());
}
