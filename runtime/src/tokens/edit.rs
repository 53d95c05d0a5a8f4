//! Decides how a token file changes: one token at a time, checked as a whole before it takes the old one's place, and
//! never half written.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use serde_json::{Map, Value, json};

use super::entry::SEEDS_CLUSTERS;
use super::{Tokens, generate};
use crate::config::{DOCUMENT_LIMIT, read_credential};
use crate::grant::Grant;
use crate::values::Secret;

/// A token file that nobody else edits as long as this lives.
#[derive(Debug)]
pub struct TokenEditor {
    path: PathBuf,
    root: Map<String, Value>,
    tokens: Tokens,
    /// The folder, locked.
    folder: OwnedFd,
}

/// Why a token file was not changed: a sentence for the operator. The file is as it was.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EditError(String);

impl EditError {
    fn at(path: &Path, what: impl std::fmt::Display) -> Self {
        Self(format!("{}: {what}", path.display()))
    }
}

impl TokenEditor {
    /// Opens a file; one that does not exist counts as one without tokens.
    pub fn open(path: &Path) -> Result<Self, EditError> {
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml")) {
            return Err(EditError::at(path, "a TOML file is changed by hand; this command writes JSON"));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let locked = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .and_then(|folder| rustix::fs::flock(&folder, FlockOperation::LockExclusive).map(|()| folder))
            .map_err(|error| EditError::at(folder, format!("cannot be locked: {}", std::io::Error::from(error))))?;
        if std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            let root = [("version".to_owned(), json!(1)), ("tokens".to_owned(), json!([]))].into_iter().collect();
            return Ok(Self { path: path.to_owned(), root, tokens: Tokens::default(), folder: locked });
        }
        // What is wrong already is told before anything is changed.
        let tokens = Tokens::load(path).map_err(|error| EditError(error.to_string()))?;
        let text = read_credential(path, DOCUMENT_LIMIT).map_err(|message| EditError::at(path, message))?;
        match serde_json::from_str(&text) {
            Ok(Value::Object(root)) => Ok(Self { path: path.to_owned(), root, tokens, folder: locked }),
            _ => Err(EditError::at(path, "is not a JSON object")),
        }
    }

    /// The tokens as they are in the file.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Adds a token with a new secret. `entry` holds its keys without hash and grant, as the file has them.
    pub fn insert(mut self, mut entry: Map<String, Value>, grant: &Grant) -> Result<Secret, EditError> {
        let (secret, hash) = self.secret()?;
        entry.insert("hash".to_owned(), Value::from(hash));
        put(&mut entry, grant);
        self.entries()?.push(Value::Object(entry));
        self.write()?;
        Ok(secret)
    }

    /// Gives a token another secret; the old one is of no use from then on.
    pub fn rotate(mut self, name: &str) -> Result<Secret, EditError> {
        let (secret, hash) = self.secret()?;
        self.entry(name)?.insert("hash".to_owned(), Value::from(hash));
        self.write()?;
        Ok(secret)
    }

    /// Changes what a token reaches, and until when (`Some(None)`: no end), never its secret. Tells whether the entry was
    /// one of the seed's form; with another grant it has ours.
    pub fn change(
        mut self,
        name: &str,
        grant: Option<&Grant>,
        expires: Option<Option<String>>,
    ) -> Result<bool, EditError> {
        let entry = self.entry(name)?;
        let seeds = grant.is_some() && SEEDS_CLUSTERS.iter().any(|key| entry.contains_key(*key));
        if let Some(grant) = grant {
            for key in SEEDS_CLUSTERS.iter().chain(&["grant"]) {
                entry.remove(*key);
            }
            put(entry, grant);
        }
        match expires {
            Some(Some(end)) => entry.insert("expires".to_owned(), Value::from(end)),
            Some(None) => entry.remove("expires"),
            None => None,
        };
        self.write()?;
        Ok(seeds)
    }

    /// Takes a token out.
    pub fn revoke(mut self, name: &str) -> Result<(), EditError> {
        self.entry(name)?;
        self.entries()?.retain(|entry| entry.get("name").and_then(Value::as_str) != Some(name));
        self.write()
    }

    fn secret(&self) -> Result<(Secret, String), EditError> {
        generate().map_err(|error| EditError::at(&self.path, format!("the system gave no random bytes: {error}")))
    }

    fn entries(&mut self) -> Result<&mut Vec<Value>, EditError> {
        let path = &self.path;
        let list = self.root.get_mut("tokens").and_then(Value::as_array_mut);
        list.ok_or_else(|| EditError::at(path, "has no list `tokens`"))
    }

    fn entry(&mut self, name: &str) -> Result<&mut Map<String, Value>, EditError> {
        let unknown = EditError::at(
            &self.path,
            format!("there is no token `{}`; `pvegate token list` shows them", crate::untrusted::shown(name, 80)),
        );
        let named = |entry: &&mut Value| entry.get("name").and_then(Value::as_str) == Some(name);
        self.entries()?.iter_mut().find(named).and_then(Value::as_object_mut).ok_or(unknown)
    }

    /// Writes the whole file beside the old one, reads it as the server would, and only then exchanges them.
    fn write(&self) -> Result<(), EditError> {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.json", std::process::id()));
        let beside = self.path.with_file_name(name);
        let failed = |error: std::io::Error| EditError::at(&self.path, format!("cannot be written: {error}"));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(
            rustix::fs::open(&beside, flags, Mode::RUSR | Mode::WUSR).map_err(|error| failed(error.into()))?,
        );
        let whole = (|| {
            let text = format!("{:#}\n", Value::Object(self.root.clone()));
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
            // Problems are those of the file that it is to become.
            Tokens::load(&beside).map_err(|error| {
                EditError(error.to_string().replace(&beside.display().to_string(), &self.path.display().to_string()))
            })?;
            std::fs::rename(&beside, &self.path).map_err(failed)
        })();
        if whole.is_err() {
            // What is left over would hold hashes; that it cannot be removed changes nothing about the error.
            let _ = std::fs::remove_file(&beside);
        }
        whole?;
        rustix::fs::fsync(self.folder.as_fd()).map_err(|error| failed(error.into()))
    }
}

/// Writes a grant as an entry has it: a kind of which nothing is granted has no key.
fn put(entry: &mut Map<String, Value>, grant: &Grant) {
    let tiers = if grant.tiers.low || grant.tiers.destructive { grant.tiers.texts() } else { Vec::new() };
    let lists = [
        ("tools", grant.tools.texts()),
        ("clusters", grant.clusters.texts()),
        ("guests", grant.guests.texts()),
        ("nodes", grant.nodes.texts()),
        ("storages", grant.storages.texts()),
        ("pools", grant.pools.texts()),
        ("networks", grant.networks.texts()),
        ("tiers", tiers),
    ];
    let lists = lists.into_iter().map(|(key, texts)| (key, (!texts.is_empty()).then(|| Value::from(texts))));
    let caps = grant.caps.named().into_iter().map(|(key, most)| (key, most.map(Value::from)));
    for (key, value) in lists.chain(caps) {
        match value {
            Some(value) => entry.insert(key.to_owned(), value),
            None => entry.remove(key),
        };
    }
}
