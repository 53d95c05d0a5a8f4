//! Request views and arguments: there and back, families spelled out, secrets unprinted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use pvegate_generated::requests::property_strings::QemuNet;
use pvegate_generated::requests::qemu::{PostNodesQemu, PostNodesQemuStatusStart};
use pvegate_generated::requests::{Property, Request, Secret};
use serde_json::{Map, Value, json};

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

#[test]
fn what_is_not_given_is_left_out() {
    let start = PostNodesQemuStatusStart::new("pve1".to_owned(), 600);
    assert_eq!(PostNodesQemuStatusStart::OPERATION, "POST /nodes/{node}/qemu/{vmid}/status/start");
    assert_eq!(start.arguments().unwrap(), map(json!({"node": "pve1", "vmid": 600})));
}

#[test]
fn families_are_spelled_out_and_gathered_again() {
    let arguments = map(
        json!({"node": "pve1", "vmid": 600, "net0": "virtio,bridge=vmbr0", "net12": {"model": "virtio", "bridge": "vmbr1"}, "allow-ksm": true}),
    );
    let create = PostNodesQemu::from_arguments(arguments.clone()).unwrap();
    assert_eq!(create.net[&0], Property::Written("virtio,bridge=vmbr0".to_owned()));
    assert!(matches!(&create.net[&12], Property::Keys(QemuNet { bridge: Some(bridge), .. }) if bridge == "vmbr1"));
    assert_eq!(create.arguments().unwrap(), arguments);
}

#[test]
fn serde_and_arguments_say_the_same() {
    let arguments = map(json!({"node": "pve1", "vmid": 600, "scsi0": "local-lvm:8", "cores": 2}));
    let create = PostNodesQemu::from_arguments(arguments).unwrap();
    let text = serde_json::to_string(&create).unwrap();
    assert_eq!(serde_json::from_str::<PostNodesQemu>(&text).unwrap(), create);
}

#[test]
fn what_an_operation_does_not_have_is_refused() {
    for (name, value) in
        [("no-such", json!(1)), ("net32", json!("virtio")), ("net[n]", json!({"0": "virtio"})), ("digest", json!("0"))]
    {
        let mut arguments = map(json!({"node": "pve1", "vmid": 600}));
        arguments.insert(name.to_owned(), value);
        let error = PostNodesQemu::from_arguments(arguments).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let error = PostNodesQemu::from_arguments(map(json!({"node": "pve1", "vmid": 600, "bios": "uefi"})))
        .unwrap_err()
        .to_string();
    assert!(error.contains("`uefi` is none of seabios, ovmf"), "{error}");
}

#[test]
fn secrets_are_sent_and_not_printed() {
    let mut create = PostNodesQemu::new("pve1".to_owned(), 600);
    create.cipassword = Some(Secret::new("canary"));
    create.net.insert(0, Property::Written("canary".to_owned()));
    assert!(!format!("{create:?}").contains("canary"), "{create:?}");
    assert_eq!(create.arguments().unwrap()["cipassword"], "canary");
}

#[test]
fn schemas_come_from_the_catalog() {
    let schema = schemars::schema_for!(PostNodesQemu).to_value();
    assert_eq!(schema["required"], json!(["node", "vmid"]));
    assert_eq!(schema["properties"]["net[n]"]["type"], "object");
    assert_eq!(schema["properties"]["net[n]"]["additionalProperties"]["type"], json!(["object", "string"]));
    assert!(schema["properties"].get("digest").is_none());
}
