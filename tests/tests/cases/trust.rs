//! Themes B and C: credentials that cannot work. What is wrong with certificates is in `failures`, with files in
//! `files`; a proxy of the environment (R) is in `programs`.

use lab::{Front, FrontOptions, Lab};
use pvegate::config::Config;
use serde_json::{Value, json};
use tests::client::{Client, Refused};
use tests::site::quick;

/// What a server says whose cluster entry trusts what it is told to.
async fn asked(lab: &Lab, trust: (&str, Value)) -> Result<Value, Refused> {
    let token = lab.full_token();
    let (id, secret) = token.split_once('=').unwrap();
    let mut device = json!({"endpoint": lab.url(), "token_id": id, "token_secret": secret});
    device[trust.0] = trust.1;
    let folder = tempfile::tempdir().unwrap();
    let devices = json!({"lab": device}).as_object().unwrap().clone();
    let front = Front::before(folder.path(), devices, FrontOptions::default()).await.unwrap();
    Client::new(&front.url(), front.reader()).tool("list_guests", json!({})).await
}

/// C015: a cluster with its own CA is trusted by that CA or by the print of its certificate, and by nothing else.
#[tokio::test]
async fn own_certificates_are_trusted_by_ca_or_print() {
    let (lab, other) = (Lab::start(quick()).await.unwrap(), Lab::start(quick()).await.unwrap());
    for (key, value) in [("ca_pem_path", json!(other.ca_path())), ("fingerprint", json!(other.fingerprint()))] {
        let refused = asked(&lab, (key, value)).await.unwrap_err();
        assert_eq!(refused.code, "certificate", "{key}: {refused:?}");
        let text = refused.text().to_lowercase();
        assert!(!text.contains("disable") && !text.contains("insecure") && !text.contains("verif"), "{text}");
    }
    assert!(lab.journal().is_empty(), "nothing is sent to whoever is not trusted: {:?}", lab.journal());
    for (key, value) in [("ca_pem_path", json!(lab.ca_path())), ("fingerprint", json!(lab.fingerprint()))] {
        let guests = asked(&lab, (key, value)).await.unwrap();
        assert_eq!(guests["total"], 40, "{key}: {guests}");
    }
}

/// C019: a malformed token id is refused at the start, with the part that is wrong and without its secret.
#[test]
fn malformed_token_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clusters.json");
    for (id, wrong) in [
        ("root@pam!a!tokenid", "more than one `!`"),
        ("svc@pve", "no `!`"),
        ("svc!tok", "not a user with a realm"),
        ("@pve!tok", "not a user with a realm"),
        ("svc@pve!", "behind `!`"),
        ("TOKENID", "no `!`"),
        ("svc@pve!a b", "behind `!`"),
        // Whole tokens, and one part in the place of the other.
        ("root@pam!a!tokenid=c0ffee00-aaaa-bbbb-cccc-000000000001", "holds `=`"),
        ("svc@pve=c0ffee00-aaaa-bbbb-cccc-000000000001", "holds `=`"),
        ("svc@pve!tok=c0ffee00-aaaa-bbbb-cccc-000000000001", "holds `=`"),
        ("c0ffee00-aaaa-bbbb-cccc-000000000001", "no `!`"),
    ] {
        let cluster = json!({"endpoint": "https://127.0.0.1:1", "fingerprint": "00".repeat(32), "token_id": id, "token_secret": "c0ffee00-aaaa-bbbb-cccc-000000000001"});
        std::fs::write(&path, json!({"version": 1, "devices": {"lab": cluster}}).to_string()).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let error = Config::load(&path, None, None).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("token_id") && error.contains("lab") && error.contains(wrong), "{id}: {error}");
        assert!(!error.contains("c0ffee00"), "{error}");
    }
}
