//! How a list of resources becomes guests that can be found and paged.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use crate::pve::Kind;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

fn protection() -> Protection {
    Protection { vmids: [Vmid::new(905).unwrap()].into(), tags: ["protected".to_owned()].into() }
}

fn inventory(data: &Value) -> Inventory {
    Inventory::read("lab", &protection(), data).unwrap()
}

fn vmid(number: u32) -> Vmid {
    Vmid::new(number).unwrap()
}

#[test]
fn rows_are_read_whatever_their_types() {
    let list = inventory(&json!([
        {"type": "qemu", "vmid": 200, "node": "pve1", "name": "web", "status": "running", "tags": "ci;Protected", "template": 0, "cpu": 0.5, "mem": 1024, "pool": "lab", "lock": "backup", "diskread": 7},
        {"type": "lxc", "vmid": "100", "node": "pve2", "template": "1"},
        {"type": "qemu", "id": "qemu/905", "node": "pve1", "cpu": "much"},
        {"type": "node", "node": "pve2", "status": "offline"},
        {"type": "node", "node": "pve1", "status": "online"},
        {"type": "storage", "storage": "local", "node": "pve1"},
        {"type": "sdn"},
    ]));
    assert_eq!(list.unreadable(), 0);
    let numbers: Vec<u32> = list.guests().iter().map(|row| row.vmid.get()).collect();
    assert_eq!(numbers, [100, 200, 905]);
    let web = list.guest("lab", vmid(200)).unwrap();
    assert_eq!(
        &*web.json,
        r#"{"cluster":"lab","vmid":200,"name":"web","type":"qemu","status":"running","node":"pve1","tags":["ci","Protected"],"pool":"lab","template":false,"protected":true,"cpu":0.5,"lock":"backup","mem":1024}"#
    );
    assert!(web.has_tag("CI") && !web.has_tag("c"));
    let template = list.guest("lab", vmid(100)).unwrap();
    assert_eq!(
        (template.kind, template.template, template.protected, &*template.status),
        (GuestKind::Lxc, true, true, "unknown")
    );
    assert!(list.guest("lab", vmid(905)).unwrap().protected);
    assert_eq!(list.nodes().first().unwrap().node.as_str(), "pve1");
}

#[test]
fn numbers_in_text_and_empty_text_lose_no_column() {
    let list = inventory(&json!([
        {"type": "lxc", "vmid": "506", "node": "pve1", "disk": "2843205632", "maxdisk": "8388009984", "template": "", "lock": "", "cpu": 0.0048, "uptime": "12.5", "mem": "much"},
        {"type": "lxc", "vmid": 507, "node": "pve1", "template": 1, "tags": null},
        {"type": "lxc", "vmid": 508, "node": "pve1", "template": "perhaps"},
    ]));
    assert_eq!((list.guests().len(), list.unreadable()), (3, 0));
    let row: Value = serde_json::from_str(&list.guest("lab", vmid(506)).unwrap().json).unwrap();
    assert_eq!(
        row,
        json!({"cluster": "lab", "vmid": 506, "name": "", "type": "lxc", "status": "unknown", "node": "pve1", "tags": [], "template": false, "protected": "unknown", "cpu": 0.0048, "disk": 2_843_205_632_u64, "maxdisk": 8_388_009_984_u64, "uptime": 12.5})
    );
    assert!(list.guest("lab", vmid(507)).unwrap().template);
    assert!(list.guest("lab", vmid(508)).unwrap().protected);
}

#[test]
fn a_tag_protects_whatever_stands_between_tags() {
    let list = inventory(&json!([
        {"type": "qemu", "vmid": 101, "node": "pve1", "tags": "prod;Protected"},
        {"type": "qemu", "vmid": 102, "node": "pve1", "tags": "prod,protected"},
        {"type": "qemu", "vmid": 103, "node": "pve1", "tags": "prod protected"},
        {"type": "qemu", "vmid": 104, "node": "pve1", "tags": "unprotected"},
    ]));
    let protected: Vec<u32> =
        list.guests().iter().filter(|guest| guest.protected).map(|guest| guest.vmid.get()).collect();
    assert_eq!(protected, [101, 102, 103]);
}

#[test]
fn a_bad_item_is_counted_and_loses_nothing() {
    let list = inventory(&json!([
        {"type": "qemu", "vmid": 100, "node": "pve1"},
        {"type": "qemu", "vmid": 1, "node": "pve1"},
        {"type": "qemu", "vmid": 101, "node": "../x"},
        {"type": "lxc", "vmid": 102},
        {"vmid": 103}, null, 7, "x",
    ]));
    assert_eq!((list.guests().len(), list.unreadable()), (1, 7));
    assert!(list.guest("lab", vmid(101)).unwrap_err().message().contains("7 entries could not"));
}

#[test]
fn doubtful_guests_are_not_resolved() {
    let list = inventory(&json!([
        {"type": "qemu", "vmid": 100, "node": "pve1"},
        {"type": "lxc", "vmid": 100, "node": "pve2"},
    ]));
    let error = list.guest("lab", vmid(100)).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(error.message().contains("qemu on node pve1, lxc on node pve2"), "{error}");
    assert_eq!(list.guest("lab", vmid(101)).unwrap_err().kind(), Kind::NotFound);
    assert!(inventory(&json!([])).guest("lab", vmid(100)).unwrap_err().message().contains("VM.Audit"));
    assert!(Inventory::read("lab", &protection(), &json!({"a": 1})).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_new_guest_is_found_by_a_second_look() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let snapshot = Snapshot::with("lab", Protection::default(), Duration::from_secs(10), move || {
        let call = counter.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            Ok(if call == 0 { json!([]) } else { json!([{"type": "qemu", "vmid": 100, "node": "pve1"}]) })
        })
    });
    assert!(snapshot.resolve(vmid(100)).await.is_err());
    assert!(snapshot.resolve(vmid(100)).await.is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(snapshot.resolve(vmid(100)).await.unwrap().node.as_str(), "pve1");
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn ten_thousand_guests_are_read_and_found() {
    let items: Vec<Value> = (0..10_000_u32).rev().map(|at| json!({"type": "qemu", "vmid": 100 + at, "node": format!("pve{}", at % 9), "name": format!("vm{at}"), "status": "running", "tags": "a;b", "cpu": 0.1, "mem": 1, "maxmem": 2})).collect();
    let list = inventory(&Value::Array(items));
    assert_eq!(list.guests().len(), 10_000);
    assert!(list.guests().is_sorted_by_key(|row| row.vmid));
    assert_eq!(&*list.guest("lab", vmid(5_100)).unwrap().name, "vm5000");
}
