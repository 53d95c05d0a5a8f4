//! Decides what one entry of a token file says: in pvegate's keys, or in those of the seed's files.

use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::slow::SlowHash;
use super::{Actor, Check, Entry, Principal, hex_digest, seed};
use crate::config::{Problems, Table};
use crate::grant::{Caps, Grant, Guests, Networks, Scope, Tiers};

/// Keys of any entry, beside [`OURS`].
const KNOWN: &[&str] = &[
    "name",
    "hash",
    "tools",
    "grant",
    "actor_type",
    "owner",
    "person",
    "expires",
    "created_at",
    "provider",
    "provider_tier",
    "on_behalf_of",
];

/// Scopes that other versions and the seed's files have, and that this one cannot keep.
const NOT_ENFORCED: &[&str] = &["actions", "caps", "operations", "urls", "oidc_subject"];

/// What the seed's files call `clusters`.
pub(super) const SEEDS_CLUSTERS: &[&str] = &["devices", "routers", "targets"];

/// Keys that the seed's files do not have: an entry with one of them says all that it grants in our keys.
const OURS: &[&str] = &[
    "clusters",
    "guests",
    "nodes",
    "storages",
    "pools",
    "networks",
    "tiers",
    "max_memory_mib",
    "max_disk_gib",
    "max_guests",
    "max_snapshots",
];

/// Reads one; `at` counts from 0.
pub(super) fn read(at: usize, item: Value, problems: &mut Problems) -> Option<Entry> {
    let named = item.get("name").and_then(Value::as_str).map(|name| crate::untrusted::shown(name, 80));
    let place = named.map_or_else(|| format!("token {}", at + 1), |name| format!("token `{name}`"));
    let mut table = Table::new(place.clone(), item, problems)?;
    for key in NOT_ENFORCED {
        if table.take(key).is_some() {
            problems.at(table.place(key), "this version does not enforce that scope yet, so the token would reach more than it says; leave it out or use a version that has it");
        }
    }
    let name = table.text("name", problems);
    match &name {
        None => problems.at(table.place("name"), "is missing"),
        Some(name)
            if name.len() > 128
                || !name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@')) =>
        {
            problems.at(table.place("name"), "letters, digits, `-`, `_`, `.` and `@`, at most 128");
        }
        Some(_) => {}
    }
    let check = check(&mut table, problems);
    let spelling = SEEDS_CLUSTERS.iter().copied().find(|key| table.has(key)).filter(|_| !table.has("clusters"));
    let clusters = scope(&mut table, spelling.unwrap_or("clusters"), problems);
    let grant = if spelling.is_some() && !OURS.iter().any(|key| table.has(key)) {
        seed::grant(&mut table, name.as_deref().unwrap_or_default(), clusters, problems)
    } else {
        grant(&mut table, clusters, problems)
    };
    let actor = actor(&mut table, problems);
    let expires = expires(&mut table, problems);
    for key in ["created_at", "provider", "provider_tier"] {
        // Provenance of the seed's files; it decides nothing here.
        table.text(key, problems);
    }
    table.finish(&[KNOWN, OURS].concat(), problems);
    Some(Entry { check: check?, principal: Arc::new(Principal { name: name?, actor: actor?, grant: grant?, expires }) })
}

/// A slow hash, or `sha256:` with hex digits, or with base64 as the seed's older files have it.
fn check(table: &mut Table, problems: &mut Problems) -> Option<Check> {
    let text = table.text("hash", problems).unwrap_or_default();
    if text.starts_with("$argon2") {
        let read = SlowHash::parse(&text).map_err(|message| problems.at(table.place("hash"), message));
        return read.ok().map(|hash| Check::Slow(Arc::new(hash)));
    }
    let digest = text.strip_prefix("sha256:").and_then(|rest| hex_digest(rest).or_else(|| base64_digest(rest)));
    if digest.is_none() {
        problems.at(table.place("hash"), "has to be `sha256:` and the 64 hex digits of the bearer secret's SHA-256");
    }
    digest.map(Check::Digest)
}

