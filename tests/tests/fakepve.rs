//! The third-party fake `fakepve` behind pvegate: a PVE that somebody else wrote after the same API.
//!
//! Runs where `PVEGATE_FAKEPVE` names a Python that has it, as `.ci/run` does. Every read that is offered either answers
//! from the fake's state or stands in `tests/conformance/fakepve/unsupported.txt` with what the fake cannot do.

mod arguments;
mod start;

use std::collections::BTreeMap;

use pvegate_generated::model::Answer;
use pvegate_generated::terms::Role;
use serde_json::{Value, json};
use start::{CLUSTER, Fake, LOCKED_OUT};

use crate::named;

/// What the fake cannot do: `operation: why` or `tool: why`, sorted.
const UNSUPPORTED: &str = include_str!("../conformance/fakepve/unsupported.txt");

/// Why of reads that answer, but from the API's schema alone: the fake has no state behind them.
const MADE_UP: &str = "made up from the schema";

/// Reads the list; a line that says no reason is a mistake.
fn unsupported() -> BTreeMap<&'static str, &'static str> {
    let lines: Vec<&str> = UNSUPPORTED.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.is_sorted(), "unsupported.txt is not sorted");
    let entries = lines.iter().map(|line| {
        let (name, why) = line.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"));
        assert!(why.len() > 10, "no reason: {line}");
        (name, why)
    });
    let entries: BTreeMap<&str, &str> = entries.collect();
    assert_eq!(entries.len(), lines.len(), "unsupported.txt names something twice");
    entries
}

/// Starts the fake, or says why not.
macro_rules! fake {
    () => {
        match Fake::start().await {
            Some(fake) => fake,
            None => {
                println!("skipped: PVEGATE_FAKEPVE names no Python with fakepve; .ci/run makes one");
                return;
            }
        }
    };
}

/// What came of a read or a tool.
enum Came {
    Refused(String),
    MadeUp,
    Kept,
}

