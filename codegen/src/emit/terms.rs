//! `terms.rs` and `model.rs` of the generated crate: the vocabularies and the shape of the catalog.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::rust::{header, release};
use crate::model::Model;
use crate::terms::{Area, Flag, Guard, Reason, Role, Settle, Subject, Tier, Value, Vocabulary};

const MODEL: &str = include_str!("../../templates/model.rs");

/// Writes them.
pub fn emit(model: &Model, files: &mut BTreeMap<String, String>) {
    let mut text = header(model, "The closed vocabularies of the catalog.");
    text.push_str("use std::fmt;\n\n");
    releases(model, &mut text);
    vocabulary::<Area>(&mut text);
    vocabulary::<Flag>(&mut text);
    vocabulary::<Guard>(&mut text);
    vocabulary::<Reason>(&mut text);
    vocabulary::<Role>(&mut text);
    vocabulary::<Settle>(&mut text);
    vocabulary::<Subject>(&mut text);
    vocabulary::<Tier>(&mut text);
    vocabulary::<Value>(&mut text);
    files.insert("generated/src/terms.rs".to_owned(), text);
    files.insert(
        "generated/src/model.rs".to_owned(),
        format!("// Written by `cargo codegen` from codegen/templates/model.rs; edit it there.\n{MODEL}"),
    );
}

fn releases(model: &Model, text: &mut String) {
    let variants: Vec<(String, String, String)> =
        model.releases.iter().map(|name| (release(name), name.clone(), format!("PVE {name}."))).collect();
    enumeration("Release", "A pinned release.", &variants, text);
    if let (Some((oldest, ..)), Some((newest, ..))) = (variants.first(), variants.last()) {
        let _ = write!(
            text,
            "impl Release {{\n    /// The oldest pinned one.\n    pub const OLDEST: Self = Self::{oldest};\n    /// The newest pinned one, which the catalog is built from.\n    pub const NEWEST: Self = Self::{newest};\n}}\n\n"
        );
    }
}

fn vocabulary<V: Vocabulary>(text: &mut String) {
    let variants: Vec<(String, String, String)> = V::entries()
        .into_iter()
        .map(|(variant, word, meaning)| (variant.to_owned(), word.to_owned(), meaning.to_owned()))
        .collect();
    enumeration(V::NAME, &format!("Words of the overlay for `{}`.", V::NAME.to_lowercase()), &variants, text);
}

fn enumeration(name: &str, about: &str, variants: &[(String, String, String)], text: &mut String) {
    let _ = write!(
        text,
        "/// {about}\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\npub enum {name} {{\n"
    );
    for (variant, _, meaning) in variants {
        let _ = write!(text, "    /// {meaning}\n    {variant},\n");
    }
    let _ = write!(text, "}}\n\nimpl {name} {{\n    /// All of them.\n    pub const ALL: &'static [Self] = &[");
    for (variant, ..) in variants {
        let _ = write!(text, "Self::{variant}, ");
    }
    let _ = write!(
        text,
        "];\n\n    /// The word in the overlay and in messages.\n    pub const fn as_str(self) -> &'static str {{\n        match self {{\n"
    );
    for (variant, word, _) in variants {
        let _ = writeln!(text, "            Self::{variant} => {word:?},");
    }
    let _ = write!(
        text,
        "        }}\n    }}\n}}\n\nimpl fmt::Display for {name} {{\n    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {{\n        f.write_str(self.as_str())\n    }}\n}}\n\n"
    );
}
