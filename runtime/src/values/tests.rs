//! Which texts each grammar takes, and that none lets a path escape.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use proptest::prelude::*;

#[test]
fn vmids() {
    for good in ["100", "999999999"] {
        assert_eq!(Vmid::parse(good).unwrap().to_string(), good);
    }
    for bad in ["", "99", "0100", "1000000000", "+100", "-100", " 100", "100/config", "1e3", "100%2Fconfig", "١٠٠"] {
        assert!(Vmid::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(serde_json::from_str::<Vmid>("\"101\"").unwrap(), Vmid::new(101).unwrap());
    assert!(serde_json::from_str::<Vmid>("101.5").is_err());
}

#[test]
fn nodes() {
    for good in ["pve1", "PVE1", "a", "node-01"] {
        assert!(NodeName::parse(good).is_ok(), "{good}");
    }
    for bad in
        ["", "localhost", "LocalHost", "-a", "a-", "pve1/qemu/999", "..", ".", "pve1.lan", "pve%31", "pve1\n", "pve1\0"]
    {
        assert!(NodeName::parse(bad).is_err(), "{bad}");
    }
    let told = NodeName::parse("pve1/qemu/999").unwrap_err().to_string();
    assert!(told.starts_with("`pve1/qemu/999` is not a node name: "), "{told}");
}

#[test]
fn pools_nest_three_deep() {
    for good in ["lab", "lab/web/front", "a.b_c-d"] {
        assert!(PoolId::parse(good).is_ok(), "{good}");
    }
    for bad in ["", "/", "lab/", "/lab", "a/b/c/d", "lab/..", "./a", "a//b", "lab%2Fx"] {
        assert!(PoolId::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn volumes() {
    let volume = VolumeId::parse("local:100/base-100-disk-0.qcow2/101/vm-101-disk-0.qcow2").unwrap();
    assert_eq!((volume.storage(), volume.path()), ("local", "100/base-100-disk-0.qcow2/101/vm-101-disk-0.qcow2"));
    for good in ["local-lvm:vm-100-disk-0", "local:iso/my file.iso", "pbs:backup/vm/100/2026-01-01T00:00:00Z"] {
        assert!(VolumeId::parse(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "local",
        "local:",
        ":x",
        "local:/etc/passwd",
        "local:iso/../../x",
        "local:iso/./x",
        "local:a//b",
        "local:%2e%2e/x",
        "local:a\\b",
        "local:a\nb",
        "local:a,size=1G",
        "local:..",
    ] {
        assert!(VolumeId::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn upids() {
    let text = "UPID:pve1:0003E2A1:01B2C3D4E:66AABBCC:qmstart:100:root@pam!lab:";
    let upid = Upid::parse(text).unwrap();
    assert_eq!(
        (upid.node().as_str(), upid.worker(), upid.subject(), upid.user(), upid.to_string().as_str()),
        ("pve1", "qmstart", "100", "root@pam!lab", text)
    );
    assert!(Upid::parse("UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:aptupdate::root@pam:").is_ok());
    for bad in [
        "",
        "UPID:",
        "UPID:localhost:0003E2A1:1B2C3D4E:66AABBCC:qmstart:100:root@pam:",
        "UPID:pve1/x:0003E2A1:1B2C3D4E:66AABBCC:qmstart:100:root@pam:",
        "UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:qmstart:../..:root@pam:",
        "UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:qmstart:100:root@pam",
        "UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:qmstart:100:root@pam::",
        "UPID:pve1:0003E2A1:1B2C3D4:66AABBCC:qmstart:100:root@pam:",
        "UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC::100:root@pam:",
    ] {
        assert!(Upid::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn users_and_tokens() {
    let token = TokenId::parse("root@pam!mcp").unwrap();
    assert_eq!((token.user(), token.token()), ("root@pam", "mcp"));
    assert!(UserId::parse("jürgen@pve").is_ok());
    assert!(UserId::parse("a@b.c@ldap").is_ok());
    for bad in ["root", "@pam", "root@", "root@pam!mcp", "a/b@pve", "a:b@pve", "a b@pve", "a%2f@pve"] {
        assert!(UserId::parse(bad).is_err(), "{bad}");
    }
    for bad in ["root@pam", "root@pam!", "root@pam!a b", "root@pam!x=y", "root!x@pam"] {
        assert!(TokenId::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn addresses() {
    for good in ["10.0.0.1", "10.0.0.0/24", "fd00::/8", "0.0.0.0/0"] {
        assert!(Cidr::parse(good).is_ok(), "{good}");
    }
    for bad in ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/024", "10.0.0.0/+8", "10.0.0.0/24/x", "..", "a", "fd00::/129"] {
        assert!(Cidr::parse(bad).is_err(), "{bad}");
    }
    assert!(CidrOrAlias::parse("dc/office").is_ok());
    assert!(CidrOrAlias::parse("../x").is_err());
}

#[test]
fn sizes_tags_and_the_rest() {
    assert_eq!(Size::parse("+0.5G").unwrap().bytes(), 512 << 20);
    assert_eq!(Size::parse("528K").unwrap().bytes(), 528 << 10);
    for bad in ["", "G", "1g", "-1G", "1.G", ".5G", "0x10", "1e3", "99999999999999999T"] {
        assert!(Size::parse(bad).is_err(), "{bad}");
    }
    assert!(Tag::parse("_x+1.0").is_ok());
    assert!(Tag::parse("a;b").is_err());
    assert!(Mac::parse("BC:24:11:00:00:01").is_ok());
    assert!(Mac::parse("01:24:11:00:00:01").is_err());
    assert!(Mac::parse("BC:24:11:00:00").is_err());
    assert!(SnapshotName::parse("before-upgrade").is_ok());
    assert!(SnapshotName::parse("9lives").is_err());
    assert!(Iface::parse("eno1.20").is_ok());
    assert!(Iface::parse("../eth0").is_err());
    assert!(PathSegment::parse("..").is_err());
    assert!(PathSegment::parse("a%2fb").is_err());
    assert!(PathSegment::parse("a\u{2215}b").is_err());
    assert!(PathSegment::parse("r\u{e9}alm").is_err());
    assert_eq!(format!("{:?}", Secret::new("hunter2".into())), "Secret(hidden)");
}

/// Text near the grammars' edges, which uniformly random text never reaches.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9:/.@!%_ ;,+\\-\\\\]{0,40}",
        "(UPID:)?[a-z]{1,5}:[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:[a-z/.]{0,6}:[0-9a-z/.@]{0,6}:[a-z@!]{0,8}:?",
        "[a-z]{1,4}:[a-z/.%]{0,12}",
        "[0-9+]{1,11}[KMGT]?",
    ]
}

proptest! {
    #[test]
    fn what_parses_prints_the_same_and_stays_in_its_path(text in hostile()) {
        macro_rules! same {
            ($($kind:ident),*) => {$(
                if let Ok(value) = $kind::parse(&text) {
                    prop_assert_eq!(value.to_string(), text.as_str());
                    prop_assert!(!text.chars().any(char::is_control));
                    prop_assert!(!text.contains('%') && !text.contains('\\'));
                    prop_assert!(text.split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
                }
            )*};
        }
        same!(Vmid, NodeName, StorageId, ConfigId, SnapshotName, PoolId, Iface, FirewallName, Tag, Mac, UserId, TokenId, VolumeId, Upid, Cidr, CidrOrAlias, Size, PathSegment);
    }

    #[test]
    fn only_three_kinds_hold_a_slash(text in hostile()) {
        if text.contains('/') {
            macro_rules! refused {
                ($($kind:ident),*) => {$( prop_assert!($kind::parse(&text).is_err()); )*};
            }
            refused!(Vmid, NodeName, StorageId, ConfigId, SnapshotName, Iface, FirewallName, Tag, Mac, UserId, TokenId, Upid, Size, PathSegment);
        }
    }
}
