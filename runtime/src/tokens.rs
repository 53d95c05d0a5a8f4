//! Decides who a caller is: bearer secrets are known by their SHA-256 only, and found in constant time.
//!
//! A scope that this version does not enforce is an error when the file is loaded: ignoring it would
//! give a token more than its owner wrote.

use crate::config::{Clusters, ConfigError, Document, Problems, Table};
use crate::grant::{Caps, Grant, Guests, Networks, Scope, Selector, Tiers};
use crate::values::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

mod edit;
#[cfg(test)]
mod tests;

pub use edit::{EditError, TokenEditor};

/// Marks a secret as ours, for people and for secret scanners.
const PREFIX: &str = "pvegate_";
/// Most tokens of one server: every one is compared on each request.
const MOST: usize = 1024;

/// Whom a token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The token's name.
    pub name: String,
    /// Who uses it.
    pub actor: Actor,
    /// What it reaches.
    pub grant: Grant,
    /// When it ends.
    pub expires: Option<SystemTime>,
}

/// Who uses a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A program, on behalf of its owner where one is named.
    Agent {
        /// The person who answers for it.
        owner: Option<String>,
    },
    /// A person.
    Human {
        /// Who.
        person: String,
    },
}

/// Why a bearer secret was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No entry has its digest.
    #[error("the bearer token is not known to this server")]
    Unknown,
    /// Its time is over.
    #[error("the token `{0}` has expired; ask the operator for a new one")]
    Expired(String),
}

/// All tokens of this server.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    file: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    digest: [u8; 32],
    principal: Arc<Principal>,
}

impl Tokens {
    /// Reads `tokens.json`, or the same data as TOML.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let Document { mut root, mut problems } = Document::load(path)?;
        root.version_one(&mut problems);
        let items = root.list("tokens", &mut problems).unwrap_or_default();
        root.finish(&["version", "tokens"], &mut problems);
        if items.len() > MOST {
            problems.at("key `tokens`", format!("holds more than {MOST} tokens"));
        }
        let mut entries: Vec<Entry> = Vec::new();
        for (at, item) in items.into_iter().enumerate() {
            let Some(entry) = read_entry(at, item, &mut problems) else { continue };
            let name = &entry.principal.name;
            if entries.iter().any(|other| other.principal.name == *name) {
                problems.at(format!("token `{name}`"), "another token has the same name");
            }
            if entries.iter().any(|other| other.digest == entry.digest) {
                problems.at(format!("token `{name}`"), "another token has the same secret; make a new one");
            }
            entries.push(entry);
        }
        problems.finish(Self { file: path.to_owned(), entries })
    }

    /// Whose secret this is. Every entry is compared, whichever matches.
    pub fn authenticate(&self, bearer: &str, now: SystemTime) -> Result<Arc<Principal>, AuthError> {
        let presented = digest(bearer);
        let mut found = u64::MAX;
        for (at, entry) in (0_u64..).zip(&self.entries) {
            let same: Choice = entry.digest.ct_eq(&presented);
            found.conditional_assign(&at, same);
        }
        let entry = usize::try_from(found).ok().and_then(|at| self.entries.get(at)).ok_or(AuthError::Unknown)?;
        match entry.principal.expires {
            Some(end) if end <= now => Err(AuthError::Expired(entry.principal.name.clone())),
            _ => Ok(Arc::clone(&entry.principal)),
        }
    }

    /// All principals, in the order of the file.
    pub fn principals(&self) -> impl Iterator<Item = &Arc<Principal>> {
        self.entries.iter().map(|entry| &entry.principal)
    }

    /// Tags by which some token selects guests, in lower case: whoever could add or remove one would change a grant.
    pub fn granting_tags(&self) -> BTreeSet<&str> {
        self.selectors()
            .filter_map(|selector| if let Selector::Tag(tag) = selector { Some(&**tag) } else { None })
            .collect()
    }

    /// The same for pools.
    pub fn granting_pools(&self) -> BTreeSet<&str> {
        self.selectors()
            .filter_map(|selector| if let Selector::Pool(pool) = selector { Some(pool.as_str()) } else { None })
            .collect()
    }

    fn selectors(&self) -> impl Iterator<Item = &Selector> {
        self.principals().flat_map(|principal| principal.grant.guests.selectors())
    }

    /// Whether no token is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Refuses names of clusters that the server does not have.
    pub fn check_clusters(&self, clusters: &Clusters) -> Result<(), ConfigError> {
        self.check(
            "clusters",
            "no cluster of that name in the cluster file",
            |grant| &grant.clusters,
            |name| clusters.get(name).is_some(),
        )
    }

    /// Refuses names that are neither a tool nor a toolset.
    pub fn check_tools(&self, known: impl Fn(&str) -> bool) -> Result<(), ConfigError> {
        self.check("tools", "no tool or toolset of that name", |grant| &grant.tools, known)
    }

    fn check(
        &self,
        key: &str,
        message: &str,
        scope: fn(&Grant) -> &Scope,
        known: impl Fn(&str) -> bool,
    ) -> Result<(), ConfigError> {
        let mut problems = Problems::new(&self.file);
        for principal in self.principals() {
            for name in scope(&principal.grant).names().filter(|name| !known(name)) {
                problems.at(format!("token `{}`, key `{key}`", principal.name), format!("`{name}`: {message}"));
            }
        }
        problems.finish(())
    }
}

