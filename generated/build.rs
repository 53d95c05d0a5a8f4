//! Regenerates in memory from `schema/` and compares with the committed files.
//!
//! Where they differ, outside CI, only the changed files are written and *this one build fails*, so
//! that nobody compiles what nobody has looked at; the next build is clean. With `CI` set, or on a
//! read-only tree, it only fails. Without `schema/` beside it (a packaged crate) it does nothing.

use std::env;
use std::path::Path;

use pvegate_codegen::files::{Inputs, describe};
use pvegate_codegen::generate;

fn main() {
    let crate_folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let Some(workspace) = Path::new(&crate_folder).parent() else { return };
    let schema = workspace.join("schema");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CI");
    if !schema.join("pins.toml").is_file() {
        return;
    }
    println!("cargo::rerun-if-changed={}", schema.display());
    for generated in ["src", "json", "POLICY.tsv", "REPORT.md"] {
        println!("cargo::rerun-if-changed={generated}");
    }
    println!("cargo::rerun-if-changed={}", workspace.join("docs/tools.md").display());
    if let Err(message) = check(workspace, &schema) {
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

fn check(workspace: &Path, schema: &Path) -> Result<(), String> {
    let inputs = Inputs::read(schema).map_err(|error| format!("cannot read schema/: {error}"))?;
    let output = generate(&inputs).map_err(|problems| problems.to_string())?;
    let differences = output.compare(workspace).map_err(|error| error.to_string())?;
    if differences.is_empty() {
        return Ok(());
    }
    let list = describe(&differences);
    let count = differences.len();
    if env::var_os("CI").is_some() {
        return Err(format!(
            "generated/ does not match schema/, {count} files:\n{list}run `cargo codegen`, review `git diff generated/`, and commit it"
        ));
    }
    match output.write(workspace, &differences) {
        Ok(()) => Err(format!(
            "generated/ did not match schema/; {count} files are written anew:\n{list}review `git diff generated/`, then build again"
        )),
        Err(error) => Err(format!(
            "generated/ does not match schema/, {count} files, and cannot be written ({error}):\n{list}run `cargo codegen` on a writable tree"
        )),
    }
}
