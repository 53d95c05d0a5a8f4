//! Tasks: lists, status, logs.

use serde_json::{Value, json};

use super::{Call, Outcome};
use crate::answer::{Refusal, Reply};
use crate::state::Cluster;
use crate::state::guest::object;
use crate::state::task::Task;

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    match call.path() {
        "/cluster/tasks" => Some(Ok(Value::Array(of_cluster(cluster, call)).into())),
        "/nodes/{node}/tasks" => Some(of_node(cluster, call)),
        "/nodes/{node}/tasks/{upid}/status" => Some(status(cluster, call)),
        "/nodes/{node}/tasks/{upid}/log" => Some(log(cluster, call)),
        _ => None,
    }
}

/// Ends a task that runs. One that has ended already stays as it is.
pub(super) fn write(shared: &std::sync::Arc<crate::gate::Shared>, call: &Call<'_>) -> Option<Outcome> {
    (call.operation.name == "DELETE /nodes/{node}/tasks/{upid}").then(|| {
        let upid = call.text("upid");
        parse(upid)?;
        let running = shared.look(|cluster| {
            let node = &call.node(cluster)?.name;
            let task = cluster.tasks.get(upid);
            let own = task.is_some_and(|task| task.belongs_to(call.caller));
            if !own && !call.may(cluster, &format!("/nodes/{node}"), &["Sys.Modify"]) {
                return Err(Refusal::forbidden(&format!("/nodes/{node}, Sys.Modify")));
            }
            let task = task.ok_or_else(|| Refusal::parameter("upid", "no such task"))?;
            Ok(task.ended.is_none())
        })?;
        if running && !shared.workers.interrupt(upid) {
            shared.change(|cluster| cluster.tasks.end(upid, crate::clock::now(), "received interrupt"));
        }
        Ok(Value::Null.into())
    })
}

fn of_cluster(cluster: &Cluster, call: &Call<'_>) -> Vec<Value> {
    let all = call.may(cluster, "/", &["Sys.Audit"]);
    cluster
        .tasks
        .all
        .iter()
        .rev()
        .filter(|task| all || task.belongs_to(call.caller))
        .enumerate()
        .map(|(nth, task)| {
            let mut row = task.row();
            row.remove("pstart");
            if task.ended.is_some() {
                row.remove("pid");
                // Only the newest end is still told by the node itself, the others by the file that it keeps.
                row.insert("saved".to_owned(), if nth == 0 { json!(1) } else { json!("1") });
            }
            Value::Object(row)
        })
        .collect()
}

/// `errors` means everything but `OK`, and goes before `statusfilter`.
fn wanted(call: &Call<'_>, task: &Task) -> bool {
    let status = task.ended.as_ref().map(|(_, status)| status.as_str());
    let class = match status {
        None | Some("unexpected status") => "unknown",
        Some("OK") => "ok",
        Some(text) if text.starts_with("WARNINGS: ") => "warning",
        Some(_) => "error",
    };
    if call.flag("errors") {
        if status.is_none_or(|status| status == "OK") {
            return false;
        }
    } else if let Some(filter) = call.given("statusfilter")
        && !filter.split([',', ';', ' ', '\0']).any(|wanted| wanted == class)
    {
        return false;
    }
    let source = match call.given("source") {
        Some("active") => task.ended.is_none(),
        Some("all") => true,
        _ => task.ended.is_some(),
    };
    source
        && call.given("typefilter").is_none_or(|kind| task.kind == kind)
        && call.given("userfilter").is_none_or(|user| task.user.contains(user))
        && call.given("vmid").is_none_or(|vmid| task.id == vmid)
        && call.number("since").is_none_or(|since| task.started >= since)
        && call.number("until").is_none_or(|until| task.started <= until)
}

fn of_node(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let node = &call.node(cluster)?.name;
    let all = call.may(cluster, &format!("/nodes/{node}"), &["Sys.Audit"]);
    let found: Vec<&Task> = cluster
        .tasks
        .all
        .iter()
        .rev()
        .filter(|task| task.node == *node && (all || task.belongs_to(call.caller)) && wanted(call, task))
        .collect();
    let rows = found
        .iter()
        .skip(call.count("start").unwrap_or(0))
        .take(call.count("limit").unwrap_or(50))
        .map(|task| {
            let mut row = task.row();
            if task.ended.is_none() {
                row.insert("status".to_owned(), json!("RUNNING"));
                row.insert("saved".to_owned(), json!("0"));
                let owner = row.remove("tokenid").and_then(|token| Some(format!("{}!{}", task.user, token.as_str()?)));
                row.insert("user".to_owned(), json!(owner.unwrap_or_else(|| task.user.clone())));
            }
            Value::Object(row)
        })
        .collect();
    Ok(Reply::counted(Value::Array(rows), found.len()))
}

/// The parts of a UPID are checked before anything is looked up.
fn parse(upid: &str) -> Result<(), Refusal> {
    let parts: Vec<&str> = upid.split(':').collect();
    let hex = |at: usize, lengths: std::ops::RangeInclusive<usize>| {
        parts
            .get(at)
            .is_some_and(|part| lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let whole = parts.len() == 9 && parts.first() == Some(&"UPID") && parts.last() == Some(&"");
    if whole && hex(2, 8..=8) && hex(3, 8..=9) && hex(4, 8..=8) {
        Ok(())
    } else {
        Err(Refusal::parameter("upid", "unable to parse worker upid"))
    }
}

fn find<'a>(cluster: &'a Cluster, call: &Call<'_>) -> Result<Option<&'a Task>, Refusal> {
    let upid = call.text("upid");
    parse(upid)?;
    let node = &call.node(cluster)?.name;
    let task = cluster.tasks.get(upid);
    let own = task.is_some_and(|task| task.belongs_to(call.caller));
    if !own && !call.may(cluster, &format!("/nodes/{node}"), &["Sys.Audit"]) {
        return Err(Refusal::forbidden(&format!("/nodes/{node}, Sys.Audit")));
    }
    Ok(task)
}

fn status(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let task = find(cluster, call)?.ok_or_else(|| Refusal::parameter("upid", "no such task"))?;
    let mut data = object(json!({
        "upid": task.upid,
        "node": task.node,
        "pid": task.pid,
        "pstart": task.pstart,
        "starttime": task.started,
        "type": task.kind,
        "id": task.id,
        "user": task.user,
        "status": if task.ended.is_some() { "stopped" } else { "running" },
    }));
    if let Some(token) = &task.token {
        data.insert("tokenid".to_owned(), json!(token));
    }
    if let Some((_, status)) = &task.ended {
        data.insert("exitstatus".to_owned(), json!(status));
    }
    Ok(Value::Object(data).into())
}

fn log(cluster: &Cluster, call: &Call<'_>) -> Outcome {
    let Some(task) = find(cluster, call)? else {
        return Ok(Reply::lines(&["unable to open file - No such file or directory".to_owned()], 0, 0));
    };
    if call.flag("download") {
        return Ok(Reply::file(task.log.iter().fold(String::new(), |text, line| text + line + "\n")));
    }
    if task.log.is_empty() {
        return Ok(Reply::lines(&["no content".to_owned()], 0, 0));
    }
    Ok(Reply::lines(&task.log, call.count("start").unwrap_or(0), call.count("limit").unwrap_or(50)))
}
