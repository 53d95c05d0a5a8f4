//! `REPORT.md`: counts that have to add up, reasons, drift between releases, sizes of tool lists.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::policy::offered_text;
use crate::model::{Model, Operation, Tool};
use crate::overlay::OfferedKey;
use crate::terms::{Area, Reason, Role, Tier};

/// Writes it.
pub fn emit(model: &Model, files: &mut BTreeMap<String, String>) {
    let mut text = String::from("# Report of the generator\n\nWritten by `cargo codegen`; do not edit.\n\n");
    releases(model, &mut text);
    tiers(model, &mut text);
    reasons(model, &mut text);
    roles(model, &mut text);
    tools(model, &mut text);
    files.insert("generated/REPORT.md".to_owned(), text);
}

fn releases(model: &Model, text: &mut String) {
    text.push_str("## Releases\n\nThe catalog is built from the newest. An older release has the operations of the catalog that are not newer than it, and those removed since.\n\n");
    text.push_str("| release | operations | of these in the catalog | removed since | source sha256 |\n| --- | ---: | ---: | ---: | --- |\n");
    for (at, release) in model.releases.iter().enumerate() {
        let kept = model.operations.iter().filter(|operation| operation.since <= at).count();
        let gone = model
            .removed
            .values()
            .filter(|last| model.releases.iter().position(|known| known == *last).is_some_and(|last| last >= at))
            .count();
        let total = model.counts.get(release).copied().unwrap_or_default();
        let check = if kept + gone == total { "" } else { " **does not add up**" };
        let _ = writeln!(
            text,
            "| {release} | {total}{check} | {kept} | {gone} | `{}` |",
            model.sources.get(release).map_or("", String::as_str)
        );
    }
    for (name, last) in &model.removed {
        let _ = write!(text, "\nRemoved after {last}: `{name}`.\n");
    }
    text.push('\n');
}

fn tiers(model: &Model, text: &mut String) {
    text.push_str("## Tiers\n\n| area | operations | read | low | destructive | offered | opt-in | never |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for area in Area::ALL {
        row(
            area.word(),
            &model.operations.iter().filter(|operation| operation.area == *area).collect::<Vec<_>>(),
            text,
        );
    }
    row("**all**", &model.operations.iter().collect::<Vec<_>>(), text);
    let parameters: usize = model.operations.iter().map(|operation| operation.params.len()).sum();
    let _ = write!(
        text,
        "\n{parameters} parameters, {} property string shapes, {} patterns.\n\n",
        model.property_strings.len(),
        model.patterns.len()
    );
}

fn row(name: &str, operations: &[&Operation], text: &mut String) {
    let tier = |tier: Tier| operations.iter().filter(|operation| operation.keys.tier == tier).count();
    let offered = |wanted: fn(&Option<OfferedKey>) -> bool| {
        operations.iter().filter(|operation| wanted(&operation.keys.offered)).count()
    };
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {} | {} | {} | {} | {} |",
        operations.len(),
        tier(Tier::Read),
        tier(Tier::Low),
        tier(Tier::Destructive),
        offered(Option::is_none),
        offered(|offered| matches!(offered, Some(OfferedKey::OptIn(_)))),
        offered(|offered| matches!(offered, Some(OfferedKey::Never(_)))),
    );
}

fn reasons(model: &Model, text: &mut String) {
    text.push_str("## Not offered, or only on request\n\n");
    for reason in Reason::ALL {
        for (kind, offered) in [("opt-in", OfferedKey::OptIn(*reason)), ("never", OfferedKey::Never(*reason))] {
            let wanted = offered_text(Some(offered));
            let operations: Vec<&str> = model
                .operations
                .iter()
                .filter(|operation| offered_text(operation.keys.offered) == wanted)
                .map(|operation| operation.name.as_str())
                .collect();
            if !operations.is_empty() {
                let _ = writeln!(
                    text,
                    "- {kind}, {} ({}): {}",
                    reason.word(),
                    operations.len(),
                    operations.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                );
            }
        }
    }
    text.push('\n');
}

fn roles(model: &Model, text: &mut String) {
    text.push_str("## Roles\n\n| role | parameters |\n| --- | ---: |\n");
    for role in Role::ALL {
        let count = model
            .operations
            .iter()
            .flat_map(|operation| &operation.params)
            .filter(|parameter| parameter.role == *role)
            .count();
        let _ = writeln!(text, "| {} | {count} |", role.word());
    }
    text.push('\n');
}

fn tools(model: &Model, text: &mut String) {
    text.push_str("## Tool lists\n\nBytes of `tools/list` as compact JSON, without the envelope.\n\n| toolset | tools | bytes |\n| --- | ---: | ---: |\n");
    let bytes = |tools: &[&Tool]| tools.iter().map(|tool| tool.definition.to_string().len() + 1).sum::<usize>();
    let toolsets = model.toolsets();
    for (toolset, tools) in &toolsets {
        let _ = writeln!(text, "| {toolset} | {} | {} |", tools.len(), bytes(tools));
    }
    // A tool that two of them list counts in both.
    let listed: Vec<&Tool> = toolsets.into_values().flatten().collect();
    let _ = writeln!(text, "| **all** | {} | {} |", listed.len(), bytes(&listed));
}
