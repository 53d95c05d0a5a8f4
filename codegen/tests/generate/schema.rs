//! The inputs of these tests: the real `schema/`, read once, and edits of it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pvegate_codegen::files::{Inputs, Output};
use pvegate_codegen::model::Model;
use pvegate_codegen::overlay::Overlay;
use pvegate_codegen::problem::Problems;
use pvegate_codegen::{Pinned, join, output, pinned};

/// The workspace of this checkout.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The real `schema/` with its pins read, and what is generated from it.
pub struct Real {
    pub inputs: Inputs,
    pub overlay: Overlay,
    pub pinned: Pinned,
    pub model: Model,
    pub output: Output,
}

/// Read at the first use: the pins are megabytes.
pub fn real() -> &'static Real {
    static REAL: OnceLock<Real> = OnceLock::new();
    REAL.get_or_init(|| {
        let inputs = Inputs::read(&workspace().join("schema")).unwrap();
        let overlay = Overlay::read(&inputs.below("overlay")).unwrap();
        let pinned = pinned(&inputs, &overlay).unwrap();
        let model = join(&pinned, &overlay).unwrap_or_else(|problems| panic!("{problems}"));
        let output = output(&model);
        Real { inputs, overlay, pinned, model, output }
    })
}

impl Real {
    /// A file of the overlay as a table.
    pub fn table(&self, file: &str) -> toml::Table {
        self.inputs.files[&format!("overlay/{file}")].parse().unwrap()
    }

    /// What an overlay comes to in which one file is another. The pins are not read again, so fixups do not count.
    pub fn with_table(&self, file: &str, table: &toml::Table) -> Result<Model, Problems> {
        self.with_text(file, &toml::to_string(table).unwrap())
    }

    /// The same with the file's text.
    pub fn with_text(&self, file: &str, text: &str) -> Result<Model, Problems> {
        join(&self.pinned, &self.overlay_with(file, text)?)
    }

    /// The overlay with one file read anew: reading all of it each time would be most of the time.
    fn overlay_with(&self, file: &str, text: &str) -> Result<Overlay, Problems> {
        let read = Overlay::read(&[(file.to_owned(), text.to_owned())].into())?;
        let mut overlay = self.overlay.clone();
        match file {
            "roles.toml" => (overlay.roles, overlay.property_roles) = (read.roles, read.property_roles),
            "params.toml" => (overlay.words, overlay.wire) = (read.words, read.wire),
            "privileges.toml" => overlay.privileges = read.privileges,
            "internal.toml" => overlay.internal = read.internal,
            "fixups.toml" => {
                (overlay.fixups, overlay.ranges, overlay.synthetic) = (read.fixups, read.ranges, read.synthetic);
            }
            _ => {
                let elsewhere = |place: &str| !place.starts_with(&format!("{file}:"));
                overlay.tools.retain(|entry| elsewhere(&entry.place));
                overlay.tools.extend(read.tools);
                overlay.decisions.retain(|entry| elsewhere(&entry.place));
                overlay.decisions.extend(read.decisions);
            }
        }
        Ok(overlay)
    }

    /// The refusal of an overlay in which one file is another.
    pub fn refusal(&self, file: &str, table: &toml::Table) -> String {
        self.with_table(file, table).expect_err("an overlay that should be refused").to_string()
    }

    /// The files that differ from the real output.
    pub fn differing(&self, model: &Model) -> Vec<String> {
        let other = output(model);
        let paths: std::collections::BTreeSet<&String> = self.output.files.keys().chain(other.files.keys()).collect();
        paths.into_iter().filter(|path| self.output.files.get(*path) != other.files.get(*path)).cloned().collect()
    }
}

/// The area files of the overlay.
pub const AREAS: [&str; 6] =
    ["access.toml", "cluster.toml", "guests.toml", "network.toml", "nodes.toml", "storage.toml"];
