//! Configuration files that are not in order: nothing starts, and the error names file, entry and key.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use std::sync::Arc;

use lab::FrontOptions;
use pvegate::audit::Audit;
use pvegate::config::Config;
use pvegate::mcp::HttpConfig;
use pvegate::serve;
use pvegate::store::SqliteStore;
use pvegate::tokens;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::client::Client;
use tests::site::{CLUSTER, Site, quick};

/// A folder with both files, right except for what a test changes.
struct Files {
    folder: TempDir,
    lab: lab::Lab,
}

impl Files {
    async fn new() -> Self {
        serve::install_crypto();
        let lab = lab::Lab::start(quick()).await.unwrap();
        let files = Self { folder: tempfile::tempdir().unwrap(), lab };
        let lab = &files.lab;
        let token = lab.full_token();
        let (id, secret) = token.split_once('=').unwrap();
        let device =
            json!({"endpoint": lab.url(), "ca_pem_path": lab.ca_path(), "token_id": id, "token_secret": secret});
        files.write("clusters.json", &json!({"version": 1, "devices": {"lab": device}}).to_string());
        files.write_tokens(json!({}));
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        self.mode(name, 0o600);
    }

    fn mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// One token that reads everything, and these keys.
    fn write_tokens(&self, more: Value) {
        let (_, hash) = tokens::generate().unwrap();
        let mut entry = json!({"name": "reader", "hash": hash, "tools": ["*"], "clusters": ["*"]});
        let Value::Object(more) = more else { panic!() };
        entry.as_object_mut().unwrap().extend(more);
        self.write("tokens.json", &json!({"version": 1, "tokens": [entry]}).to_string());
    }

    /// Changes the cluster file.
    fn change_clusters(&self, change: impl FnOnce(&mut Value)) {
        let mut json: Value =
            serde_json::from_str(&std::fs::read_to_string(self.path("clusters.json")).unwrap()).unwrap();
        change(&mut json);
        self.write("clusters.json", &json.to_string());
    }

    /// What the operator reads; empty if the server starts.
    async fn start(&self) -> String {
        let waivers = Some(self.path("waivers.json")).filter(|path| path.symlink_metadata().is_ok());
        let (clusters, tokens) = (self.path("clusters.json"), self.path("tokens.json"));
        let config = match Config::load(&clusters, Some(&tokens), waivers.as_deref()) {
            Ok(config) => config,
            Err(error) => return error.to_string(),
        };
        let store = Arc::new(SqliteStore::serve(&self.path("pvegate.db"), "a test").await.unwrap());
        match serve::http(config, HttpConfig::default(), Audit::default(), store).await {
            Ok(served) => {
                served.running.stop().await;
                String::new()
            }
            Err(error) => error.to_string(),
        }
    }

    async fn refuses(&self, named: &[&str]) {
        let error = self.start().await;
        for name in named {
            assert!(error.contains(name), "`{name}` is not named: {error}");
        }
        let token = self.lab.full_token();
        assert!(!error.contains(token.split_once('=').unwrap().1), "a secret is repeated: {error}");
    }
}

#[tokio::test]
async fn files_in_order_start() {
    assert_eq!(Files::new().await.start().await, "");
}

#[tokio::test]
async fn a_scope_that_is_not_enforced() {
    let files = Files::new().await;
    for (key, value) in [("caps", json!({})), ("operations", json!(["GET /nodes"]))] {
        files.write_tokens(json!({key: value}));
        files.refuses(&["tokens.json", "reader", key, "does not enforce"]).await;
    }
}

#[tokio::test]
async fn a_token_file_that_others_can_read() {
    let files = Files::new().await;
    for mode in [0o644, 0o640, 0o604] {
        files.mode("tokens.json", mode);
        files.refuses(&["tokens.json", &format!("{mode:04o}"), "chmod 600"]).await;
    }
    files.mode("tokens.json", 0o400);
    assert_eq!(files.start().await, "");
}

