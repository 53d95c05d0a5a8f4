//! One guest: status, configuration, what is pending, snapshots, figures over time.

use serde_json::{Map, Value, json};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::clock;
use crate::state::Cluster;
use crate::state::guest::{Guest, Kind, object};

/// What PVE lists below a VM, a container, and their switches; not all that is there.
const INDEXES: [(&str, &[&str]); 4] = [
    (
        "/nodes/{node}/qemu/{vmid}",
        &[
            "config",
            "cloudinit",
            "pending",
            "status",
            "unlink",
            "vncproxy",
            "termproxy",
            "migrate",
            "resize",
            "move",
            "rrd",
            "rrddata",
            "monitor",
            "agent",
            "snapshot",
            "spiceproxy",
            "sendkey",
            "firewall",
            "mtunnel",
            "remote_migrate",
        ],
    ),
    ("/nodes/{node}/qemu/{vmid}/status", &["current", "start", "stop", "reset", "shutdown", "suspend", "reboot"]),
    (
        "/nodes/{node}/lxc/{vmid}",
        &[
            "config",
            "pending",
            "status",
            "vncproxy",
            "termproxy",
            "vncwebsocket",
            "spiceproxy",
            "migrate",
            "clone",
            "rrd",
            "rrddata",
            "firewall",
            "snapshot",
            "resize",
            "interfaces",
            "mtunnel",
            "remote_migrate",
        ],
    ),
    ("/nodes/{node}/lxc/{vmid}/status", &["current", "start", "stop", "shutdown", "migrate"]),
];

fn index(path: &str) -> Option<Outcome> {
    let (_, names) = INDEXES.iter().find(|(indexed, _)| *indexed == path)?;
    Some(Ok(Value::Array(names.iter().map(|name| json!({"subdir": name})).collect()).into()))
}

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    if call.path() == "/nodes/{node}/capabilities/qemu/machines" && !cluster.host.own_qemu {
        return Some(Err(Refusal::failed(
            "could not load supported machine versions - can't open '/usr/share/kvm/machine-versions-x86_64.json' - No such file or directory",
        )));
    }
    if let Some(index) = index(call.path()) {
        return Some(index);
    }
    let (kind, rest) = split(call.path())?;
    let handler: fn(&Cluster, &Call<'_>, &Guest) -> Outcome = match (kind, rest) {
        (_, "/status/current") => status,
        (_, "/config") => config,
        (_, "/pending") => pending,
        (_, "/snapshot") => snapshots,
        (_, "/snapshot/{snapname}/config") => snapshot_config,
        (_, "/feature") => feature,
        (_, "/rrddata") => figures_over_time,
        (Kind::Qemu, "/migrate") => qemu_migrate,
        (Kind::Lxc, "/migrate") => lxc_migrate,
        (Kind::Qemu, "/cloudinit") => cloudinit,
        (Kind::Qemu, "/cloudinit/dump") => cloudinit_dump,
        (Kind::Lxc, "/interfaces") => interfaces,
        _ => return None,
    };
    Some(call.guest(cluster, kind).and_then(|guest| handler(cluster, call, guest)))
}

/// Splits a path template below a guest into kind and rest.
pub(super) fn split(path: &str) -> Option<(Kind, &str)> {
    [("/nodes/{node}/qemu/{vmid}", Kind::Qemu), ("/nodes/{node}/lxc/{vmid}", Kind::Lxc)]
        .into_iter()
        .find_map(|(prefix, kind)| Some((kind, path.strip_prefix(prefix)?)))
}

fn status(cluster: &Cluster, _: &Call<'_>, guest: &Guest) -> Outcome {
    let mut row = super::guest_list::figures(cluster, guest);
    row.insert("ha".to_owned(), super::guest_list::ha(cluster, guest));
    if guest.kind == Kind::Qemu {
        let state = if guest.paused { "paused" } else { guest.status() };
        row.insert("qmpstatus".to_owned(), json!(state));
        if super::machine::agent_enabled(guest) {
            row.insert("agent".to_owned(), json!(1));
        }
        if guest.config.contains_key("vga") {
            row.insert("clipboard".to_owned(), Value::Null);
        }
        if guest.running() && cluster.host.own_qemu {
            row.insert("running-machine".to_owned(), json!("pc-q35-10.1+pve0"));
            row.insert("running-qemu".to_owned(), json!("10.1.2"));
        }
        if guest.running() {
            nics(guest, &mut row);
        }
    }
    if guest.running() {
        for pressure in ["cpusome", "cpufull", "iosome", "iofull", "memorysome", "memoryfull"] {
            row.insert(format!("pressure{pressure}"), json!(0));
        }
    }
    Ok(Value::Object(row).into())
}

