//! Configuration files that are not in order: nothing starts, and the error names file, entry and key.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use std::sync::Arc;

use pvegate::audit::Audit;
use pvegate::config::Config;
use pvegate::mcp::HttpConfig;
use pvegate::serve;
use pvegate::store::SqliteStore;
use pvegate::tokens;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::site::{Site, quick};

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
        let config = match Config::load(&self.path("clusters.json"), Some(&self.path("tokens.json")), None) {
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
    for (key, value) in [("caps", json!({})), ("grant", json!({})), ("operations", json!(["GET /nodes"]))] {
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
    files.write_tokens(json!({"guests": ["*"]}));
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
