//! Decides who a caller is: bearer secrets are known by their SHA-256 only, and found in constant time.
//!
//! A scope that this version does not enforce is an error when the file is loaded: ignoring it would
//! give a token more than its owner wrote.

use crate::config::{Clusters, ConfigError, Document, Problems};
use crate::grant::{Grant, Scope, Selector};
use crate::values::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

mod edit;
mod entry;
mod seed;
mod slow;
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
    /// Other comparisons that are slow have to end first.
    #[error("the server compares other tokens whose comparison is slow; send the request again")]
    Busy,
}

/// All tokens of this server.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    file: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    check: Check,
    principal: Arc<Principal>,
}

/// By what an entry's secret is recognised.
#[derive(Clone, Debug)]
enum Check {
    Digest([u8; 32]),
    Slow(Arc<slow::SlowHash>),
}

impl Check {
    /// The secret's digest; of a slow hash only once the secret was seen.
    fn digest(&self) -> Option<&[u8; 32]> {
        match self {
            Self::Digest(digest) => Some(digest),
            Self::Slow(hash) => hash.seen(),
        }
    }

    fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Digest(one), Self::Digest(other)) => one == other,
            (Self::Slow(one), Self::Slow(other)) => one == other,
            _ => false,
        }
    }
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
            let Some(entry) = entry::read(at, item, &mut problems) else { continue };
            let name = &entry.principal.name;
            if let Check::Slow(_) = entry.check {
                tracing::warn!(token = %name, "this token is stored as an argon2 hash, which is slow to compare; `pvegate token rotate` gives it a secret that is not");
            }
            if entries.iter().any(|other| other.principal.name == *name) {
                problems.at(format!("token `{name}`"), "another token has the same name");
            }
            if entries.iter().any(|other| other.check.same_as(&entry.check)) {
                problems.at(format!("token `{name}`"), "another token has the same secret; make a new one");
            }
            entries.push(entry);
        }
        problems.finish(Self { file: path.to_owned(), entries })
    }

    /// Whose secret this is. Every entry is compared, whichever matches; one with a slow hash only if its secret was
    /// seen by `authenticate_slowly`.
    pub fn authenticate(&self, bearer: &str, now: SystemTime) -> Result<Arc<Principal>, AuthError> {
        let presented = digest(bearer);
        let mut found = u64::MAX;
        for (at, entry) in (0_u64..).zip(&self.entries) {
            let same = entry.check.digest().map_or(Choice::from(0), |digest| digest.ct_eq(&presented));
            found.conditional_assign(&at, same);
        }
        let entry = usize::try_from(found).ok().and_then(|at| self.entries.get(at)).ok_or(AuthError::Unknown)?;
        accept(&entry.principal, now)
    }

    /// The same for entries with a slow hash, one secret at a time in the whole process; `None` where it is of no such
    /// entry. What is recognised is recognised by `authenticate` from then on.
    pub async fn authenticate_slowly(
        &self,
        bearer: &str,
        now: SystemTime,
    ) -> Option<Result<Arc<Principal>, AuthError>> {
        let entries: Vec<_> = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.check {
                Check::Slow(hash) => Some((Arc::clone(hash), Arc::clone(&entry.principal))),
                Check::Digest(_) => None,
            })
            .collect();
        if entries.is_empty() {
            return None;
        }
        match slow::find(entries, Secret::new(bearer.to_owned())).await {
            Ok(principal) => Some(accept(&principal, now)),
            Err(AuthError::Unknown) => None,
            Err(busy) => Some(Err(busy)),
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

/// The principal, unless its time is over.
fn accept(principal: &Arc<Principal>, now: SystemTime) -> Result<Arc<Principal>, AuthError> {
    match principal.expires {
        Some(end) if end <= now => Err(AuthError::Expired(principal.name.clone())),
        _ => Ok(Arc::clone(principal)),
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
