//! The fuzz targets stay compiling and hold for the inputs that are committed, where nobody fuzzes.

use std::collections::BTreeSet;
use std::path::Path;

use tests::program::root;

/// The library of the fuzzing workspace, which only a nightly compiler builds as a whole.
#[path = "../../fuzz/src/lib.rs"]
mod targets;

/// Names in a folder, without their endings.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    entries.map(|entry| stem(&entry.unwrap().path())).collect()
}

#[test]
fn every_target_holds_for_its_seeds() {
    let mut seeds = 0;
    for (name, target) in targets::TARGETS {
        let folder = root().join("fuzz/corpus").join(name);
        let mut own = 0;
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            target(&std::fs::read(entry.unwrap().path()).unwrap());
            own += 1;
        }
        assert!(own >= 3, "{name} has {own} seeds");
        seeds += own;
    }
    assert!(seeds >= 60, "{seeds}");
}

#[test]
fn every_target_can_be_fuzzed() {
    let listed: BTreeSet<String> = targets::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&root().join("fuzz/fuzz_targets")), listed);
    assert_eq!(names(&root().join("fuzz/corpus")), listed);
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for name in &listed {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is no binary");
    }
}

#[test]
fn a_seed_reaches_what_it_is_for() {
    // A target that gives up on everything would hold for everything.
    let read = |path: &str| std::fs::read_to_string(root().join("fuzz/corpus").join(path)).unwrap();
    for seed in ["create", "update", "content", "task", "exec", "resize", "network", "container"] {
        let text = read(&format!("arguments/{seed}"));
        let (name, json) = text.split_once('\n').unwrap();
        let operation = pvegate_generated::catalog::operation(name).unwrap_or_else(|| panic!("{seed}: no {name}"));
        let newest = pvegate_generated::terms::Release::NEWEST;
        let args = pvegate::args::decode(operation, &serde_json::from_str(json).unwrap(), newest);
        assert!(args.is_ok(), "{seed}: {args:?}");
    }
    for seed in ["script", "plain"] {
        let text = read(&format!("apidoc/{seed}"));
        let pinned = pvegate_codegen::pin::pin("9.2", text.as_bytes(), seed);
        assert_eq!(pinned.map(|pinned| pinned.methods).map_err(|error| error.to_string()), Ok(2), "{seed}");
    }
}
