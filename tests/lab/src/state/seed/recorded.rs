//! The cluster that the recordings of genuine PVE start from: one node, three VMs, a container, two storages.

mod host;

use serde_json::{Value, json};

use super::people::Logins;
use crate::access::{Grant, Subject, Token, User};
use crate::clock;
use crate::state::Cluster;
use crate::state::Host;
use crate::state::firewall::Firewall;
use crate::state::guest::{Guest, Kind, object};
use crate::state::node::Node;
use crate::state::storage::{Storage, Volume};

const GIB: u64 = 1 << 30;

pub(super) fn seed(cluster: &mut Cluster, logins: &Logins) {
    cluster.nodes.truncate(1);
    for node in &mut cluster.nodes {
        *node = Node {
            ip: "10.99.99.1".to_owned(),
            cpus: 2,
            memory: 25_276_502_016,
            disk: 270_553_174_016,
            ..node.clone()
        };
    }
    cluster.booted = clock::now() - 4010;
    cluster.host = Host {
        own_qemu: false,
        ha: false,
        clustered: false,
        missing: ["ceph", "skopeo", "syslog", "wget", "zfs"].map(str::to_owned).into(),
        mounts: [("/srv/full".to_owned(), 4 << 20)].into(),
        ..Host::default()
    };
    host::seed(cluster);
    people(cluster, logins);
    guests(cluster);
    storages(cluster);
    volumes(cluster);
    cluster.firewalls.insert(
        "cluster".to_owned(),
        Firewall {
            options: object(
                json!({"enable": 0, "log_ratelimit": "enable=1,burst=5,rate=1/second", "policy_in": "DROP"}),
            ),
            rules: vec![object(json!({"action": "DROP", "comment": "changed", "enable": 0, "type": "out"}))],
            ..Firewall::default()
        },
    );
    for (realm, comment) in [("pam", "Linux PAM standard authentication"), ("pve", "Proxmox VE authentication server")]
    {
        cluster.sections.put("/access/domains", realm, json!({"type": realm, "comment": comment}));
    }
    cluster.sections.put("/cluster/sdn/ipams", "pve", json!({"type": "pve"}));
    cluster.sections.put("/cluster/acme/plugins", "standalone", json!({"type": "standalone"}));
    cluster.sections.put(
        "/cluster/notifications/matchers",
        "default-matcher",
        json!({"comment": "Route all notifications to mail-to-root", "mode": "all", "origin": "builtin", "target": ["mail-to-root"]}),
    );
    cluster.sections.put(
        "/cluster/notifications/endpoints/sendmail",
        "mail-to-root",
        json!({"comment": "Send mails to root@pam's email address", "origin": "builtin", "mailto-user": ["root@pam"]}),
    );
}

/// Everyone's only token, and what its user may do.
fn people(cluster: &mut Cluster, logins: &Logins) {
    let token = |privsep: bool| Token { secret: logins.other.clone(), privsep, expire: 0, comment: None };
    let mut add = |id: &str, tokens: &[(&str, bool)], comment: Option<&str>, email: Option<&str>| {
        let user = User {
            enable: true,
            comment: comment.map(str::to_owned),
            email: email.map(str::to_owned),
            tokens: tokens.iter().map(|(name, privsep)| ((*name).to_owned(), token(*privsep))).collect(),
            ..User::default()
        };
        cluster.access.users.insert(id.to_owned(), user);
    };
    add("root@pam", &[("lab", false)], None, Some("root@lab.test"));
    add("automation@pve", &[("full", false), ("sep", true)], Some("lab automation"), Some(""));
    add("auditor@pve", &[("ro", false)], None, None);
    add("nobody@pve", &[("none", false)], None, None);
    add("vmadmin@pve", &[("t1", false)], None, None);
    for (user, role) in [("auditor@pve", "PVEAuditor"), ("automation@pve", "Administrator")] {
        cluster.access.acl.push(Grant {
            path: "/".to_owned(),
            subject: Subject::User(user.to_owned()),
            role: role.to_owned(),
            propagate: true,
        });
    }
}

