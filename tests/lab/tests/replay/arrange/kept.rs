//! What is kept beside guests and users: storages and volumes, pools, jobs, firewalls, HA, SDN, notifications.
//!
//! A read that succeeded tells what was there. What is changed or removed was there, and was made by the request that
//! some recording holds; what is made was not there. Refusals say what was there, or was not.

mod pools;
mod volumes;

use lab::Arrange;
use serde_json::{Value, json};

use crate::question::Question;
use crate::stage::Stage;

const SDN: &str = "/cluster/sdn";

/// Whether a path is about what this file arranges.
fn ours(path: &str) -> bool {
    let starts = [
        "/storage",
        "/pools",
        "/cluster/backup",
        "/cluster/firewall",
        "/cluster/ha",
        SDN,
        "/cluster/notifications",
        "/cluster/jobs/realm-sync",
        "/cluster/replication",
    ];
    let node = path.strip_prefix("/nodes/").and_then(|rest| rest.split_once('/')).map_or("", |(_, rest)| rest);
    starts.iter().any(|start| path.starts_with(start))
        || node.starts_with("storage")
        || node.starts_with("vzdump")
        || path.contains("/firewall/")
}

pub async fn before(stage: &mut Stage<'_>, question: &Question, missing: bool) {
    let path = question.plain_path();
    volumes::sources(stage, question).await;
    if !ours(&path) {
        return;
    }
    volumes::settled(stage).await;
    let ok = question.status == 200;
    if path.starts_with(SDN) {
        network(stage, question, &path).await;
    }
    if path.starts_with("/pools") {
        return pools::before(stage, question, &path);
    }
    said(stage, question, &path).await;
    match question.method() {
        "GET" if question.refusal.contains("not found") => stage.lab.arrange(Arrange::Gone(path)),
        "POST" => {
            if !question.complaint().contains("already ")
                && let Some(made) = made(question)
            {
                stage.lab.arrange(Arrange::Gone(made));
            }
            if ok {
                needs(stage, question).await;
            }
        }
        "PUT" | "DELETE" if ok => {
            volumes::before(stage, question, &path, missing);
            let kept = path.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('/');
            if kept.ends_with("/rules") {
                rules(stage, question, &path).await;
            } else {
                if question.method() == "DELETE" && (path.contains("/ipset/") || path.contains("/groups/")) {
                    let whole = path.split('/').count() <= 5 || !path.contains("/ipset/");
                    if whole {
                        stage.lab.arrange(Arrange::Gone(path.clone()));
                    }
                }
                present(stage, &path).await;
            }
        }
        _ => {}
    }
}

/// What refusals tell.
async fn said(stage: &mut Stage<'_>, question: &Question, path: &str) {
    let message = question.refusal.clone();
    let quoted = |after: &str| {
        let rest = message.split_once(after)?.1;
        Some(rest.split('\'').next().unwrap_or_default().to_owned())
    };
    if let Some(name) = quoted("storage '").filter(|_| message.contains("does not exist")) {
        stage.lab.arrange(Arrange::Gone(format!("/storage/{name}")));
    }
    if let Some(name) = quoted("storage '").filter(|_| message.contains("is disabled")) {
        let data = json!({"storage": name, "type": "dir", "path": format!("/srv/{name}"), "content": "images,iso", "disable": 1});
        stage.lab.arrange(Arrange::Shows { read: format!("/storage/{name}"), data });
    } else if question.status == 200 || message.contains("unable to create image") {
        // The storage of a path was there.
        let steps: Vec<&str> = path.split('/').collect();
        if let ["", "nodes", _, "storage", name, ..] = steps.as_slice() {
            present(stage, &format!("/storage/{name}")).await;
        }
    }
    let absent = ["no such", "does not exist", "not found", "not HA managed", "No such job"];
    if matches!(question.method(), "PUT" | "DELETE") && absent.iter().any(|text| message.contains(text)) {
        stage.lab.arrange(Arrange::Gone(path.to_owned()));
    }
    if message.contains("is not empty") {
        present(stage, path).await;
        below(stage, path).await;
    }
    if let Some((_, id)) = message.split_once("is used by vnet ") {
        let vnet = id.split_whitespace().next().unwrap_or_default();
        present(stage, &format!("{SDN}/vnets/{vnet}")).await;
    }
    if message.contains("if subnets exists") {
        present(stage, path).await;
        below(stage, &format!("{path}/subnets")).await;
    }
    if message.contains("already defined") {
        needs(stage, question).await;
    }
}

/// The path of what a request that makes something makes.
pub fn made(question: &Question) -> Option<String> {
    let path = question.plain_path();
    let last = path.rsplit('/').next()?;
    let key = match last {
        "storage" if path == "/storage" => "storage",
        "content" => {
            let storage = path.rsplit('/').nth(1)?;
            let (vmid, name) = (question.given("vmid")?, question.given("filename")?);
            return Some(format!("{path}/{storage}:{vmid}/{name}"));
        }
        "users" => "userid",
        "roles" => "roleid",
        "groups" if path.starts_with("/access") => "groupid",
        "domains" => "realm",
        "pools" => "poolid",
        "zones" => "zone",
        "vnets" => "vnet",
        "controllers" => "controller",
        "resources" => "sid",
        "rules" if path.starts_with("/cluster/ha") => "rule",
        "backup" | "replication" => "id",
        "aliases" | "ipset" | "gotify" | "sendmail" | "smtp" | "webhook" | "matchers" => "name",
        "groups" => "group",
        // The id of a subnet begins with the zone, which the request does not name.
        _ => return None,
    };
    Some(format!("{path}/{}", question.given(key)?))
}

