//! A node: its state, network, disks, services and settings.

use serde_json::{Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::clock;
use crate::state::guest::object;
use crate::state::node::Node;
use crate::state::{Cluster, digest};

pub(super) const SERVICES: [&str; 23] = [
    "chrony",
    "corosync",
    "cron",
    "ksmtuned",
    "lxcfs",
    "postfix",
    "proxmox-firewall",
    "pve-cluster",
    "pve-firewall",
    "pve-ha-crm",
    "pve-ha-lrm",
    "pve-lxc-syscalld",
    "pvedaemon",
    "pvefw-logger",
    "pveproxy",
    "pvescheduler",
    "pvestatd",
    "qmeventd",
    "spiceproxy",
    "sshd",
    "syslog",
    "systemd-journald",
    "systemd-timesyncd",
];

/// The one template in the index of appliances.
pub(super) const TEMPLATE: &str = "debian-13-standard_13.1-2_amd64.tar.zst";

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let rest = call.path().strip_prefix("/nodes/{node}")?;
    if let Some(outcome) = lacking(cluster, call, rest).or_else(|| fact(cluster, call, rest)) {
        return Some(outcome);
    }
    let handler: fn(&Cluster, &Call<'_>, &Node) -> Outcome = match rest {
        "/status" => status,
        "/version" => |cluster, _, _| Ok(cluster.release.version().into()),
        "/rrddata" => figures_over_time,
        "/services" => |_, _, _| Ok(Value::Array(SERVICES.iter().map(|name| service(name)).collect()).into()),
        "/services/{service}/state" => |_, call, _| Ok(service(call.text("service")).into()),
        "/network" => networks,
        "/network/{iface}" => network,
        "/dns" => |_, _, _| Ok(json!({"search": "lab.test", "dns1": "192.0.2.1", "dns2": "192.0.2.2"}).into()),
        "/time" => |_, _, _| {
            Ok(json!({"time": clock::now(), "localtime": clock::now() + 3600, "timezone": "Europe/Vienna"}).into())
        },
        "/hosts" => hosts,
        "/config" => |_, _, node| {
            Ok(json!({"description": format!("Notes of {}", node.name), "digest": digest(&json!(node.name))}).into())
        },
        "/disks/list" => disks,
        "/disks/smart" => |_, _, _| Ok(json!({"health": "PASSED", "type": "ata", "attributes": []}).into()),
        "/disks/lvm" => |_, _, _| {
            Ok(json!({"leaf": 0, "children": [{"name": "pve", "leaf": 0, "size": 480_u64 << 30, "free": 16_u64 << 30, "children": [{"name": "/dev/sda3", "leaf": 1, "size": 480_u64 << 30, "free": 16_u64 << 30}]}]}).into())
        },
        "/netstat" => netstat,
        "/certificates/info" => certificates,
        "/subscription" => subscription,
        "/aplinfo" => |_, _, _| {
            Ok(json!([{"template": TEMPLATE, "package": "debian-13-standard", "version": "13.1-2", "os": "debian-13", "section": "system", "type": "lxc", "headline": "Debian 13", "source": "lab"}]).into())
        },
        "/vzdump/defaults" => |_, _, _| {
            Ok(json!({"storage": "local", "mode": "snapshot", "compress": "0", "remove": 1, "prune-backups": "keep-all=1", "notification-mode": "auto"}).into())
        },
        _ => return None,
    };
    Some(call.node(cluster).and_then(|node| handler(cluster, call, node)))
}

