//! `cargo codegen explain`: everything about one operation, and what decided it.

use std::fmt::Write as _;

use crate::emit;
use crate::files::Inputs;
use crate::join::runs;
use crate::model::{Kind, Model, Parameter};
use crate::problem::Problems;

/// The text for one operation, or what is like it.
pub fn explain(inputs: &Inputs, name: &str) -> Result<String, Problems> {
    let model = crate::model(inputs)?;
    let Some(operation) = model.operations.iter().find(|operation| operation.name == name) else {
        let mut problems = Problems::default();
        let like: Vec<&str> = model
            .operations
            .iter()
            .map(|operation| operation.name.as_str())
            .filter(|known| name.split(' ').next_back().is_some_and(|path| known.contains(path)))
            .take(20)
            .collect();
        problems.push(
            name,
            format!(
                "no operation of this name in the newest pinned release. Names that contain it: {}",
                if like.is_empty() { "none".to_owned() } else { like.join(", ") }
            ),
        );
        return Err(problems);
    };
    let mut text = String::new();
    let keys = &operation.keys;
    let _ =
        writeln!(text, "{}\n  {}\n  decided at schema/overlay/{}", operation.name, keys.summary, operation.decided_at);
    let _ = writeln!(
        text,
        "  tier {}, offered {}, {}",
        keys.tier.word(),
        emit::offered_text(keys.offered),
        if keys.interrupts { "interrupts" } else { "does not interrupt" }
    );
    let _ = writeln!(text, "  answers {:?}", short(&operation.answer));
    let _ = writeln!(text, "  rows {:?}, settle {:?}, undo {:?}", operation.rows, keys.settle, keys.undo);
    let _ = writeln!(
        text,
        "  low args {:?}, fixed {:?}, leaves {:?}",
        keys.args.as_deref().unwrap_or_default(),
        keys.fixed,
        keys.leaves
    );
    let _ = writeln!(text, "  flags {:?}, guards {:?}, binds {:?}", keys.flags, keys.guards, keys.binds);
    let _ = writeln!(text, "  PVE checks {}", emit::permission_text(&operation.permission));
    let _ = writeln!(
        text,
        "  since {}, {}{}",
        model.releases.get(operation.since).map_or("?", String::as_str),
        if operation.proxied { "forwarded to the node, " } else { "" },
        if operation.protected { "run by pvedaemon" } else { "run by pveproxy" }
    );
    for parameter in &operation.params {
        describe(&model, parameter, &mut text);
    }
    let tools: Vec<String> = model
        .tools
        .iter()
        .filter(|tool| runs(&tool.runs, name))
        .map(|tool| format!("{} ({})", tool.name, tool.place))
        .collect();
    let _ = writeln!(
        text,
        "tools: {}",
        if tools.is_empty() { "none by name; reached through the gateway".to_owned() } else { tools.join(", ") }
    );
    Ok(text)
}

fn describe(model: &Model, parameter: &Parameter, text: &mut String) {
    let needed = if parameter.required { "required" } else { "optional" };
    let _ = writeln!(text, "{} ({}, {needed}): {}", parameter.name, parameter.place, kind(model, &parameter.kind));
    let _ = writeln!(text, "    role {} by {}", parameter.role.word(), parameter.role_at);
    for (label, value) in [
        ("default", parameter.default.clone()),
        ("index", parameter.index.map(|(first, last)| format!("{first} to {last}"))),
        ("requires", parameter.requires.clone()),
        ("words", parameter.words.clone()),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "    {label} {value}");
        }
    }
}

fn kind(model: &Model, kind: &Kind) -> String {
    match kind {
        Kind::Text { value, pattern, min_length, max_length } => {
            let pattern = pattern
                .and_then(|at| model.patterns.get(at))
                .map(|pattern| format!(", pattern {pattern}"))
                .unwrap_or_default();
            format!("text ({}), length {min_length:?} to {max_length:?}{pattern}", value.word())
        }
        other => format!("{other:?}"),
    }
}

fn short(answer: &crate::model::Answer) -> String {
    let text = format!("{answer:?}");
    text.split('(').next().unwrap_or_default().to_owned()
}
