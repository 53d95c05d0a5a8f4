//! The configuration that a guest had when a recording was made.

use serde_json::{Map, Value, json};

use crate::recording::Recording;

/// A parameter of the query.
pub fn query(recording: &Recording, name: &str) -> Option<String> {
    let (_, query) = recording.url().split_once('?')?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned())
}

/// The guest that a recording shows the whole configuration of.
fn shown(recording: &Recording) -> Option<(&str, u32)> {
    if recording.method() != "GET" || recording.status() != 200 || query(recording, "snapshot").is_some() {
        return None;
    }
    let path = recording.path().replace("%2F", "/");
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    let ["nodes", _, kind, vmid, "config"] = steps.as_slice() else { return None };
    let kind = if *kind == "lxc" { "lxc" } else { "qemu" };
    Some((kind, vmid.parse().ok()?))
}

/// Guests of a kind that any recording is about.
pub fn known(all: &[Recording], kind: &str) -> Vec<u32> {
    let mut known = Vec::new();
    for recording in all {
        let steps = recording.steps();
        if steps.get(2) == Some(&kind) {
            known.extend(steps.get(3).and_then(|vmid| vmid.parse::<u32>().ok()));
            for name in ["newid", "vmid"] {
                known.extend(recording.given(name).and_then(|vmid| vmid.parse::<u32>().ok()));
            }
        }
    }
    known.sort_unstable();
    known.dedup();
    known
}

/// What the recording that shows it and is nearest in time shows; for a guest that none shows, a plain one.
pub fn nearest(all: &[Recording], kind: &str, vmid: u32, seq: u64) -> Value {
    // What was shown before counts first: what came after may have been what the recording did.
    let found = all
        .iter()
        .filter(|other| shown(other) == Some((kind, vmid)))
        .min_by_key(|other| (other.seq > seq, other.seq.abs_diff(seq)));
    if let Some(found) = found {
        let mut config = found.data().clone();
        for beside in ["lock", "parent", "protection"] {
            config.as_object_mut().and_then(|config| config.remove(beside));
        }
        return config;
    }
    if kind == "lxc" {
        return json!({
            "arch": "amd64", "hostname": format!("ct{vmid}"), "memory": 128, "swap": 0, "ostype": "alpine", "unprivileged": 1,
            "rootfs": format!("local:{vmid}/subvol-{vmid}-disk-0.subvol,size=0T"),
        });
    }
    if vmid == 220 {
        return json!({
            "agent": "enabled=1", "boot": "order=scsi0;net0", "memory": "256", "name": "agentvm", "serial0": "socket",
            "net0": "virtio=BC:24:11:7B:EA:65,bridge=vmbr0", "scsi0": "local:220/vm-220-disk-0.raw,size=1G",
        });
    }
    // Copies are of the first one.
    let first = all.iter().filter(|other| shown(other) == Some((kind, 100))).max_by_key(|other| other.seq);
    let mut config = first.map_or_else(|| json!({"memory": "512"}), |first| first.data().clone());
    for (_, value) in config.as_object_mut().into_iter().flatten() {
        if let Some(text) = value.as_str() {
            *value = json!(text.replace("100/vm-100-", &format!("{vmid}/vm-{vmid}-")));
        }
    }
    config["name"] = json!(format!("vm{vmid}"));
    config
}

/// The configuration before a recording.
pub fn of(all: &[Recording], kind: &str, vmid: u32, recording: &Recording) -> Value {
    if shown(recording) == Some((kind, vmid)) {
        return recording.data().clone();
    }
    // A digest that fitted was that of a configuration which another recording shows.
    if let Some(digest) = recording.given("digest")
        && recording.status() == 200
        && let Some(other) = all.iter().find(|other| other.data()["digest"] == digest && shown(other).is_some())
    {
        return other.data().clone();
    }
    let mut config = nearest(all, kind, vmid, recording.seq);
    match recording.steps().get(4..).unwrap_or_default() {
        ["pending"] => {
            let rows = recording.data().as_array().cloned().unwrap_or_default();
            let values = rows.iter().filter(|row| row["key"] != "digest" && row.get("value").is_some());
            let values: Map<String, Value> =
                values.map(|row| (row["key"].as_str().unwrap_or_default().to_owned(), row["value"].clone())).collect();
            if !values.is_empty() {
                config = Value::Object(values);
            }
        }
        ["status", "current"] => fit(&mut config, kind, vmid, recording.data()),
        ["cloudinit", "dump"] => {
            let text = recording.data().as_str().unwrap_or_default();
            if let Some(name) = text.lines().find_map(|line| line.strip_prefix("fqdn: ")) {
                config["name"] = json!(name);
            }
        }
        // What can be kept as a snapshot is on disks that can.
        ["feature"] if recording.data()["hasFeature"] == 1 => {
            for (_, value) in config.as_object_mut().into_iter().flatten() {
                if let Some(text) = value.as_str() {
                    *value = json!(text.replace(".vmdk", ".qcow2").replace(".raw", ".qcow2"));
                }
            }
        }
        _ => needed(&mut config, vmid, recording),
    }
    config
}

