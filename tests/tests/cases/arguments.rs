//! Theme H: how arguments are written for PVE, and what no release of it would take.

use lab::{FrontOptions, Options, Profile};
use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Offered, Place};
use pvegate_generated::terms::{Release, Tier};
use serde_json::{Value, json};
use tests::site::{CLUSTER, Site, quick};
use tests::upstream::{Script, Upstream, data};

/// C073: whatever form a boolean is given in, PVE gets 1 or 0.
#[tokio::test]
async fn booleans_are_1_and_0() {
    let users = json!([{"userid": "a@pve", "enable": "1"}, {"userid": "b@pve", "enable": 0}]);
    let resources = json!([{"type": "qemu", "id": "qemu/100", "vmid": 100, "node": "node-a", "status": "running"}]);
    let script = Script::new(&resources)
        .on("GET /nodes/node-a/qemu/100/config", data(&json!({"name": "x"})))
        .on("GET /access/users", data(&users));
    let upstream = Upstream::start(script).await;
    for (given, sent) in [(json!(true), "1"), (json!(false), "0"), (json!(1), "1"), (json!("0"), "0")] {
        let arguments = json!({"vmid": 100, "current": given});
        upstream.client.read("lab", "GET /nodes/{node}/qemu/{vmid}/config", arguments).await.unwrap();
        let last = upstream.sent().pop().unwrap();
        assert_eq!(last, format!("GET /nodes/node-a/qemu/100/config?current={sent}"));
    }
    for wrong in [json!("yes"), json!("on"), json!(2), json!("")] {
        let before = upstream.sent().len();
        let arguments = json!({"vmid": 100, "current": wrong});
        let refused = upstream.client.read("lab", "GET /nodes/{node}/qemu/{vmid}/config", arguments).await.unwrap_err();
        assert_eq!((refused.code.as_str(), upstream.sent().len()), ("invalid_arguments", before), "{wrong}");
    }
}

/// C022, C077: what is not given is not sent, and nothing is sent empty.
#[tokio::test]
async fn nothing_is_sent_empty() {
    let upstream = Upstream::start(Script::new(&json!([])).on("GET /nodes/node-a/tasks", data(&json!([])))).await;
    let operation = "GET /nodes/{node}/tasks";
    upstream.client.read("lab", operation, json!({"node": "node-a"})).await.unwrap();
    assert_eq!(upstream.sent(), ["GET /nodes/node-a/tasks"]);
    for nothing in [json!(null), json!("")] {
        let arguments = json!({"node": "node-a", "userfilter": nothing});
        let answer = upstream.client.read("lab", operation, arguments).await;
        assert!(answer.is_err() || upstream.sent().iter().all(|line| !line.contains("userfilter")), "{answer:?}");
    }
}

/// C034: a list that takes long is waited for.
#[tokio::test]
async fn a_slow_list_is_waited_for() {
    let site = Site::with(quick(), FrontOptions::default()).await;
    site.lab.set_fault("slow:6@GET /nodes/{node}/qemu".parse().unwrap()).await;
    let rows = site.client.read(CLUSTER, "GET /nodes/{node}/qemu", json!({"node": "pve1"})).await.unwrap();
    assert!(!rows["items"].as_array().unwrap().is_empty());
}

/// C084: what an older release lacks is refused before it is sent, with the release that has it.
#[tokio::test]
async fn an_older_release_is_asked_only_for_what_it_has() {
    let site = Site::with(Options { profile: Profile::Old, ..quick() }, FrontOptions::default()).await;
    let reads = || OPERATIONS.iter().filter(|read| read.tier == Tier::Read && matches!(read.offered, Offered::Yes));
    let plain = |name: &str| match name {
        "node" => json!("pve1"),
        "vmid" => json!(100),
        _ => json!("lab"),
    };
    let mut refused = 0;
    for operation in reads().filter(|read| !read.releases.contains(Release::R8_4)) {
        let path = operation.params.iter().filter(|parameter| parameter.place == Place::Path);
        let by_vmid = operation.path.contains("{vmid}");
        let arguments: serde_json::Map<String, Value> = path
            .filter(|parameter| !(by_vmid && parameter.name == "node"))
            .map(|parameter| (parameter.name.to_owned(), plain(parameter.name)))
            .collect();
        let answer = site.client.read(CLUSTER, operation.name, Value::Object(arguments)).await.unwrap_err();
        if answer.code == "not_offered" {
            assert!(
                answer.message.contains("8.4") && answer.message.contains(operation.releases.first.as_str()),
                "{answer:?}"
            );
            refused += 1;
        } else {
            // The guest that it needs may be of the other kind.
            assert!(["wrong_kind", "not_found"].contains(&answer.code.as_str()), "{}: {answer:?}", operation.name);
        }
    }
    assert!(refused > 10, "{refused}");
    // A parameter that 8.4 lacks, of an operation that it has.
    let operation = "GET /nodes/{node}/capabilities/qemu/cpu";
    let arguments = json!({"node": "pve1", "arch": "x86_64"});
    let answer = site.client.read(CLUSTER, operation, arguments.clone()).await.unwrap_err();
    assert_eq!(answer.code, "invalid_arguments", "{answer:?}");
    assert!(answer.message.contains("arch") && answer.message.contains("9."), "the release that has it: {answer:?}");
    site.nothing_sent();
    let present = Site::with(quick(), FrontOptions::default()).await;
    present.client.read(CLUSTER, operation, arguments).await.unwrap();
}