/// A new bearer secret of 256 bits from the operating system, and what the token file stores of it.
pub fn generate() -> Result<(Secret, String), getrandom::Error> {
    let mut bytes = zeroize::Zeroizing::new([0_u8; 32]);
    getrandom::fill(bytes.as_mut_slice())?;
    let secret = Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes.as_slice())));
    let stored = stored_hash(secret.expose());
    Ok((secret, stored))
}

/// What the token file stores of a bearer secret: `sha256:` and 64 hex digits.
pub fn stored_hash(bearer: &str) -> String {
    use std::fmt::Write as _;
    digest(bearer).iter().fold("sha256:".to_owned(), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn digest(bearer: &str) -> [u8; 32] {
    Sha256::digest(bearer.as_bytes()).into()
}

/// 64 hex digits as bytes.
pub(crate) fn hex_digest(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0_u8; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// `sha256:` with hex digits, or with base64 as the seed's older files have it.
fn read_hash(text: &str) -> Option<[u8; 32]> {
    let rest = text.strip_prefix("sha256:")?;
    hex_digest(rest).or_else(|| URL_SAFE_NO_PAD.decode(rest).ok()?.try_into().ok())
}

const KNOWN: &[&str] = &[
    "name",
    "hash",
    "tools",
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
const NOT_ENFORCED: &[&str] = &["grant", "actions", "caps", "operations", "urls", "oidc_subject"];

/// Other spellings of `clusters` in the seed's files.
const CLUSTER_SPELLINGS: &[&str] = &["clusters", "devices", "routers", "targets"];

fn read_entry(at: usize, item: Value, problems: &mut Problems) -> Option<Entry> {
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
    let hash = table.text("hash", problems).as_deref().and_then(read_hash);
    if hash.is_none() {
        problems.at(table.place("hash"), "has to be `sha256:` and the 64 hex digits of the bearer secret's SHA-256");
    }
    let tools = scope(&mut table, "tools", problems);
    let spelling = CLUSTER_SPELLINGS.iter().copied().find(|key| table.has(key)).unwrap_or("clusters");
    let clusters = scope(&mut table, spelling, problems);
    let guests = listed(&mut table, "guests", Guests::from_texts, problems);
    let nodes = names(&mut table, "nodes", problems);
    let storages = names(&mut table, "storages", problems);
    let pools = names(&mut table, "pools", problems);
    let networks = listed(&mut table, "networks", Networks::from_texts, problems);
    let tiers = listed(&mut table, "tiers", Tiers::from_texts, problems);
    let caps = Caps {
        max_memory_mib: table.number("max_memory_mib", problems),
        max_disk_gib: table.number("max_disk_gib", problems),
        max_guests: table.number("max_guests", problems),
        max_snapshots: table.number("max_snapshots", problems),
    };
    let actor = actor(&mut table, problems);
    let expires = expires(&mut table, problems);
    for key in ["created_at", "provider", "provider_tier"] {
        // Provenance of the seed's files; it decides nothing here.
        table.text(key, problems);
    }
    table.finish(KNOWN, problems);
    Some(Entry {
        digest: hash?,
        principal: Arc::new(Principal {
            name: name?,
            actor: actor?,
            grant: Grant {
                tools: tools?,
                clusters: clusters?,
                guests: guests?,
                nodes: nodes?,
                storages: storages?,
                pools: pools?,
                networks: networks?,
                tiers: tiers?,
                caps,
            },
            expires,
        }),
    })
}

fn scope(table: &mut Table, key: &str, problems: &mut Problems) -> Option<Scope> {
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
