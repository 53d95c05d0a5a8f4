//! Guests: what has to be configured, running or locked before a recording.
//!
//! What a guest was like is told by the other recordings: those that show it, those that changed it; and by the words of
//! a refusal, or how the task ended that the recording began.

pub mod config;
mod ways;

use lab::Arrange;
use serde_json::{Value, json};

use super::Way;
use crate::question::Question;
use crate::stage::Stage;
pub use ways::{Before, ways};

/// The guest that a request is about.
pub fn subject(question: &Question) -> Option<(&'static str, u32)> {
    let path = question.plain_path();
    // A backup is of the guest that its name tells.
    if let Some(volume) = question.queried("volume").filter(|_| question.status == 200) {
        let parts: Vec<&str> = volume.split('-').collect();
        let [_, kind, vmid, ..] = parts.as_slice() else { return None };
        return Some((if *kind == "lxc" { "lxc" } else { "qemu" }, vmid.parse().ok()?));
    }
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    let (kind, vmid) = match steps.as_slice() {
        ["nodes", _, kind @ ("qemu" | "lxc"), vmid, ..] => (*kind, *vmid),
        _ => return None,
    };
    Some((if kind == "lxc" { "lxc" } else { "qemu" }, vmid.parse().ok()?))
}

pub async fn before(stage: &mut Stage<'_>, question: &Question, way: &Way<'_>) {
    let as_it_was = way.guest.as_ref();
    let steps = question.steps();
    if steps.get(1) == Some(&"bulk-action") {
        for vmid in question.all_given("vms").iter().filter_map(|vmid| vmid.parse().ok()).filter(|vmid| *vmid < 900) {
            let config = config::nearest(stage.known, "qemu", vmid, question.seq);
            stage.lab.arrange(Arrange::Guest { vmid, kind: "qemu".to_owned(), config });
            // Most are about guests that are as they are to become.
            let running = (steps.last() == Some(&"start")) != way.other;
            stage.lab.arrange(Arrange::Running { vmid, running });
        }
    }
    if let (Some(&kind @ ("qemu" | "lxc")), None, "POST") = (steps.get(2), steps.get(3), question.method()) {
        return created(stage, kind, question).await;
    }
    let Some((kind, vmid)) = subject(question) else { return };
    if question.says("does not exist") && question.says(&format!("/{vmid}.conf'")) {
        stage.lab.arrange(Arrange::NoGuest(vmid));
        return;
    }
    if as_it_was.is_some_and(|before| before.config.is_null()) {
        stage.lab.arrange(Arrange::NoGuest(vmid));
        return;
    }
    place(stage, kind, vmid, question, as_it_was);
    let rest = steps.get(4..).unwrap_or_default();
    snapshots(stage, vmid, rest, question);
    match rest {
        ["clone"] => copied(stage, kind, vmid, question),
        [] if question.method() == "DELETE" && question.says("linked clone") => linked(stage, kind, vmid),
        ["agent", ..] => inside(stage, vmid, question).await,
        _ => {}
    }
    managed(stage, kind, vmid, question, as_it_was.is_some_and(|before| before.managed)).await;
    if way.ending || question.says("can't lock file") {
        shutdown(stage, kind, vmid).await;
    }
    for name in question.named("bridge '", "' does not exist") {
        stage.lab.arrange(Arrange::Bridge { name, there: false });
    }
}

/// The guest itself, with what is about to change, running or locked as the question tells.
fn place(stage: &Stage<'_>, kind: &str, vmid: u32, question: &Question, as_it_was: Option<&Before>) {
    let mut config = match as_it_was {
        Some(before) => before.config.clone(),
        None => config::of(stage.known, kind, vmid, question),
    };
    config::needed(&mut config, vmid, question);
    if question.says("template") && !question.says("if VM is running") {
        config::template(&mut config, vmid);
    }
    if question.says("protection mode enabled") {
        config["protection"] = json!(1);
    }
    stage.lab.arrange(Arrange::Kvm(!question.says("KVM virtualisation configured, but not available")));
    stage.lab.arrange(Arrange::Bridge { name: "vmbr0".to_owned(), there: true });
    stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    let running = as_it_was.map_or_else(|| runs(question), |before| before.running);
    stage.lab.arrange(Arrange::Running { vmid, running });
    stage.lab.arrange(Arrange::Paused { vmid, paused: false });
    let locked = as_it_was.and_then(|before| before.lock.clone());
    if let Some(lock) = locked.or_else(|| question.named("is locked (", ")").into_iter().next()) {
        stage.lab.arrange(Arrange::Lock { vmid, lock: Some(lock) });
    }
}

/// Whether the guest ran when the recording was made, as far as the question tells.
fn runs(question: &Question) -> bool {
    let steps = question.steps();
    if question.says("not running") && !question.says("agent is not running") && !question.says("Agent is not running")
    {
        return false;
    }
    if question.says("is running") || question.says("already running") || question.says("hotplug problem") {
        return true;
    }
    match steps.get(4..).unwrap_or_default() {
        ["agent", ..]
        | ["sendkey" | "vncproxy" | "termproxy" | "monitor"]
        | ["status", "reset" | "suspend" | "resume" | "reboot"] => true,
        ["status", "shutdown"] => {
            question.limited || question.says("got timeout") || question.says("interrupt") || question.says("overruled")
        }
        ["config" | "snapshot" | "resize" | "clone" | "unlink" | "move_disk", ..] => question.limited,
        _ => false,
    }
}

