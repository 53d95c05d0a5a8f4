//! Tasks are work that goes on.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::client::Bench;

#[tokio::test]
async fn a_running_task_makes_progress() {
    let bench = Bench::quick().await;
    let active = bench.get("/nodes/pve1/tasks?source=active").await.rows();
    assert_eq!(active.len(), 1);
    assert_eq!(active[0]["status"], "RUNNING");
    let upid = utf8_percent_encode(active[0]["upid"].as_str().unwrap(), NON_ALPHANUMERIC).to_string();
    let status = bench.get(&format!("/nodes/pve1/tasks/{upid}/status")).await.data();
    assert_eq!(status["status"], "running");
    assert!(status.get("exitstatus").is_none());
    let path = format!("/nodes/pve1/tasks/{upid}/log?limit=1");
    let total = || async { bench.get(&path).await.json()["total"].as_u64().unwrap() };
    let before = total().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(total().await > before);
}

#[tokio::test]
async fn starting_and_stopping_a_guest_are_tasks() {
    let bench = Bench::quick().await;
    let run = |verb: &'static str, vmid: u32| {
        let bench = &bench;
        async move {
            let seen = bench.send("POST", &format!("/nodes/pve1/qemu/{vmid}/status/{verb}"), Some("")).await;
            assert_eq!(seen.status, 200, "{seen:?}");
            let upid = seen.data().as_str().unwrap().to_owned();
            let path = format!("/nodes/pve1/tasks/{}/status", utf8_percent_encode(&upid, NON_ALPHANUMERIC));
            loop {
                let status = bench.get(&path).await.data();
                if status["status"] == "stopped" {
                    return status["exitstatus"].as_str().unwrap().to_owned();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    assert_eq!(run("stop", 100).await, "OK");
    assert_eq!(bench.get("/nodes/pve1/qemu/100/status/current").await.data()["status"], "stopped");
    assert_eq!(run("start", 100).await, "OK");
    assert_eq!(run("start", 100).await, "VM 100 already running");
    assert_eq!(run("start", 103).await, "you can't start a vm if it's a template");
    assert_eq!(run("start", 104).await, "VM is locked (backup)");
}

#[tokio::test]
async fn tasks_that_are_not_there() {
    let bench = Bench::quick().await;
    let ghost = "/nodes/pve1/tasks/UPID:pve1:00000001:00000001:00000001:nosuch::root@pam:";
    assert_eq!(bench.get(&format!("{ghost}/status")).await.error("upid"), "no such task");
    let log = bench.get(&format!("{ghost}/log")).await.json();
    assert_eq!(log["total"], 1);
    assert_eq!(log["data"][0]["t"], "unable to open file - No such file or directory");
    assert_eq!(bench.get("/nodes/pve1/tasks/garbage/status").await.error("upid"), "unable to parse worker upid");
}

#[tokio::test]
async fn a_stopped_lab_is_gone() {
    let bench = Bench::quick().await;
    assert_eq!(bench.get("/version").await.status, 200);
    let Bench { lab, client } = bench;
    let url = format!("{}/api2/json/version", lab.url());
    lab.stop().await;
    assert!(client.get(&url).send().await.is_err());
}