#[tokio::test]
async fn every_read_answers_or_is_listed() {
    let fake = fake!();
    let mut came = BTreeMap::new();
    let reads = arguments::offered_reads(&fake.tasks[0]);
    for call in &reads {
        let (name, arguments) = (call.operation.name, Value::Object(call.arguments.clone()));
        let answer = fake.client.read(CLUSTER, name, arguments.clone()).await;
        // These are offered, but where they lead is for a policy that nobody can write yet.
        let mut needed = call.operation.params.iter().filter(|parameter| parameter.required);
        if needed.any(|parameter| parameter.role == Role::Url) {
            assert_eq!(answer.unwrap_err().code, "not_offered", "{name}");
            continue;
        }
        came.insert(
            name,
            match answer {
                Ok(answer) => {
                    let lists = matches!(call.operation.answer, Answer::List(_));
                    assert_eq!(lists, answer["items"].is_array(), "{name}: {answer}");
                    if fake.kept.contains(name) { Came::Kept } else { Came::MadeUp }
                }
                Err(refused) => Came::Refused(format!("{arguments} {}", refused.text())),
            },
        );
    }
    let count = |wanted: fn(&Came) -> bool| came.values().filter(|came| wanted(came)).count();
    let (kept, made_up) = (count(|came| matches!(came, Came::Kept)), count(|came| matches!(came, Came::MadeUp)));
    println!("fakepve: {kept} of {} reads answer from its state, {made_up} from the schema alone", came.len());
    assert!(kept > 70, "{kept}");
    for (tool, arguments) in named::calls(CLUSTER, &reads) {
        match fake.client.tool(tool.name, arguments.clone()).await {
            Ok(answer) => {
                named::fits(tool, &arguments, &answer);
                came.entry(tool.name).or_insert(Came::Kept);
            }
            Err(refused) => drop(came.insert(tool.name, Came::Refused(format!("{arguments} {}", refused.text())))),
        }
    }
    let listed = unsupported();
    let mut wrong: Vec<String> = listed
        .keys()
        .filter(|name| !came.contains_key(*name))
        .map(|name| format!("{name}: is no read that is tried; take it out"))
        .collect();
    for (name, came) in &came {
        match (came, listed.get(name).copied()) {
            (Came::Refused(text), None | Some(MADE_UP)) => wrong.push(format!("{name}: {text}")),
            (Came::MadeUp, None) => wrong.push(format!("{name}: {MADE_UP}")),
            (Came::Kept, Some(why)) => wrong.push(format!("{name}: {why}: it answers; take it out")),
            (Came::MadeUp, Some(why)) if why != MADE_UP => wrong.push(format!("{name}: {why}: is {MADE_UP}")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "unsupported.txt is not what the fake cannot do:\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn guests_are_shown_as_they_are() {
    let fake = fake!();
    let list = fake.client.tool("list_guests", json!({"cluster": CLUSTER})).await.unwrap();
    let columns = ["vmid", "name", "type", "status", "node", "template", "lock", "pool"];
    let rows: Vec<Vec<&Value>> =
        list["items"].as_array().unwrap().iter().map(|row| columns.map(|column| &row[column]).to_vec()).collect();
    let expected = json!([
        [100, "web", "qemu", "running", "pve1", false, null, "shop"],
        [101, "db", "qemu", "stopped", "pve2", false, "backup", null],
        [102, "golden", "qemu", "stopped", "pve2", true, null, null],
        [200, "cache", "lxc", "running", "pve1", false, null, "shop"],
        [201, "build", "lxc", "running", "pve2", false, null, null],
    ]);
    assert_eq!(json!(rows), expected);
    assert_eq!(list["items"][0]["tags"], json!(["prod", "web"]));
    assert!(list["missing"].to_string().contains("pve3"), "a node that is offline is named: {list}");

    let guest = async |vmid: u32| fake.client.tool("get_guest", json!({"cluster": CLUSTER, "vmid": vmid})).await;
    let web = guest(100).await.unwrap();
    assert_eq!((&web["status"], &web["node"]), (&json!("running"), &json!("pve1")));
    assert_eq!(web["config"]["scsi0"], "local-lvm:vm-100-disk-0,size=32G");
    assert_eq!(web["config"]["cores"], 2, "the new number waits for the next start");
    let locked = guest(101).await.unwrap();
    assert_eq!((&locked["lock"], &locked["config"]["lock"]), (&json!("backup"), &json!("backup")));
    let container = guest(200).await.unwrap();
    assert_eq!((&container["type"], &container["config"]["hostname"]), (&json!("lxc"), &json!("cache")));
    assert_eq!(guest(999).await.unwrap_err().code, "not_found");
}

#[tokio::test]
async fn what_it_was_told_is_read_back() {
    let fake = fake!();
    let read = async |operation: &str, arguments: Value| {
        let answer = fake.client.read(CLUSTER, operation, arguments.clone()).await;
        answer.unwrap_or_else(|refused| panic!("{operation} {arguments}: {refused:?}"))
    };
    let column = |answer: &Value, column: &str| -> Vec<String> {
        let rows = answer["items"].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
        rows.iter().map(|row| row[column].as_str().unwrap_or_default().to_owned()).collect()
    };
    let vm = json!({"vmid": 100});
    let pending = read("GET /nodes/{node}/qemu/{vmid}/pending", vm.clone()).await;
    let cores = pending["items"].as_array().unwrap().iter().find(|row| row["key"] == "cores").unwrap();
    assert_eq!((&cores["value"], &cores["pending"]), (&json!("2"), &json!("4")));
    let name = read("GET /nodes/{node}/qemu/{vmid}/agent/get-host-name", vm).await;
    assert!(name["item"].to_string().contains("web.example.test"), "{name}");

    for (vmid, snapshot) in [(100, "before-upgrade"), (200, "clean")] {
        let snapshots = fake.client.tool("list_snapshots", json!({"cluster": CLUSTER, "vmid": vmid})).await.unwrap();
        assert_eq!(column(&snapshots, "name"), [snapshot, "current"]);
    }
    let content = read("GET /nodes/{node}/storage/{storage}/content", json!({"node": "pve1", "storage": "nas"})).await;
    let volumes = column(&content, "volid");
    assert_eq!(
        volumes,
        [
            "nas:backup/vzdump-qemu-100-2026_11_29-02_00_00.vma.zst",
            "nas:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
        ]
    );
    let pools = read("GET /pools", json!({"poolid": "shop"})).await;
    let members: Vec<&Value> = pools["items"][0]["members"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(json!(members), json!(["qemu/100", "lxc/200", "storage/pve1/nas"]));
    assert_eq!(column(&read("GET /cluster/firewall/aliases", json!({})).await, "cidr"), ["198.51.100.0/24"]);
    let rules = read("GET /nodes/{node}/qemu/{vmid}/firewall/rules", json!({"vmid": 100})).await;
    assert_eq!(
        (column(&rules, "dport"), column(&rules, "action")),
        (vec!["443".to_owned()], vec!["ACCEPT".to_owned()])
    );
}

#[tokio::test]
async fn tasks_are_those_that_it_did() {
    let fake = fake!();
    let list = fake.client.tool("list_tasks", json!({"cluster": CLUSTER, "node": "*"})).await.unwrap();
    let mut shown: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|row| row["upid"].as_str().unwrap()).collect();
    let mut done: Vec<&str> = fake.tasks.iter().map(String::as_str).collect();
    shown.sort_unstable();
    done.sort_unstable();
    assert_eq!(shown, done);
    assert!(list["partial"] == true && list["missing"].to_string().contains("pve3"), "{list}");

    let failed = fake.tasks.iter().find(|task| task.contains(":qmstart:101:")).unwrap();
    let arguments = json!({"cluster": CLUSTER, "node": "pve2", "upid": failed});
    let status = fake.client.tool("get_task_status", arguments).await.unwrap();
    assert_eq!((&status["status"], &status["exitstatus"]), (&json!("stopped"), &json!("VM is locked (backup)")));
}

#[tokio::test]
async fn its_refusals_are_told_apart() {
    let fake = fake!();
    let code = async |cluster: &str, operation: &str, arguments: Value| {
        fake.client.read(cluster, operation, arguments).await.unwrap_err().code
    };
    let content = "GET /nodes/{node}/storage/{storage}/content";
    for (cluster, operation, arguments, expected) in [
        (CLUSTER, "GET /nodes/{node}/status", json!({"node": "pve3"}), "node_down"),
        (CLUSTER, content, json!({"node": "pve1", "storage": "attic"}), "not_found"),
        (CLUSTER, "GET /nodes/{node}/qemu/{vmid}/agent/get-host-name", json!({"vmid": 102}), "agent"),
        (CLUSTER, "GET /nodes/{node}/qemu/{vmid}/config", json!({"vmid": 200}), "wrong_kind"),
        (LOCKED_OUT, "GET /version", json!({}), "unauthorized"),
    ] {
        assert_eq!(code(cluster, operation, arguments.clone()).await, expected, "{operation} {arguments}");
    }
}
