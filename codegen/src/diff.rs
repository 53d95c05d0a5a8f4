//! The upgrade report: what one release's API has over another, for the pull request that pins it.
//!
//! It is about what reviewers have to decide: new operations and parameters, what PVE now refuses
//! or allows, whom it lets in, and where the overlay needs a line.

mod answers;
mod compare;
mod permissions;
mod suggest;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};
use std::path::Path;

use crate::apidoc::{Apidoc, Method};
use crate::pin::{self, PinError};

use compare::{Change, Effect};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// The pins could not be read.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// One of the releases is not pinned.
    #[error(
        "release {release:?} is not pinned; there are {pinned}. Pin it with `cargo codegen pin --release {release} <apidoc.js>`"
    )]
    NotPinned {
        /// What was asked for.
        release: String,
        /// The releases there are.
        pinned: String,
    },
}

/// The report on two pinned releases.
pub fn run(schema_dir: &Path, old: &str, new: &str) -> Result<String, DiffError> {
    let pins = pin::load_pins(schema_dir)?;
    let find = |release: &str| {
        pins.iter().find(|loaded| loaded.pin.release == release).map(|loaded| &loaded.apidoc).ok_or_else(|| {
            let pinned: Vec<&str> = pins.iter().map(|loaded| loaded.pin.release.as_str()).collect();
            DiffError::NotPinned { release: release.to_owned(), pinned: pinned.join(", ") }
        })
    };
    Ok(report(find(old)?, old, find(new)?, new))
}

/// What `new` has over `old`, in Markdown.
pub fn report(old: &Apidoc, old_release: &str, new: &Apidoc, new_release: &str) -> String {
    let added: Vec<(&String, &Method)> =
        new.methods.iter().filter(|(name, _)| !old.methods.contains_key(*name)).collect();
    let removed: Vec<&String> = old.methods.keys().filter(|name| !new.methods.contains_key(*name)).collect();
    let mut sections = Sections::default();
    for (name, after) in &new.methods {
        if let Some(before) = old.methods.get(name) {
            sections.method(name, before, after);
        }
    }

    let mut out = String::new();
    let _ = writeln!(out, "# PVE API: {old_release} to {new_release}\n");
    let _ = writeln!(
        out,
        "{} operations before, {} after: {} added, {} removed, {} changed.",
        old.methods.len(),
        new.methods.len(),
        added.len(),
        removed.len(),
        sections.changed.len()
    );
    let added_lines = added.iter().map(|(name, method)| format!("`{name}`{}", suggest::remarks(method)));
    section(&mut out, "Operations added", added_lines);
    section(&mut out, "Operations removed", removed.iter().map(|name| format!("`{name}`")));
    let parameters = [
        (Effect::Added, "Parameters added"),
        (Effect::Removed, "Parameters removed"),
        (Effect::Tightened, "Parameters tightened"),
        (Effect::Loosened, "Parameters loosened"),
        (Effect::Otherwise, "Parameters changed otherwise"),
    ];
    for (effect, title) in parameters {
        section(&mut out, title, sections.parameters(effect));
    }
    section(&mut out, "Flags moved", &sections.flags);
    section(&mut out, "Permissions changed", &sections.permissions);
    section(&mut out, "Answers changed", &sections.answers);
    section(&mut out, "Parameter names that no older operation has (each needs a role)", new_names(old, new));
    if !removed.is_empty() {
        let _ = writeln!(
            out,
            "\nOverlay entries that name a removed operation match nothing in {new_release} and have to go."
        );
    }
    suggest::overlay(&mut out, &added);
    out
}

fn section<T: Display>(out: &mut String, title: &str, lines: impl IntoIterator<Item = T>) {
    let lines: Vec<T> = lines.into_iter().collect();
    let _ = writeln!(out, "\n## {title}: {}\n", lines.len());
    if lines.is_empty() {
        out.push_str("None.\n");
    }
    for line in lines {
        let _ = writeln!(out, "- {line}");
    }
}

/// Parameters of `new` whose name nothing in `old` has, so that no rule by name can cover them yet.
fn new_names(old: &Apidoc, new: &Apidoc) -> Vec<String> {
    let names = |apidoc: &Apidoc| -> BTreeSet<String> {
        apidoc.methods.values().flat_map(|method| method.parameters.properties.keys().cloned()).collect()
    };
    let known = names(old);
    names(new).difference(&known).map(|name| format!("`{name}`")).collect()
}

/// The report about operations that both releases have.
#[derive(Default)]
struct Sections {
    changed: BTreeSet<String>,
    /// Which operations share a change of a parameter, so that one that is used everywhere is read once.
    parameters: BTreeMap<(Effect, String, String), Vec<String>>,
    flags: Vec<String>,
    permissions: Vec<String>,
    answers: Vec<String>,
}

impl Sections {
    fn method(&mut self, name: &str, old: &Method, new: &Method) {
        let mut texts: BTreeMap<(Effect, String), Vec<String>> = BTreeMap::new();
        for Change { effect, place, text } in compare::parameters(&old.parameters, &new.parameters) {
            texts.entry((effect, place)).or_default().push(text);
        }
        for ((effect, place), texts) in texts {
            self.parameters.entry((effect, place, texts.join(", "))).or_default().push(name.to_owned());
            self.changed.insert(name.to_owned());
        }
        let flags = flags(old, new);
        if !flags.is_empty() {
            self.flags.push(format!("`{name}`: {}", flags.join(", ")));
        }
        if old.permissions != new.permissions {
            let (before, after) =
                (permissions::show(old.permissions.as_ref()), permissions::show(new.permissions.as_ref()));
            self.permissions.push(format!("`{name}`: {before} -> {after}"));
        }
        let answers = answers::compare(&old.returns, &new.returns);
        if !answers.is_empty() {
            self.answers.push(format!("`{name}`: {}", answers.join("; ")));
        }
        if !flags.is_empty() || old.permissions != new.permissions || !answers.is_empty() {
            self.changed.insert(name.to_owned());
        }
    }

    fn parameters(&self, effect: Effect) -> Vec<String> {
        let of_effect = self.parameters.iter().filter(|((of, ..), _)| *of == effect);
        of_effect
            .map(|((_, place, text), operations)| {
                let place = if place.is_empty() { "parameters".to_owned() } else { format!("`{place}`") };
                match operations.as_slice() {
                    [only] => format!("{place} of `{only}`: {text}"),
                    several => {
                        format!("{place} of {} operations: {text}\n  - `{}`", several.len(), several.join("`\n  - `"))
                    }
                }
            })
            .collect()
    }
}

fn flags(old: &Method, new: &Method) -> Vec<String> {
    let mut moved = Vec::new();
    let pairs = [
        ("allowtoken", old.allow_token, new.allow_token),
        ("protected", old.protected, new.protected),
        ("expose_credentials", old.expose_credentials, new.expose_credentials),
        ("download_allowed", old.download_allowed, new.download_allowed),
    ];
    for (flag, before, after) in pairs {
        if before != after {
            moved.push(format!("{flag} {} -> {}", u8::from(before), u8::from(after)));
        }
    }
    if old.proxyto != new.proxyto {
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        moved.push(format!("proxyto {} -> {}", show(&old.proxyto), show(&new.proxyto)));
    }
    moved
}
