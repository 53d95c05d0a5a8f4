//! The node's settings and what is found on it, and the names that its hosts file knows.

use serde_json::{Value, json};

use crate::state::Cluster;
use crate::state::node::Peer;

pub(super) fn seed(cluster: &mut Cluster) {
    let mut fact = |path: &str, value: Value| {
        cluster.facts.insert(format!("pve1{path}"), value);
    };
    fact("/dns", json!({"search": "lab.test", "dns1": "127.0.0.1"}));
    fact("/config", json!({}));
    fact("/cgroup-mode", json!(1));
    fact("/timezone", json!("Europe/Vienna"));
    fact(
        "/hosts",
        json!(
            "127.0.0.1 localhost\n10.99.99.1 pve1.lab.test pve1\n10.99.99.2 pve2.lab.test pve2\n::ffff:127.0.0.1 pve3.lab.test pve3\n10.99.99.77 pve4.lab.test pve4\n10.99.99.5 pve5.lab.test pve5\n"
        ),
    );
    fact(
        "/network",
        json!([
            {"iface": "vmbr0", "type": "bridge", "active": 1, "autostart": 1, "method": "static", "method6": "manual", "address": "10.99.99.1", "netmask": "24", "cidr": "10.99.99.1/24", "gateway": "10.99.99.254", "bridge_ports": "eno1", "bridge_stp": "off", "bridge_fd": "0", "families": ["inet"], "priority": 4},
            {"iface": "eno1", "type": "eth", "method": "manual", "method6": "manual", "families": ["inet"], "priority": 3},
        ]),
    );
    for path in
        ["/aplinfo", "/apt/update", "/disks/list", "/disks/directory", "/disks/lvmthin", "/hardware/usb", "/netstat"]
    {
        fact(path, json!([]));
    }
    fact("/disks/lvm", json!({"leaf": 0, "children": []}));
    fact(
        "/subscription",
        json!({"status": "notfound", "message": "There is no subscription key", "serverid": "0123456789ABCDEF0123456789ABCDEF", "url": "https://www.proxmox.com/en/proxmox-virtual-environment/pricing"}),
    );
    fact(
        "/machine",
        json!({
            "boot-info": {"mode": "legacy-bios"},
            "cpuinfo": {"cores": 2, "cpus": 2, "sockets": 1, "family": "6", "flags": "fpu", "hvm": "", "mhz": "2299.998", "model": "Xeon", "user_hz": 100, "vendor": "GenuineIntel"},
            "current-kernel": {"machine": "x86_64", "release": "6.18.44-fc-v669", "sysname": "Linux", "version": "#1 SMP PREEMPT_DYNAMIC @0"},
            "kversion": "Linux 6.18.44-fc-v669 #1 SMP PREEMPT_DYNAMIC @0",
            "pveversion": "pve-manager/9.2.11/14a22df3",
            "swap": {"free": 0, "total": 0, "used": 0},
            "wait": 0, "cpu": 0,
        }),
    );
    for (name, peer) in
        [("pve2", Peer::Refuses), ("pve3", Peer::Stranger), ("pve4", Peer::NoRoute), ("pve5", Peer::Silent)]
    {
        cluster.peers.insert(name.to_owned(), peer);
    }
}
