//! Generates pvegate's catalog from the pinned PVE API schema and the overlay.
//!
//! [`generate`] is a pure function from the files of `schema/` to the files of `generated/`;
//! the command line, the build script of `generated/` and the tests are thin callers.

pub mod apidoc;
mod decide;
pub mod diff;
mod emit;
pub mod explain;
pub mod files;
mod fixups;
mod formats;
mod join;
mod json_schema;
mod kinds;
pub mod model;
pub mod overlay;
pub mod pattern;
pub mod pin;
pub mod problem;
pub mod terms;
mod tools;
mod typetext;

pub use decide::says_nothing;
pub use join::{Pinned, join};

use files::{Inputs, Output};
use model::Model;
use overlay::Overlay;
use problem::Problems;

/// Joins pins and overlay. Everything that does not fit is reported at once.
pub fn model(inputs: &Inputs) -> Result<Model, Problems> {
    let mut problems = Problems::default();
    let overlay = problems.keep(Overlay::read(&inputs.below("overlay")));
    let pins = problems.keep(pins(inputs));
    let (Some(overlay), Some(pins)) = (overlay, pins) else {
        return problems.or(()).and_then(|()| Err(Problems::default()));
    };
    join(&join::read_pins(&pins, &inputs.files, &overlay)?, &overlay)
}

/// Reads the pins alone, for callers that join them with several overlays. The fixups of `overlay` are applied.
pub fn pinned(inputs: &Inputs, overlay: &Overlay) -> Result<Pinned, Problems> {
    join::read_pins(&pins(inputs)?, &inputs.files, overlay)
}

fn pins(inputs: &Inputs) -> Result<Vec<pin::Pin>, Problems> {
    let mut problems = Problems::default();
    match inputs.files.get("pins.toml").map(|text| pin::parse_pins(text)) {
        Some(Ok(pins)) => return Ok(pins),
        Some(Err(error)) => problems.push("pins.toml", error.to_string()),
        None => problems.push("pins.toml", "missing: run `cargo codegen pin --release R <apidoc.js>`"),
    }
    Err(problems)
}

/// Writes a model down.
pub fn output(model: &Model) -> Output {
    Output { files: emit::emit(model) }
}

/// Generates all files. The same inputs give the same output, byte for byte.
pub fn generate(inputs: &Inputs) -> Result<Output, Problems> {
    Ok(output(&model(inputs)?))
}
