//! The built programs, for tests that run them as their users do.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

/// The folder of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A program of this workspace, from the build that the running test is of. A test of the whole workspace has
/// built it already; where that is not so, or the sources are newer, it is built now.
pub fn built(package: &str) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one = BUILDING.lock().unwrap();
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let program = folder.join(format!("{package}{}", std::env::consts::EXE_SUFFIX));
    let mut sources = vec!["runtime/src", "generated/src", "generated/json"];
    if package == "lab" {
        sources.push("tests/lab/src");
    }
    let changed = sources.into_iter().map(|folder| newest(&root().join(folder))).max();
    let made = std::fs::metadata(&program).and_then(|facts| facts.modified()).ok();
    if made < changed {
        let mut build = Command::new(env!("CARGO"));
        build.current_dir(root()).args(["build", "--quiet", "--package", package, "--bin", package]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "{package} does not build");
    }
    program
}

/// When the newest file of a folder was changed.
fn newest(folder: &Path) -> SystemTime {
    let mut time = SystemTime::UNIX_EPOCH;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let facts = entry.metadata().unwrap();
        let changed = if facts.is_dir() { newest(&entry.path()) } else { facts.modified().unwrap() };
        time = time.max(changed);
    }
    time
}
