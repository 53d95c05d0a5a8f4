//! What is masked, what stays, and that masking twice changes nothing.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use proptest::prelude::*;
use serde_json::json;

const CANARY: &str = "cAnArY7ob3fhk2";

#[test]
fn names_are_masked_at_any_depth() {
    let mut data = json!({
        "name": "web", "cipassword": CANARY, "digest": "abc", "lock-token": "kept",
        "list": [{"deep": {"client-key": CANARY, "password": {"nested": CANARY}, "token": 12345}}],
        "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
        "env": format!("A={CANARY}\0B=2"), "args": format!("-device x,password={CANARY}"),
        "lxc": [["lxc.environment", format!("X={CANARY}")], ["lxc.mount.auto", "proc"]],
        "none": {"password": null, "secret": "", "privsep": 1, "token": true},
    });
    value(&mut data);
    let text = data.to_string();
    assert!(!text.contains(CANARY), "{text}");
    assert_eq!(data.get("digest").unwrap(), "abc");
    assert_eq!(data.get("lock-token").unwrap(), "kept");
    assert_eq!(data.get("net0").unwrap(), "virtio=BC:24:11:00:00:01,bridge=vmbr0");
    assert_eq!(data.get("none").unwrap(), &json!({"password": null, "secret": "", "privsep": 1, "token": true}));
}

#[test]
fn neighbours_decide_about_keys_and_values() {
    let mut data = json!([
        {"key": "memory", "value": "512"},
        {"key": "cipassword", "value": CANARY, "pending": CANARY},
        {"key": "lxc.environment", "value": CANARY},
        {"status": "active", "key": CANARY},
        {"plugin": "cf", "api": "cf", "type": "dns", "data": CANARY},
        {"name": "x-api-key", "value": CANARY},
    ]);
    value(&mut data);
    assert!(!data.to_string().contains(CANARY), "{data}");
    assert_eq!(data.get(0).unwrap(), &json!({"key": "memory", "value": "512"}));
}

#[test]
fn text_forms_are_masked() {
    for form in [
        "type=cifs,password=@,server=x",
        "PVEAPIToken=root@pam!x=@",
        "apitoken=PVEAPIToken=root@pam!x=@,host=10.0.0.1",
        "Authorization: PVEAPIToken=a@b!c=@",
        "authorization: Basic @ @",
        "Bearer @",
        "GET https://user:@@host/path failed",
        "https://@@host",
        "curl --password @ https://x",
        "vncticket=PVEVNC:66AABBCC::@",
        "cookie PVE:root@pam:66AABBCC::@",
        "PVEAuthCookie=PVE:root@pam:66AABBCC::@",
        "cipassword: @",
        "smtp_password: @",
        "a\nargs: -foo @ bar\nb",
        "env: A=@",
        r#"{"password": "@ @", "x": 1}"#,
        "PGPASSWORD='@ @' psql",
        "url?token=@&x=1",
        "-----BEGIN RSA PRIVATE KEY-----\n@\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n@",
        "name=Authorization,value=@",
        "proxmox-remote host=1.2.3.4,secret=@;x",
    ] {
        let given = form
            .replace('@', CANARY)
            .replace(&format!("user:{CANARY}{CANARY}host"), &format!("user:{CANARY}@host"))
            .replace(&format!("https://{CANARY}{CANARY}host"), &format!("https://{CANARY}@host"))
            .replace(&format!("root{CANARY}pam"), "root@pam")
            .replace(&format!("a{CANARY}b!"), "a@b!");
        let masked = text(&given);
        assert!(!masked.contains(CANARY), "{given} -> {masked}");
        assert!(masked.contains(HIDDEN), "{given} -> {masked}");
        assert_eq!(text(&masked), masked, "{given}");
    }
}

