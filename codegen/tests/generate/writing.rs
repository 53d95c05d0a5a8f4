//! Writing `generated/`: only what differs, by rename, under one lock; nothing where nothing differs.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use pvegate_codegen::files::{Difference, Output, describe};
use tempfile::TempDir;

fn output() -> Output {
    let files = [
        ("generated/src/a.rs", "//! A.\npub struct A;\n"),
        ("generated/src/deep/b.rs", "//! B.\n"),
        ("generated/REPORT.md", "# Report\n"),
        ("docs/tools.md", "# Tools\n"),
    ];
    Output { files: files.map(|(path, text)| (path.to_owned(), text.to_owned())).into() }
}

/// A workspace in which everything is as the generator writes it.
fn written() -> TempDir {
    let workspace = TempDir::new().unwrap();
    fs::create_dir(workspace.path().join("generated")).unwrap();
    let output = output();
    let differences = output.compare(workspace.path()).unwrap();
    output.write(workspace.path(), &differences).unwrap();
    workspace
}

fn listing(folder: &Path) -> Vec<(String, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(listing(&path));
        } else {
            found.push((path.display().to_string(), fs::metadata(&path).unwrap().modified().unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn missing_files_are_written() {
    let workspace = TempDir::new().unwrap();
    fs::create_dir(workspace.path().join("generated")).unwrap();
    let output = output();
    let differences = output.compare(workspace.path()).unwrap();
    assert_eq!(differences.iter().map(Difference::path).collect::<Vec<_>>(), output.files.keys().collect::<Vec<_>>());
    assert!(describe(&differences).contains("generated/src/deep/b.rs: missing"));
    output.write(workspace.path(), &differences).unwrap();
    assert_eq!(output.compare(workspace.path()).unwrap(), []);
}

#[test]
fn nothing_is_written_where_nothing_differs() {
    let workspace = written();
    let before = listing(workspace.path());
    let output = output();
    let differences = output.compare(workspace.path()).unwrap();
    assert_eq!(differences, []);
    output.write(workspace.path(), &differences).unwrap();
    assert_eq!(
        listing(&workspace.path().join("generated/src")),
        before.iter().filter(|(path, _)| path.contains("/src/")).cloned().collect::<Vec<_>>()
    );
    assert_eq!(describe(&differences), "");
}

#[test]
fn only_what_differs_is_written() {
    let workspace = written();
    let untouched = |folder: &Path| {
        listing(folder)
            .into_iter()
            .filter(|(path, _)| !path.ends_with("a.rs") && !path.ends_with(".codegen.lock"))
            .collect::<Vec<_>>()
    };
    let before = untouched(workspace.path());
    fs::write(workspace.path().join("generated/src/a.rs"), "//! A.\npub struct Edited;\n").unwrap();
    let output = output();
    let differences = output.compare(workspace.path()).unwrap();
    let wanted = Difference::Differs(
        "generated/src/a.rs".to_owned(),
        2,
        "pub struct Edited;".to_owned(),
        "pub struct A;".to_owned(),
    );
    assert_eq!(differences, [wanted]);
    let text = describe(&differences);
    assert!(
        text.contains("generated/src/a.rs:2")
            && text.contains("- pub struct Edited;")
            && text.contains("+ pub struct A;"),
        "{text}"
    );
    output.write(workspace.path(), &differences).unwrap();
    assert_eq!(untouched(workspace.path()), before);
    assert_eq!(
        fs::read_to_string(workspace.path().join("generated/src/a.rs")).unwrap(),
        output.files["generated/src/a.rs"]
    );
}

#[test]
fn line_ends_of_the_checkout_do_not_count() {
    let workspace = written();
    fs::write(workspace.path().join("generated/REPORT.md"), "# Report\r\n").unwrap();
    assert_eq!(output().compare(workspace.path()).unwrap(), []);
}

#[test]
fn stale_files_go_and_hand_written_ones_stay() {
    let workspace = written();
    let stale = workspace.path().join("generated/json/tools/old.json");
    fs::create_dir_all(stale.parent().unwrap()).unwrap();
    fs::write(&stale, "{}\n").unwrap();
    let by_hand = workspace.path().join("generated/build.rs");
    fs::write(&by_hand, "fn main() {}\n").unwrap();
    let differences = output().compare(workspace.path()).unwrap();
    assert_eq!(differences, [Difference::Stale("generated/json/tools/old.json".to_owned())]);
    assert!(describe(&differences).contains("no longer generated"));
    output().write(workspace.path(), &differences).unwrap();
    assert!(!stale.exists() && by_hand.exists());
}

#[test]
fn no_half_written_file_is_left() {
    let workspace = written();
    assert!(
        listing(workspace.path())
            .iter()
            .all(|(path, _)| Path::new(path).extension().is_none_or(|extension| extension != "new"))
    );
}

#[test]
fn a_tree_that_cannot_be_written_is_an_error() {
    let workspace = written();
    // A folder where the lock belongs: refused for every user, root as well.
    fs::remove_file(workspace.path().join("generated/.codegen.lock")).unwrap();
    fs::create_dir(workspace.path().join("generated/.codegen.lock")).unwrap();
    fs::write(workspace.path().join("generated/REPORT.md"), "edited\n").unwrap();
    let differences = output().compare(workspace.path()).unwrap();
    assert!(output().write(workspace.path(), &differences).is_err());
    assert_eq!(fs::read_to_string(workspace.path().join("generated/REPORT.md")).unwrap(), "edited\n");
}

#[cfg(unix)]
#[test]
fn a_read_only_tree_is_an_error_and_stays_as_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let workspace = written();
    fs::write(workspace.path().join("generated/src/a.rs"), "edited\n").unwrap();
    let folder = workspace.path().join("generated/src");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let differences = output().compare(workspace.path()).unwrap();
    let result = output().write(workspace.path(), &differences);
    // Root writes where nobody may; the test above holds for it.
    let writable = fs::write(folder.join("probe"), "").is_ok();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    if !writable {
        assert!(result.is_err());
        assert_eq!(fs::read_to_string(folder.join("a.rs")).unwrap(), "edited\n");
    }
}

#[test]
fn a_second_writer_waits_for_the_first() {
    let workspace = written();
    let lock = fs::File::options().write(true).open(workspace.path().join("generated/.codegen.lock")).unwrap();
    lock.lock().unwrap();
    fs::write(workspace.path().join("generated/REPORT.md"), "edited\n").unwrap();
    let path = workspace.path().to_owned();
    let (done, waits) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        let differences = output().compare(&path).unwrap();
        output().write(&path, &differences).unwrap();
        done.send(()).unwrap();
    });
    assert!(waits.recv_timeout(Duration::from_millis(200)).is_err(), "it wrote while another held the lock");
    lock.unlock().unwrap();
    waits.recv_timeout(Duration::from_secs(10)).unwrap();
    writer.join().unwrap();
    assert_eq!(output().compare(workspace.path()).unwrap(), []);
}
