//! `json/tools/*.json` and `tools.rs` of the generated crate.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::rust::{header, pairs, string, strings};
use crate::model::{Model, Runs};

/// Writes them.
pub fn emit(model: &Model, files: &mut BTreeMap<String, String>) {
    let mut text = header(model, "The named tools.");
    text.push_str("use crate::model::{Runs, Tool};\nuse crate::terms::Tier;\n\n");
    let _ = write!(text, "/// By toolset, then name.\npub static TOOLS: [Tool; {}] = [\n", model.tools.len());
    for tool in &model.tools {
        let path = format!("json/tools/{}.json", tool.name);
        files.insert(format!("generated/{path}"), pretty(&tool.definition));
        let runs = match &tool.runs {
            Runs::Gateway => "Runs::Gateway".to_owned(),
            Runs::One(name) => format!("Runs::One({})", string(name)),
            Runs::ByKind { qemu, lxc } => format!("Runs::ByKind {{ qemu: {}, lxc: {} }}", string(qemu), string(lxc)),
        };
        let _ = write!(
            text,
            "    Tool {{\n        name: {},\n        toolset: {},\n        also_in: {},\n        definition: include_str!({}),\n        runs: {runs},\n        tier: Tier::{},\n        args: {},\n        fixed: {},\n        projection: {:?},\n        filter: {},\n    }},\n",
            string(&tool.name),
            string(&tool.toolset),
            strings(&tool.also_in),
            string(&format!("../{path}")),
            tool.tier.variant(),
            strings(&tool.args),
            pairs(&tool.fixed),
            tool.projection,
            pairs(&tool.filter),
        );
    }
    text.push_str("];\n");
    files.insert("generated/src/tools.rs".to_owned(), text);
}

fn pretty(value: &Value) -> String {
    format!("{:#}\n", sorted(value))
}

/// Keys in order of their names, whether or not a dependency makes `Map` keep insertion order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let keys: BTreeMap<&String, &Value> = object.iter().collect();
            Value::Object(keys.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
