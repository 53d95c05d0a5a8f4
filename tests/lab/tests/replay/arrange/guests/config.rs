//! The configuration that a guest had when a recording was made, as other recordings tell it.

use serde_json::{Value, json};

use crate::known::Known;
use crate::question::Question;
use crate::recording::Recording;

/// The guest that a recording shows the whole configuration of.
fn shown(recording: &Recording) -> Option<(&'static str, u32)> {
    let question = &recording.question;
    if !recording.shows() || question.queried("snapshot").is_some() || !question.plain_path().ends_with("/config") {
        return None;
    }
    (question.plain_path().split('/').count() == 6).then(|| super::subject(question)).flatten()
}

/// A configuration without what comes and goes.
fn lasting(recording: &Recording) -> Value {
    let mut config = recording.data().clone();
    for beside in ["lock", "parent", "protection", "digest"] {
        if beside != "protection" || config[beside] == 1 {
            config.as_object_mut().and_then(|config| config.remove(beside));
        }
    }
    config
}

/// What the recordings that show it show, the nearest in time first; what came before counts before what came after,
/// which may have been what the recording did.
pub fn candidates(known: Known<'_>, kind: &str, vmid: u32, seq: u64, most: usize) -> Vec<Value> {
    // Whoever may see a configuration sees all of it.
    let mut found: Vec<&Recording> = known.others().filter(|other| shown(other) == Some((kind, vmid))).collect();
    found.sort_by_key(|other| (other.question.seq > seq, other.question.seq.abs_diff(seq)));
    let mut configs: Vec<Value> = Vec::new();
    for other in found {
        let config = lasting(other);
        if !configs.contains(&config) {
            configs.push(config);
        }
    }
    // What a request that made or changed the guest then set.
    let mut changed: Vec<(u64, Value)> = Vec::new();
    for other in known.others().filter(|other| other.tried() && changes(other, kind, vmid)) {
        for config in &configs {
            changed.push((other.question.seq.abs_diff(seq), overlaid(config, other)));
        }
    }
    changed.retain(|(away, config)| *away <= 60 && !configs.contains(config));
    changed.sort_by_key(|(away, _)| *away);
    changed.dedup_by(|one, other| one.1 == other.1);
    configs.truncate(most);
    configs.extend(changed.into_iter().map(|(_, config)| config).take(most));
    if configs.is_empty() {
        configs.push(unseen(known, kind, vmid));
    }
    configs
}

/// Whether a write makes the guest, or sets its options.
fn changes(write: &Recording, kind: &str, vmid: u32) -> bool {
    let question = &write.question;
    makes(write, kind, vmid)
        || super::subject(question) == Some((kind, vmid)) && question.steps().last() == Some(&"config")
}

/// Whether a write makes the guest.
pub fn makes(write: &Recording, kind: &str, vmid: u32) -> bool {
    let question = &write.question;
    question.method() == "POST"
        && question.path() == format!("/nodes/pve1/{kind}")
        && question.given("vmid").is_some_and(|made| made == vmid.to_string())
}

/// A configuration with the options that a write sets, where it has them; numbers stay numbers.
fn overlaid(config: &Value, write: &Recording) -> Value {
    let mut config = config.clone();
    for (key, value) in write.question.fields().as_object().into_iter().flatten() {
        let plain = !value.as_str().is_some_and(|text| text.contains(':') || text.contains('='));
        match config.get(key) {
            Some(Value::Number(_)) => {
                let number = value.as_str().and_then(|text| text.parse::<i64>().ok()).or(value.as_i64());
                config[key] = number.map_or_else(|| value.clone(), |number| json!(number));
            }
            Some(_) if plain => config[key] = json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            _ => {}
        }
    }
    config
}

/// Guests of a kind that any recording is about.
pub fn known(known: Known<'_>, kind: &str) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    for other in known.others() {
        if other.question.steps().get(2) == Some(&kind) {
            found.extend(super::subject(&other.question).map(|(_, vmid)| vmid));
            for name in ["newid", "vmid"] {
                found.extend(other.question.given(name).and_then(|vmid| vmid.parse::<u32>().ok()));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// What the nearest one shows; for a guest that none shows, a plain one.
pub fn nearest(known: Known<'_>, kind: &str, vmid: u32, seq: u64) -> Value {
    candidates(known, kind, vmid, seq, 1).swap_remove(0)
}

/// The configuration of a guest that no read shows: as the request that made it says, or as that which it was copied from.
fn unseen(known: Known<'_>, kind: &str, vmid: u32) -> Value {
    if kind == "lxc" {
        return json!({
            "arch": "amd64", "hostname": format!("ct{vmid}"), "memory": 128, "swap": 0, "ostype": "alpine", "unprivileged": 1,
            "rootfs": format!("local:{vmid}/subvol-{vmid}-disk-0.subvol,size=0T"),
        });
    }
    // Copies are of the first one.
    let first = known.reads().filter(|other| shown(other) == Some((kind, 100))).max_by_key(|other| other.question.seq);
    let mut config = first.map_or_else(|| json!({"memory": "512"}), lasting);
    for (_, value) in config.as_object_mut().into_iter().flatten() {
        if let Some(text) = value.as_str() {
            *value = json!(text.replace("100/vm-100-", &format!("{vmid}/vm-{vmid}-")));
        }
    }
    config["name"] = json!(format!("vm{vmid}"));
    config
}

/// The configuration before a request.
pub fn of(known: Known<'_>, kind: &str, vmid: u32, question: &Question) -> Value {
    // A digest that fitted was that of a configuration which another recording shows.
    if let Some(digest) = question.given("digest")
        && question.status == 200
        && let Some(other) = known.reads().find(|other| other.data()["digest"] == digest && shown(other).is_some())
    {
        return lasting(other);
    }
    nearest(known, kind, vmid, question.seq)
}

/// Disks that the request names are there, unless the answer says that they are not.
pub fn needed(config: &mut Value, vmid: u32, question: &Question) {
    let names = ["disk", "delete", "idlist"].into_iter().flat_map(|name| question.all_given(name));
    for name in names.filter(|name| name.starts_with("scsi") || name.starts_with("unused")) {
        if config.get(&name).is_none() && !question.says("does not exist") {
            config[&name] = json!(format!("local:{vmid}/vm-{vmid}-disk-8.raw,size=1G"));
        }
    }
    // What grew to a size was smaller.
    if question.steps().last() == Some(&"resize")
        && question.went_well()
        && question.given("size").is_some_and(|size| !size.starts_with('+'))
        && let Some(disk) = question.given("disk")
    {
        config[disk] = json!(format!("local:{vmid}/vm-{vmid}-disk-0.qcow2,size=1G"));
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

/// Storages that new volumes of a request are on.
pub fn storages(question: &Question) -> Vec<String> {
    let fields = question.fields().as_object();
    let texts = fields.into_iter().flatten().filter_map(|(_, value)| value.as_str());
    texts
        .filter_map(|text| text.split_once(':'))
        .filter(|(storage, rest)| !storage.is_empty() && rest.starts_with(|c: char| c.is_ascii_digit()))
        .map(|(storage, _)| storage.to_owned())
        .collect()
}
