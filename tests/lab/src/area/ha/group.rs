//! Groups of nodes, which releases before rules have.

use serde_json::{Value, json};

use super::{Changed, RESOURCES, digest_of};
use crate::answer::Refusal;
use crate::area::Call;
use crate::state::Cluster;

const LIST: &str = "/cluster/ha/groups";

type Change = fn(&mut Cluster, &Call<'_>) -> Changed;

/// What a call does to groups, if it is about them.
pub(super) fn change(call: &Call<'_>) -> Option<Change> {
    Some(match call.operation.name.as_str() {
        "POST /cluster/ha/groups" => create,
        "PUT /cluster/ha/groups/{group}" => update,
        "DELETE /cluster/ha/groups/{group}" => delete,
        _ => return None,
    })
}

fn create(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    let id = call.text("group");
    if cluster.sections.get(LIST, id).is_some() {
        return Err(Refusal::failed(format!("create ha group failed: ha group ID '{id}' already defined")));
    }
    let mut group = call.fields(&["group"]);
    group.insert("type".to_owned(), json!("group"));
    cluster.sections.put(LIST, id, Value::Object(group));
    Ok(Value::Null)
}

fn update(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    call.unchanged(&digest_of(cluster, LIST))?;
    let id = call.text("group");
    let group = cluster.sections.get_mut(LIST, id);
    let group = group.ok_or_else(|| Refusal::failed(format!("no such ha group '{id}'")))?;
    call.delete_from(group, &["type", "nodes"])?;
    group.extend(call.fields(&["group"]));
    Ok(Value::Null)
}

/// A group that a resource names stays.
fn delete(cluster: &mut Cluster, call: &Call<'_>) -> Changed {
    let id = call.text("group");
    let mut resources = cluster.sections.entries(RESOURCES).into_iter().flatten();
    let used = resources.find(|(_, entry)| entry.get("group").and_then(Value::as_str) == Some(id));
    if let Some((sid, _)) = used {
        return Err(Refusal::failed(format!("ha group '{id}' is used by service '{sid}'")));
    }
    if !cluster.sections.remove(LIST, id) {
        return Err(Refusal::failed(format!("no such ha group '{id}'")));
    }
    Ok(Value::Null)
}