/// Makes sure that something is there, by the recorded request that made it.
pub async fn present(stage: &mut Stage<'_>, path: &str) {
    let there = stage.ask("GET", &format!("/api2/json{path}"), &Value::Null).await;
    if !there["data"].is_null() {
        return;
    }
    let maker = stage
        .known
        .writes()
        .find(|other| other.question.method() == "POST" && made(&other.question).as_deref() == Some(path));
    if let Some(maker) = maker {
        Box::pin(needs(stage, &maker.question)).await;
        stage.repeat(maker).await;
    } else if let Some((list, id)) = path.rsplit_once('/').filter(|(list, _)| list.ends_with("/vnets")) {
        // Which zone it was in is not told: it gets one of its own.
        stage.call("POST", &format!("{SDN}/zones"), &json!({"zone": "z1", "type": "simple"})).await;
        stage.call("POST", list, &json!({"vnet": id, "zone": "z1"})).await;
    } else if let Some((list, id)) = path.rsplit_once('/')
        && let Some(form) = plain(list, id)
    {
        stage.call("POST", list, &form).await;
    }
}

/// The least that makes an entry, where no recording tells how it was made.
fn plain(list: &str, id: &str) -> Option<Value> {
    Some(match list.rsplit('/').next()? {
        "ipset" => json!({"name": id}),
        "aliases" => json!({"name": id, "cidr": "192.0.2.0/24"}),
        "groups" if list.contains("/firewall/") => json!({"group": id}),
        "zones" => json!({"zone": id, "type": "simple"}),
        "resources" => json!({"sid": id}),
        "storage" if list == "/storage" => json!({"storage": id, "type": "dir", "path": format!("/srv/{id}")}),
        "backup" => json!({"id": id, "schedule": "daily", "all": "1"}),
        "gotify" => json!({"name": id, "server": "http://127.0.0.1:9", "token": "token"}),
        "sendmail" => json!({"name": id, "mailto-user": "root@pam"}),
        "matchers" => json!({"name": id}),
        _ => return None,
    })
}

/// Makes something below a path, as some recording did.
async fn below(stage: &mut Stage<'_>, path: &str) {
    let maker =
        stage.known.writes().find(|other| other.question.method() == "POST" && other.question.plain_path() == path);
    if let Some(maker) = maker {
        stage.repeat(maker).await;
    }
}

/// Makes sure that what a request names is there.
async fn needs(stage: &mut Stage<'_>, question: &Question) {
    let path = question.plain_path();
    for list in ["/ipset/", "/groups/", "/sdn/vnets/", "/resources/"] {
        if let Some((start, rest)) = path.split_once(list) {
            let name = rest.split('/').next().unwrap_or_default();
            present(stage, &format!("{start}{list}{name}")).await;
        }
    }
    if let Some(zone) = question.given("zone").filter(|_| path.ends_with("/vnets")) {
        present(stage, &format!("{SDN}/zones/{zone}")).await;
    }
    let targets = &question.request["form"]["target"];
    let targets = targets.as_array().cloned().unwrap_or_else(|| vec![targets.clone()]);
    for target in targets.iter().filter_map(Value::as_str) {
        for kind in ["gotify", "sendmail", "smtp", "webhook"] {
            present(stage, &format!("/cluster/notifications/endpoints/{kind}/{target}")).await;
        }
    }
    volumes::programs(stage, question);
}

/// Positions that are named are there.
async fn rules(stage: &mut Stage<'_>, question: &Question, path: &str) {
    let (list, pos) = path.rsplit_once('/').unwrap_or((path, "0"));
    let most =
        [Some(pos), question.given("moveto")].into_iter().flatten().filter_map(|pos| pos.parse::<usize>().ok()).max();
    for _ in 0..=most.unwrap_or_default() {
        let there = stage.ask("GET", &format!("/api2/json{list}"), &Value::Null).await;
        if there["data"].as_array().is_some_and(|rules| rules.len() > most.unwrap_or_default()) {
            break;
        }
        let rule = json!({"type": "in", "action": "ACCEPT", "enable": "0"});
        stage.call("POST", list, &rule).await;
    }
}

/// The lock of the network is held by the token that a request names, or by one that it does not.
async fn network(stage: &mut Stage<'_>, question: &Question, path: &str) {
    let (_, query) = question.url().split_once('?').unwrap_or_default();
    let queried = query.split('&').find_map(|pair| pair.strip_prefix("lock-token="));
    let held = question.given("lock-token").or(queried).map(str::to_owned);
    let other = question.refusal.contains("invalid lock token").then(|| "another".to_owned());
    stage.lab.arrange(Arrange::NetworkLock(held.or(other)));
    if question.refusal.contains("undefined type")
        && let Some(zone) = question.given("zone")
    {
        stage.lab.arrange(Arrange::Gone(format!("{SDN}/zones/{zone}")));
    }
    if path == "/cluster/sdn/lock" && question.method() == "POST" && question.status == 200 {
        stage.call("PUT", SDN, &json!({})).await;
    }
}
