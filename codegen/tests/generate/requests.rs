//! Every operation that changes something has a view with all its parameters.

use std::collections::{BTreeMap, BTreeSet};

use pvegate_codegen::terms::{Role, Tier};

use crate::schema::real;

/// Struct, PVE's names of its fields and their types, by operation, as the generated files have them.
fn views() -> BTreeMap<String, (String, BTreeMap<String, String>)> {
    let mut views = BTreeMap::new();
    for (path, text) in &real().output.files {
        if !path.starts_with("generated/src/requests/") || path.ends_with("view.rs") {
            continue;
        }
        let mut name = String::new();
        let mut fields = BTreeMap::new();
        let mut renamed: Option<String> = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("pub struct ") {
                rest.trim_end_matches(" {").clone_into(&mut name);
                fields = BTreeMap::new();
            } else if line.trim_start().starts_with("#[serde(rename = ") {
                renamed = line.split('"').nth(1).map(str::to_owned);
            } else if let Some(field) = line
                .strip_prefix("    pub ")
                .filter(|rest| !rest.starts_with("const fn "))
                .and_then(|rest| rest.split_once(": "))
            {
                fields.insert(
                    renamed.take().unwrap_or_else(|| field.0.trim_start_matches("r#").to_owned()),
                    field.1.to_owned(),
                );
            } else if let Some(tie) = line.strip_prefix("view!(") {
                let operation = tie.split('"').nth(1).unwrap().to_owned();
                assert!(tie.starts_with(&name), "{tie}");
                assert!(views.insert(operation, (name.clone(), fields.clone())).is_none());
            }
        }
    }
    views
}

#[test]
fn every_mutation_has_a_view_with_all_parameters() {
    let views = views();
    let mutations: Vec<_> =
        real().model.operations.iter().filter(|operation| operation.keys.tier != Tier::Read).collect();
    assert_eq!(views.len(), mutations.len());
    for operation in mutations {
        let (name, fields) = &views[&operation.name];
        let wanted: BTreeSet<String> = operation
            .params
            .iter()
            .filter(|parameter| parameter.role != Role::Digest)
            .map(|parameter| parameter.name.clone())
            .collect();
        assert_eq!(fields.keys().cloned().collect::<BTreeSet<_>>(), wanted, "{name} of {}", operation.name);
    }
}

#[test]
fn names_of_views_are_unique() {
    let views = views();
    let names: BTreeSet<&String> = views.values().map(|(name, _)| name).collect();
    assert_eq!(names.len(), views.len());
    assert_eq!(views["POST /nodes/{node}/qemu/{vmid}/status/start"].0, "PostNodesQemuStatusStart");
    assert_eq!(views["PUT /nodes/{node}/network/{iface}"].0, "PutNodesNetworkIface");
}

#[test]
fn secrets_have_a_type_that_does_not_print() {
    let views = views();
    for operation in real().model.operations.iter().filter(|operation| operation.mutates()) {
        for parameter in &operation.params {
            let of = views[&operation.name].1.get(&parameter.name).map_or("", String::as_str);
            assert_eq!(
                parameter.role == Role::Secret,
                of.contains("Secret"),
                "{} {}: {of}",
                operation.name,
                parameter.name
            );
        }
    }
}