/// What went through each card of a running VM.
fn nics(guest: &Guest, row: &mut Map<String, Value>) {
    let cards = guest.config.keys().filter_map(|key| key.strip_prefix("net"));
    let share = |name: &str| row.get(name).and_then(Value::as_u64).unwrap_or_default();
    let nics: Map<String, Value> = cards
        .map(|index| {
            let traffic = json!({"netin": share("netin"), "netout": share("netout")});
            (format!("tap{}i{index}", guest.vmid), traffic)
        })
        .collect();
    if !nics.is_empty() {
        row.insert("nics".to_owned(), Value::Object(nics));
    }
}

/// The configuration as it will be: pending values count as applied.
fn applied(guest: &Guest) -> Map<String, Value> {
    let mut config = guest.config.clone();
    config.extend(guest.pending.clone());
    config.retain(|key, _| !guest.leaving.contains(key));
    config
}

/// What stands in the file beside the options.
fn with_state(guest: &Guest, mut config: Map<String, Value>) -> Outcome {
    config.insert("digest".to_owned(), json!(guest.digest()));
    if let Some(lock) = &guest.lock {
        config.insert("lock".to_owned(), json!(lock));
    }
    if let Some(parent) = &guest.parent {
        config.insert("parent".to_owned(), json!(parent));
    }
    Ok(Value::Object(config).into())
}

fn find<'a>(guest: &'a Guest, name: &str) -> Result<&'a crate::state::guest::Snapshot, Refusal> {
    let found = guest.snapshots.iter().find(|snapshot| snapshot.name == name);
    found.ok_or_else(|| Refusal::failed(format!("snapshot '{name}' does not exist")))
}

fn config(_: &Cluster, call: &Call<'_>, guest: &Guest) -> Outcome {
    if let Some(name) = call.given("snapshot") {
        let mut config = find(guest, name)?.file();
        config.insert("digest".to_owned(), json!(guest.digest()));
        return Ok(Value::Object(config).into());
    }
    with_state(guest, if call.flag("current") { guest.config.clone() } else { applied(guest) })
}

fn pending(_: &Cluster, _: &Call<'_>, guest: &Guest) -> Outcome {
    let mut rows: Vec<Value> = Vec::new();
    let mut config = guest.config.clone();
    for (key, value) in [("lock", &guest.lock), ("parent", &guest.parent)] {
        if let Some(value) = value {
            config.insert(key.to_owned(), json!(value));
        }
    }
    for (key, value) in &config {
        let mut row = object(json!({"key": key, "value": value}));
        if let Some(next) = guest.pending.get(key) {
            row.insert("pending".to_owned(), next.clone());
        }
        if guest.leaving.contains(key) {
            row.insert("delete".to_owned(), json!(1));
        }
        rows.push(Value::Object(row));
    }
    let new = guest.pending.iter().filter(|(key, _)| !guest.config.contains_key(*key));
    rows.extend(new.map(|(key, value)| json!({"key": key, "pending": value})));
    rows.push(json!({"key": "digest", "value": guest.digest()}));
    Ok(Value::Array(rows).into())
}

fn snapshots(_: &Cluster, _: &Call<'_>, guest: &Guest) -> Outcome {
    let mut rows: Vec<Value> = guest
        .snapshots
        .iter()
        .map(|snapshot| {
            let mut row = object(json!({
                "name": snapshot.name,
                "description": snapshot.description,
                "snaptime": snapshot.time,
            }));
            if guest.kind == Kind::Qemu {
                row.insert("vmstate".to_owned(), json!(u8::from(snapshot.with_memory)));
            }
            if let Some(parent) = &snapshot.parent {
                row.insert("parent".to_owned(), json!(parent));
            }
            if let Some(state) = &snapshot.state {
                row.insert("snapstate".to_owned(), json!(state));
            }
            Value::Object(row)
        })
        .collect();
    let mut current = object(json!({
        "name": "current",
        "description": "You are here!",
        "digest": guest.digest(),
        "running": u8::from(guest.running()),
    }));
    if let Some(parent) = &guest.parent {
        current.insert("parent".to_owned(), json!(parent));
    }
    rows.push(Value::Object(current));
    Ok(Value::Array(rows).into())
}

fn snapshot_config(_: &Cluster, call: &Call<'_>, guest: &Guest) -> Outcome {
    Ok(Value::Object(find(guest, call.text("snapname"))?.file()).into())
}

fn feature(cluster: &Cluster, call: &Call<'_>, guest: &Guest) -> Outcome {
    let has = match call.text("feature") {
        "snapshot" => !guest.template() && super::machine::able(cluster, guest),
        "clone" => guest.template() || super::machine::able(cluster, guest),
        _ => true,
    };
    let mut data = object(json!({"hasFeature": u8::from(has)}));
    if guest.kind == Kind::Qemu {
        let nodes: Vec<&str> = if has { vec![&guest.node] } else { Vec::new() };
        data.insert("nodes".to_owned(), json!(nodes));
    }
    Ok(Value::Object(data).into())
}

/// (points, seconds between them) of a time frame.
pub(super) fn frame(name: &str) -> (i64, i64) {
    match name {
        "day" => (70, 1200),
        "week" => (70, 8640),
        "month" => (70, 37_200),
        "year" | "decade" => (70, 446_400),
        _ => (60, 60),
    }
}

