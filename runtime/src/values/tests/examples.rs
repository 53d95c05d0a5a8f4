//! Which texts each grammar takes, by example.

use crate::values::*;

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
    for (good, owner, base) in [
        ("local-lvm:vm-100-disk-0", Some(100), None),
        ("local-lvm:base-9000-disk-0/vm-100-disk-0", Some(100), Some("base-9000-disk-0")),
        ("local:9000/base-9000-disk-0.qcow2/100/vm-100-disk-0.qcow2", Some(100), Some("9000/base-9000-disk-0.qcow2")),
        ("local:9000/base-9000-disk-0.qcow2", Some(9000), None),
        ("zfs:basevol-9000-disk-0/subvol-101-disk-0", Some(101), Some("basevol-9000-disk-0")),
        ("local:iso/my file.iso", None, None),
        ("local:iso/vm-100-disk-0.iso", None, None),
        ("local:vztmpl/alpine.tar.gz", None, None),
        ("local:backup/vzdump-lxc-300-2026_11_30-12_14_17.tar.zst", Some(300), None),
        ("local:backup/notes.txt", None, None),
        ("pbs:backup/vm/101/2025-09-15T13:54:03Z", Some(101), None),
        ("pbs:backup/host/101/2025-09-15T13:54:03Z", None, None),
        ("esxi:dc/store/100/disk.vmdk", None, None),
        ("san:0.0.0.scsi-36001405", None, None),
        ("lvm:vm-99-disk-0", None, None),
    ] {
        let volume = VolumeId::parse(good).unwrap();
        assert_eq!((volume.owner().map(Vmid::get), volume.base()), (owner, base), "{good}");
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
    assert_eq!(upid.token(), Some("lab"));
    for (good, worker, subject, token) in [
        ("UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:aptupdate::root@pam:", "aptupdate", "", None),
        ("UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:imgdel:100@lab1:root@pam!lab:", "imgdel", "100@lab1", Some("lab")),
        ("UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:download:d.iso:root@pam!lab:", "download", "d.iso", Some("lab")),
        ("UPID:node-a:0008366C:01665026:638071CE:qmclone:1003:svc@pve!tok:", "qmclone", "1003", Some("tok")),
        ("UPID:node-a:0000A1B2:1F00000A1:68000000:qmstart:100:root@pam:", "qmstart", "100", None),
        ("UPID:n:FFFFFFFF:00000001:00000001:x::root@pam:", "x", "", None),
    ] {
        let upid = Upid::parse(good).unwrap();
        assert_eq!((upid.worker(), upid.subject(), upid.token()), (worker, subject, token), "{good}");
    }
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
        "UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:qmstart:a b:root@pam:",
        "UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:qmstart:100%2F..:root@pam:",
        "UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:qmstart:100\0:root@pam:",
        "upid:pve1:0003E2A1:1B2C3D4E:66AABBCC:qmstart:100:root@pam:",
    ] {
        assert!(Upid::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_task_of_a_backup_server_is_never_taken_for_one_of_pve() {
    let text = "UPID:pbs:00000267:0011E1D7:00000009:6A48CA08:acme-register:test1:root@pam:";
    let told = Upid::parse(text).unwrap_err().to_string();
    assert!(told.contains("Proxmox Backup Server"), "{told}");
    let upid = PbsUpid::parse(text).unwrap();
    assert_eq!((upid.worker(), upid.subject(), upid.user()), ("acme-register", "test1", "root@pam"));
    assert!(
        PbsUpid::parse("UPID:pbs:00000267:0011E1D7:0000000900000009:6A48CA08:backup:store\\x3a1:a@pbs!t:").is_err()
    );
    assert!(PbsUpid::parse("UPID:pbs:00000267:0011E1D7:0000000900000009:6A48CA08:backup:store:a@pbs!t:").is_ok());
    assert!(PbsUpid::parse("UPID:pve1:0003E2A1:1B2C3D4E:66AABBCC:qmstart:100:root@pam:").is_err());
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
fn sizes() {
    for (text, bytes) in [("528K", 540_672), ("3G", 3 << 30), ("0.5T", 512 << 30), ("1.5K", 1536), ("7", 7), ("0T", 0)]
    {
        assert_eq!(Size::parse(text).unwrap().bytes(), bytes, "{text}");
    }
    for (bytes, text) in [(540_672, "528K"), (3_758_096_384, "3584M"), (0, "0T"), (1025, "1025"), (5 << 50, "5120T")] {
        assert_eq!(Size::of_bytes(bytes).as_str(), text);
    }
    for bad in
        ["", "G", "1g", "+1G", "-1G", "1.G", ".5G", "0x10", "1e3", "1 G", "99999999999999999T", "18446744073709551615T"]
    {
        assert!(Size::parse(bad).is_err(), "{bad}");
    }
    let by = Growth::parse("+0.5G").unwrap();
    assert_eq!((by.is_relative(), by.size().bytes(), by.bytes_after(1 << 30)), (true, 512 << 20, Some(1536 << 20)));
    let to = Growth::parse("3G").unwrap();
    assert_eq!((to.is_relative(), to.bytes_after(1 << 30)), (false, Some(3 << 30)));
    assert_eq!(by.bytes_after(u64::MAX), None);
    for bad in ["", "+", "++1G", "+1g", "1g", "+-1G", "+ 1G"] {
        assert!(Growth::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn disks_hold_what_pve_reads() {
    let held = |text: &str| DiskSource::parse(text).unwrap().held().clone();
    let Held::New { storage, size } = held("local-lvm:32") else { unreachable!() };
    assert_eq!((storage.as_str(), size.as_str(), size.bytes()), ("local-lvm", "32", 32 << 30));
    assert!(matches!(held("local:0.5"), Held::New { size, .. } if size.bytes() == 512 << 20));
    assert!(matches!(held("local:0"), Held::New { .. }));
    assert!(matches!(held("local:100/vm-100-disk-0.qcow2"), Held::Volume(volume) if volume.storage() == "local"));
    assert_eq!((held("none"), held("cdrom"), held("/dev/sdb")), (Held::Nothing, Held::HostDrive, Held::Path));
    for bad in
        ["", "None", "32", "local-lvm", "local-lvm:", "local-lvm:32G,x", "/dev/../etc", "/a,b", "a/b:32", "dev/sdb"]
    {
        assert!(DiskSource::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn tags() {
    for same in ["prod;web", "prod,web", "prod web", " prod ;; web,", "prod\0web"] {
        assert_eq!(Tags::parse(same).unwrap().to_string(), "prod;web", "{same:?}");
    }
    assert_eq!(Tags::parse("").unwrap().to_string(), "");
    assert_eq!(Tags::parse("Prod").unwrap().to_string(), "Prod");
    assert!(Tags::parse("ok;-bad").is_err());
    assert!(Tag::parse("_x+1.0").is_ok());
    assert!(Tag::parse("a;b").is_err());
    assert_eq!(tags::names("b;a,c d").collect::<Vec<_>>(), ["b", "a", "c", "d"]);
    for text in ["prod;Protected", "prod,protected", "prod protected", "PROTECTED"] {
        assert!(tags::has(text, "protected"), "{text}");
    }
    assert!(tags::has("x;do not touch", "Do not touch") && tags::has("x;do not touch", "touch"));
    assert!(!tags::has("unprotected;x", "protected") && !tags::has("", "") && !tags::has(";;", ""));
}

#[test]
fn lists() {
    for same in ["a,b", "a;b", "a b", "a,b,", ",a,,b", "a\0b", "a\nb", "a\u{a0}b"] {
        assert_eq!(list::join(list::split(same)), "a,b", "{same:?}");
    }
    assert_eq!(list::split(" , ;\0").count(), 0);
    assert!(list::is_element("a=b") && !list::is_element("a b") && !list::is_element("a,") && !list::is_element(""));
}

#[test]
fn keys_for_login_are_encoded_twice_on_the_wire() {
    let plain = "ssh-rsa AAAA+/B== cardno:000 111";
    let keys = EncodedText::parse(plain).unwrap();
    let encoded = "ssh-rsa%20AAAA%2B%2FB%3D%3D%20cardno%3A000%20111";
    assert_eq!((keys.plain(), keys.to_string().as_str()), (plain, encoded));
    assert_eq!(
        crate::pve::encode::pairs([("sshkeys", encoded)]),
        "sshkeys=ssh-rsa%2520AAAA%252B%252FB%253D%253D%2520cardno%253A000%2520111"
    );
    // Who has it encoded already, in whichever way, means the same.
    for same in [
        encoded,
        "ssh-rsa%20AAAA%2b%2fB%3d%3d%20cardno%3a000%20111",
        "ssh%2Drsa%20AAAA%2B%2FB%3D%3D%20cardno%3A000%20111",
    ] {
        assert_eq!(EncodedText::parse(same).unwrap(), keys, "{same}");
    }
    assert_eq!(EncodedText::read(encoded).unwrap().plain(), plain);
    assert_eq!(EncodedText::parse("a 100%20b").unwrap().plain(), "a 100%20b");
    assert_eq!(EncodedText::parse("100%").unwrap().to_string(), "100%25");
    assert!(EncodedText::read("ssh-rsa AAAA").is_none() && EncodedText::read("%ff").is_none());
    for bad in ["", "%ff", "a\0", "%00"] {
        assert!(EncodedText::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn scalars_come_as_numbers_text_and_words() {
    use serde_json::{Value, json};
    let yes = [json!(true), json!(1), json!("1"), json!("on"), json!("Yes"), json!("TRUE")];
    let no = [json!(false), json!(0), json!("0"), json!("off"), json!("no"), json!("false"), json!(""), Value::Null];
    assert!(yes.iter().all(|value| scalar::boolean(value) == Some(true)));
    assert!(no.iter().all(|value| scalar::boolean(value) == Some(false)));
    assert!([json!("perhaps"), json!([1]), json!({})].iter().all(|value| scalar::boolean(value).is_none()));
    for (value, number) in [(json!(123), 123), (json!("456"), 456), (json!("-7"), -7), (json!(8.0), 8)] {
        assert_eq!(scalar::integer(&value), Some(number), "{value}");
    }
    for bad in [json!("1.5"), json!(1.5), json!(1e300), json!(""), json!(true), json!("0x1")] {
        assert_eq!(scalar::integer(&bad), None, "{bad}");
    }
    // Passed on, nothing is lost: sizes without sign, and numbers beyond what floating point tells apart.
    for (value, passed) in [
        (json!("18446744073709551615"), json!(18_446_744_073_709_551_615_u64)),
        (json!("9007199254740993"), json!(9_007_199_254_740_993_u64)),
        (json!("12.0"), json!(12)),
        (json!("0.25"), json!(0.25)),
    ] {
        assert_eq!(scalar::measure(&value).map(serde_json::Value::from), Some(passed), "{value}");
    }
    assert_eq!((scalar::exact(&json!("0.25")), scalar::exact(&json!("inf"))), (None, None));
    assert_eq!(scalar::number(&json!("0.25")), Some(0.25));
    assert_eq!(
        (scalar::number(&json!("inf")), scalar::number(&json!("NaN")), scalar::number(&json!(""))),
        (None, None, None)
    );
}

#[test]
fn names_of_guests_are_dns_names() {
    for good in ["debian-12", "web.example.org", "9", "A"] {
        assert!(DnsName::parse(good).is_ok(), "{good}");
    }
    for bad in ["debian_12", "", ".", "a.", ".a", "a..b", "-a", "a-", "m\u{fc}ller", "a b"] {
        assert!(DnsName::parse(bad).is_err(), "{bad}");
    }
    assert!(DnsName::parse("debian_12").unwrap_err().to_string().contains("no underscores"));
}

#[test]
fn the_rest() {
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
