//! Whether a low call may act: what the grant, the labels, the caps and the guests' protection say. Asked of the function
//! that the write path asks, with a lab behind it; nothing is written here, whatever the answer.

#![allow(clippy::needless_pass_by_value, reason = "calls read better with the value in place")]

mod cluster;
mod copies;
mod creates;
mod labels;
mod limits;
mod shields;

use lab::Lab;
use pvegate::authorize::{self, Write};
use pvegate::config::Config;
use pvegate::mcp::Refusal;
use pvegate::server::State;
use pvegate::store::{SqliteStore, Store};
use pvegate::tokens::{self, Principal};
use pvegate_generated::catalog;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use tests::site::quick;

/// A lab, and what decides about calls to it.
pub(crate) struct Rules {
    pub(crate) lab: Lab,
    pub(crate) state: State,
}

const TOOLS: [&str; 9] = ["agent", "backups", "gateway", "guests", "images", "power", "snapshots", "storage", "tasks"];

impl Rules {
    pub(crate) async fn start() -> Self {
        Self::with(&json!({"protected_vmids": [116], "protected_tags": ["prod"]})).await
    }

    /// With more keys in the cluster's entry.
    pub(crate) async fn with(more: &Value) -> Self {
        let lab = Lab::start(quick()).await.unwrap();
        let state = state(&lab, &json!({"lab": device(&[&lab], more)}), &lab.directory().join("rules.db")).await;
        Self { lab, state }
    }

    /// As another of the lab's API tokens.
    pub(crate) async fn as_token(token: impl Fn(&Lab) -> String) -> Self {
        let lab = Lab::start(quick()).await.unwrap();
        let mut device = device(&[&lab], &json!({}));
        let token = token(&lab);
        let (id, secret) = token.split_once('=').unwrap();
        device["token_id"] = json!(id);
        device["token_secret"] = json!(secret);
        let state = state(&lab, &json!({"lab": device}), &lab.directory().join("rules.db")).await;
        Self { lab, state }
    }

    /// With waivers: for 116, for 107 to one planner, and one for 109 that has ended.
    pub(crate) async fn waived() -> Self {
        let lab = Lab::start(quick()).await.unwrap();
        let more = json!({"protected_vmids": [116], "protected_tags": ["prod"]});
        let devices = json!({"lab": device(&[&lab], &more)});
        let state = state_with(&lab, &devices, &lab.directory().join("rules.db"), true).await;
        Self { lab, state }
    }

    pub(crate) async fn low(&self, token: &str, operation: &str, arguments: Value) -> Result<Write, Refusal> {
        low(&self.state, "lab", token, operation, arguments).await
    }

    /// It may act.
    pub(crate) async fn acts(&self, token: &str, operation: &str, arguments: Value) -> Write {
        let asked = format!("{token}: {operation} {arguments}");
        match self.low(token, operation, arguments).await {
            Ok(write) => write,
            Err(refused) => panic!("{asked}: {} {}", refused.code, refused.message),
        }
    }

    /// It is refused with this code, for a reason that has these words in it.
    pub(crate) async fn refused(
        &self,
        token: &str,
        operation: &str,
        arguments: Value,
        code: &str,
        words: &str,
    ) -> Refusal {
        let asked = format!("{token}: {operation} {arguments}");
        match self.low(token, operation, arguments).await {
            Ok(_) => panic!("{asked} may act, and should be {code}"),
            Err(refused) => {
                assert_eq!(refused.code, code, "{asked}: {}", refused.message);
                assert!(refused.message.contains(words), "{asked}: {} lacks `{words}`", refused.message);
                refused
            }
        }
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        let written: Vec<_> = self.lab.journal().into_iter().filter(|entry| entry.method != "GET").collect();
        if !std::thread::panicking() {
            assert!(written.is_empty(), "only asked, and this was sent: {written:?}");
        }
    }
}

pub(crate) async fn low(
    state: &State,
    cluster: &str,
    token: &str,
    operation: &str,
    arguments: Value,
) -> Result<Write, Refusal> {
    let principal: Arc<Principal> = state.principals().find(|one| one.name == token).unwrap().clone();
    let connection = authorize::cluster(&principal, state, Some(cluster))?;
    let operation = catalog::operation(operation).unwrap();
    let arguments = arguments.as_object().unwrap();
    Ok(authorize::low(state, &principal, connection, operation, arguments).await?.into_inner())
}

/// The entry of a cluster whose addresses are those of these labs.
pub(crate) fn device(labs: &[&Lab], more: &Value) -> Value {
    let token = labs[0].full_token();
    let (id, secret) = token.split_once('=').unwrap();
    let endpoints: Vec<String> =
        labs.iter().flat_map(|lab| lab.endpoints()).map(|endpoint| endpoint.url.clone()).collect();
    let mut device =
        json!({"endpoints": endpoints, "ca_pem_path": labs[0].ca_path(), "token_id": id, "token_secret": secret});
    device.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    device
}