/// Either alphabet of base64, with padding or without.
fn base64_digest(text: &str) -> Option<[u8; 32]> {
    let plain = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
    URL_SAFE_NO_PAD.decode(plain).ok()?.try_into().ok()
}

/// What an entry in our keys grants.
fn grant(table: &mut Table, clusters: Option<Scope>, problems: &mut Problems) -> Option<Grant> {
    let tools = scope(table, "tools", problems);
    let guests = listed(table, "guests", Guests::from_texts, problems);
    let nodes = names(table, "nodes", problems);
    let storages = names(table, "storages", problems);
    let pools = names(table, "pools", problems);
    let networks = listed(table, "networks", Networks::from_texts, problems);
    let tiers = listed(table, "tiers", Tiers::from_texts, problems);
    let caps = Caps {
        max_memory_mib: table.number("max_memory_mib", problems),
        max_disk_gib: table.number("max_disk_gib", problems),
        max_guests: table.number("max_guests", problems),
        max_snapshots: table.number("max_snapshots", problems),
    };
    if table.take("grant").is_some() {
        problems.at(
            table.place("grant"),
            "belongs to entries of rust-proxmoxmcp, with `devices` and without keys of pvegate's; write `guests`, like [\"vmid:600-699\", \"tag:ci\"]",
        );
    }
    Some(Grant {
        tools: tools?,
        clusters: clusters?,
        guests: guests?,
        nodes: nodes?,
        storages: storages?,
        pools: pools?,
        networks: networks?,
        tiers: tiers?,
        caps,
        plans: std::collections::BTreeSet::new(),
    })
}

/// A list that has to be there.
pub(super) fn scope(table: &mut Table, key: &str, problems: &mut Problems) -> Option<Scope> {
    if !table.has(key) {
        problems.at(table.place(key), "is missing; list names, or `*` for all");
        return None;
    }
    let names = table.texts(key, problems)?;
    Scope::from_names(names).map_err(|message| problems.at(table.place(key), message)).ok()
}

/// A list of names that may be absent, which grants nothing.
fn names(table: &mut Table, key: &str, problems: &mut Problems) -> Option<Scope> {
    listed(table, key, |names| Scope::from_names(names.to_vec()), problems)
}

/// A list that may be absent, which grants nothing. An empty one is a mistake.
fn listed<T: Default>(
    table: &mut Table,
    key: &str,
    read: impl FnOnce(&[String]) -> Result<T, String>,
    problems: &mut Problems,
) -> Option<T> {
    if !table.has(key) {
        return Some(T::default());
    }
    let texts = table.texts(key, problems)?;
    if texts.is_empty() {
        problems.at(table.place(key), "is empty; leave it out to grant nothing of it, or write `*` for all");
        return None;
    }
    read(&texts).map_err(|message| problems.at(table.place(key), message)).ok()
}

fn actor(table: &mut Table, problems: &mut Problems) -> Option<Actor> {
    let kind = table.text("actor_type", problems);
    let person = table.text("person", problems);
    let seeds_owner = table.text("on_behalf_of", problems);
    let owner = table.text("owner", problems).or(seeds_owner);
    match kind.as_deref() {
        None | Some("agent" | "unknown") => {
            if person.is_some() {
                problems.at(
                    table.place("person"),
                    "is for human tokens; write `owner` for the person who answers for an agent",
                );
            }
            Some(Actor::Agent { owner })
        }
        Some("human") => {
            if person.is_none() {
                problems.at(table.place("person"), "is missing: a human token says whose it is");
            }
            Some(Actor::Human { person: person? })
        }
        Some(_) => {
            problems.at(table.place("actor_type"), "has to be `agent` or `human`");
            None
        }
    }
}

fn expires(table: &mut Table, problems: &mut Problems) -> Option<SystemTime> {
    let text = table.text("expires", problems)?;
    let parsed = crate::config::time(&text);
    if parsed.is_none() {
        problems.at(table.place("expires"), "has to be a time with its zone, like 2027-01-31T12:00:00Z");
    }
    // An unreadable expiry is reported above; the entry is never used then.
    parsed
}
