//! Pools and who is in them.

use lab::Arrange;
use serde_json::{Value, json};

use super::decoded;
use crate::recording::Recording;
use crate::stage::Stage;

pub fn before(stage: &mut Stage<'_>, recording: &Recording, path: &str) {
    let ok = recording.status() == 200;
    let (_, query) = recording.url().split_once('?').unwrap_or_default();
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("poolid=")).map(decoded);
    let name = path.strip_prefix("/pools/").map(str::to_owned).or(asked);
    let Some(name) = name.or_else(|| recording.given("poolid").map(str::to_owned)) else {
        if ok {
            shows(stage, recording.url().trim_start_matches("/api2/json"), recording.data().clone());
        }
        return;
    };
    let pool = format!("/pools/{name}");
    let message = recording.message();
    if let Some((parent, _)) = name.rsplit_once('/').filter(|_| ok) {
        shows(stage, &format!("/pools/{parent}"), json!({}));
    }
    match recording.method() {
        "GET" if ok => shows(stage, recording.url().trim_start_matches("/api2/json"), recording.data().clone()),
        "POST" if message.contains("already ") => shows(stage, &pool, json!({})),
        "DELETE" if message.contains("is not empty") => {
            shows(stage, &pool, json!({}));
            if let Some((_, rest)) = message.split_once("contains pool '") {
                let below = rest.split('\'').next().unwrap_or_default();
                shows(stage, &format!("/pools/{below}"), json!({}));
            }
        }
        "DELETE" if ok => {
            stage.lab.arrange(Arrange::Gone(pool.clone()));
            shows(stage, &pool, json!({}));
        }
        "PUT" if !message.contains("does not exist") => {
            let there = recording.given("delete") == Some("1") || message.contains("already ");
            shows(stage, &pool, json!({"members": if there { members(recording) } else { Vec::new() }}));
        }
        _ => stage.lab.arrange(Arrange::Gone(pool)),
    }
}

fn members(recording: &Recording) -> Vec<Value> {
    let listed =
        |name: &str| recording.given(name).unwrap_or_default().split(',').map(str::to_owned).collect::<Vec<_>>();
    let guests = listed("vms").into_iter().filter(|vmid| !vmid.is_empty());
    let guests =
        guests.flat_map(|vmid| ["qemu", "lxc"].map(|kind| json!({"id": format!("{kind}/{vmid}"), "type": kind})));
    let storages = listed("storage").into_iter().filter(|name| !name.is_empty());
    guests.chain(storages.map(|name| json!({"type": "storage", "storage": name}))).collect()
}

fn shows(stage: &mut Stage<'_>, read: &str, data: Value) {
    stage.lab.arrange(Arrange::Shows { read: read.to_owned(), data });
}