#[tokio::test]
async fn names_that_mean_nothing() {
    let files = Files::new().await;
    files.write_tokens(json!({"tools": ["list_everything"]}));
    files.refuses(&["tokens.json", "reader", "tools", "list_everything"]).await;
    files.write_tokens(json!({"clusters": ["elsewhere"]}));
    files.refuses(&["tokens.json", "reader", "clusters", "elsewhere"]).await;
    files.write_tokens(json!({"colour": "red"}));
    files.refuses(&["tokens.json", "reader", "colour"]).await;
}

#[tokio::test]
async fn a_malformed_cluster_file() {
    let files = Files::new().await;
    let whole = std::fs::read_to_string(files.path("clusters.json")).unwrap();
    files.write("clusters.json", whole.get(..whole.len() / 2).unwrap());
    files.refuses(&["clusters.json", "not valid JSON"]).await;
    files.write("clusters.json", "[]");
    files.refuses(&["clusters.json"]).await;
    files.write("clusters.json", "{\"version\": 1, \"version\": 1, \"devices\": {}}");
    files.refuses(&["clusters.json", "version"]).await;
    files.write("clusters.json", &json!({"version": 2, "devices": {}}).to_string());
    files.refuses(&["clusters.json", "version", "devices"]).await;
    std::fs::remove_file(files.path("clusters.json")).unwrap();
    files.refuses(&["clusters.json", "does not exist"]).await;
}

#[tokio::test]
async fn a_cluster_that_is_not_described() {
    for (key, value, named) in [
        ("endpoint", json!("http://pve1.lab.test:8006"), "https"),
        ("endpoint", json!("https://user:pass@pve1.lab.test"), "user"),
        ("token_id", json!("root"), "token_id"),
        ("token_secret", Value::Null, "token_secret"),
        ("ca_pem_path", json!("missing.pem"), "missing.pem"),
        ("ca_pem_path", Value::Null, "ca_pem_path"),
        ("verify_tls", json!(false), "verify_tls"),
        ("protected_vmids", json!(["x"]), "protected_vmids"),
    ] {
        let files = Files::new().await;
        files.change_clusters(|json| {
            let device = json["devices"]["lab"].as_object_mut().unwrap();
            if value.is_null() {
                device.remove(key)
            } else {
                device.insert(key.to_owned(), value)
            };
        });
        files.refuses(&["clusters.json", "lab", named]).await;
    }
}

#[tokio::test]
async fn an_opt_in_that_asks_for_nothing() {
    let files = Files::new().await;
    for (operation, named) in [
        ("GET /nodes", "offered already"),
        ("GET /nodes/{node}/syslog", "never offered"),
        ("GET /nonsense", "no operation"),
    ] {
        files.change_clusters(|json| json["policy"] = json!({"opt_in": [operation]}));
        files.refuses(&["opt_in", operation, named]).await;
    }
}

#[tokio::test]
async fn problems_of_both_files_are_told_together() {
    let files = Files::new().await;
    files.write("clusters.json", "{}");
    files.write_tokens(json!({"guests": ["600"]}));
    files.refuses(&["clusters.json", "devices", "tokens.json", "guests"]).await;
}

#[tokio::test]
async fn an_address_that_others_can_reach() {
    let site = Site::start().await;
    let config = Config::load(site.front.clusters_file(), Some(site.front.tokens_file()), None).unwrap();
    let http = HttpConfig { listen: "0.0.0.0:0".parse().unwrap(), ..HttpConfig::default() };
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::serve(&folder.path().join("pvegate.db"), "a test").await.unwrap());
    let error = serve::http(config, http, Audit::default(), store).await.unwrap_err().to_string();
    assert!(error.contains("0.0.0.0:0") && error.contains("loopback"), "{error}");
}

/// A waiver file as the documentation of rust-proxmoxmcp prints it.
const SEEDS_WAIVERS: &str = r#"{

"version": 1, "waivers": [ { "cluster": "pve3", "vmid": 905, "until": "2026-12-31T23:59:59Z", "reason": "decommission per CHG-1234", "ticket": "CHG-1234", "ops": ["destroy_guest"], "principal": "ops-token" } ] }
"#;

/// `password`, as the reference implementation of argon2 hashes it.
const SLOW_HASH: &str = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";

