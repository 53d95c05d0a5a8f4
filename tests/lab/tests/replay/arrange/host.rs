//! A node's settings, names of peers, and what is kept for the datacenter.

use lab::Arrange;
use serde_json::json;

use crate::question::Question;
use crate::stage::Stage;

pub async fn before(stage: &mut Stage<'_>, question: &Question) {
    let steps = question.steps();
    if matches!(question.status, 595 | 596)
        && let ["nodes", name, ..] = steps.as_slice()
        && *name != "pve1"
    {
        let status = u16::try_from(question.status).unwrap_or_default();
        stage.lab.arrange(Arrange::Peer { name: (*name).to_owned(), status, reason: question.refusal.clone() });
    }
    match (steps.as_slice(), question.method(), question.status) {
        (["nodes", _, "network"], "POST", 400) if question.errors["iface"] == "interface already exists" => {
            stage.call("POST", question.path(), question.fields()).await;
        }
        (["nodes", _, "network", iface], _, 200) => {
            let form = json!({"iface": iface, "type": "bridge"});
            stage.call("POST", "/nodes/pve1/network", &form).await;
        }
        (["cluster", "mapping", kind, id], "PUT" | "DELETE", 200) => {
            let map = json!(["node=pve1,path=/srv/lab1"]);
            stage.call("POST", &format!("/cluster/mapping/{kind}"), &json!({"id": id, "map": map})).await;
        }
        (["cluster", "metrics", "server", id], "PUT" | "DELETE", 200) => {
            let form = json!({"type": "influxdb", "server": "127.0.0.1", "port": "9"});
            stage.call("POST", &format!("/cluster/metrics/server/{id}"), &form).await;
        }
        _ => {}
    }
}
