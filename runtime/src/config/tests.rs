//! Which cluster and token files load, and what is said of those that do not.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use crate::values::Vmid;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// The answer with the folder's name taken out.
    fn clusters(&self, name: &str, text: &str) -> Result<Clusters, String> {
        let path = self.file(name, text, 0o600);
        Clusters::load(&path).map_err(|error| error.to_string().replace(&format!("{}/", self.0.path().display()), ""))
    }
}

const SEED: &str = r#"{
  "version": 1,
  "devices": {
    "pve3": {
      "endpoint": "https://pve3.example.org:8006",
      "token_id": "root@pam!mcp",
      "token_secret_file": "pve3.token",
      "ca_pem_path": "pve3.pem",
      "protected_vmids": [905, 906],
      "protected_tags": ["Protected"]
    }
  },
  "policy": { "resource_cache_ttl_secs": 7 }
}"#;

#[test]
fn the_seeds_file_loads() {
    let folder = Folder::new();
    folder.file("pve3.token", "11111111-2222-3333-4444-555555555555\n", 0o600);
    folder.file("pve3.pem", "-----BEGIN CERTIFICATE-----", 0o644);
    let clusters = folder.clusters("clusters.json", SEED).unwrap();
    let cluster = clusters.get("pve3").unwrap();
    assert_eq!(cluster.endpoints, [Endpoint { base: "https://pve3.example.org:8006".into() }]);
    assert_eq!(cluster.token.secret.expose(), "11111111-2222-3333-4444-555555555555");
    assert!(cluster.protected_vmids.contains(&Vmid::new(905).unwrap()));
    assert!(cluster.protected_tags.contains("protected"));
    assert_eq!(cluster.resource_ttl, Duration::from_secs(7));
    assert!(!format!("{clusters:?}").contains("11111111"));
}

#[test]
fn toml_says_the_same() {
    let folder = Folder::new();
    let fingerprint = "AB:".repeat(31) + "AB";
    let text = format!(
        "version = 1\n[policy]\nopt_in = [\"GET /nodes/{{node}}/journal\"]\n[devices.lab]\nendpoints = [\"10.0.0.1\", \"https://[fd00::1]:443/\"]\nserver_name = \"pve1.lan\"\ntoken_id = \"a@pve!bc\"\ntoken_secret = \"s\"\nfingerprint = \"{fingerprint}\"\n"
    );
    let clusters = folder.clusters("clusters.toml", &text).unwrap();
    let cluster = clusters.get("lab").unwrap();
    let bases: Vec<&str> = cluster.endpoints.iter().map(|endpoint| endpoint.base.as_str()).collect();
    assert_eq!(bases, ["https://10.0.0.1:8006", "https://[fd00::1]:443"]);
    assert_eq!(cluster.trust.fingerprints, [[0xab; 32]]);
    assert!(clusters.opt_in().contains("GET /nodes/{node}/journal"));
    assert!(cluster.protected_tags.contains("protected"));
}

#[test]
fn all_problems_come_together_with_their_places() {
    let folder = Folder::new();
    let told = folder
        .clusters(
            "clusters.json",
            r#"{"version": 1, "devices": {
                "a": {"endpoint": "http://x", "token_id": "root", "token_secret": "TOPSECRET", "token_secret_env": "E", "protected_vmids": [1, "x"], "endpont": 1},
                "b": {"endpoint": "https://u:PW@x", "token_id": "a@b!cd", "token_secret": 5, "fingerprint": "zz", "resource_cache_ttl_secs": 9999},
                "c d": {}
            }}"#,
        )
        .unwrap_err();
    for part in [
        "clusters.json: cluster `a`, key `endpoint`: has to begin with https://",
        "cluster `a`, key `token_id`: is not an API token id like pvegate@pve!mcp: it has no `!`",
        "cluster `a`, key `token_secret_file`: give the API token's secret in exactly one way",
        "cluster `a`, key `protected_vmids`: `1` is not a guest number",
        "cluster `a`, key `protected_vmids`: has to hold guest numbers",
        "cluster `a`: unknown key `endpont`; known are endpoint, ",
        "cluster `a`, key `ca_pem_path`: is missing",
        "cluster `b`, key `endpoint`: must not hold a user or password",
        "cluster `b`, key `token_secret`: has to be text",
        "cluster `b`, key `fingerprint`: has to be the SHA-256",
        "cluster `b`, key `resource_cache_ttl_secs`: at most 300",
        "`c d` is not a cluster name",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!(!told.contains("TOPSECRET") && !told.contains("PW"), "{told}");
}

