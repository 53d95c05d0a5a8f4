//! What changed in an answer: its type, and the columns that projections and previews may rely on.

use std::collections::BTreeMap;

use crate::apidoc::Schema;

/// The changes, one phrase each.
pub(super) fn compare(old: &Schema, new: &Schema) -> Vec<String> {
    let mut changes = Vec::new();
    let (before, after) = (columns(old), columns(new));
    for (column, (kind, required)) in &before {
        let named = if column.is_empty() { "the answer".to_owned() } else { format!("`{column}`") };
        match after.get(column) {
            None => changes.push(format!("{named} is gone")),
            Some((other, _)) if other != kind => changes.push(format!("{named} {kind} -> {other}")),
            Some((_, still)) if *required && !still => changes.push(format!("{named} may now be missing")),
            Some((_, still)) if !*required && *still => changes.push(format!("{named} is now always there")),
            Some(_) => {}
        }
    }
    let fresh: Vec<String> =
        after.keys().filter(|column| !before.contains_key(*column)).map(|column| format!("`{column}`")).collect();
    if !fresh.is_empty() {
        changes.push(format!("new: {}", fresh.join(", ")));
    }
    changes
}

type Columns = BTreeMap<String, (&'static str, bool)>;

fn columns(schema: &Schema) -> Columns {
    let mut found = Columns::new();
    collect(schema, "", &mut found);
    found
}

fn collect(schema: &Schema, place: &str, found: &mut Columns) {
    let kind = schema.kind.map_or("without a type", |kind| kind.as_str());
    found.insert(place.to_owned(), (kind, schema.required()));
    for (name, property) in &schema.properties {
        let inner = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
        collect(property, &inner, found);
    }
    if let Some(items) = &schema.items {
        collect(items, &format!("{place}[]"), found);
    }
    for variant in &schema.one_of {
        collect(variant, &format!("{place}<{}>", variant.instance_types.join("|")), found);
    }
}
