//! `pins.toml`: where each pin came from, and the counts that its file has to have.

use std::fmt::Write as _;

use serde::Deserialize;

use super::PinError;

/// One entry of `pins.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The release, `9.2`.
    pub release: String,
    /// Name of the file it was made from.
    pub source: String,
    /// SHA-256 of that file.
    pub sha256: String,
    /// How many paths have operations.
    pub paths: usize,
    /// How many operations there are.
    pub methods: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    pins: Vec<Pin>,
}

/// A release in numbers, so that 9.10 comes after 9.2; `None` if it is not two numbers.
pub fn release_number(release: &str) -> Option<(u16, u16)> {
    let (major, minor) = release.split_once('.')?;
    let numbers = (major.parse().ok()?, minor.parse().ok()?);
    // Back again, so that `09.2`, `+9.2` and the like are not second names of a release.
    (format!("{}.{}", numbers.0, numbers.1) == release).then_some(numbers)
}

/// Reads `pins.toml`: the pins, oldest release first.
pub fn parse_pins(text: &str) -> Result<Vec<Pin>, PinError> {
    let file: File = toml::from_str(text).map_err(|error| PinError::Record(error.to_string().trim_end().to_owned()))?;
    let mut pins = file.pins;
    let mut problems = Vec::new();
    for pin in &pins {
        if release_number(&pin.release).is_none() {
            problems.push(format!("release {:?} is not like \"9.2\"", pin.release));
        }
        if pin.sha256.len() != 64 || !pin.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            problems.push(format!("release {:?}: sha256 is not 64 hexadecimal digits", pin.release));
        }
    }
    pins.sort_by_key(|pin| release_number(&pin.release));
    for pair in pins.windows(2) {
        if let [one, other] = pair
            && one.release == other.release
        {
            problems.push(format!("release {:?} stands twice", one.release));
        }
    }
    if problems.is_empty() { Ok(pins) } else { Err(PinError::Record(problems.join("\n  "))) }
}

/// The text of `pins.toml`.
pub(super) fn write_pins(pins: &[Pin]) -> String {
    let mut out = String::from("# Where the pinned apidocs came from. Written by `cargo codegen pin`, never edited.\n");
    for pin in pins {
        // A file's name may hold a quote; everything else was checked to be plain.
        let source = toml::Value::from(pin.source.as_str());
        let _ = write!(
            out,
            "\n[[pins]]\nrelease = \"{}\"\nsource = {source}\nsha256 = \"{}\"\npaths = {}\nmethods = {}\n",
            pin.release, pin.sha256, pin.paths, pin.methods
        );
    }
    out
}
