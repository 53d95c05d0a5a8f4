//! Storages, the files on them, and pools.

use serde_json::{Value, json};

use crate::clock;
use crate::state::guest::{Kind, object};
use crate::state::storage::{Storage, Volume};
use crate::state::{Cluster, Pool};

pub(super) fn seed(cluster: &mut Cluster) {
    let storage =
        |config: Value, gib: u64, broken: Option<String>| Storage { config: object(config), total: gib << 30, broken };
    let share_password = cluster.secrets.of("cifs-mount-password");
    let mount = format!(
        "mount error: command 'mount -t cifs //nas.lab.test/old /mnt/pve/nas-old -o username=backup,password={share_password}' failed: exit code 32"
    );
    let mut add = |name: &str, storage: Storage| {
        cluster.storages.insert(name.to_owned(), storage);
    };
    add(
        "local",
        storage(
            json!({"type": "dir", "path": "/var/lib/vz", "content": "iso,vztmpl,backup,snippets,import", "prune-backups": "keep-all=1"}),
            94,
            None,
        ),
    );
    add(
        "local-lvm",
        storage(
            json!({"type": "lvmthin", "vgname": "pve", "thinpool": "data", "content": "images,rootdir"}),
            1800,
            None,
        ),
    );
    add(
        "nas",
        storage(
            json!({"type": "nfs", "server": "nas.lab.test", "export": "/export/pve", "path": "/mnt/pve/nas", "content": "backup,iso", "options": "vers=4.2,soft", "prune-backups": "keep-daily=7,keep-last=3"}),
            8000,
            None,
        ),
    );
    add(
        "nas-old",
        storage(
            json!({"type": "cifs", "server": "nas.lab.test", "share": "old", "path": "/mnt/pve/nas-old", "content": "backup", "username": "backup", "options": format!("vers=3.1.1,username=backup,password={share_password}")}),
            0,
            Some(mount),
        ),
    );
    add(
        "pbs",
        storage(
            json!({"type": "pbs", "server": "pbs.lab.test", "datastore": "lab", "username": "pve@pbs!lab", "fingerprint": "0A:1B:2C:3D:4E:5F:60:71:82:93:A4:B5:C6:D7:E8:F9:0A:1B:2C:3D:4E:5F:60:71:82:93:A4:B5:C6:D7:E8:F9", "content": "backup", "namespace": "lab"}),
            16_000,
            None,
        ),
    );
    add(
        "archive",
        storage(
            json!({"type": "dir", "path": "/srv/archive", "content": "backup", "disable": 1, "nodes": "pve2"}),
            2000,
            None,
        ),
    );

    files(cluster);
    pools(cluster);
}

fn files(cluster: &mut Cluster) {
    let now = clock::now();
    let file = |storage: &str, name: &str, content: &str, format: &str, mib: u64| Volume {
        storage: storage.to_owned(),
        name: name.to_owned(),
        content: content.to_owned(),
        format: format.to_owned(),
        size: mib << 20,
        used: None,
        vmid: None,
        subtype: None,
        ctime: now - 86_400 * 30,
        notes: None,
        protected: false,
    };
    cluster.volumes = vec![
        file("local", "iso/debian-13.2.0-amd64-netinst.iso", "iso", "iso", 754),
        file("local", "iso/virtio-win-0.1.285.iso", "iso", "iso", 753),
        file("nas", "iso/Ubuntu_24.04 (server).iso", "iso", "iso", 2700),
        file("local", "vztmpl/debian-13-standard_13.1-2_amd64.tar.zst", "vztmpl", "tzst", 124),
        file("local", "vztmpl/alpine-3.22-default_20250617_amd64.tar.xz", "vztmpl", "txz", 3),
        file("local", "snippets/user-data.yaml", "snippets", "snippet", 1),
        file("local", "import/noble-server-cloudimg-amd64.qcow2", "import", "qcow2", 600),
    ];
    for (vmid, kind, suffix, days) in [
        (100_u32, "qemu", "vma.zst", 1),
        (100, "qemu", "vma.zst", 8),
        (102, "lxc", "tar.zst", 1),
        (103, "qemu", "vma.zst", 1),
    ] {
        cluster.volumes.push(Volume {
            vmid: Some(vmid),
            subtype: Some(kind.to_owned()),
            ctime: now - 86_400 * days,
            notes: Some(format!("guest {vmid}")),
            protected: days > 7,
            ..file(
                "nas",
                &format!("backup/vzdump-{kind}-{vmid}-2026_11_{:02}-02_00_00.{suffix}", 30 - days),
                "backup",
                suffix,
                2048,
            )
        });
    }
    cluster.volumes.push(Volume {
        vmid: Some(101),
        subtype: Some("qemu".to_owned()),
        ..file("pbs", "backup/vm/101/2026-11-29T02:00:00Z", "backup", "pbs-vm", 9216)
    });
}

/// The disks that guests' configurations name.
pub(super) fn disks(cluster: &mut Cluster) {
    for guest in cluster.guests.values() {
        for (_, id, size) in guest.disks() {
            let Some((storage, name)) = id.split_once(':') else { continue };
            cluster.volumes.push(Volume {
                storage: storage.to_owned(),
                name: name.to_owned(),
                content: if guest.kind == Kind::Qemu { "images" } else { "rootdir" }.to_owned(),
                format: "raw".to_owned(),
                size,
                used: None,
                vmid: Some(guest.vmid),
                subtype: None,
                ctime: cluster.booted,
                notes: None,
                protected: false,
            });
        }
    }
}

fn pools(cluster: &mut Cluster) {
    let pool = |comment: &str, storages: &[&str]| Pool {
        comment: comment.to_owned(),
        storages: storages.iter().map(|name| (*name).to_owned()).collect(),
        ..Pool::default()
    };
    cluster.pools.insert("ci".to_owned(), pool("Runners", &["local-lvm"]));
    cluster.pools.insert("lab".to_owned(), pool("", &[]));
    cluster.pools.insert("lab/inner".to_owned(), pool("A pool within a pool", &[]));
}
