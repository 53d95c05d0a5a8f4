//! How a task went: the exit status, and what its type of task says beside it.

use lab::Arrange;
use serde_json::{Value, json};
use tests::site::Site;

use super::{looks, now, outcome_of, put, upid, wait, write};

/// C001: warnings are no failure, and are shown.
#[tokio::test]
async fn warnings_are_neither_failure_nor_silence() {
    let site = Site::start().await;
    let lines =
        ["generating cloud-init ISO", "WARN: no efidisk configured! Using temporary efivars disk.", "TASK WARNINGS: 1"];
    let told = outcome_of(&site, "qmstart", "100", "WARNINGS: 1", &lines).await;
    assert_eq!(told["outcome"], "ok_with_warnings");
    assert_eq!(told["exitstatus"], "WARNINGS: 1");
    assert_eq!(told["warnings"], json!([lines[1]]));
    assert_eq!(told["log_tail"], json!(lines));
    assert_eq!(told["untrusted"], json!(["exitstatus", "log_tail", "warnings"]));
    assert_eq!(looks(&site).len(), 1);
    assert!(site.lab.journal().iter().all(|entry| entry.method == "GET"), "following changes nothing");
}

#[tokio::test]
async fn all_that_is_known_of_a_task_is_told() {
    let site = Site::start().await;
    let told = outcome_of(&site, "qmclone", "1003", "OK", &["TASK OK"]).await;
    assert_eq!(
        told,
        json!({
            "cluster": "lab",
            "upid": upid("01665026", "qmclone", "1003"),
            "outcome": "ok",
            "exitstatus": "OK",
            "type": "qmclone",
            "id": "1003",
            "node": "pve1",
            "user": "svc@pve",
            "tokenid": "tok",
            "started": 0x6380_71CE,
            "ended": 0x6380_71CE + 9,
            "log_tail": ["TASK OK"],
            "untrusted": ["exitstatus", "log_tail"],
        })
    );
}

/// C009: what PVE accepted may still fail, and says why.
#[tokio::test]
async fn an_accepted_task_that_failed_says_why() {
    let site = Site::start().await;
    let accepted = write(&site.lab, "/nodes/pve1/qemu/104/snapshot", "snapname=before").await;
    let told = wait(&site, accepted.as_str().unwrap(), 20).await.unwrap();
    assert_eq!((&told["outcome"], &told["exitstatus"]), (&json!("failed"), &json!("VM is locked (backup)")));
    assert_eq!(told["log_tail"], json!(["TASK ERROR: VM is locked (backup)"]));
    assert!(told.get("next").is_none(), "{told}");
}

#[tokio::test]
async fn ends_that_are_no_ordinary_failures_are_explained() {
    let site = Site::start().await;
    for (worker, status, outcome, said) in [
        ("qmshutdown", "received interrupt", "failed", "interrupted"),
        ("vzdump", "interrupted by signal", "failed", "interrupted"),
        ("vzdump", "job errors", "failed", "at least one guest"),
        ("vncproxy", "connection timed out", "failed", "nobody connected"),
        ("qmshutdown", "unexpected status", "unknown", "killed"),
    ] {
        let told = outcome_of(&site, worker, "100", status, &[]).await;
        assert_eq!((&told["outcome"], &told["exitstatus"]), (&json!(outcome), &json!(status)));
        assert!(told["says"].as_str().is_some_and(|says| says.contains(said)), "{told}");
        assert_eq!(told.get("next").is_some(), outcome == "unknown", "{told}");
    }
}

#[tokio::test]
async fn an_interrupted_task_of_the_lab_is_told_as_one() {
    let site = Site::start().await;
    let active = site.client.tool("list_tasks", json!({"node": "pve1", "source": "active"})).await.unwrap();
    let running = active["items"][0]["upid"].as_str().unwrap().to_owned();
    assert_eq!(now(&site, &running).await.unwrap()["outcome"], "running");
    site.lab.arrange(Arrange::NoTasks);
    put(&site.lab, &running, Some("received interrupt"), &["TASK ERROR: received interrupt"]);
    assert_eq!(now(&site, &running).await.unwrap()["outcome"], "failed");
}

/// C003: for a backup the lines about guests count more than the status.
#[tokio::test]
async fn a_backup_that_lost_a_guest_failed_whatever_its_status_says() {
    let site = Site::start().await;
    let efi = "WARN: EFI disk without enrolled certificates";
    let failed = "ERROR: Backup of VM 101 failed - unable to find VM '101'";
    for (status, log, outcome) in [
        ("WARNINGS: 3", vec![efi, "INFO: Finished Backup of VM 100 (00:00:07)"], "ok_with_warnings"),
        ("WARNINGS: 3", vec![efi, failed, "INFO: Finished Backup of VM 100 (00:00:07)"], "failed"),
        ("OK", vec![failed], "failed"),
        ("job errors", vec![failed], "failed"),
    ] {
        let told = outcome_of(&site, "vzdump", "", status, &log).await;
        assert_eq!((&told["outcome"], &told["exitstatus"]), (&json!(outcome), &json!(status)));
        assert_eq!(told["failures"] == json!([failed]), outcome == "failed", "{told}");
        assert_eq!(told["warnings"] == json!([efi]), log.contains(&efi), "{told}");
    }
}

