//! Entries of rust-proxmoxmcp's files: they grant what they granted there.

use super::*;

/// A secret, and the hash that the reference implementation of argon2 makes of it.
const SLOW: (&str, &str) =
    ("password", "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4");

fn seeds(more: &str) -> String {
    format!(
        r#"{{"version": 1, "tokens": [{{"name": "assistant", "hash": "{}", "devices": ["pve3"]{more}}}]}}"#,
        stored_hash("s3cret")
    )
}

fn grant(more: &str) -> Grant {
    load(&seeds(more)).unwrap().principals().next().unwrap().grant.clone()
}

#[test]
fn both_spellings_of_a_digest_and_all_of_provenance_load() {
    let base64 = URL_SAFE_NO_PAD.encode(Sha256::digest(b"abc"));
    for (spelling, hash) in [
        ("devices", format!("sha256:{base64}")),
        ("routers", "sha256:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=".to_owned()),
        ("targets", stored_hash("abc")),
    ] {
        let tokens = load(&format!(
            r#"{{"version": 1, "tokens": [{{"name": "assistant", "hash": "{hash}", "{spelling}": ["pve3"], "tools": ["get_vms"], "created_at": "2026-07-12T10:00:00Z", "actor_type": "agent", "provider": "x", "provider_tier": "public", "on_behalf_of": "ada"}}]}}"#
        ))
        .unwrap();
        let principal = tokens.authenticate("abc", SystemTime::now()).unwrap();
        assert!(principal.grant.clusters.allows("pve3") && !principal.grant.clusters.allows("pve4"));
        assert_eq!(principal.actor, Actor::Agent { owner: Some("ada".to_owned()) });
    }
}