/// Disks that the request names are there, unless the answer says that they are not.
fn needed(config: &mut Value, vmid: u32, recording: &Recording) {
    let names = ["disk", "delete", "idlist"].into_iter().flat_map(|name| recording.all_given(name));
    for name in names.filter(|name| name.starts_with("scsi") || name.starts_with("unused")) {
        let missing = recording.message().contains("does not exist") || recording.status() == 200 && name == "scsi5";
        if config.get(&name).is_none() && !missing {
            config[&name] = json!(format!("local:{vmid}/vm-{vmid}-disk-8.raw,size=1G"));
        }
    }
    // What grew to a size was smaller.
    if recording.steps().last() == Some(&"resize")
        && recording.given("size").is_some_and(|size| size.len() == 2 && size != "1G")
        && let Some(disk) = recording.given("disk")
    {
        config[disk] = json!(format!("local:{vmid}/vm-{vmid}-disk-0.qcow2,size=1G"));
    }
}

/// Makes a configuration of one that a list or a status shows.
pub fn fit(config: &mut Value, kind: &str, vmid: u32, row: &Value) {
    let name = row["name"].as_str().unwrap_or_default();
    let name_key = if kind == "lxc" { "hostname" } else { "name" };
    if name == format!("VM {vmid}") {
        config.as_object_mut().and_then(|config| config.remove(name_key));
    } else if !name.is_empty() {
        config[name_key] = json!(name);
    }
    let mebibytes = row["maxmem"].as_u64().unwrap_or_default() >> 20;
    if mebibytes > 0 {
        config["memory"] = if kind == "lxc" { json!(mebibytes) } else { json!(mebibytes.to_string()) };
    }
    if kind == "lxc" {
        config["swap"] = json!(row["maxswap"].as_u64().unwrap_or_default() >> 20);
        return;
    }
    config["cores"] = row["cpus"].clone();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(fields) = config.as_object_mut() {
            match value {
                Some(value) => drop(fields.insert(key.to_owned(), value)),
                None => drop(fields.remove(key)),
            }
        }
    };
    put("serial0", (row["serial"] == 1).then(|| json!("socket")));
    put("vga", row.get("clipboard").map(|_| json!("none")));
    put("template", (row["template"] == 1).then(|| json!(1)));
    if row.get("qmpstatus").is_some() && row.get("ha").is_some() {
        put("agent", (row["agent"] == 1).then(|| json!("1")));
        for index in 0..4 {
            let there = row["nics"].get(format!("tap{vmid}i{index}")).is_some();
            if row["status"] == "running" {
                put(&format!("net{index}"), there.then(|| json!("virtio=BC:24:11:00:00:01,bridge=vmbr0")));
            }
        }
    }
    match row["maxdisk"].as_u64() {
        Some(0) => put("boot", Some(json!(" "))),
        Some(size) => {
            put("scsi0", Some(json!(format!("local:{vmid}/vm-{vmid}-disk-0.qcow2,size={}K", size >> 10))));
            put("boot", Some(json!("order=scsi0")));
        }
        None => {}
    }
}

/// Makes a template's configuration of a guest's.
pub fn template(config: &mut Value, vmid: u32) {
    config["template"] = json!(1);
    for (_, value) in config.as_object_mut().into_iter().flatten() {
        if let Some(text) = value.as_str() {
            let based = text.replace(&format!("/vm-{vmid}-"), &format!("/base-{vmid}-"));
            *value = json!(based.replace(".raw", ".qcow2"));
        }
    }
}

/// What the answer shows to be pending.
pub fn pending(recording: &Recording) -> Option<(Value, Vec<String>)> {
    if recording.steps().get(4..) != Some(&["pending"]) {
        return None;
    }
    let rows = recording.data().as_array()?;
    let key = |row: &Value| row["key"].as_str().unwrap_or_default().to_owned();
    let set: Map<String, Value> = rows.iter().filter_map(|row| Some((key(row), row.get("pending")?.clone()))).collect();
    let delete = rows.iter().filter(|row| row.get("delete").is_some()).map(key).collect();
    Some((Value::Object(set), delete))
}

/// Storages that new volumes of a request are on.
pub fn storages(recording: &Recording) -> Vec<String> {
    let fields = recording.request["form"].as_object();
    let texts = fields.into_iter().flatten().filter_map(|(_, value)| value.as_str());
    texts
        .filter_map(|text| text.split_once(':'))
        .filter(|(storage, rest)| !storage.is_empty() && rest.starts_with(|c: char| c.is_ascii_digit()))
        .map(|(storage, _)| storage.to_owned())
        .collect()
}
