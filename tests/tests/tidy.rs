//! Rules for the source tree that no compiler knows.

use std::path::{Path, PathBuf};

use tests::program::root;

/// Longest file that is written by hand, in lines.
const LONGEST: usize = 700;

/// Folders whose content is not ours, or not written by hand.
const SKIPPED: [&str; 3] = ["target", ".git", "generated"];

/// Paths below the folder of the workspace, with their text.
fn files(wanted: fn(&str) -> bool) -> Vec<(String, String)> {
    fn walk(folder: &Path, wanted: fn(&str) -> bool, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if !SKIPPED.contains(&name) {
                    walk(&path, wanted, found);
                }
            } else if wanted(name) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), wanted, &mut found);
    found.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        Some((name, std::fs::read_to_string(path).ok()?))
    };
    found.into_iter().filter_map(read).collect()
}

fn sources() -> Vec<(String, String)> {
    let sources = files(|name| Path::new(name).extension().is_some_and(|ending| ending == "rs"));
    assert!(sources.len() > 100, "{}", sources.len());
    sources
}

/// Fails with all places at once.
fn none(rule: &str, places: &[String]) {
    assert!(places.is_empty(), "{rule}:\n  {}", places.join("\n  "));
}

#[test]
fn every_module_says_what_it_decides() {
    let silent: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//! ")).map(|(name, _)| name).collect();
    none("a module opens with `//!` and what it decides", &silent);
}

#[test]
fn files_are_small() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > LONGEST)
        .map(|(name, text)| format!("{name}: {} lines", text.lines().count()))
        .collect();
    none("a file has at most 700 lines", &long);
}

#[test]
fn no_module_is_named_after_nothing() {
    let vague: Vec<String> = sources()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| {
            let stem = Path::new(name).file_stem().unwrap().to_str().unwrap();
            ["util", "utils", "helper", "helpers", "common", "misc"].contains(&stem) || stem.ends_with("manager")
        })
        .collect();
    none("a module is named after what it decides", &vague);
}

#[test]
fn no_path_of_the_api_is_typed_by_hand() {
    let starts =
        ["/nodes", "/cluster/", "/access/", "/storage/", "/pools/", "/version"].map(|start| format!("\"{start}"));
    let mut typed = Vec::new();
    for (name, text) in sources() {
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        // Paths of the access control list look alike and are not of the API.
        let is_acl = name == "runtime/src/sight.rs" || name == "runtime/src/authorize/privileges.rs";
        if !name.starts_with("runtime/src/") || is_test || is_acl {
            continue;
        }
        // Unit tests at the end of a file may.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let base = line.contains("/api2")
                && !(name == "runtime/src/pve/attempt.rs" || name == "runtime/src/config/cluster_file.rs");
            if base || starts.iter().any(|start| line.contains(start.as_str())) {
                typed.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    none("paths come from the catalog", &typed);
}

#[test]
fn packages_come_from_the_public_registry() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    // Cargo writes the default registry into each entry; an entry from a mirror or a repository differs.
    let sources: std::collections::BTreeSet<&str> = lock.lines().filter(|line| line.starts_with("source = ")).collect();
    assert!(sources.iter().all(|source| source.starts_with("source = \"registry+")), "not a registry: {sources:?}");
    assert_eq!(sources.len(), 1, "more than one source of packages: {sources:?}");
    for (name, text) in files(|name| name == "config.toml" || name == "config") {
        for word in ["[source", "[registries", "replace-with", "index ="] {
            assert!(!text.contains(word), "{name}: `{word}` belongs to a machine, not into the tree");
        }
    }
}

#[test]
fn nothing_names_a_machine() {
    let homes = ["home", "Users", "workspace", "work", "builds"].map(|folder| format!("/{folder}/"));
    let mut places = Vec::new();
    for (name, text) in files(|_| true) {
        for (number, line) in text.lines().enumerate() {
            let at = |home: &String| {
                line.match_indices(home.as_str()).any(|(at, _)| {
                    // A path of a machine begins there; one inside the tree goes on.
                    line.get(..at).is_none_or(|before| {
                        before.chars().next_back().is_none_or(|last| {
                            !(last.is_alphanumeric() || matches!(last, '.' | '/' | '}' | '*' | '_' | '-'))
                        })
                    })
                })
            };
            if homes.iter().any(at) {
                places.push(format!("{name}:{}: {}", number + 1, line.trim().chars().take(120).collect::<String>()));
            }
        }
    }
    none("a path of somebody's machine", &places);
}
