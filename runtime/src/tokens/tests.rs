//! Which bearer secrets are recognised, and which token files are refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod seed;

use super::*;
use crate::grant::{Guests, Networks, Tiers};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

fn load(text: &str) -> Result<Tokens, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    Tokens::load(&path).map_err(|error| error.to_string().replace(path.to_str().unwrap(), "tokens.json"))
}

fn entry(more: &str) -> String {
    format!(
        r#"{{"version": 1, "tokens": [{{"name": "reader", "hash": "{}", "tools": ["*"], "clusters": ["*"]{more}}}]}}"#,
        stored_hash("s3cret")
    )
}

#[test]
fn a_secret_finds_its_principal_and_nothing_else_does() {
    let tokens = load(&entry("")).unwrap();
    let now = SystemTime::now();
    assert_eq!(tokens.authenticate("s3cret", now).unwrap().name, "reader");
    for wrong in ["", "s3cre", "S3CRET", "s3cret "] {
        assert_eq!(tokens.authenticate(wrong, now), Err(AuthError::Unknown));
    }
    assert_eq!(Tokens::default().authenticate("s3cret", now), Err(AuthError::Unknown));
}

#[test]
fn generated_secrets_are_long_and_stored_as_digest() {
    let (secret, stored) = generate().unwrap();
    assert_eq!(secret.expose().len(), PREFIX.len() + 43);
    assert_eq!(stored, stored_hash(secret.expose()));
    assert_ne!(generate().unwrap().1, stored);
}

#[test]
fn expiry_ends_a_token() {
    let tokens = load(&entry(r#", "expires": "2027-01-01T01:00:00+01:00""#)).unwrap();
    let end = SystemTime::UNIX_EPOCH + Duration::from_hours(499_656);
    assert!(tokens.authenticate("s3cret", end - Duration::from_secs(1)).is_ok());
    assert_eq!(tokens.authenticate("s3cret", end), Err(AuthError::Expired("reader".into())));
    assert!(load(&entry(r#", "expires": "tomorrow""#)).unwrap_err().contains("key `expires`"));
}

#[test]
fn scopes_that_are_not_enforced_do_not_load() {
    for key in ["actions", "operations", "caps", "oidc_subject"] {
        let told = load(&entry(&format!(r#", "{key}": ["x"]"#))).unwrap_err();
        assert!(told.contains(&format!("token `reader`, key `{key}`: this version does not enforce")), "{told}");
    }
    assert!(load(&entry(r#", "guets": ["x"]"#)).unwrap_err().contains("unknown key `guets`"));
}

#[test]
fn what_an_entry_does_not_name_it_does_not_reach() {
    let grant = |more: &str| load(&entry(more)).unwrap().principals().next().unwrap().grant.clone();
    let nothing = grant("");
    assert_eq!((nothing.guests, nothing.nodes, nothing.storages), (Guests::None, Scope::None, Scope::None));
    assert_eq!((nothing.pools, nothing.networks, nothing.tiers), (Scope::None, Networks::None, Tiers::default()));
    let some = grant(
        r#", "guests": ["vmid:600-699", "tag:CI", "pool:lab"], "nodes": ["pve1"], "tiers": ["read", "low"], "max_guests": 3"#,
    );
    assert_eq!(some.guests.texts(), ["vmid:600-699", "tag:ci", "pool:lab"]);
    assert!(some.nodes.allows("pve1") && !some.nodes.allows("pve2") && some.tiers.low && !some.tiers.destructive);
    assert_eq!(some.caps.max_guests, Some(3));
    for wrong in [
        r#"guests": ["600"]"#,
        r#"guests": []"#,
        r#"tiers": ["high"]"#,
        r#"networks": ["vmbr0:0"]"#,
        r#"max_guests": "3""#,
    ] {
        let told = load(&entry(&format!(r#", "{wrong}"#))).unwrap_err();
        assert!(told.contains("token `reader`, key `"), "{told}");
    }
}

#[test]
fn tags_and_pools_that_grant_are_known_of_all_tokens() {
    let tokens = load(&entry(r#", "guests": ["tag:CI", "pool:lab", "vmid:100"]"#)).unwrap();
    assert_eq!(tokens.granting_tags().into_iter().collect::<Vec<_>>(), ["ci"]);
    assert_eq!(tokens.granting_pools().into_iter().collect::<Vec<_>>(), ["lab"]);
}

#[test]
fn actors_name_their_person() {
    let human = load(&entry(r#", "actor_type": "human", "person": "ada""#)).unwrap();
    assert_eq!(human.principals().next().unwrap().actor, Actor::Human { person: "ada".into() });
    assert!(load(&entry(r#", "actor_type": "human""#)).unwrap_err().contains("key `person`"));
    let agent = load(&entry(r#", "actor_type": "agent", "owner": "ada""#)).unwrap();
    assert_eq!(agent.principals().next().unwrap().actor, Actor::Agent { owner: Some("ada".into()) });
    assert!(load(&entry(r#", "actor_type": "robot""#)).unwrap_err().contains("`agent` or `human`"));
}

#[test]
fn doubles_and_bad_lists_are_refused_together() {
    let hash = stored_hash("x");
    let told = load(&format!(
        r#"{{"version": 1, "tokens": [
            {{"name": "a", "hash": "{hash}", "tools": ["*", "x"], "clusters": []}},
            {{"name": "b", "hash": "{hash}", "tools": ["x", "x"], "clusters": ["*"]}},
            {{"name": "b", "hash": "{hash}", "tools": ["li*"], "clusters": "pve1"}},
            {{"hash": "md5:1", "tools": ["x"], "clusters": ["*"]}},
            7]}}"#
    ))
    .unwrap_err();
    for part in [
        "`*` stands for all",
        "token `a`, key `clusters`: has to name something",
        "`x` is listed twice",
        "`li*` is not a name",
        "key `clusters`: has to be a list",
        "token 4, key `name`: is missing",
        "token 4, key `hash`: has to be",
        "token 5: has to be an object",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let entry = |name: &str| format!(r#"{{"name": "{name}", "hash": "{hash}", "tools": ["*"], "clusters": ["*"]}}"#);
    let told = load(&format!(r#"{{"version": 1, "tokens": [{}, {}]}}"#, entry("a"), entry("a"))).unwrap_err();
    assert!(told.contains("the same name") && told.contains("the same secret"), "{told}");
    assert!(load(r#"{"version": 2, "tokens": []}"#).unwrap_err().contains("version 1"));
    assert!(load(r#"{"version": 1, "tokens": [], "tokens": []}"#).unwrap_err().contains("`tokens` is there twice"));
}

#[test]
fn unknown_tools_and_clusters_are_named() {
    let tokens = load(&entry("").replace(r#""tools": ["*"]"#, r#""tools": ["gateway", "nosuch"]"#)).unwrap();
    let told = tokens.check_tools(|name| name == "gateway").unwrap_err().to_string();
    assert!(told.ends_with("token `reader`, key `tools`: `nosuch`: no tool or toolset of that name"), "{told}");
}
