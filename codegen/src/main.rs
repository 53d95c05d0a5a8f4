//! `cargo codegen`: writes `generated/` from `schema/`, or only compares; pins releases,
//! reports what an upgrade changes, explains one operation.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pvegate_codegen::files::{Inputs, describe};
use pvegate_codegen::{diff, explain, generate, pin};

const USAGE: &str = "\
cargo codegen                                 write generated/ from schema/
cargo codegen --check                         only compare; exit status 1 where they differ
cargo codegen pin --release 9.2 <apidoc.js>   pin the apidoc of a release (or apidoc.json)
cargo codegen diff 9.1 9.2                    what an upgrade between two pinned releases changes
cargo codegen explain \"GET /path\"             everything about one operation, and what decided it
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words, &workspace()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("{}", text.trim_end());
            ExitCode::FAILURE
        }
    }
}

/// The workspace this binary was built in.
fn workspace() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.parent().unwrap_or(crate_folder).to_owned()
}

fn run(words: &[&str], workspace: &Path) -> Result<String, String> {
    let schema = workspace.join("schema");
    match words {
        [] => write(workspace),
        ["--check"] => check(workspace),
        ["pin", "--release", release, source] => {
            pin::run(release, Path::new(source), &schema).map_err(|error| error.to_string())
        }
        ["diff", old, new] => diff::run(&schema, old, new).map_err(|error| error.to_string()),
        ["explain", operation] => explain::explain(&inputs(workspace)?, operation).map_err(|error| error.to_string()),
        _ => Err(USAGE.to_owned()),
    }
}

fn inputs(workspace: &Path) -> Result<Inputs, String> {
    Inputs::read(&workspace.join("schema")).map_err(|error| format!("cannot read schema/: {error}"))
}

fn write(workspace: &Path) -> Result<String, String> {
    let output = generate(&inputs(workspace)?).map_err(|problems| problems.to_string())?;
    let differences = output.compare(workspace).map_err(|error| error.to_string())?;
    output.write(workspace, &differences).map_err(|error| error.to_string())?;
    Ok(if differences.is_empty() {
        format!("{} files are up to date\n", output.files.len())
    } else {
        format!(
            "wrote {} of {} files; review `git diff generated/`\n{}",
            differences.len(),
            output.files.len(),
            describe(&differences)
        )
    })
}

fn check(workspace: &Path) -> Result<String, String> {
    let output = generate(&inputs(workspace)?).map_err(|problems| problems.to_string())?;
    let differences = output.compare(workspace).map_err(|error| error.to_string())?;
    if differences.is_empty() {
        return Ok(format!("{} files are up to date\n", output.files.len()));
    }
    Err(format!(
        "generated/ does not match schema/: {} files differ\n{}run `cargo codegen`, then review `git diff generated/`",
        differences.len(),
        describe(&differences)
    ))
}