/// What needs a program that is not there.
fn lacking(cluster: &Cluster, call: &Call<'_>, rest: &str) -> Option<Outcome> {
    let lacks = |program: &str| cluster.host.missing.contains(program);
    let error = match rest {
        _ if rest.starts_with("/disks/zfs") && lacks("zfs") => "zfsutils-linux not installed".to_owned(),
        "/query-oci-repo-tags" if lacks("skopeo") => "Install 'skopeo' to list tags from OCI registries.".to_owned(),
        _ if rest.starts_with("/ceph") && lacks("ceph") => "binary not installed: /usr/bin/ceph-mon".to_owned(),
        // Hosts of the lab's own domain answer; nothing listens on others.
        "/query-url-metadata" => {
            let url = call.text("url");
            let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
            let host = rest.split('/').next().unwrap_or_default();
            if host.split(':').next().is_some_and(|name| name.ends_with(".lab.test")) {
                return None;
            }
            let port = if scheme == "https" { ":443" } else { ":80" };
            let port = if host.contains(':') { "" } else { port };
            format!("invalid server response: '500 Can't connect to {host}{port} (Connection refused)'")
        }
        "/disks/smart" => {
            let disks = cluster.facts.get(&format!("{}/disks/list", cluster.local))?.as_array()?;
            let named = |row: &Value| row.get("devpath").and_then(Value::as_str) == Some(call.text("disk"));
            if disks.iter().any(named) {
                return None;
            }
            "not a valid block device".to_owned()
        }
        _ => return None,
    };
    Some(Err(Refusal::failed(error)))
}

/// What is known of this very node.
fn fact(cluster: &Cluster, call: &Call<'_>, rest: &str) -> Option<Outcome> {
    let node = &cluster.node(call.text("node"))?.name;
    let known = |path: &str| cluster.facts.get(&format!("{node}{path}"));
    match rest {
        "/time" => {
            let zone = known("/timezone")?;
            let now = clock::now();
            Some(Ok(json!({"time": now, "localtime": now + 3600, "timezone": zone}).into()))
        }
        "/hosts" => {
            let data = known(rest)?;
            Some(Ok(json!({"data": data, "digest": digest(data)}).into()))
        }
        "/config" => {
            let mut config = object(known(rest)?.clone());
            if !config.is_empty() {
                config.insert("digest".to_owned(), json!(digest(&json!(config))));
            }
            Some(Ok(Value::Object(config).into()))
        }
        "/network" | "/network/{iface}" | "/status" => None,
        "/services/{service}/state" => {
            let rows = known("/services")?.as_array()?;
            let named = |row: &&Value| row.get("service").and_then(Value::as_str) == Some(call.text("service"));
            rows.iter().find(named).map(|row| Ok(row.clone().into()))
        }
        "/syslog" => {
            let lines: Vec<String> =
                known(rest)?.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let (start, limit) = (call.count("start").unwrap_or(0), call.count("limit").unwrap_or(50));
            Some(Ok(crate::answer::Reply::lines(&lines, start, limit)))
        }
        _ => Some(Ok(known(rest)?.clone().into())),
    }
}

/// The interfaces of a node as they are now.
pub(super) fn present_interfaces(cluster: &Cluster, node: &str) -> Option<Value> {
    let known = cluster.facts.get(&format!("{node}/network")).cloned();
    known.or_else(|| Some(Value::Array(interfaces(cluster.node(node)?))))
}

/// What the host and its running guests take.
pub(super) fn memory_used(cluster: &Cluster, node: &Node) -> u64 {
    let guests: u64 =
        cluster.guests_on(&node.name).filter(|guest| guest.running()).map(|guest| guest.memory() / 2).sum();
    (guests + (3 << 30)).min(node.memory)
}

fn status(cluster: &Cluster, _: &Call<'_>, node: &Node) -> Outcome {
    let used = memory_used(cluster, node);
    let kernel = cluster.release.kernel();
    let build = format!("#1 SMP PREEMPT_DYNAMIC PMX {}", kernel.trim_end_matches("-pve"));
    let mut data = object(json!({
        "uptime": clock::now() - cluster.booted,
        "cpu": 0.042,
        "wait": 0.001,
        "idle": 0,
        "loadavg": ["0.42", "0.38", "0.31"],
        "cpuinfo": {"cpus": node.cpus, "cores": node.cpus / 2, "sockets": 1, "model": "Lab CPU", "vendor": "LabVendor", "family": "6", "mhz": "3200.000", "hvm": "1", "user_hz": 100, "flags": "fpu aes avx2"},
        "memory": {"total": node.memory, "used": used, "free": node.memory - used, "available": node.memory - used},
        "swap": {"total": 8_u64 << 30, "used": 0, "free": 8_u64 << 30},
        "rootfs": {"total": node.disk, "used": node.disk / 5, "free": node.disk / 5 * 4, "avail": node.disk / 5 * 4},
        "ksm": {"shared": 0},
        "boot-info": {"mode": "efi", "secureboot": 0},
        "current-kernel": {"sysname": "Linux", "release": kernel, "version": build, "machine": "x86_64"},
        "kversion": format!("Linux {kernel} {build}"),
        "pveversion": cluster.release.manager(),
    }));
    data.extend(object(cluster.facts.get(&format!("{}/machine", node.name)).cloned().unwrap_or_default()));
    Ok(Value::Object(data).into())
}

