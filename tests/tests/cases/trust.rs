//! Themes B and C: credentials that cannot work. What is wrong with certificates is in `failures`, with files in
//! `files`; a proxy of the environment (R) is in `programs`.

use pvegate::config::Config;
use serde_json::json;

/// C019: a malformed token id is refused at the start, with the part that is wrong and without its secret.
#[test]
fn malformed_token_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clusters.json");
    for id in ["root@pam!a!tokenid", "svc@pve", "svc!tok", "@pve!tok", "svc@pve!", "TOKENID", "svc@pve!a b"] {
        let cluster = json!({"endpoint": "https://127.0.0.1:1", "fingerprint": "00".repeat(32), "token_id": id, "token_secret": "c0ffee00-aaaa-bbbb-cccc-000000000001"});
        std::fs::write(&path, json!({"version": 1, "devices": {"lab": cluster}}).to_string()).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let error = Config::load(&path, None).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("token_id") && error.contains("lab"), "{id}: {error}");
        assert!(!error.contains("c0ffee00"), "{error}");
    }
}
