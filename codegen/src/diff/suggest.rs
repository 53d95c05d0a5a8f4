//! Overlay lines for added operations. They are guesses to start from: each says what is to be
//! decided, and takes the careful side where the apidoc does not tell.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::apidoc::{Kind, Method, Verb};

/// What a reviewer should know about an added operation, beside its name.
pub(super) fn remarks(method: &Method) -> String {
    let mut remarks =
        vec![format!("returns {}", method.returns.kind.map_or("something undescribed", |kind| kind.as_str()))];
    if method.permissions.is_none() {
        remarks.push("root@pam only".to_owned());
    }
    if !method.allow_token {
        remarks.push("no API token".to_owned());
    }
    if method.expose_credentials {
        remarks.push("re-uses the caller's credentials".to_owned());
    }
    if method.download_allowed {
        remarks.push("may answer with a download".to_owned());
    }
    format!(": {}", remarks.join(", "))
}

/// Appends one line for each added operation, by overlay file.
pub(super) fn overlay(out: &mut String, added: &[(&String, &Method)]) {
    if added.is_empty() {
        return;
    }
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, method) in added {
        files.entry(file(&method.path)).or_default().push(line(name, method));
    }
    out.push_str(
        "\n## Overlay lines to start from\n\n\
         All of it is guessed. Decide what stands behind `# to decide`, write the summaries, and give each new parameter a role.\n",
    );
    for (file, lines) in files {
        let _ = write!(out, "\n`schema/overlay/{file}`, under `[operations]`:\n\n```toml\n{}\n```\n", lines.join("\n"));
    }
}

/// The overlay file of a path's area.
fn file(path: &str) -> &'static str {
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    match steps.as_slice() {
        ["nodes", _, "qemu" | "lxc", ..] => "guests.toml",
        ["storage", ..] | ["nodes", _, "storage" | "disks", ..] => "storage.toml",
        ["cluster", "sdn" | "firewall", ..] | ["nodes", _, "network" | "sdn" | "firewall", ..] => "network.toml",
        ["access" | "pools", ..] => "access.toml",
        ["nodes", ..] => "nodes.toml",
        _ => "cluster.toml",
    }
}

fn line(name: &str, method: &Method) -> String {
    let mut keys = Vec::new();
    let mut decide = vec!["summary"];
    let read = method.verb == Verb::Get;
    keys.push(format!("tier = {:?}", if read { "read" } else { "destructive" }));
    keys.push("summary = \"TO DECIDE\"".to_owned());
    if method.permissions.is_none() {
        keys.push("offered = { never = \"root-only\" }".to_owned());
    } else if !method.allow_token {
        keys.push("offered = { never = \"no-token\" }".to_owned());
    }
    if read {
        decide.push("whether it really only reads, and may leave");
        if method.returns.kind == Some(Kind::Array) {
            keys.push("rows = \"all\"".to_owned());
            decide.push("whose its rows are");
        }
    }
    let task = method.returns.kind == Some(Kind::String);
    if task {
        let word = if method.returns.required() { "yes" } else { "maybe" };
        keys.push(format!("task = {:?}", if read { "no" } else { word }));
        decide.push("whether it returns a UPID");
    }
    if !read {
        keys.push(format!("settle = {:?}", if task { "task" } else { "person" }));
        keys.push("undo = { none = \"TO DECIDE\" }".to_owned());
        decide.push("settle, undo, flags, binds");
    }
    format!("# to decide: {}\n{name:?} = {{ {} }}", decide.join("; "), keys.join(", "))
}