#[test]
fn ordinary_text_stays() {
    for kept in [
        "password: value must be at least 8 characters long",
        "UPID:pve1:0003E2A1:01B2C3D4E:66AABBCC:qmstart:100:root@pam!lab:",
        "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=20",
        "local:iso/debian.iso,media=cdrom,size=1G",
        "tokenid=lab",
        "lock-token=abc",
        "mail me at root@example.org",
        "no such user ('ghost@pve')",
        "https://example.org/a@b",
        "ssh-ed25519 AAAAC3Nza root@pve1",
        "invalid lock token provided!",
        "Permission check failed (/vms/100, VM.Audit)",
    ] {
        assert!(matches!(text(kept), Cow::Borrowed(_)), "{kept} -> {}", text(kept));
    }
}

#[test]
fn a_private_key_is_masked_across_log_lines() {
    let mut log = json!([
        {"n": 1, "t": "writing key"},
        {"n": 2, "t": "-----BEGIN OPENSSH PRIVATE KEY-----"},
        {"n": 3, "t": CANARY},
        {"n": 4, "t": "-----END OPENSSH PRIVATE KEY-----"},
        {"n": 5, "t": "done"},
    ]);
    value(&mut log);
    assert!(!log.to_string().contains(CANARY));
    assert_eq!(log.pointer("/0/t").unwrap(), "writing key");
    assert_eq!(log.pointer("/4/t").unwrap(), "done");
}

#[test]
fn the_servers_own_secrets_are_masked_anywhere() {
    let redactor = Redactor::new([Secret::new(CANARY.to_owned()), Secret::new("short".to_owned())]);
    let mut data = json!({"notes": format!("x{CANARY}y"), (CANARY): 1, "short": "short"});
    redactor.value(&mut data);
    assert_eq!(data, json!({"notes": "x(hidden)y", "(hidden)": 1, "short": "short"}));
    assert_eq!(redactor.text(&format!("a {CANARY}")), "a (hidden)");
    assert!(!format!("{redactor:?}").contains(CANARY));
}

/// Text that is made of the forms' own pieces.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("password".to_owned()),
        Just("token".to_owned()),
        Just("=".to_owned()),
        Just(": ".to_owned()),
        Just("://".to_owned()),
        Just("@".to_owned()),
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("Authorization".to_owned()),
        Just("Bearer ".to_owned()),
        Just("PVEAPIToken=".to_owned()),
        Just("-----BEGIN PRIVATE KEY-----".to_owned()),
        Just("-----END PRIVATE KEY-----".to_owned()),
        Just("\n".to_owned()),
        Just(" ".to_owned()),
        Just("--".to_owned()),
        Just("args".to_owned()),
        Just("(hidden)".to_owned()),
        Just("PVE:a:66AABBCC::".to_owned()),
        Just(",".to_owned()),
        "[a-z0-9]{1,9}",
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        pieces().prop_map(Value::from),
        any::<String>().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(
                (
                    prop_oneof![
                        Just("key".to_owned()),
                        Just("value".to_owned()),
                        Just("lxc".to_owned()),
                        Just("n".to_owned()),
                        Just("t".to_owned()),
                        Just("password".to_owned()),
                        pieces()
                    ],
                    inner
                ),
                0..5
            )
            .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn masking_text_twice_changes_nothing(given in prop_oneof![pieces(), any::<String>()]) {
        let once = text(&given).into_owned();
        prop_assert_eq!(text(&once), once.as_str());
    }

    #[test]
    fn masking_data_twice_changes_nothing(mut given in data()) {
        value(&mut given);
        let once = given.clone();
        value(&mut given);
        prop_assert_eq!(given, once);
    }

    #[test]
    fn a_secret_name_never_keeps_its_value(canary in "[A-Za-z0-9]{12}", name in prop_oneof![Just("password"), Just("cipassword"), Just("token"), Just("client-key"), Just("smtp_password")], before in "[a-z0-9=,]{0,10}", after in "[a-z0-9=,]{0,10}") {
        let property = format!("{before},{name}={canary},{after}");
        prop_assert!(!text(&property).contains(&canary));
        let mut data = json!({"deep": [{(name): canary.clone()}, {"net0": property}]});
        value(&mut data);
        prop_assert!(!data.to_string().contains(&canary));
    }
}
