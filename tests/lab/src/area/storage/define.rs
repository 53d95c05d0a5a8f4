//! Storage definitions: made, changed and removed, each type with its own options.

use serde_json::{Map, Value, json};

use super::super::entry::within;
use super::super::{Call, Outcome};
use super::plugin;
use crate::answer::Refusal;
use crate::state::Cluster;
use crate::state::storage::Storage;

/// What a definition is not shown with.
const SECRET: [&str; 4] = ["password", "encryption-key", "keyring", "master-pubkey"];

pub(super) fn create(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    let (name, kind) = (call.text("storage").to_owned(), call.text("type"));
    let mut config = call.fields(&["storage"]);
    plugin::check(kind, &config, true)?;
    config.insert("type".to_owned(), json!(kind));
    config.entry("content").or_insert_with(|| json!(plugin::content(kind)));
    add(cluster, &name, config).map_err(|refusal| within("create storage failed", refusal))?;
    Ok(json!({"storage": name, "type": kind}).into())
}

/// A new storage that is on is used once, to see that it works.
fn add(cluster: &mut Cluster, name: &str, mut config: Map<String, Value>) -> Result<(), Refusal> {
    if cluster.storages.contains_key(name) {
        return Err(Refusal::failed(format!("storage ID '{name}' already defined")));
    }
    config.retain(|key, _| !SECRET.contains(&key.as_str()));
    let mut storage = Storage { config, total: 0, broken: None };
    storage.total = plugin::room(cluster, &storage);
    let here = super::on_node(&storage, &cluster.local);
    if storage.enabled()
        && here
        && let Some(why) = plugin::activate(cluster, name, &storage, true)
    {
        return Err(Refusal::failed(why));
    }
    written(cluster);
    cluster.storages.insert(name.to_owned(), storage);
    Ok(())
}

/// Once the file is written, what was there without it is in it like the rest.
fn written(cluster: &mut Cluster) {
    for storage in cluster.storages.values_mut() {
        storage.config.remove("priority");
    }
}

pub(super) fn update(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    let changed = change(cluster, call).map_err(|refusal| within("update storage failed", refusal))?;
    Ok(changed.into())
}

fn change(cluster: &mut Cluster, call: &Call<'_>) -> Result<Value, Refusal> {
    let name = call.text("storage").to_owned();
    call.unchanged(&super::definitions_digest(cluster))?;
    let storage = cluster.storages.get(&name).ok_or_else(|| super::missing(&name))?;
    let mut changed = storage.clone();
    let kind = storage.text("type").to_owned();
    let mut given = call.fields(&["storage"]);
    plugin::check(&kind, &given, false)?;
    given.retain(|key, _| !SECRET.contains(&key.as_str()));
    for gone in call.deletions() {
        if !plugin::knows(&kind, &gone) {
            return Err(Refusal::failed(format!("no such option '{gone}'")));
        }
    }
    call.delete_from(&mut changed.config, &["path", "type"])?;
    changed.config.extend(given);
    written(cluster);
    cluster.storages.insert(name.clone(), changed);
    Ok(json!({"storage": name, "type": kind}))
}

pub(super) fn delete(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    let name = call.text("storage");
    let failed = |refusal| within("delete storage failed", refusal);
    if !cluster.storages.contains_key(name) {
        return Err(failed(super::missing(name)));
    }
    let base = cluster
        .storages
        .iter()
        .find(|(_, other)| other.text("base").split_once(':').is_some_and(|(storage, _)| storage == name));
    if let Some((other, _)) = base {
        return Err(failed(Refusal::failed(format!(
            "can't remove storage - storage is used as base of another storage: {other}"
        ))));
    }
    written(cluster);
    let gone = cluster.storages.remove(name);
    if let Some(gone) = gone.filter(|_| name == "local") {
        // Nobody can do without it: where no file defines it, it is there all the same.
        cluster.storages.insert(name.to_owned(), Storage::unwritten(gone.total));
    }
    Ok(Value::Null.into())
}