#[test]
fn without_a_grant_everything_of_its_clusters_is_meant() {
    assert!(!grant(r#", "tools": ["get_vms"]"#).tiers.low, "tools that read need no tier");
    let grant = grant(r#", "tools": ["get_vms", "stop_vm"]"#);
    assert!(grant.guests.is_all() && grant.nodes.is_all() && grant.storages.is_all() && grant.pools.is_all());
    assert_eq!((&grant.networks, grant.tiers), (&Networks::All, Tiers { low: true, destructive: false }));
    assert!(grant.tools.allows("stop_vm") && !grant.tools.allows("start_vm"));
}

#[test]
fn all_tools_are_the_reads_of_then() {
    let grant = grant(r#", "tools": ["*"]"#);
    assert!(!grant.tools.is_all() && !grant.tiers.low && grant.plans.is_empty());
    assert!(grant.tools.allows("get_vms") && grant.tools.allows("list_guest_firewall_ipsets"));
    for later in ["list_guests", "stop_vm", "run_operation", "gateway"] {
        assert!(!grant.tools.allows(later), "{later}");
    }
}

#[test]
fn names_of_operations_permit_to_plan_them_and_nothing_else() {
    let grant = grant(r#", "tools": ["get_vms", "delete_vm", "rollback_snapshot"]"#);
    assert_eq!(grant.plans.iter().collect::<Vec<_>>(), ["delete_vm", "rollback_snapshot"]);
    assert_eq!((grant.tools.texts(), grant.tiers), (vec!["get_vms".to_owned()], Tiers::default()));
}

#[test]
fn names_that_are_not_here_yet_do_nothing_and_others_are_mistakes() {
    let grant = grant(r#", "tools": ["get_vms", "plan_firewall_change", "apply_proxmox_change_set"]"#);
    assert_eq!((grant.tools.texts(), grant.tiers), (vec!["get_vms".to_owned()], Tiers::default()));
    let told = load(&seeds(r#", "tools": ["get_vm"]"#)).unwrap_err();
    assert!(told.contains("token `assistant`, key `tools`: `get_vm`: neither a tool"), "{told}");
    // In our keys an unknown name is a mistake whoever had it.
    let tokens = load(&entry("").replace(r#"["*"], "clusters""#, r#"["delete_vm"], "clusters""#)).unwrap();
    assert!(tokens.check_tools(crate::server::known_tool).is_err());
}

#[test]
fn a_grant_narrows_guests_in_each_of_its_forms() {
    let guests = |grant_is: &str| grant(&format!(r#", "tools": ["*"], "grant": {grant_is}"#)).guests.texts();
    let all = ["vmid:600-699", "tag:ci", "pool:lab"];
    assert_eq!(guests(r#"["vmid:600-699", "tag:CI", "pool:lab"]"#), all);
    assert_eq!(guests(r#"{"guests": ["vmid:600-699", "tag:ci", "pool:lab"]}"#), all);
    assert_eq!(guests(r#"{"vmid_ranges": ["600-699"], "tags": ["ci"], "pools": ["lab"]}"#), all);
    assert_eq!(guests(r#"{"vmid_ranges": [[600, 699]], "tags": ["ci"], "pools": ["lab"]}"#), all);
    assert_eq!(guests(r#"{"vmids": [600, "610-619"]}"#), ["vmid:600", "vmid:610-619"]);
    assert!(grant(r#", "tools": ["*"], "grant": ["tag:ci"]"#).nodes.is_all(), "it narrowed nothing but guests");
}

#[test]
fn a_grant_of_another_form_says_how_to_write_it() {
    for form in [
        "{}",
        "[]",
        r#""tag:ci""#,
        "7",
        r#"{"vmids": []}"#,
        r#"{"vmids": 600}"#,
        r#"{"vmid": [600]}"#,
        r#"{"tags": ["ci"], "nodes": ["a"]}"#,
        r#"{"vmid_ranges": [[600]]}"#,
        r#"{"vmid_ranges": [[699, 600]]}"#,
        r#"{"tags": [5]}"#,
        "[600]",
        r#"["600-699"]"#,
    ] {
        let told = load(&seeds(&format!(r#", "tools": ["*"], "grant": {form}"#))).unwrap_err();
        assert!(told.contains("token `assistant`, key `grant`: ") && told.contains("`vmid_ranges`"), "{form}: {told}");
    }
    let wild = seeds(r#", "tools": ["*"], "grant": ["tag:ci"]"#).replace(r#"["pve3"]"#, r#"["*"]"#);
    assert!(load(&wild).unwrap_err().contains("stands beside `*` for clusters"));
}

#[test]
fn one_key_of_ours_makes_an_entry_ours() {
    let ours = grant(r#", "tools": ["get_vms", "stop_vm"], "guests": ["vmid:600"]"#);
    assert_eq!(
        (ours.guests.texts(), ours.nodes, ours.tiers),
        (vec!["vmid:600".to_owned()], Scope::None, Tiers::default())
    );
    let told = load(&seeds(r#", "tools": ["*"], "guests": ["vmid:600"], "grant": ["tag:ci"]"#)).unwrap_err();
    assert!(told.contains("key `grant`: belongs to entries of rust-proxmoxmcp"), "{told}");
    assert!(load(&entry(r#", "grant": ["tag:ci"]"#)).unwrap_err().contains("write `guests`"));
}

#[tokio::test]
async fn a_slow_hash_is_compared_once_and_known_from_then_on() {
    let text = seeds(r#", "tools": ["*"]"#).replace(&stored_hash("s3cret"), SLOW.1);
    let (tokens, now) = (load(&text).unwrap(), SystemTime::now());
    assert_eq!(tokens.authenticate(SLOW.0, now), Err(AuthError::Unknown), "not on the threads that serve");
    assert_eq!(tokens.authenticate_slowly("Password", now).await, None);
    assert_eq!(tokens.authenticate_slowly(SLOW.0, now).await.unwrap().unwrap().name, "assistant");
    assert_eq!(tokens.authenticate(SLOW.0, now).unwrap().name, "assistant");
    assert_eq!(tokens.authenticate("Password", now), Err(AuthError::Unknown));
    assert!(!format!("{tokens:?}").contains("nf65EOg"), "the hash is printed nowhere");
    // An entry whose time is over is known, and of no use.
    let over = load(&text.replace(r#""tools""#, r#""expires": "2001-01-01T00:00:00Z", "tools""#)).unwrap();
    assert_eq!(over.authenticate_slowly(SLOW.0, now).await, Some(Err(AuthError::Expired("assistant".to_owned()))));
}

#[test]
fn a_slow_hash_that_is_none_or_costs_too_much_is_refused() {
    for (hash, told) in [
        ("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ", "is no argon2 hash"),
        ("$argon2xx$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "is no argon2 hash"),
        ("$argon2id$", "is no argon2 hash"),
        ("$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "more work"),
        ("$argon2id$v=19$m=256,t=99,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "more work"),
        ("$2b$12$abc", "has to be `sha256:`"),
    ] {
        let error = load(&seeds(r#", "tools": ["*"]"#).replace(&stored_hash("s3cret"), hash)).unwrap_err();
        assert!(error.contains(told) && !error.contains("c29tZXNhbHQ"), "{hash}: {error}");
    }
    let one = format!(r#"{{"name": "a", "hash": "{}", "devices": ["pve3"], "tools": ["*"]}}"#, SLOW.1);
    let twice = format!(r#"{{"version": 1, "tokens": [{one}, {}]}}"#, one.replace(r#""a""#, r#""b""#));
    assert!(load(&twice).unwrap_err().contains("the same secret"));
}
