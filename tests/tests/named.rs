//! The named reads: each answers on the lab, by requests that PVE has, in the shape that its definition promises.

use pvegate_generated::model::{Runs, Tool};
use pvegate_generated::terms::Tier;
use pvegate_generated::tools::TOOLS;
use serde_json::{Map, Value, json};
use tests::call::{self, Call};
use tests::site::{CLUSTER, Site};

/// The reads of earlier servers whose names people know.
const NAMES: [&str; 32] = [
    "get_cluster_firewall_options",
    "get_cluster_firewall_rules",
    "get_cluster_status",
    "get_container_config",
    "get_container_ip",
    "get_containers",
    "get_firewall_ipset_entries",
    "get_firewall_security_group_rules",
    "get_guest_firewall_ipset_entries",
    "get_guest_firewall_options",
    "get_guest_firewall_rules",
    "get_guest_status",
    "get_node_firewall_options",
    "get_node_firewall_rules",
    "get_node_status",
    "get_node_updates",
    "get_nodes",
    "get_storage",
    "get_task_log",
    "get_task_status",
    "get_vm_config",
    "get_vms",
    "list_backups",
    "list_firewall_aliases",
    "list_firewall_ipsets",
    "list_firewall_security_groups",
    "list_guest_firewall_aliases",
    "list_guest_firewall_ipsets",
    "list_isos",
    "list_snapshots",
    "list_tasks",
    "list_templates",
];

/// Arguments of the server's own, tried elsewhere.
const OWN: [&str; 4] = ["cluster", "fields", "limit", "cursor"];

fn named() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(|tool| tool.runs != Runs::Gateway && tool.tier == Tier::Read)
}

/// Calls of every named tool: with what it needs, for each kind of guest, and with each further argument. What a
/// tool needs is taken from the sample reads.
pub(crate) fn calls(cluster: &str, samples: &[Call]) -> Vec<(&'static Tool, Value)> {
    let mut calls = Vec::new();
    for tool in named() {
        let operations = match tool.runs {
            Runs::Gateway => continue,
            Runs::One(operation) => vec![operation],
            Runs::ByKind { qemu, lxc } => vec![qemu, lxc],
        };
        let definition: Value = serde_json::from_str(tool.definition).unwrap();
        let schema = &definition["inputSchema"];
        let properties = schema["properties"].as_object().unwrap();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()).collect();
        for operation in operations {
            let sample = &samples.iter().find(|call| call.operation.name == operation).unwrap().arguments;
            let mut needed = Map::new();
            needed.insert("cluster".to_owned(), Value::from(cluster));
            for name in required.iter().filter(|name| **name != "cluster") {
                let text = sample
                    .get(*name)
                    .unwrap_or_else(|| panic!("{}: no sample of `{name}`", tool.name))
                    .as_str()
                    .unwrap();
                let text = if tool.name == "list_backups" && *name == "storage" { "nas" } else { text };
                needed.insert((*name).to_owned(), typed(&properties[*name], text));
            }
            for name in
                properties.keys().filter(|name| !OWN.contains(&name.as_str()) && !required.contains(&name.as_str()))
            {
                let mut arguments = needed.clone();
                arguments.insert(name.clone(), typed(&properties[name], optional(tool, operation, name)));
                calls.push((tool, Value::Object(arguments)));
            }
            calls.push((tool, Value::Object(needed)));
        }
    }
    calls
}

/// A value of an argument that may be left out.
fn optional(tool: &Tool, operation: &str, name: &str) -> &'static str {
    match name {
        "current" | "enabled" | "errors" => "1",
        "snapshot" if operation.contains("/lxc/") => "clean",
        "snapshot" => "before-upgrade",
        "content" => "iso",
        "storage" => "local",
        "target" => "pve2",
        "vmid" => "100",
        "typefilter" => "qmstart",
        "statusfilter" => "ok",
        "userfilter" => "root@pam",
        "since" => "1000000000",
        "until" => "4000000000",
        "source" => "all",
        other => panic!("{}: no value for `{other}` is known here", tool.name),
    }
}

/// A text as the schema's type.
fn typed(schema: &Value, text: &str) -> Value {
    match schema["type"].as_str().unwrap() {
        "integer" => Value::from(text.parse::<i64>().unwrap()),
        "boolean" => Value::from(text == "1"),
        "array" => Value::from(vec![text]),
        _ => Value::from(text),
    }
}

/// Fails if an answer is not what the tool's definition promises.
pub(crate) fn fits(tool: &Tool, arguments: &Value, answer: &Value) {
    let definition: Value = serde_json::from_str(tool.definition).unwrap();
    if let Some(schema) = definition.get("outputSchema") {
        let output = jsonschema::validator_for(schema).unwrap();
        let errors: Vec<String> =
            output.iter_errors(answer).map(|error| format!("{} at {}", error, error.instance_path())).collect();
        assert!(errors.is_empty(), "{} {arguments}: {errors:#?}", tool.name);
    }
}

#[test]
fn all_names_are_there() {
    let mut names: Vec<&str> = named().map(|tool| tool.name).collect();
    names.sort_unstable();
    assert_eq!(names, NAMES);
}

#[tokio::test]
async fn each_answers_by_requests_that_pve_has() {
    let site = Site::start().await;
    let mut answered = std::collections::BTreeSet::new();
    for (tool, arguments) in calls(CLUSTER, &call::every_read(&site.lab)) {
        let definition: Value = serde_json::from_str(tool.definition).unwrap();
        let input = jsonschema::validator_for(&definition["inputSchema"]).unwrap();
        assert!(input.is_valid(&arguments), "{}: the test's own arguments are not valid: {arguments}", tool.name);
        site.lab.clear_journal();
        let result = site.client.tool(tool.name, arguments.clone()).await;
        for entry in site.lab.journal() {
            assert!(
                entry.operation.is_some() && !matches!(entry.status, 400 | 401 | 403 | 501),
                "{} {arguments}: {entry:?}",
                tool.name
            );
        }
        let answer = match result {
            Ok(answer) => answer,
            Err(refused) => {
                // An argument may name what the lab does not have; the tool itself has to work.
                println!("{} {arguments}: {refused:?}", tool.name);
                continue;
            }
        };
        answered.insert(tool.name);
        fits(tool, &arguments, &answer);
    }
    let silent: Vec<&str> = named().map(|tool| tool.name).filter(|name| !answered.contains(name)).collect();
    assert!(silent.is_empty(), "never answered: {silent:?}");
}

#[tokio::test]
async fn pages_of_named_lists_join_and_fields_narrow() {
    let site = Site::start().await;
    let all = site.client.tool("get_vms", json!({"cluster": CLUSTER})).await.unwrap();
    let (mut joined, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut arguments = json!({"cluster": CLUSTER, "limit": 7, "fields": ["vmid", "status"]});
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let page = site.client.tool("get_vms", arguments).await.unwrap();
        assert_eq!(page["total"], all["total"]);
        joined.extend(page["items"].as_array().unwrap().clone());
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let narrowed: Vec<Value> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!({"vmid": row["vmid"], "status": row["status"]}))
        .collect();
    assert_eq!(joined, narrowed);
}