/// A guest that was made was not there, unless the answer says that it was.
async fn created(stage: &Stage<'_>, kind: &str, question: &Question) {
    let Some(vmid) = question.given("vmid").and_then(|vmid| vmid.parse().ok()) else { return };
    let exists = question.says("already exists") || question.given("force") == Some("1");
    if exists {
        let config = config::nearest(stage.known, kind, vmid, question.seq);
        stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    } else {
        stage.lab.arrange(Arrange::NoGuest(vmid));
    }
    if let Some(source) = question.given("ostemplate")
        && question.went_well()
    {
        let of = source.split('-').nth(2).filter(|_| source.contains(":backup/")).and_then(|vmid| vmid.parse().ok());
        stage.lab.arrange(Arrange::Volume { id: source.to_owned(), vmid: of });
    }
    // A storage that the recording could name was defined before.
    if question.status != 200 {
        return;
    }
    for storage in config::storages(question) {
        let define = stage.known.writes().find(|other| {
            other.question.method() == "POST"
                && other.question.path() == "/storage"
                && other.question.given("storage") == Some(&storage)
        });
        match define {
            Some(define) => drop(stage.repeat(define).await),
            None if !question.says("does not exist") => folder(stage, &storage, question).await,
            None => {}
        }
    }
}

/// A storage that nothing tells more of: a folder, to which nothing is mounted where a refusal says so.
async fn folder(stage: &Stage<'_>, name: &str, question: &Question) {
    let path = question.named("directory '", "'").into_iter().next().unwrap_or_else(|| format!("/srv/{name}"));
    let mut form = json!({"storage": name, "type": "dir", "path": path, "content": "images,rootdir"});
    if question.says("mount point") {
        form["is_mountpoint"] = json!("1");
    }
    form["disable"] = json!("1");
    stage.call("POST", "/storage", &form).await;
    // Only what is disabled can be made where nothing is mounted.
    if !question.says("is disabled") {
        stage.call("PUT", &format!("/storage/{name}"), &json!({"delete": "disable"})).await;
    }
}

/// Snapshots that the request names are there, unless the answer says that they are not, or it makes them.
fn snapshots(stage: &Stage<'_>, vmid: u32, rest: &[&str], question: &Question) {
    let rows = match rest {
        ["snapshot"] if question.method() == "GET" => return,
        ["snapshot"] => {
            question.named("snapshot name '", "' already used").into_iter().map(|name| json!({"name": name})).collect()
        }
        ["snapshot", name, ..] if !question.says("does not exist") => vec![snapshot(stage, name)],
        ["config"] => match question.queried("snapshot") {
            Some(name) if question.status == 200 => vec![snapshot(stage, &name)],
            _ => return,
        },
        _ => return,
    };
    stage.lab.arrange(Arrange::Snapshots { vmid, rows });
}

/// A snapshot as some list shows it.
fn snapshot(stage: &Stage<'_>, name: &str) -> Value {
    let lists = stage.known.reads().filter(|other| other.question.path().ends_with("/snapshot"));
    let mut rows = lists.flat_map(|list| list.data().as_array().into_iter().flatten());
    rows.find(|row| row["name"] == name).cloned().unwrap_or_else(|| json!({"name": name}))
}

/// Nothing is where a copy goes, unless the answer says so.
fn copied(stage: &Stage<'_>, kind: &str, vmid: u32, question: &Question) {
    let Some(new) = question.given("newid").and_then(|vmid| vmid.parse().ok()) else { return };
    if !question.says("already exists") {
        stage.lab.arrange(Arrange::NoGuest(new));
    }
    // A copy that nothing says to be a full one is linked: what it is of was a template.
    if question.given("full").is_none() && question.status == 200 {
        let mut config = config::of(stage.known, kind, vmid, question);
        config::template(&mut config, vmid);
        stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    }
}

/// A linked clone of the guest.
fn linked(stage: &Stage<'_>, kind: &str, vmid: u32) {
    let mut config = config::nearest(stage.known, kind, vmid, 0);
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

/// Processes whose end is read had been started, by the request that was answered with their id.
async fn inside(stage: &mut Stage<'_>, vmid: u32, question: &Question) {
    let Some(pid) = question.queried("pid") else { return };
    if question.status != 200 {
        // One that is gone was read to its end before.
        stage.call("GET", &format!("/nodes/pve1/qemu/{vmid}/agent/exec-status?pid={pid}"), &Value::Null).await;
        return;
    }
    let began = stage
        .known
        .others()
        .find(|other| other.data()["pid"].to_string() == pid && other.question.url().ends_with("/agent/exec"));
    let Some(began) = began else { return };
    let began = stage.repeat(began).await;
    stage.rename(&format!("pid={pid}"), &format!("pid={}", began["data"]["pid"]));
}

/// Whether HA manages the guest.
async fn managed(stage: &Stage<'_>, kind: &str, vmid: u32, question: &Question, was: bool) {
    let sid = format!("{}:{vmid}", if kind == "qemu" { "vm" } else { "ct" });
    let by_task = question.begun.as_deref().is_some_and(|begun| begun.starts_with("ha"));
    if question.says("used in HA resources") || by_task || was {
        stage.call("POST", "/cluster/ha/resources", &json!({"sid": sid})).await;
    } else {
        stage.call("DELETE", &format!("/cluster/ha/resources/{sid}"), &Value::Null).await;
    }
}

/// A shutdown that goes on and on.
async fn shutdown(stage: &mut Stage<'_>, kind: &str, vmid: u32) {
    stage.lab.arrange(Arrange::Running { vmid, running: true });
    let path = format!("/api2/json/nodes/pve1/{kind}/{vmid}/status/shutdown");
    stage.ask("POST", &path, &json!({"timeout": "60"})).await;
}