/// Token entries in rust-proxmoxmcp's keys: of a digest and of an older hash, narrowed and not.
fn seeds_tokens(cluster: &str) -> Vec<Value> {
    let digest = |secret| tokens::stored_hash(secret);
    vec![
        json!({"name": "ops-token", "hash": digest("of-ops"), "devices": [cluster], "tools": ["get_vms", "get_vm_config", "stop_vm", "plan_proxmox_destroy", "delete_vm"], "actor_type": "agent", "on_behalf_of": "ada", "provider": "x", "provider_tier": "private", "created_at": "2026-07-12T10:00:00Z"}),
        json!({"name": "older", "hash": SLOW_HASH, "devices": [cluster], "tools": ["*"], "grant": {"vmid_ranges": ["100-101"]}}),
    ]
}

#[tokio::test]
async fn files_of_the_seed_start_as_they_are() {
    let files = Files::new().await;
    let token = files.lab.full_token();
    let (id, secret) = token.split_once('=').unwrap();
    std::fs::create_dir(files.path("secrets")).unwrap();
    files.write("secrets/pve3.token", &format!("{secret}\n"));
    let device = json!({"endpoint": files.lab.url(), "token_id": id, "token_secret_file": "secrets/pve3.token", "ca_pem_path": files.lab.ca_path(), "protected_vmids": [905], "protected_tags": ["protected"]});
    let clusters = json!({"version": 1, "devices": {"pve3": device}, "policy": {"resource_cache_ttl_secs": 10}});
    files.write("clusters.json", &clusters.to_string());
    files.write("tokens.json", &json!({"version": 1, "tokens": seeds_tokens("pve3")}).to_string());
    files.write("waivers.json", SEEDS_WAIVERS);
    assert_eq!(files.start().await, "");

    files.write("waivers.json", &SEEDS_WAIVERS.replace("pve3", "pve4"));
    files.refuses(&["waivers.json", "waiver 1", "cluster", "pve4"]).await;
    files.write("waivers.json", &SEEDS_WAIVERS.replace(r#", "ops": ["destroy_guest"]"#, ""));
    files.refuses(&["waivers.json", "waiver 1", "ops"]).await;
}

#[tokio::test]
async fn entries_of_the_seed_reach_what_they_reached() {
    let front = FrontOptions { more_tokens: seeds_tokens(CLUSTER), ..FrontOptions::default() };
    let site = Site::with(quick(), front).await;
    let vms = async |client: &Client| client.tool("get_vms", json!({"cluster": CLUSTER})).await;
    let ops = site.client.with_token("of-ops");
    let all = vms(&site.client).await.unwrap();
    assert_eq!(vms(&ops).await.unwrap()["total"], all["total"]);
    assert!(ops.tool("list_snapshots", json!({"cluster": CLUSTER, "vmid": 100})).await.is_err(), "not a tool of it");

    // A slow hash is compared while others go on, and its guests are those of the range.
    let older = site.client.with_token("password");
    let some = vms(&older).await.unwrap();
    assert!(some["total"].as_u64() < all["total"].as_u64(), "{some}");
    assert!(some["total"].as_u64() > Some(0), "{some}");
    let (status, _) = site.client.with_token("passwords").raw("tools/list", json!({})).await;
    assert_eq!(status, 401);
    assert!(older.tool("list_guests", json!({"cluster": CLUSTER})).await.is_err(), "no tool of then");
}

#[tokio::test]
async fn all_loose_files_are_told_at_once() {
    let files = Files::new().await;
    files.write("lab.token", "11111111-2222-3333-4444-555555555555");
    files.change_clusters(|json| {
        let device = json["devices"]["lab"].as_object_mut().unwrap();
        device.remove("token_secret");
        device.insert("token_secret_file".to_owned(), json!("lab.token"));
    });
    files.write("waivers.json", &SEEDS_WAIVERS.replace("pve3", "lab"));
    assert_eq!(files.start().await, "");
    for name in ["clusters.json", "tokens.json", "waivers.json", "lab.token"] {
        files.mode(name, 0o640);
    }
    let told = files.start().await;
    for name in ["clusters.json", "tokens.json", "waivers.json", "lab.token"] {
        assert!(told.contains(&format!("{name}: has mode 0640")), "{name}: {told}");
    }
}