fn figures_over_time(_: &Cluster, call: &Call<'_>, node: &Node) -> Outcome {
    let (points, step) = super::guest::frame(call.text("timeframe"));
    let end = clock::now() / step * step;
    let rows = (0..points).map(|point| {
        let time = end - (points - point) * step;
        if !node.online {
            return json!({"time": time});
        }
        json!({"time": time, "cpu": 0.04, "maxcpu": node.cpus, "loadavg": 0.4, "iowait": 0.001, "memused": node.memory / 3, "memtotal": node.memory, "swapused": 0, "swaptotal": 8_u64 << 30, "rootused": node.disk / 5, "roottotal": node.disk, "netin": 125_000.5, "netout": 98_000.25})
    });
    Ok(Value::Array(rows.collect()).into())
}

fn service(name: &str) -> Value {
    let running = !matches!(name, "syslog" | "systemd-timesyncd" | "ksmtuned");
    json!({
        "service": name,
        "name": name,
        "desc": format!("{name} of the lab"),
        "state": if running { "running" } else { "dead" },
        "active-state": if running { "active" } else { "inactive" },
        "unit-state": if running { "enabled" } else { "disabled" },
    })
}

fn interfaces(node: &Node) -> Vec<Value> {
    let number = 10 + node.number;
    vec![
        json!({"iface": "eno1", "type": "eth", "exists": 1, "active": 1, "method": "manual", "method6": "manual", "families": ["inet"], "priority": 3}),
        json!({"iface": "eno2", "type": "eth", "exists": 1, "method": "manual", "method6": "manual", "families": ["inet"], "priority": 4}),
        json!({"iface": "vmbr0", "type": "bridge", "active": 1, "autostart": 1, "method": "static", "method6": "manual", "address": format!("192.0.2.{number}"), "netmask": "24", "cidr": format!("192.0.2.{number}/24"), "gateway": "192.0.2.1", "bridge_ports": "eno1", "bridge_stp": "off", "bridge_fd": "0", "bridge_vlan_aware": 1, "bridge_vids": "2-4094", "families": ["inet"], "priority": 5}),
        json!({"iface": "vmbr1", "type": "bridge", "autostart": 1, "method": "manual", "method6": "manual", "bridge_ports": "", "bridge_stp": "off", "bridge_fd": "0", "families": ["inet"], "priority": 6, "comments": "isolated\n"}),
    ]
}

/// Bridges are shown to those who may use them, other interfaces to everyone.
fn networks(cluster: &Cluster, call: &Call<'_>, node: &Node) -> Outcome {
    let kind = call.given("type");
    let shown = cluster.facts.get(&format!("{}/network.new", node.name)).cloned();
    let shown = shown.or_else(|| present_interfaces(cluster, &node.name)).unwrap_or_default();
    let rows = shown.as_array().cloned().unwrap_or_default().into_iter().filter(|row| {
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let bridge = text("type") == "bridge";
        let seen = !bridge
            || call.may(cluster, &format!("/sdn/zones/localnetwork/{}", text("iface")), &["SDN.Audit", "SDN.Use"]);
        let typed = kind
            .is_none_or(|kind| kind == text("type") || (bridge && kind.contains("bridge")) || kind == "include_sdn");
        seen && typed
    });
    Ok(Value::Array(rows.collect()).into())
}

