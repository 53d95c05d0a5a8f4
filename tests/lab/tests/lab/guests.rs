//! Guests change as PVE changes them: what waits, what is locked, what is left of disks.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::client::Bench;

impl Bench {
    /// Sends what begins a task, and says how the task ended.
    pub(crate) async fn task(&self, method: &str, path: &str, form: Option<&str>) -> String {
        let seen = self.send(method, path, form).await;
        let upid = seen.data().as_str().unwrap_or_default().to_owned();
        assert!(upid.starts_with("UPID:"), "{seen:?}");
        let path = format!("/nodes/pve1/tasks/{}/status", utf8_percent_encode(&upid, NON_ALPHANUMERIC));
        loop {
            let status = self.get(&path).await.data();
            if status["status"] == "stopped" {
                return status["exitstatus"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    async fn config(&self, guest: &str) -> Value {
        self.get(&format!("/nodes/pve1/{guest}/config")).await.data()
    }
}

#[tokio::test]
async fn a_digest_protects_and_changes_wait_for_a_restart() {
    let bench = Bench::quick().await;
    let path = "/nodes/pve1/qemu/100/config";
    let before = bench.config("qemu/100").await;
    let stale = format!("cores=8&digest={}", "0".repeat(40));
    assert_eq!(bench.send("PUT", path, Some(&stale)).await.reason, "checksum mismatch (file change by other user?)");
    let fresh = format!("cores=8&name=renamed&digest={}", before["digest"].as_str().unwrap());
    assert_eq!(bench.send("PUT", path, Some(&fresh)).await.status, 200);
    let current = bench.get(&format!("{path}?current=1")).await.data();
    assert_eq!((&current["cores"], &current["name"]), (&json!(2), &json!("renamed")));
    assert_eq!(bench.config("qemu/100").await["cores"], 8);
    assert_ne!(bench.config("qemu/100").await["digest"], before["digest"]);
    assert_eq!(bench.send("PUT", path, Some("revert=cores")).await.status, 200);
    assert_eq!(bench.config("qemu/100").await["cores"], 2);
    assert_eq!(bench.send("PUT", path, Some("cores=4")).await.status, 200);
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu/100/status/reboot", Some("")).await, "OK");
    assert_eq!(bench.get(&format!("{path}?current=1")).await.data()["cores"], 4);
}

#[tokio::test]
async fn refusals_of_a_configuration() {
    let bench = Bench::quick().await;
    let put = |form: &'static str| {
        let bench = &bench;
        async move { bench.send("PUT", "/nodes/pve1/qemu/100/config", Some(form)).await }
    };
    assert_eq!(put("").await.reason, "no options specified");
    assert_eq!(put("delete=nosuch").await.error("delete"), "unknown option 'nosuch'");
    assert_eq!(
        put("delete=name&name=x1").await.error("delete"),
        "you can't use '-name' and -delete name' at the same time"
    );
    assert_eq!(put("args=-x").await.reason, "only root can set 'args' config");
    assert_eq!(put("skiplock=1&name=x1").await.error("skiplock"), "Only root may use this option.");
    assert_eq!(put("boot=order%3Dscsi9").await.reason, "invalid bootorder: device 'scsi9' does not exist'");
    assert_eq!(put("delete=scsi0").await.reason, "can't remove drive 'scsi0' - protection mode enabled");
    assert_eq!(put("protection=0").await.status, 200);
    assert!(put("delete=scsi0").await.error("scsi0").contains("can't unplug bootdisk"));
    let locked = bench.send("PUT", "/nodes/pve1/qemu/104/config", Some("cores=4")).await;
    assert_eq!(locked.reason, "VM is locked (backup)");
}

#[tokio::test]
async fn disks_come_go_grow_and_move() {
    let bench = Bench::quick().await;
    let path = "/nodes/pve1/qemu/100";
    let config = format!("{path}/config");
    assert_eq!(bench.send("PUT", &config, Some("protection=0")).await.status, 200);
    assert_eq!(bench.send("PUT", &config, Some("scsi5=local-lvm%3A2,discard%3Don")).await.status, 200);
    let made = bench.config("qemu/100").await["scsi5"].as_str().unwrap().to_owned();
    assert!(made.ends_with(",discard=on,size=2G"), "{made}");
    assert_eq!(bench.task("PUT", &format!("{path}/resize"), Some("disk=scsi5&size=%2B0.5G")).await, "OK");
    assert!(bench.config("qemu/100").await["scsi5"].as_str().unwrap().ends_with("size=2560M"));
    let shrunk = bench.task("PUT", &format!("{path}/resize"), Some("disk=scsi5&size=1G")).await;
    assert_eq!(shrunk, "shrinking disks is not supported");
    assert_eq!(bench.send("PUT", &config, Some("delete=scsi5")).await.status, 200);
    let left = bench.config("qemu/100").await;
    let volume = made.split(',').next().unwrap();
    assert_eq!((left.get("scsi5"), left["unused0"].as_str()), (None, Some(volume)));
    assert_eq!(bench.send("PUT", &config, Some("delete=unused0")).await.status, 200);
    let gone = bench.send("PUT", &config, Some(&format!("scsi5={}", volume.replace(':', "%3A")))).await;
    assert_eq!(gone.reason, format!("volume '{volume}' does not exist"));
}

#[tokio::test]
async fn snapshots_form_a_tree() {
    let bench = Bench::quick().await;
    let path = "/nodes/pve1/qemu/100/snapshot";
    assert_eq!(bench.task("POST", path, Some("snapname=third")).await, "OK");
    assert_eq!(bench.task("POST", path, Some("snapname=third")).await, "snapshot name 'third' already used");
    let parent = |rows: Vec<Value>, name: &str| {
        rows.into_iter().find(|row| row["name"] == name).unwrap_or_default()["parent"].clone()
    };
    assert_eq!(parent(bench.get(path).await.rows(), "third"), "after_upgrade");
    assert_eq!(bench.task("DELETE", &format!("{path}/after_upgrade"), None).await, "OK");
    assert_eq!(parent(bench.get(path).await.rows(), "third"), "before-upgrade");
    assert_eq!(bench.task("POST", &format!("{path}/before-upgrade/rollback"), Some("")).await, "OK");
    assert_eq!(parent(bench.get(path).await.rows(), "current"), "before-upgrade");
    let missing = bench.task("POST", &format!("{path}/nosuch/rollback"), Some("")).await;
    assert_eq!(missing, "snapshot 'nosuch' does not exist");
}

#[tokio::test]
async fn a_template_outlives_nothing_that_builds_on_it() {
    let bench = Bench::quick().await;
    assert_eq!(bench.task("POST", "/nodes/pve1/qemu/103/clone", Some("newid=900&name=linked")).await, "OK");
    let disk = bench.config("qemu/900").await["scsi0"].as_str().unwrap().to_owned();
    assert!(disk.starts_with("local-lvm:base-103-disk-0/vm-900-disk-0,"), "{disk}");
    let refused = bench.send("DELETE", "/nodes/pve1/qemu/103", None).await;
    assert_eq!(refused.status, 200);
    let kept = bench.task("DELETE", "/nodes/pve1/qemu/103", None).await;
    assert_eq!(kept, "base volume 'local-lvm:base-103-disk-0' is still in use by linked cloned");
    let full = bench.send("POST", "/nodes/pve1/qemu/101/clone", Some("newid=901&full=0")).await;
    assert!(full.reason.starts_with("Linked clone feature is not supported for"), "{full:?}");
}

#[tokio::test]
async fn the_agent_tells_the_end_of_a_program_once() {
    let bench = Bench::quick().await;
    let agent = "/nodes/pve1/qemu/100/agent";
    let began = bench.send("POST", &format!("{agent}/exec"), Some("command=echo&command=hi")).await.data();
    let status = format!("{agent}/exec-status?pid={}", began["pid"]);
    let end = bench.get(&status).await.data();
    assert_eq!((&end["exited"], &end["out-data"]), (&json!(1), &json!("hi\n")));
    assert_eq!(bench.get(&status).await.reason, "Agent error: PID ld does not exist");
    let missing = bench.send("POST", &format!("{agent}/exec"), Some("command=nosuch")).await;
    assert_eq!((missing.status, missing.reason.as_str()), (596, "Broken pipe"));
    assert_eq!(
        bench.send("POST", &format!("{agent}/file-write"), Some("file=/root/a&content=%C3%BC")).await.status,
        200
    );
    let read = bench.get(&format!("{agent}/file-read?file=/root/a")).await.data();
    assert_eq!((&read["content"], &read["bytes-read"]), (&json!("ü"), &json!(1)));
}
