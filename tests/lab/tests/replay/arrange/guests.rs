//! Guests: what has to be configured, running or locked before a recording.
//!
//! What a guest was like is told by the recordings themselves: by the answer where it shows the guest, else by the nearest
//! one that does; by the words of an error; by how the task ended that the recording began.

mod config;
mod told;

use lab::Arrange;
use serde_json::{Value, json};

use crate::recording::Recording;
use crate::stage::Stage;
use told::Told;

pub async fn before(stage: &mut Stage<'_>, recording: &Recording) {
    let steps = recording.steps();
    let told = Told::of(stage.all, recording);
    if steps.get(1) == Some(&"bulk-action") {
        for vmid in recording.all_given("vms").iter().filter_map(|vmid| vmid.parse().ok()).filter(|vmid| *vmid < 900) {
            let config = config::nearest(stage.all, "qemu", vmid, recording.seq);
            stage.lab.arrange(Arrange::Guest { vmid, kind: "qemu".to_owned(), config });
            let idle = told.says("not running") || steps.last() == Some(&"start") && !told.says("already running");
            stage.lab.arrange(Arrange::Running { vmid, running: !idle });
        }
    }
    let (Some(&kind @ ("qemu" | "lxc")), rest) = (steps.get(2), steps.get(3..).unwrap_or_default()) else { return };
    let Some(vmid) = rest.first().and_then(|vmid| vmid.split('%').next()?.parse::<u32>().ok()) else {
        match recording.method() {
            "GET" => listed(stage, kind, recording),
            "POST" => created(stage, kind, recording, &told).await,
            _ => {}
        }
        return;
    };
    if told.says("does not exist") && told.says(&format!("/{vmid}.conf'")) {
        stage.lab.arrange(Arrange::NoGuest(vmid));
        return;
    }
    place(stage, kind, vmid, recording, &told);
    let rest = rest.get(1..).unwrap_or_default();
    snapshots(stage, vmid, rest, recording, &told);
    match rest {
        ["clone"] => copied(stage, kind, vmid, recording, &told),
        [] if recording.method() == "DELETE" && told.says("linked clone") => linked(stage, kind, vmid),
        ["agent", ..] => inside(stage, vmid, recording).await,
        _ => {}
    }
    managed(stage, kind, vmid, recording, &told).await;
    overruled(stage, kind, vmid, &told).await;
    for name in told.missing("bridge '", "' does not exist") {
        stage.lab.arrange(Arrange::Bridge { name, there: false });
    }
}

/// The guest itself, with what is about to change, running, paused or locked as the recording tells.
fn place(stage: &Stage<'_>, kind: &str, vmid: u32, recording: &Recording, told: &Told) {
    let mut config = config::of(stage.all, kind, vmid, recording);
    if told.says("template") && !told.says("if VM is running") {
        config::template(&mut config, vmid);
    }
    for (words, end) in [("mountpoint ", ")"), ("drive ", ")")] {
        // The log of a copy names what is copied.
        for named in told.missing(&format!("create full clone of {words}"), end) {
            if let Some((key, volume)) = named.split_once(" (") {
                let old = config[key].as_str().unwrap_or_default();
                let rest = old.split_once(',').map_or("size=1G", |(_, rest)| rest);
                config[key] = json!(format!("{volume},{rest}"));
            }
        }
    }
    if told.says("protection mode enabled") {
        config["protection"] = json!(1);
    }
    stage.lab.arrange(Arrange::Kvm(!told.says("KVM virtualisation configured, but not available")));
    stage.lab.arrange(Arrange::Bridge { name: "vmbr0".to_owned(), there: true });
    stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    if let Some((set, delete)) = config::pending(recording) {
        stage.lab.arrange(Arrange::Pending { vmid, set, delete });
    }
    stage.lab.arrange(Arrange::Running { vmid, running: told.runs(recording) });
    stage.lab.arrange(Arrange::Paused { vmid, paused: recording.data()["qmpstatus"] == "paused" });
    let lock = recording.data()["lock"].as_str().map(str::to_owned);
    if let Some(lock) = lock.or_else(|| told.missing("is locked (", ")").into_iter().next()) {
        stage.lab.arrange(Arrange::Lock { vmid, lock: Some(lock) });
    }
}

/// A list shows who is there, and nobody else is.
fn listed(stage: &Stage<'_>, kind: &str, recording: &Recording) {
    let Some(rows) = recording.data().as_array().filter(|_| recording.request["auth"] == "root") else { return };
    for vmid in config::known(stage.all, kind) {
        stage.lab.arrange(Arrange::NoGuest(vmid));
    }
    for row in rows {
        let Some(vmid) = row["vmid"].as_u64().and_then(|vmid| u32::try_from(vmid).ok()) else { continue };
        let mut config = config::nearest(stage.all, kind, vmid, recording.seq);
        config::fit(&mut config, kind, vmid, row);
        stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
        stage.lab.arrange(Arrange::Running { vmid, running: row["status"] == "running" });
    }
}

/// A guest that was made was not there, unless the answer says that it was.
async fn created(stage: &Stage<'_>, kind: &str, recording: &Recording, told: &Told) {
    let Some(vmid) = recording.given("vmid").and_then(|vmid| vmid.parse().ok()) else { return };
    let exists = told.says("already exists") || recording.given("force") == Some("1");
    if exists {
        let config = config::nearest(stage.all, kind, vmid, recording.seq);
        stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    } else {
        stage.lab.arrange(Arrange::NoGuest(vmid));
    }
    if let Some(source) = recording.given("ostemplate")
        && told.went_well(recording)
    {
        let of = (recording.given("restore") == Some("1")).then_some(300);
        stage.lab.arrange(Arrange::Volume { id: source.to_owned(), vmid: of });
    }
    // A storage that the recording could name was defined before.
    for storage in config::storages(recording) {
        let define = stage.all.iter().find(|other| {
            other.method() == "POST"
                && other.path() == "/storage"
                && other.status() == 200
                && other.given("storage") == Some(&storage)
        });
        if let Some(define) = define
            && recording.status() == 200
        {
            stage.call("POST", "/storage", &define.request["form"]).await;
        }
    }
}