fn network(cluster: &Cluster, call: &Call<'_>, node: &Node) -> Outcome {
    let wanted = call.text("iface");
    let shown = cluster.facts.get(&format!("{}/network.new", node.name)).cloned();
    let shown = shown.or_else(|| present_interfaces(cluster, &node.name)).unwrap_or_default();
    let rows = shown.as_array().cloned().unwrap_or_default();
    rows.into_iter()
        .find(|row| row.get("iface").and_then(Value::as_str) == Some(wanted))
        .map(|row| {
            let mut row = object(row);
            row.remove("iface");
            Value::Object(row).into()
        })
        .ok_or_else(|| Refusal::parameter("iface", "interface does not exist"))
}

fn hosts(cluster: &Cluster, _: &Call<'_>, _: &Node) -> Outcome {
    let nodes = cluster.nodes.iter().map(|node| format!("{} {}.lab.test {}", node.ip, node.name, node.name));
    let lines: Vec<String> = std::iter::once("127.0.0.1 localhost".to_owned()).chain(nodes).collect();
    let data = lines.join("\n") + "\n";
    let digest = digest(&json!(data));
    Ok(json!({"data": data, "digest": digest}).into())
}

fn disks(_: &Cluster, call: &Call<'_>, node: &Node) -> Outcome {
    let mut rows = vec![
        json!({"devpath": "/dev/sda", "model": "LAB_SSD", "serial": "LAB0001", "vendor": "ATA", "size": node.disk, "type": "ssd", "health": "PASSED", "wearout": 97, "gpt": 1, "mounted": 0, "used": "BIOS boot", "osdid": -1, "osdid-list": null, "wwn": "0x5000000000000001", "rpm": 0}),
        json!({"devpath": "/dev/sdb", "model": "LAB_HDD", "serial": "LAB0002", "vendor": "ATA", "size": 8_u64 << 40, "type": "hdd", "health": "PASSED", "wearout": "N/A", "gpt": 0, "mounted": 0, "osdid": -1, "osdid-list": null, "wwn": "0x5000000000000002", "rpm": 7200}),
    ];
    if call.flag("include-partitions") {
        rows.push(json!({"devpath": "/dev/sda3", "parent": "/dev/sda", "size": node.disk - (1 << 30), "type": "partition", "gpt": 1, "mounted": 0, "used": "LVM", "osdid": -1, "osdid-list": null}));
    }
    Ok(Value::Array(rows).into())
}

fn netstat(cluster: &Cluster, _: &Call<'_>, node: &Node) -> Outcome {
    let rows = cluster
        .guests_on(&node.name)
        .filter(|guest| guest.running())
        .map(|guest| json!({"vmid": guest.vmid.to_string(), "dev": "net0", "in": guest.uptime() * 900, "out": guest.uptime() * 1000}));
    Ok(Value::Array(rows.collect()).into())
}

fn certificates(_: &Cluster, _: &Call<'_>, node: &Node) -> Outcome {
    let now = clock::now();
    Ok(json!([{
        "filename": "pve-ssl.pem",
        "fingerprint": node.fingerprint,
        "subject": format!("/CN={}.lab.test", node.name),
        "issuer": "/CN=Lab CA",
        "notbefore": now - 86_400,
        "notafter": now + 86_400 * 365,
        "public-key-type": "id-ecPublicKey",
        "public-key-bits": 256,
        "san": ["127.0.0.1", "localhost", node.name],
    }])
    .into())
}

/// The key is for those who administer the node.
fn subscription(cluster: &Cluster, call: &Call<'_>, node: &Node) -> Outcome {
    let mut data = object(json!({"status": "active", "message": "Lab subscription", "url": "https://shop.lab.test/"}));
    if call.may(cluster, &format!("/nodes/{}", node.name), &["Sys.Audit"]) {
        data.append(&mut object(json!({"key": cluster.secrets.of("subscription-key"), "level": "c", "productname": "Lab", "serverid": "00000000000000000000000000000000", "sockets": 1, "checktime": clock::now(), "regdate": "2026-01-01 00:00:00", "nextduedate": "2027-01-01"})));
    }
    Ok(Value::Object(data).into())
}
