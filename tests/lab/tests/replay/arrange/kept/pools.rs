//! Pools and who is in them.

use lab::Arrange;
use serde_json::{Value, json};

use crate::question::Question;
use crate::stage::Stage;

pub fn before(stage: &mut Stage<'_>, question: &Question, path: &str) {
    let ok = question.status == 200;
    let asked = question.queried("poolid");
    let name = path.strip_prefix("/pools/").map(str::to_owned).or(asked);
    let Some(name) = name.or_else(|| question.given("poolid").map(str::to_owned)) else { return };
    let pool = format!("/pools/{name}");
    let message = &question.refusal;
    if let Some((parent, _)) = name.rsplit_once('/').filter(|_| ok && question.method() != "GET") {
        shows(stage, &format!("/pools/{parent}"), json!({}));
    }
    match question.method() {
        "GET" if ok => {}
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
            let there = question.given("delete") == Some("1") || message.contains("already ");
            shows(stage, &pool, json!({"members": if there { members(question) } else { Vec::new() }}));
        }
        _ => stage.lab.arrange(Arrange::Gone(pool)),
    }
}

fn members(question: &Question) -> Vec<Value> {
    let listed =
        |name: &str| question.given(name).unwrap_or_default().split(',').map(str::to_owned).collect::<Vec<_>>();
    let guests = listed("vms").into_iter().filter(|vmid| !vmid.is_empty());
    let guests =
        guests.flat_map(|vmid| ["qemu", "lxc"].map(|kind| json!({"id": format!("{kind}/{vmid}"), "type": kind})));
    let storages = listed("storage").into_iter().filter(|name| !name.is_empty());
    guests.chain(storages.map(|name| json!({"type": "storage", "storage": name}))).collect()
}

fn shows(stage: &mut Stage<'_>, read: &str, data: Value) {
    stage.lab.arrange(Arrange::Shows { read: read.to_owned(), data });
}