/// Far back in a long log too.
#[tokio::test]
async fn a_lost_guest_is_found_anywhere_in_a_log() {
    let site = Site::start().await;
    let failed = "ERROR: Backup of VM 101 failed - no space left on device";
    let mut log = vec!["INFO: status"; 12_000];
    log[7_000] = failed;
    let told = outcome_of(&site, "vzdump", "", "WARNINGS: 1", &log).await;
    assert_eq!((&told["outcome"], &told["failures"]), (&json!("failed"), &json!([failed])));
    assert_eq!(told["log_tail"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn what_ok_does_not_tell_is_said() {
    let site = Site::start().await;
    let forced = ["VM quit/powerdown failed - terminating now with SIGTERM", "TASK OK"];
    for (worker, log, outcome, said) in [
        ("imgdel", vec!["TASK OK"], "ok", "did not exist"),
        ("qmshutdown", forced.to_vec(), "ok", "by force"),
        (
            "reloadnetworkall",
            vec!["command 'pvesh set /nodes/pve1/network' failed: exit code 255"],
            "failed",
            "failures",
        ),
    ] {
        let told = outcome_of(&site, worker, "100", "OK", &log).await;
        assert_eq!((&told["outcome"], &told["exitstatus"]), (&json!(outcome), &json!("OK")), "{worker}");
        assert!(told["says"].as_str().is_some_and(|says| says.contains(said)), "{told}");
    }
}

/// C011: the task of a request to the HA manager ends long before the guest has done anything.
#[tokio::test]
async fn a_request_to_the_ha_manager_is_followed_to_the_guest() {
    let site = Site::start().await;
    write(&site.lab, "/cluster/ha/resources", "sid=vm:100&state=started").await;
    let lately = format!("{:08X}", seconds());
    let stop = format!("UPID:pve1:0008366C:01665026:{lately}:hastop:100:svc@pve!tok:");
    put(&site.lab, &stop, Some("OK"), &["Requesting HA stop for VM 100", "TASK OK"]);
    let told = now(&site, &stop).await.unwrap();
    assert_eq!((&told["outcome"], &told["exitstatus"]), (&json!("running"), &json!("OK")), "{told}");
    assert_eq!(told["guest"]["status"], "running");
    assert!(told["guest"]["hastate"].is_string(), "{told}");
    assert!(told["says"].as_str().unwrap().contains("guest 100 is running"), "{told}");
    let (told, ()) = tokio::join!(wait(&site, &stop, 20), async {
        super::until("the guest is asked about again", || {
            let asked =
                site.sent().iter().filter(|entry| entry.decoded_path.ends_with("/qemu/100/status/current")).count();
            asked > 1
        })
        .await;
        site.lab.arrange(Arrange::Running { vmid: 100, running: false });
    });
    let told = told.unwrap();
    assert_eq!((&told["outcome"], &told["guest"]["status"]), (&json!("ok"), &json!("stopped")), "{told}");
}

#[tokio::test]
async fn what_the_ha_manager_did_not_do_is_not_called_done() {
    let site = Site::start().await;
    let lately = format!("{:08X}", seconds());
    let task = |worker: &str, started: &str| format!("UPID:pve1:0008366C:01665026:{started}:{worker}:100:svc@pve!tok:");
    let moved = |node: &str| format!("Requesting HA migration for VM 100 to node {node}");
    for (upid, log, outcome, next) in [
        // Long ago, and the guest runs.
        (task("hastop", "638071CE"), "Requesting HA stop for VM 100".to_owned(), "not_achieved", true),
        (task("hastart", "638071CE"), "Requesting HA start for VM 100".to_owned(), "ok", false),
        (task("hamigrate", &lately), moved("pve1"), "ok", false),
        (task("hamigrate", &lately), moved("pve3"), "running", true),
        (task("hamigrate", "638071CE"), moved("pve3"), "not_achieved", true),
        (task("hamigrate", &lately), "something else".to_owned(), "unknown", true),
    ] {
        put(&site.lab, &upid, Some("OK"), &[&log, "TASK OK"]);
        let told = now(&site, &upid).await.unwrap();
        assert_eq!(told["outcome"], outcome, "{told}");
        assert_eq!(told.get("next").is_some(), next, "{told}");
    }
    // One that failed by itself asked for nothing.
    let failed = task("hastop", &lately);
    put(&site.lab, &failed, Some("no such resource 'vm:100'"), &[]);
    let told = now(&site, &failed).await.unwrap();
    assert_eq!((&told["outcome"], told.get("guest")), (&json!("failed"), None::<&Value>));
}

/// Seconds since 1970.
fn seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
