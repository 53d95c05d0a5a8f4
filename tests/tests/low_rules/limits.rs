//! Caps, room, and what grows.

use super::{Rules, on};
use lab::Fault;
use serde_json::json;

#[tokio::test]
async fn caps_are_totals_over_what_the_grant_selects() {
    let rules = Rules::start().await;
    // Guest 122 has 3072 MiB and 48 GiB; 4096 MiB, 60 GiB and two guests are the most.
    let vm = |memory: u32, disk: u32| json!({"node": "pve1", "vmid": 600, "memory": memory, "scsi0": format!("local-lvm:{disk}")});
    rules.acts("capped", on::CREATE, vm(1024, 12)).await;
    rules.refused("capped", on::CREATE, vm(1025, 12), "over_cap", "max_memory_mib").await;
    rules.refused("capped", on::CREATE, vm(1024, 13), "over_cap", "max_disk_gib").await;
    rules.acts("capped", on::CONFIG, json!({"vmid": 122, "memory": "4096"})).await;
    rules.refused("capped", on::CONFIG, json!({"vmid": 122, "memory": "4097"}), "over_cap", "4097").await;
    rules.acts("capped", on::CONFIG, json!({"vmid": 122, "memory": "512"})).await;
    rules.acts("capped", on::RESIZE, json!({"vmid": 122, "disk": "scsi0", "size": "+12G"})).await;
    rules.refused("capped", on::RESIZE, json!({"vmid": 122, "disk": "scsi0", "size": "+13G"}), "over_cap", "61").await;
    rules.refused("capped", on::CLONE, json!({"vmid": 122, "newid": 600}), "over_cap", "max_").await;
    rules.refused("capped", on::SNAPSHOT, json!({"vmid": 122, "snapname": "s1"}), "over_cap", "max_snapshots").await;
    rules.acts("narrow", on::SNAPSHOT, json!({"vmid": 122, "snapname": "s1"})).await;
}

#[tokio::test]
async fn a_disk_only_grows_and_is_one_that_is_there() {
    let rules = Rules::start().await;
    rules.acts("narrow", on::RESIZE, json!({"vmid": 122, "disk": "scsi0", "size": "+1G"})).await;
    rules
        .refused("narrow", on::RESIZE, json!({"vmid": 122, "disk": "scsi0", "size": "100G"}), "needs_a_plan", "size")
        .await;
    rules
        .refused(
            "narrow",
            on::RESIZE,
            json!({"vmid": 122, "disk": "scsi7", "size": "+1G"}),
            "invalid_arguments",
            "scsi7",
        )
        .await;
    rules
        .refused("wide", on::RESIZE, json!({"vmid": 122, "disk": "scsi0", "size": "+900000G"}), "no_space", "local-lvm")
        .await;
}

/// C069: where the memory would be kept has to be known to have room for it.
#[tokio::test]
async fn saving_memory_takes_room() {
    let rules = Rules::start().await;
    let snapshot = json!({"vmid": 122, "snapname": "s1", "vmstate": true});
    let write = rules.acts("narrow", on::SNAPSHOT, snapshot.clone()).await;
    assert!(write.interrupts(), "it holds the guest while its memory is saved");
    rules.lab.set_fault("full-storage:local-lvm".parse::<Fault>().unwrap()).await;
    rules.refused("narrow", on::SNAPSHOT, snapshot, "no_space", "local-lvm").await;
    assert!(!rules.acts("narrow", on::SNAPSHOT, json!({"vmid": 122, "snapname": "s1"})).await.interrupts());
}

#[tokio::test]
async fn a_backup_is_of_one_guest_on_a_granted_storage() {
    let rules = Rules::start().await;
    let write = rules.acts("narrow", on::BACKUP, json!({"vmid": "122", "storage": "local"})).await;
    assert_eq!(write.args.get("mode").unwrap().wire(), "snapshot");
    assert_eq!(write.args.get("remove").unwrap().wire(), "0");
    assert!(!write.interrupts());
    assert!(
        rules.acts("narrow", on::BACKUP, json!({"vmid": "122", "storage": "local", "mode": "stop"})).await.interrupts()
    );
    rules.refused("narrow", on::BACKUP, json!({"vmid": "122,110", "storage": "local"}), "needs_a_plan", "one").await;
    rules.refused("narrow", on::BACKUP, json!({"storage": "local"}), "needs_a_plan", "one").await;
    rules.refused("narrow", on::BACKUP, json!({"vmid": "122"}), "invalid_arguments", "storage").await;
    rules.refused("narrow", on::BACKUP, json!({"vmid": "122", "storage": "nas"}), "not_found", "nas").await;
    rules.refused("narrow", on::BACKUP, json!({"vmid": "115", "storage": "local"}), "not_found", "115").await;
    for more in ["all", "prune-backups", "dumpdir", "script", "stop", "exclude", "fleecing"] {
        rules
            .refused("wide", on::BACKUP, json!({"vmid": "122", "storage": "local", more: "1"}), "needs_a_plan", more)
            .await;
    }
}

#[tokio::test]
async fn what_only_those_may_who_may_stop() {
    let rules = Rules::start().await;
    rules.acts("gentle", on::SHUTDOWN, json!({"vmid": 122, "timeout": 60})).await;
    rules.refused("gentle", on::SHUTDOWN, json!({"vmid": 122, "forceStop": true}), "not_granted", "forceStop").await;
    rules.acts("gentle", on::SHUTDOWN, json!({"vmid": 122, "forceStop": false})).await;
    rules.acts("wide", on::SHUTDOWN, json!({"vmid": 122, "forceStop": true})).await;
}

#[tokio::test]
async fn a_volume_is_a_granted_guests() {
    let rules = Rules::start().await;
    let volume = |volume: &str, protected: bool| json!({"node": "pve1", "storage": "nas", "volume": volume, "protected": protected});
    let backup = "nas:backup/vzdump-qemu-100-2026_11_29-02_00_00.vma.zst";
    rules.acts("wide", on::VOLUME, volume(backup, true)).await;
    rules.refused("wide", on::VOLUME, volume(backup, false), "needs_a_plan", "protected").await;
    rules.refused("narrow", on::VOLUME, volume(backup, true), "not_found", "nas").await;
    let image = json!({"node": "pve1", "storage": "local", "volume": "local:iso/virtio-win-0.1.285.iso", "notes": "x"});
    rules.refused("wide", on::VOLUME, image, "needs_a_plan", "no guest").await;
    let others = json!({"node": "pve1", "storage": "local", "volume": "local:backup/vzdump-qemu-115-2026_11_29-02_00_00.vma.zst", "notes": "x"});
    rules.refused("narrow", on::VOLUME, others, "not_found", "115").await;
}

/// Somebody else's task and one that there never was are refused in the same words, even to who reaches everything.
#[tokio::test]
async fn a_task_is_stopped_by_who_started_it() {
    let rules = Rules::start().await;
    let refused = |upid: &'static str| {
        let rules = &rules;
        async move { rules.refused("wide", on::STOP_TASK, json!({"node": "pve1", "upid": upid}), "not_found", "task").await }
    };
    let other = rules.lab.journal().len();
    let one = "UPID:pve1:00001234:00000012:6A000000:vzdump:101:root@pam:";
    let two = "UPID:pve1:00001235:00000012:6A000000:vzdump:999:root@pam:";
    assert_eq!(refused(one).await.message.replace(one, "T"), refused(two).await.message.replace(two, "T"));
    assert!(other <= rules.lab.journal().len());
}