pub(crate) async fn state(lab: &Lab, devices: &Value, store: &Path) -> State {
    state_with(lab, devices, store, false).await
}

/// The same with a file of waivers.
pub(crate) async fn state_with(lab: &Lab, devices: &Value, store: &Path, waived: bool) -> State {
    pvegate::serve::install_crypto();
    let entry = |name: &str, more: Value| {
        let (_, hash) = tokens::generate().unwrap();
        let mut entry =
            json!({"name": name, "hash": hash, "tools": TOOLS, "clusters": ["*"], "tiers": ["read", "low"]});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    let all = json!({"guests": ["*"], "nodes": ["*"], "storages": ["*"], "pools": ["*"], "networks": ["*"]});
    let some = json!({"nodes": ["pve1", "pve2"], "storages": ["local", "local-lvm"], "pools": ["lab", "other"], "networks": ["vmbr0", "vmbr0:20-29"]});
    let with = |base: &Value, more: Value| {
        let mut base = base.clone();
        base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        base
    };
    let tokens = json!([
        entry("wide", all.clone()),
        entry(
            "narrow",
            with(
                &some,
                json!({"guests": ["vmid:600-699", "vmid:100", "vmid:103", "vmid:110", "vmid:112", "vmid:122"]})
            )
        ),
        entry("pooled", with(&some, json!({"guests": ["pool:lab"]}))),
        entry("tagged", with(&some, json!({"guests": ["tag:ci"]}))),
        entry("offline", with(&some, json!({"guests": ["vmid:600-699"], "networks": ["vmbr9"]}))),
        entry("gentle", with(&all, json!({"tools": ["shutdown_vm", "shutdown_container"]}))),
        entry(
            "capped",
            with(
                &some,
                json!({
                    "guests": ["vmid:122", "vmid:600-699"], "max_memory_mib": 4096, "max_disk_gib": 60, "max_guests": 2, "max_snapshots": 0,
                })
            )
        ),
        entry("reader", with(&all, json!({"tiers": ["read"]}))),
    ]);
    let file = |name: &str, content: &Value| {
        let path = lab.directory().join(name);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
        file.write_all(content.to_string().as_bytes()).unwrap();
        path
    };
    let waivers = json!([
        {"cluster": "lab", "vmid": 116, "until": "2099-01-01T00:00:00Z", "reason": "moving house", "ops": ["stop_vm"]},
        {"cluster": "lab", "vmid": 107, "until": "2099-01-01T00:00:00Z", "reason": "one planner", "ops": [on::STOP], "principal": "narrow"},
        {"cluster": "lab", "vmid": 109, "until": "2020-01-01T00:00:00Z", "reason": "over", "ops": ["stop_vm"]},
    ]);
    let waivers = file("rules-waivers.json", &json!({"version": 1, "waivers": waivers}));
    let waivers = waived.then_some(waivers.as_path());
    let clusters = file("rules-clusters.json", &json!({"version": 1, "devices": devices}));
    let tokens = file("rules-tokens.json", &json!({"version": 1, "tokens": tokens}));
    let config = Config::load(&clusters, Some(&tokens), waivers).unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::serve(store, "a test").await.unwrap());
    State::new(config, store).unwrap()
}

/// Operations by short names.
pub(crate) mod on {
    pub(crate) const CREATE: &str = "POST /nodes/{node}/qemu";
    pub(crate) const CREATE_CT: &str = "POST /nodes/{node}/lxc";
    pub(crate) const CLONE: &str = "POST /nodes/{node}/qemu/{vmid}/clone";
    pub(crate) const CLONE_CT: &str = "POST /nodes/{node}/lxc/{vmid}/clone";
    pub(crate) const CONFIG: &str = "PUT /nodes/{node}/qemu/{vmid}/config";
    pub(crate) const CONFIG_CT: &str = "PUT /nodes/{node}/lxc/{vmid}/config";
    pub(crate) const RESIZE: &str = "PUT /nodes/{node}/qemu/{vmid}/resize";
    pub(crate) const SNAPSHOT: &str = "POST /nodes/{node}/qemu/{vmid}/snapshot";
    pub(crate) const BACKUP: &str = "POST /nodes/{node}/vzdump";
    pub(crate) const START: &str = "POST /nodes/{node}/qemu/{vmid}/status/start";
    pub(crate) const STOP: &str = "POST /nodes/{node}/qemu/{vmid}/status/stop";
    pub(crate) const SHUTDOWN: &str = "POST /nodes/{node}/qemu/{vmid}/status/shutdown";
    pub(crate) const STOP_TASK: &str = "DELETE /nodes/{node}/tasks/{upid}";
    pub(crate) const VOLUME: &str = "PUT /nodes/{node}/storage/{storage}/content/{volume}";
}
