//! Pins a release: takes the facts out of PVE's apidoc and writes them in one canonical form.
//!
//! Prose stays out. It is PVE's text under PVE's license, and what people and models read here is
//! ours to choose. Nothing is written unless the whole source was understood.

mod layout;
mod prose;
mod record;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::apidoc::{self, Apidoc, ApidocErrors};

pub use record::{Pin, parse_pins, release_number};

use record::write_pins;

/// Name of the file that records all pins.
const RECORD: &str = "pins.toml";

/// Why a release could not be pinned, or a pin not be read.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The release is not like `9.2`.
    #[error("{0:?} is not a release of PVE; give its first two numbers, like 9.2")]
    Release(String),
    /// The apidoc was not understood.
    #[error(transparent)]
    Apidoc(#[from] ApidocErrors),
    /// A file could not be read or written.
    #[error("{}: cannot be {what} ({source})", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// `pins.toml` is not in order.
    #[error("pins.toml: {0}\nIt is written by `cargo codegen pin`; pin the release again instead of editing it")]
    Record(String),
    /// A pinned file is not what `pins.toml` says, or not as the pin writes it.
    #[error("{}: {problem}. Pinned files are not edited; pin the release again, or repair mistakes of PVE in overlay/fixups.toml", path.display())]
    Changed {
        /// The pinned file.
        path: PathBuf,
        /// What differs.
        problem: String,
    },
}

/// A pinned apidoc, not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The canonical file.
    pub json_text: String,
    /// How many paths have operations.
    pub paths: usize,
    /// How many operations there are.
    pub methods: usize,
    /// SHA-256 of the source.
    pub sha256: String,
}

/// A pin as it is committed.
#[derive(Clone, Debug)]
pub struct LoadedPin {
    /// Its entry in `pins.toml`.
    pub pin: Pin,
    /// The file's text, for those who apply fixups before they read it.
    pub text: String,
    /// The same, read.
    pub apidoc: Apidoc,
}

/// Makes the pin of `release` from the bytes of `apidoc.json` or `apidoc.js`.
///
/// A pinned file is itself an `apidoc.json`, and its pin is itself.
pub fn pin(release: &str, bytes: &[u8], source_name: &str) -> Result<Pinned, PinError> {
    if release_number(release).is_none() {
        return Err(PinError::Release(release.to_owned()));
    }
    let mut value = apidoc::decode_source(bytes, source_name)?;
    Apidoc::from_source(&value, source_name)?;
    prose::remove(&mut value);
    let json_text = canonical(&value);
    // What will be committed has to be readable, or the pin would break the build after it.
    let apidoc = Apidoc::parse(&json_text, source_name)?;
    let mut sha256 = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(sha256, "{byte:02x}");
    }
    Ok(Pinned { json_text, paths: apidoc.paths.len(), methods: apidoc.methods.len(), sha256 })
}

/// The canonical text of a pinned apidoc: sorted keys, one parameter per line, LF.
pub fn canonical(value: &Value) -> String {
    layout::write(value)
}

/// Where the pin of a release is kept, below `schema_dir`.
pub fn path_of(schema_dir: &Path, release: &str) -> PathBuf {
    schema_dir.join(format!("pve-{release}")).join("apidoc.json")
}

/// Pins `input` as `release` below `schema_dir` and records it; says what it did.
pub fn run(release: &str, input: &Path, schema_dir: &Path) -> Result<String, PinError> {
    let bytes = fs::read(input).map_err(|source| PinError::File { path: input.to_owned(), what: "read", source })?;
    let source = input.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let pinned = pin(release, &bytes, &source)?;

    let record_path = schema_dir.join(RECORD);
    let mut pins = match fs::read_to_string(&record_path) {
        Ok(text) => parse_pins(&text)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(PinError::File { path: record_path, what: "read", source }),
    };
    pins.retain(|pin| pin.release != release);
    let Pinned { json_text, paths, methods, sha256 } = pinned;
    pins.push(Pin { release: release.to_owned(), source, sha256: sha256.clone(), paths, methods });
    pins.sort_by_key(|pin| release_number(&pin.release));

    let path = path_of(schema_dir, release);
    replace(&path, &json_text)?;
    replace(&record_path, &write_pins(&pins))?;
    Ok(format!(
        "PVE {release}: {methods} operations on {paths} paths, written to {} (source sha256 {sha256}).\nReview it with `git diff schema/`.\n",
        path.display()
    ))
}

/// Reads `pins.toml` and every pinned file, and verifies that they fit each other. Oldest release first.
pub fn load_pins(schema_dir: &Path) -> Result<Vec<LoadedPin>, PinError> {
    let record_path = schema_dir.join(RECORD);
    parse_pins(&read(&record_path)?)?
        .into_iter()
        .map(|pin| {
            let path = path_of(schema_dir, &pin.release);
            let text = read(&path)?;
            let apidoc = Apidoc::parse(&text, &path.display().to_string())?;
            verify(&pin, &apidoc).map_err(|problem| PinError::Changed { path, problem })?;
            Ok(LoadedPin { pin, text, apidoc })
        })
        .collect()
}

/// Whether an apidoc has the counts that its entry in `pins.toml` says.
pub fn verify(pin: &Pin, apidoc: &Apidoc) -> Result<(), String> {
    let found = (apidoc.paths.len(), apidoc.methods.len());
    if found == (pin.paths, pin.methods) {
        return Ok(());
    }
    Err(format!(
        "has {} paths and {} operations, but pins.toml says {} and {}",
        found.0, found.1, pin.paths, pin.methods
    ))
}

fn read(path: &Path) -> Result<String, PinError> {
    fs::read_to_string(path).map_err(|source| PinError::File { path: path.to_owned(), what: "read", source })
}

/// Writes beside the file and renames, so that a reader never sees half of it.
fn replace(path: &Path, text: &str) -> Result<(), PinError> {
    let written = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let fresh = path.with_extension("new");
        fs::write(&fresh, text)?;
        fs::rename(&fresh, path)
    };
    written().map_err(|source| PinError::File { path: path.to_owned(), what: "written", source })
}
