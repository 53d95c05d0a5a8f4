//! What clients see of the tools: every list of every view, in both eras.

use std::collections::BTreeSet;

use pvegate_generated::model::Tool;
use pvegate_generated::terms::Tier;
use pvegate_generated::tools::TOOLS;
use serde_json::{Value, json};
use tests::client::{Client, Era};
use tests::site::{CLUSTER, Site};

const GATEWAY_LIMIT: usize = 8 * 1024;

/// What a token sees whose tools are `*`.
fn reads() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(|tool| tool.tier == Tier::Read)
}

fn views() -> Vec<String> {
    let toolsets: BTreeSet<&str> = reads().flat_map(Tool::toolsets).collect();
    let mut views = vec!["/mcp".to_owned(), "/mcp/readonly".to_owned()];
    views.extend(toolsets.into_iter().map(|name| format!("/mcp/x/{name}")));
    views
}

async fn all_lists(client: &Client) -> Vec<(String, Vec<Value>)> {
    let mut lists = Vec::new();
    for view in views() {
        let at = client.at(&view);
        let older = at.of(Era::Older).tools().await;
        assert_eq!(older, at.of(Era::Newer).tools().await, "{view}");
        assert!(!older.is_empty(), "{view}");
        lists.push((view, older));
    }
    lists
}

#[tokio::test]
async fn lists_do_not_change() {
    let site = Site::start().await;
    let before = all_lists(&site.client).await;
    for (tool, arguments) in [
        ("list_guests", json!({})),
        ("get_vms", json!({"cluster": CLUSTER})),
        ("no_such_tool", json!({})),
        ("list_clusters", json!({})),
    ] {
        let _ = site.client.tool(tool, arguments).await;
    }
    assert_eq!(before, all_lists(&site.client).await);
    let listed: Vec<String> = before
        .iter()
        .filter(|(view, _)| view.starts_with("/mcp/x/"))
        .flat_map(|(_, tools)| tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()))
        .collect();
    let mut listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    let mut known: Vec<&str> = reads().flat_map(|tool| tool.toolsets().map(|_| tool.name)).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known, "each tool is in each of its toolsets, once");
}

#[tokio::test]
async fn the_gateway_fits() {
    // For a token that reads, and for one that also does what acts at once.
    for site in [Site::start().await, Site::low().await] {
        for era in [Era::Older, Era::Newer] {
            let (status, body) = site.client.of(era).raw("tools/list", json!({})).await;
            println!("{era:?}: {} bytes", body.len());
            assert!(status == 200 && body.len() <= GATEWAY_LIMIT, "{era:?}: {} bytes", body.len());
        }
    }
}

#[tokio::test]
async fn definitions_are_what_conservative_clients_take() {
    let (reader, operator) = (Site::start().await, Site::low().await);
    let mut lists = all_lists(&reader.client).await;
    let toolsets: BTreeSet<&str> = TOOLS.iter().flat_map(Tool::toolsets).collect();
    for view in toolsets.into_iter().map(|name| format!("/mcp/x/{name}")) {
        lists.push((format!("{view} of an operator"), operator.client.at(&view).tools().await));
    }
    let mut seen = BTreeSet::new();
    for (view, tools) in lists {
        for tool in tools {
            let name = tool["name"].as_str().unwrap();
            seen.insert(name.to_owned());
            assert!(
                name.len() <= 40 && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')),
                "{view} {name}"
            );
            assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{name}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                assert!(tool["annotations"][hint].is_boolean(), "{name} {hint}");
            }
            let tier = TOOLS.iter().find(|known| known.name == name).unwrap().tier;
            assert_eq!(tool["annotations"]["readOnlyHint"], tier == Tier::Read, "{name}");
            // C142, C143: what a model could set by itself decides nothing.
            for word in ["confirm", "confirmed", "approve", "approved", "yes", "override", "i_understand"] {
                assert!(tool["inputSchema"]["properties"].get(word).is_none(), "{name} has `{word}`");
            }
            for key in ["inputSchema", "outputSchema"] {
                let Some(schema) = tool.get(key) else { continue };
                assert_eq!(schema["type"], "object", "{name} {key}");
                jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{name} {key}: {error}"));
                jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{name} {key}: {error}"));
                plain(name, schema);
            }
        }
    }
    assert_eq!(seen.len(), TOOLS.len(), "every tool was looked at");
}

/// No construct that clients are known to stumble over.
fn plain(tool: &str, schema: &Value) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                assert!(
                    !["$ref", "oneOf", "anyOf", "allOf", "not", "format", "$defs"].contains(&key.as_str())
                        || value.is_object() && value.get("type").is_some(),
                    "{tool}: {key}"
                );
                assert!(key != "type" || !value.is_array(), "{tool}: a union of types");
                plain(tool, value);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| plain(tool, item)),
        _ => {}
    }
}
