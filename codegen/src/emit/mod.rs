//! Emitters: each turns the model into one kind of file.

mod catalog;
mod documents;
mod names;
mod policy;
mod report;
mod requests;
mod rust;
mod terms;
mod tools;

use std::collections::BTreeMap;

use crate::model::Model;

pub use policy::{offered_text, permission_text};

/// All files, by path below the workspace.
pub fn emit(model: &Model) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    terms::emit(model, &mut files);
    catalog::emit(model, &mut files);
    requests::emit(model, &mut files);
    tools::emit(model, &mut files);
    policy::emit(model, &mut files);
    report::emit(model, &mut files);
    documents::emit(model, &mut files);
    files
}
