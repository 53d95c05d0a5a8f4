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

use files::{Inputs, Output};
use model::Model;
use overlay::Overlay;
use problem::Problems;

/// Joins pins and overlay. Everything that does not fit is reported at once.
pub fn model(inputs: &Inputs) -> Result<Model, Problems> {
    let mut problems = Problems::default();
    let overlay = problems.keep(Overlay::read(&inputs.below("overlay")));
    let pins = match inputs.files.get("pins.toml").map(|text| pin::parse_pins(text)) {
        Some(Ok(pins)) => Some(pins),
        Some(Err(error)) => {
            problems.push("pins.toml", error.to_string());
            None
        }
        None => {
            problems.push("pins.toml", "missing: run `cargo codegen pin --release R <apidoc.js>`");
            None
        }
    };
    let (Some(overlay), Some(pins)) = (overlay, pins) else {
        return problems.or(()).and_then(|()| Err(Problems::default()));
    };
    let pinned = join::read_pins(&pins, &inputs.files, &overlay)?;
    join::join(&pinned, &overlay)
}

/// Generates all files. The same inputs give the same output, byte for byte.
pub fn generate(inputs: &Inputs) -> Result<Output, Problems> {
    Ok(Output { files: emit::emit(&model(inputs)?) })
}
