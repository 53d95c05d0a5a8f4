//! `docs/tools.md`: the named tools for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::model::{Model, Runs, Tool};

/// Writes it.
pub fn emit(model: &Model, files: &mut BTreeMap<String, String>) {
    let mut text = String::from(
        "# Tools\n\nWritten by `cargo codegen` from `schema/overlay/tools/`; do not edit.\nWhat a client sees of each stands in `generated/json/tools/`.\n",
    );
    for (toolset, tools) in model.toolsets() {
        let _ =
            write!(text, "\n## {toolset}\n\n| tool | arguments | runs | what it does |\n| --- | --- | --- | --- |\n");
        for tool in tools {
            let _ =
                writeln!(text, "| `{}` | {} | {} | {} |", tool.name, arguments(tool), runs(tool), description(tool));
        }
    }
    files.insert("docs/tools.md".to_owned(), text);
}

fn arguments(tool: &Tool) -> String {
    let required: Vec<&str> = tool
        .definition
        .pointer("/inputSchema/required")
        .and_then(serde_json::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_str)
        .collect();
    let properties = tool.definition.pointer("/inputSchema/properties").and_then(serde_json::Value::as_object);
    let names: Vec<String> = properties
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(|name| if required.contains(&name.as_str()) { format!("**{name}**") } else { name.clone() })
        .collect();
    names.join(", ")
}

fn runs(tool: &Tool) -> String {
    match &tool.runs {
        Runs::Gateway => "the server's own".to_owned(),
        Runs::One(name) => format!("`{name}`"),
        Runs::ByKind { qemu, lxc } => format!("`{qemu}` or `{lxc}`"),
    }
}

fn description(tool: &Tool) -> String {
    tool.definition.get("description").and_then(serde_json::Value::as_str).unwrap_or_default().replace('|', "\\|")
}