#[test]
fn doubles_and_syntax_errors_are_told_without_the_line() {
    let folder = Folder::new();
    let told = folder.clusters("clusters.json", r#"{"version": 1, "devices": {"a": {}, "a": {}}}"#).unwrap_err();
    assert!(told.contains("the key `a` is there twice"), "{told}");
    let told =
        folder.clusters("clusters.toml", "version = 1\n[devices.a]\ntoken_secret = \"TOPSECRET\" x\n").unwrap_err();
    assert!(told.contains("not valid TOML") && told.contains("line 3") && !told.contains("TOPSECRET"), "{told}");
    assert!(folder.clusters("clusters.json", "[]").unwrap_err().contains("object"));
    assert!(folder.clusters("clusters.json", r#"{"version": 1}"#).unwrap_err().contains("at least one cluster"));
}

#[test]
fn loose_files_are_all_reported_at_once() {
    let folder = Folder::new();
    let token = folder.file("a.token", "s", 0o640);
    std::os::unix::fs::symlink(&token, folder.0.path().join("b.token")).unwrap();
    let fingerprint = "ab".repeat(32);
    let device = |file: &str| {
        format!(
            r#"{{"endpoint": "x", "token_id": "a@pve!bc", "token_secret_file": "{file}", "fingerprint": "{fingerprint}"}}"#
        )
    };
    let clusters = folder.file(
        "clusters.json",
        &format!(
            r#"{{"version": 1, "devices": {{"a": {}, "b": {}, "c": {}}}}}"#,
            device("a.token"),
            device("b.token"),
            device("none")
        ),
        0o600,
    );
    let tokens = folder.file("tokens.json", r#"{"version": 1, "tokens": []}"#, 0o644);
    let waivers = folder.file("waivers.json", r#"{"version": 1, "waivers": []}"#, 0o604);
    std::fs::set_permissions(&clusters, std::fs::Permissions::from_mode(0o660)).unwrap();
    let error = Config::load(&clusters, Some(&tokens), Some(&waivers)).unwrap_err();
    let told = error.to_string();
    for part in [
        "a.token: has mode 0640, so others can reach it; run chmod 600",
        "b.token: is a symbolic link",
        "none: does not exist",
        "tokens.json: has mode 0644",
        "waivers.json: has mode 0604",
        "clusters.json: has mode 0660",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(error.problems().len(), 6);
}

#[test]
fn only_regular_small_text_files_are_read() {
    let folder = Folder::new();
    assert!(read_credential(folder.0.path(), 10).unwrap_err().contains("not a regular file"));
    assert!(
        read_credential(&folder.file("long", "12345678901", 0o600), 10).unwrap_err().contains("larger than 10 bytes")
    );
    let path = folder.file("binary", "", 0o600);
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(read_credential(&path, 10).unwrap_err().contains("as text"));
}

#[test]
fn tokens_name_known_clusters() {
    let folder = Folder::new();
    folder.file("pve3.token", "x", 0o600);
    folder.file("pve3.pem", "", 0o600);
    let clusters = folder.file("clusters.json", SEED, 0o600);
    let hash = crate::tokens::stored_hash("x");
    let tokens = folder.file(
        "tokens.json",
        &format!(
            r#"{{"version": 1, "tokens": [{{"name": "a", "hash": "{hash}", "tools": ["*"], "clusters": ["pve9"]}}]}}"#
        ),
        0o600,
    );
    let told = Config::load(&clusters, Some(&tokens), None).unwrap_err().to_string();
    assert!(told.ends_with("token `a`, key `clusters`: `pve9`: no cluster of that name in the cluster file"), "{told}");
}

/// The examples of the documentation, each loaded as the file that it shows, together with the others.
#[test]
fn the_documented_examples_load() {
    let text = include_str!("../../../docs/configuration.md");
    let folder = Folder::new();
    for name in ["secrets", "ca"] {
        std::fs::create_dir(folder.0.path().join(name)).unwrap();
    }
    folder.file("secrets/pve3.token", "x", 0o600);
    folder.file("ca/pve3.pem", "", 0o644);
    let (mut clusters, mut tokens, mut waivers) = (Vec::new(), Vec::new(), Vec::new());
    let mut examples = 0;
    for ending in ["json", "toml"] {
        let fence = format!("```{ending}\n");
        let blocks = text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
        for block in blocks {
            let path = folder.file(&format!("{examples}.{ending}"), block, 0o600);
            let kinds = [("waivers", &mut waivers), ("tokens", &mut tokens), ("devices", &mut clusters)];
            let (_, files) = kinds.into_iter().find(|(key, _)| block.contains(key)).unwrap();
            files.push(path);
            examples += 1;
        }
    }
    assert_eq!(
        (clusters.len(), tokens.len(), waivers.len()),
        (2, 3, 2),
        "an example of the documentation is not tried"
    );
    let some = clusters.first().unwrap();
    for file in &clusters {
        assert_eq!(Config::load(file, None, None).unwrap().clusters.len(), 1, "{}", file.display());
    }
    for file in &tokens {
        assert!(Config::load(some, Some(file), None).unwrap().tokens.principals().count() > 0);
    }
    for file in &waivers {
        assert!(!Config::load(some, None, Some(file)).unwrap().waivers.is_empty());
    }
}