fn figures_over_time(_: &Cluster, call: &Call<'_>, guest: &Guest) -> Outcome {
    let (points, step) = frame(call.text("timeframe"));
    let end = clock::now() / step * step;
    let data: Vec<Value> = (0..points)
        .map(|point| {
            let time = end - (points - point) * step;
            let mut row = object(json!({"time": time}));
            if guest.started.is_some_and(|since| since <= time) {
                row.append(&mut object(json!({
                    "cpu": 0.05,
                    "maxcpu": guest.cores(),
                    "mem": guest.memory() / 3,
                    "maxmem": guest.memory(),
                    "disk": 0,
                    "maxdisk": guest.disk_size(),
                    "netin": 950.5,
                    "netout": 1020.25,
                    "diskread": 4096,
                    "diskwrite": 8192.5,
                })));
            }
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(data).into())
}

fn qemu_migrate(cluster: &Cluster, _: &Call<'_>, guest: &Guest) -> Outcome {
    let disks: Vec<Value> = guest
        .disks()
        .map(|(key, volume, size)| json!({"drivename": key, "volid": volume, "size": size, "cdrom": 0, "shared": 0, "is_attached": 1, "is_unused": 0, "is_vmstate": 0, "is_cloudinit": 0, "is_tpmstate": 0, "replicate": 1}))
        .collect();
    let others: Vec<&str> =
        cluster.nodes.iter().map(|node| node.name.as_str()).filter(|name| *name != guest.node).collect();
    Ok(json!({"running": u8::from(guest.running()), "allowed_nodes": others, "not_allowed_nodes": {}, "local_disks": disks, "local_resources": [], "mapped-resources": [], "mapped-resource-info": {}, "has-dbus-vmstate": 1}).into())
}

fn lxc_migrate(cluster: &Cluster, _: &Call<'_>, guest: &Guest) -> Outcome {
    let others: Vec<&str> =
        cluster.nodes.iter().map(|node| node.name.as_str()).filter(|name| *name != guest.node).collect();
    Ok(json!({"running": u8::from(guest.running()), "allowed-nodes": others, "not-allowed-nodes": {}}).into())
}

fn cloudinit(_: &Cluster, _: &Call<'_>, guest: &Guest) -> Outcome {
    let keys = ["cipassword", "ciuser", "ipconfig0", "name", "nameserver", "searchdomain", "sshkeys"];
    let rows: Vec<Value> = keys
        .iter()
        .filter_map(|key| {
            let value = guest.config.get(*key);
            let next = guest.pending.get(*key);
            if value.is_none() && next.is_none() {
                return None;
            }
            let mut row = object(json!({"key": key}));
            if let Some(value) = value {
                row.insert("value".to_owned(), value.clone());
            }
            if let Some(next) = next {
                row.insert("pending".to_owned(), next.clone());
            }
            Some(Value::Object(row))
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn cloudinit_dump(_: &Cluster, call: &Call<'_>, guest: &Guest) -> Outcome {
    let name = guest.name();
    let text = match call.text("type") {
        "network" => {
            "version: 1\nconfig:\n    - type: physical\n      name: eth0\n      subnets:\n      - type: dhcp4\n"
                .to_owned()
        }
        "meta" => format!("instance-id: lab-{}\n", guest.vmid),
        _ => user_data(guest, &name),
    };
    Ok(json!(text).into())
}

/// What cloud-init is told about the user.
fn user_data(guest: &Guest, name: &str) -> String {
    let short = name.split('.').next().unwrap_or(name);
    let mut text = format!("#cloud-config\nhostname: {short}\nmanage_etc_hosts: true\nfqdn: {name}\n");
    if let Some(user) = guest.text("ciuser") {
        text = text + "user: " + user + "\n";
    }
    if let Some(password) = guest.text("cipassword") {
        text = text + "password: " + password + "\n";
    }
    text + "chpasswd:\n  expire: False\nusers:\n  - default\npackage_upgrade: true\n"
}

/// Addresses as the container sees them; nothing while it is stopped.
fn interfaces(_: &Cluster, _: &Call<'_>, guest: &Guest) -> Outcome {
    if !guest.running() {
        return Ok(Value::Null.into());
    }
    let address = super::agent::address(guest);
    let mac = super::agent::mac(guest);
    let data = json!([
        {"name": "lo", "hwaddr": "00:00:00:00:00:00", "hardware-address": "00:00:00:00:00:00", "inet": "127.0.0.1/8", "inet6": "::1/128", "ip-addresses": [{"ip-address": "127.0.0.1", "ip-address-type": "inet", "prefix": 8}]},
        {"name": "eth0", "hwaddr": mac, "hardware-address": mac, "inet": format!("{address}/24"), "ip-addresses": [{"ip-address": address, "ip-address-type": "inet", "prefix": 24}]},
    ]);
    Ok(data.into())
}