/// Snapshots that the recording names are there, unless it says that they are not, or makes them.
fn snapshots(stage: &Stage<'_>, vmid: u32, rest: &[&str], recording: &Recording, told: &Told) {
    let rows = match rest {
        ["snapshot"] if recording.method() == "GET" => recording.data().as_array().cloned().unwrap_or_default(),
        ["snapshot"] => {
            told.missing("snapshot name '", "' already used").into_iter().map(|name| json!({"name": name})).collect()
        }
        ["snapshot", name, ..] if !told.says("does not exist") => vec![json!({"name": name})],
        ["config"] => match config::query(recording, "snapshot") {
            Some(name) if recording.status() == 200 => {
                let mut row = recording.data().clone();
                row["name"] = json!(name);
                row["config"] = recording.data().clone();
                vec![row]
            }
            _ => return,
        },
        _ => return,
    };
    stage.lab.arrange(Arrange::Snapshots { vmid, rows });
}

/// What is copied from, as the log of the copy tells, and nothing where the copy goes.
fn copied(stage: &Stage<'_>, kind: &str, vmid: u32, recording: &Recording, told: &Told) {
    let Some(new) = recording.given("newid").and_then(|vmid| vmid.parse().ok()) else { return };
    if !told.says("already exists") && !told.says("config file already exists") {
        stage.lab.arrange(Arrange::NoGuest(new));
    }
    if told.says("create linked clone") {
        let mut config = config::of(stage.all, kind, vmid, recording);
        config::template(&mut config, vmid);
        stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    }
}

/// A linked clone of the guest.
fn linked(stage: &Stage<'_>, kind: &str, vmid: u32) {
    let mut config = config::nearest(stage.all, kind, vmid, 0);
    config::template(&mut config, vmid);
    stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config: config.clone() });
    let new = vmid + 1;
    let based = config["scsi0"].as_str().unwrap_or_default();
    let (volume, rest) = based.split_once(',').unwrap_or((based, ""));
    config["scsi0"] = json!(format!("{volume}/{new}/vm-{new}-disk-0.qcow2,{rest}"));
    for key in ["template", "scsi2"] {
        config.as_object_mut().and_then(|config| config.remove(key));
    }
    stage.lab.arrange(Arrange::Guest { vmid: new, kind: kind.to_owned(), config });
}

/// Files that were read were there; processes whose end was read had been started.
async fn inside(stage: &mut Stage<'_>, vmid: u32, recording: &Recording) {
    if let Some(path) = config::query(recording, "file")
        && let Some(content) = recording.data()["content"].as_str()
    {
        let content = content.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
        stage.lab.arrange(Arrange::File { vmid, path, content });
    }
    let Some(pid) = config::query(recording, "pid") else { return };
    if recording.status() != 200 {
        // One that is gone was read to its end before.
        stage.call("GET", &format!("/nodes/pve1/qemu/{vmid}/agent/exec-status?pid={pid}"), &Value::Null).await;
        return;
    }
    let of_pid = |other: &&Recording| other.data()["pid"].to_string() == pid && other.url().ends_with("/agent/exec");
    let data = recording.data();
    let command = match stage.all.iter().find(of_pid) {
        Some(began) => began.request["form"].clone(),
        None if data["exited"] == 0 => json!([["command", "sleep"], ["command", "60"]]),
        None if data["exited"] == 1 => {
            let line = |key: &str, to: &str| match data[key].as_str() {
                Some(text) => format!("echo {}{to};", text.trim_end()),
                None => String::new(),
            };
            let script = format!("{}{} exit {}", line("out-data", ""), line("err-data", " >&2"), data["exitcode"]);
            json!([["command", "sh"], ["command", "-c"], ["command", script]])
        }
        None => return,
    };
    let began = stage.call("POST", &format!("/nodes/pve1/qemu/{vmid}/agent/exec"), &command).await;
    stage.rename(&format!("pid={pid}"), &format!("pid={}", began["data"]["pid"]));
}

/// Whether HA manages the guest.
async fn managed(stage: &Stage<'_>, kind: &str, vmid: u32, recording: &Recording, told: &Told) {
    let sid = format!("{}:{vmid}", if kind == "qemu" { "vm" } else { "ct" });
    let by_task = recording.data().as_str().is_some_and(|upid| upid.contains(":hast") || upid.contains(":hamigrate"));
    if told.says("used in HA resources") || by_task || recording.data()["ha"]["managed"] == 1 {
        stage.call("POST", "/cluster/ha/resources", &json!({"sid": sid})).await;
    } else {
        stage.call("DELETE", &format!("/cluster/ha/resources/{sid}"), &Value::Null).await;
    }
}

/// A shutdown that goes on and on, where the recording's task met one.
async fn overruled(stage: &mut Stage<'_>, kind: &str, vmid: u32, told: &Told) {
    if !(told.says("overruled") || told.says("can't lock file")) {
        return;
    }
    stage.lab.arrange(Arrange::Running { vmid, running: true });
    let path = format!("/api2/json/nodes/pve1/{kind}/{vmid}/status/shutdown");
    let began = stage.ask("POST", &path, &json!({"timeout": "60"})).await;
    if let (Some(own), Some(recorded)) = (began["data"].as_str(), told.missing("tasks: ", "lab:").first()) {
        let recorded = format!("{recorded}lab:");
        stage.stand_in(&recorded, own);
    }
}
