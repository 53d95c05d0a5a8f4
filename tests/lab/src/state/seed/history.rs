//! Tasks of the past: ended well, with warnings, in errors whose texts hold more than they should.

use crate::clock;
use crate::state::Cluster;

pub(super) fn seed(cluster: &mut Cluster) {
    let now = clock::now();
    let share = cluster.secrets.of("task-mount-password");
    let url = cluster.secrets.url("task-download-url", "mirror.lab.test");
    let mut past = |kind: &str, id: &str, who: (&str, Option<&str>), ago: i64, lines: &[String], status: &str| {
        let upid = cluster.tasks.begin("pve1", kind, id, who, now - ago);
        for line in lines {
            cluster.tasks.log(&upid, line.clone());
        }
        cluster.tasks.end(&upid, now - ago + 7, status);
    };
    let gateway = ("pvegate@pve", Some("full"));
    past("qmstart", "100", ("root@pam", None), 90_000, &[], "OK");
    past("vzstart", "102", ("root@pam", None), 89_000, &[], "OK");
    past(
        "qmsnapshot",
        "100",
        gateway,
        86_000,
        &["snapshotting 'drive-scsi0' (local-lvm:vm-100-disk-0)".to_owned()],
        "OK",
    );
    past(
        "vzdump",
        "",
        ("root@pam", None),
        40_000,
        &[
            "INFO: starting new backup job: vzdump --all 1 --storage nas --mode snapshot".to_owned(),
            "INFO: Starting Backup of VM 100 (qemu)".to_owned(),
            "WARN: guest agent did not answer".to_owned(),
            "INFO: Finished Backup of VM 100 (00:01:12)".to_owned(),
        ],
        "WARNINGS: 1",
    );
    let mount = format!("mount -t cifs //nas.lab.test/old /mnt/pve/nas-old -o username=backup,password={share}");
    past(
        "vzdump",
        "101",
        ("root@pam", None),
        20_000,
        &[format!("INFO: trying to activate storage with '{mount}'"), "ERROR: Backup of VM 101 failed".to_owned()],
        &format!("could not activate storage 'nas-old': command '{mount}' failed: exit code 32"),
    );
    past(
        "download",
        "noble.img",
        gateway,
        9_000,
        &[format!("downloading {url}noble.img to /var/lib/vz/import/noble.img"), "starting cleanup".to_owned()],
        &format!("download failed: {url}noble.img: 403 Forbidden"),
    );
    past("qmstart", "103", gateway, 5_000, &[], "you can't start a vm if it's a template");
    past("qmshutdown", "104", ("jane@pve", None), 3_000, &[], "unexpected status");
    past("vzstart", "105", ("ci@pve", Some("ci")), 1_000, &[], "OK");
}