fn guests(cluster: &mut Cluster) {
    let mut add = |vmid: u32, kind: Kind, agent: bool, config: Value| {
        let mut guest = Guest::new(vmid, kind, "pve1", object(config));
        guest.agent = agent;
        // No operating system is installed where no agent is.
        guest.inside.obeys = agent;
        guest.inside.bare = true;
        cluster.guests.insert(vmid, guest);
    };
    add(
        100,
        Kind::Qemu,
        false,
        json!({
            "boot": "order=scsi0;ide2", "cores": 2, "description": "query", "memory": "512", "name": "semi",
            "ide2": "lab1:iso/test.iso,media=cdrom,size=3K", "meta": "creation-qemu=10.0.13,ctime=1796036185",
            "net0": "virtio=BC:24:11:48:A9:F6,bridge=vmbr0", "onboot": 1, "protection": 0,
            "scsi0": "local:100/vm-100-disk-0.qcow2,size=3584M", "scsi2": "local:100/vm-100-disk-1.qcow2,size=1G",
            "smbios1": "uuid=7662faaa-37b3-47f3-9b87-016ab98eb52d", "vmgenid": "60efd27a-fa25-4d8c-9550-544c8b6fe5a4",
        }),
    );
    add(
        200,
        Kind::Qemu,
        false,
        json!({
            "agent": "1", "boot": " ", "description": "x", "kvm": 0, "memory": "128", "name": "run1",
            "meta": "creation-qemu=10.0.13,ctime=1796036636", "scsi1": "local:200/vm-200-disk-1.raw,size=1G",
            "serial0": "socket", "smbios1": "uuid=29057a3d-1fc5-4d1b-a8ad-9e8d8728e3bf", "vga": "none",
            "unused0": "local:200/vm-200-disk-0.raw", "vmgenid": "f7860a93-8411-4050-8203-643cdb025335",
        }),
    );
    add(
        220,
        Kind::Qemu,
        true,
        json!({
            "agent": "enabled=1", "boot": "order=scsi0;net0", "memory": "256", "name": "agentvm",
            "args": "-kernel /var/lib/vz/guest/vmlinuz -initrd /var/lib/vz/guest/initrd.img -append \"console=ttyS0 quiet\"",
            "meta": "creation-qemu=10.0.13,ctime=1796037682", "net0": "virtio=BC:24:11:7B:EA:65,bridge=vmbr0",
            "scsi0": "local:220/vm-220-disk-0.raw,size=1G", "scsihw": "virtio-scsi-pci", "serial0": "socket",
            "smbios1": "uuid=47b82908-a2df-4c4c-9d50-c1e3ee0c4687", "vmgenid": "b889364a-f3d0-4982-84cb-331712d1ebff",
        }),
    );
    add(
        300,
        Kind::Lxc,
        false,
        json!({
            "arch": "amd64", "features": "nesting=1", "hostname": "ct1", "memory": 256, "ostype": "alpine", "swap": 0,
            "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:D8:C9:2A,ip=dhcp,type=veth", "unprivileged": 1,
            "rootfs": "local:300/subvol-300-disk-1.subvol,size=0T",
        }),
    );
}

fn storages(cluster: &mut Cluster) {
    let mut add = |name: &str, config: Value| {
        let storage = Storage { config: object(config), total: 270_553_174_016, broken: None };
        cluster.storages.insert(name.to_owned(), storage);
    };
    add(
        "local",
        json!({"type": "dir", "path": "/var/lib/vz", "content": "backup,vztmpl,rootdir,images,snippets,iso", "prune-backups": "keep-all=1"}),
    );
    add(
        "lab1",
        json!({"type": "dir", "path": "/srv/lab1", "content": "images,iso,snippets,import,backup,rootdir,vztmpl"}),
    );
}

fn volumes(cluster: &mut Cluster) {
    let now = clock::now();
    let mut add = |id: &str, content: &str, format: &str, size: u64, used: Option<u64>, vmid: Option<u32>| {
        let (storage, name) = id.split_once(':').unwrap_or((id, ""));
        cluster.volumes.push(Volume {
            storage: storage.to_owned(),
            name: name.to_owned(),
            content: content.to_owned(),
            format: format.to_owned(),
            size,
            used,
            vmid,
            subtype: (content == "backup").then(|| "lxc".to_owned()),
            ctime: now - 60,
            notes: None,
            protected: false,
        });
    };
    let backup = "backup/vzdump-lxc-300-2026_11_30-12_14_";
    add(&format!("lab1:{backup}19.tar"), "backup", "tar", 2_078_720, None, Some(300));
    add(&format!("local:{backup}21.tar"), "backup", "tar", 2_078_720, None, Some(300));
    add("lab1:iso/sp_ace__.iso", "iso", "iso", 3, None, None);
    add("lab1:iso/test.iso", "iso", "iso", 3000, None, None);
    add("lab1:iso/x.iso", "iso", "iso", 3, None, None);
    add("lab1:vztmpl/t.tar.zst", "vztmpl", "tzst", 100, None, None);
    add("local:vztmpl/alpine-3.20-lab_amd64.tar.gz", "vztmpl", "tgz", 1_067_486, None, None);
    add("local:100/vm-100-disk-0.qcow2", "images", "qcow2", 7 * GIB / 2, Some(593_920), Some(100));
    add("local:100/vm-100-disk-1.qcow2", "images", "qcow2", GIB, Some(155_648), Some(100));
    add("local:200/vm-200-disk-0.raw", "images", "raw", 2 * GIB, Some(0), Some(200));
    add("local:200/vm-200-disk-1.raw", "images", "raw", GIB, Some(0), Some(200));
    add("local:220/vm-220-disk-0.raw", "images", "raw", GIB, Some(0), Some(220));
    add("local:300/subvol-300-disk-1.subvol", "rootdir", "subvol", 0, Some(0), Some(300));
}
