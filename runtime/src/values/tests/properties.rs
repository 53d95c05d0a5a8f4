//! Property strings: taken apart as PVE does, edited one key at a time, the rest byte for byte as it was.

use crate::values::{Part, Properties, Size};
use proptest::prelude::*;
use pvegate_generated::model::PropertyString;
use pvegate_generated::property_strings::{LXC_NET, PVE_QM_BOOT, QEMU_EFIDISK0, QEMU_NET, QEMU_SCSI};

const GRAMMARS: [&PropertyString; 5] = [&QEMU_NET, &QEMU_SCSI, &LXC_NET, &PVE_QM_BOOT, &QEMU_EFIDISK0];

fn read(grammar: &'static PropertyString, text: &str) -> Properties {
    Properties::parse(grammar, text).unwrap()
}

fn edited(grammar: &'static PropertyString, text: &str, edit: impl FnOnce(&mut Properties)) -> String {
    let mut properties = read(grammar, text);
    edit(&mut properties);
    properties.to_string()
}

#[test]
fn one_key_changes_and_the_rest_stays() {
    let net = "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,newkey=7";
    let with = |key: &str, value: &str| edited(&QEMU_NET, net, |net| net.set(key, value).unwrap());
    assert_eq!(with("bridge", "vmbr1"), "virtio=BC:24:11:00:00:01,bridge=vmbr1,firewall=1,newkey=7");
    assert_eq!(with("macaddr", "BC:24:11:00:00:02"), "virtio=BC:24:11:00:00:02,bridge=vmbr0,firewall=1,newkey=7");
    assert_eq!(with("model", "e1000"), "e1000=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,newkey=7");
    assert_eq!(with("model", "new"), "model=new,macaddr=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,newkey=7");
    assert_eq!(with("e1000", "BC:24:11:00:00:03"), "e1000=BC:24:11:00:00:03,bridge=vmbr0,firewall=1,newkey=7");
    assert_eq!(with("tag", "7"), format!("{net},tag=7"));
    assert_eq!(with("newkey", "8"), "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,newkey=8");
    let without = |key: &str| edited(&QEMU_NET, net, |net| assert!(net.remove(key)));
    assert_eq!(without("firewall"), "virtio=BC:24:11:00:00:01,bridge=vmbr0,newkey=7");
    assert_eq!(without("macaddr"), "virtio,bridge=vmbr0,firewall=1,newkey=7");
    assert_eq!(without("model"), "macaddr=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,newkey=7");
    assert_eq!(edited(&QEMU_NET, net, |net| assert!(!net.remove("rate"))), net);
}

#[test]
fn every_spelling_is_found() {
    let net = read(&QEMU_NET, "bridge=vmbr0,virtio=BC:24:11:00:00:01");
    assert_eq!((net.get("model"), net.get("macaddr")), (Some("virtio"), Some("BC:24:11:00:00:01")));
    assert_eq!(net.get("virtio"), net.get("macaddr"));
    assert_eq!(read(&QEMU_NET, "virtio,bridge=vmbr0").get("model"), Some("virtio"));
    assert_eq!(read(&QEMU_NET, "bridge=vmbr0,model=e1000").get("model"), Some("e1000"));
    for text in ["local:8,size=8G", "file=local:8,size=8G", "volume=local:8,size=8G", "size=8G,local:8"] {
        let scsi = read(&QEMU_SCSI, text);
        assert_eq!(
            (scsi.get("file"), scsi.get("volume"), scsi.get("size")),
            (Some("local:8"), Some("local:8"), Some("8G"))
        );
    }
    assert_eq!(
        edited(&QEMU_SCSI, "ssd=1,volume=local:8", |scsi| scsi.set("file", "lvm:9").unwrap()),
        "ssd=1,volume=lvm:9"
    );
    assert_eq!(edited(&QEMU_SCSI, "local:8,ssd=1", |scsi| scsi.set("file", "lvm:a=b").unwrap()), "file=lvm:a=b,ssd=1");
    assert_eq!(edited(&QEMU_SCSI, "", |scsi| scsi.set("file", "local:8").unwrap()), "file=local:8");
    let efi = read(&QEMU_EFIDISK0, "local-lvm:vm-100-disk-1,efitype=4m,size=528K");
    assert_eq!(efi.get("size").map(|size| Size::parse(size).unwrap().bytes()), Some(540_672));
}

#[test]
fn lists_inside_and_odd_parts() {
    let boot = read(&PVE_QM_BOOT, "order=scsi0;net0;ide2");
    assert_eq!(boot.list("order").collect::<Vec<_>>(), ["scsi0", "net0", "ide2"]);
    assert_eq!(read(&PVE_QM_BOOT, "cdn").parts().map(|part| part.key).collect::<Vec<_>>(), [None]);
    let odd = read(&QEMU_NET, "virtio,, ,=x,bridge=,tag=1=2,");
    let parts: Vec<(Option<&str>, &str)> = odd.parts().map(|Part { key, value, .. }| (key, value)).collect();
    assert_eq!(parts, [(Some("model"), "virtio"), (None, "x"), (None, ""), (Some("tag"), "1=2")]);
    assert_eq!(edited(&QEMU_NET, "virtio,, ,=x,tag=1,", |net| net.set("tag", "2").unwrap()), "virtio,, ,=x,tag=2,");
    assert!(Properties::parse(&QEMU_NET, "virtio\nbridge=x").is_err());
    let mut net = read(&QEMU_NET, "virtio");
    for (key, value) in
        [("tag", ""), ("tag", " "), ("tag", "1,firewall=0"), ("a=b", "1"), ("", "1"), ("a,b", "1"), ("tag", "1\n2")]
    {
        assert!(net.set(key, value).is_err(), "{key}={value}");
    }
    assert_eq!(net.as_str(), "virtio");
}

#[test]
fn values_do_not_show_in_debug_output() {
    let shown = format!("{:?}", read(&QEMU_NET, "virtio=BC:24:11:00:00:01,newkey=hunter2,hunter2"));
    assert!(shown.contains("newkey") && !shown.contains("hunter2") && !shown.contains("BC:24"), "{shown}");
}

fn text() -> impl Strategy<Value = String> {
    let key = "(virtio|e1000|model|macaddr|bridge|file|volume|size|order|ssd|newkey|[a-z=]{0,4})";
    let part = (key, any::<bool>(), "[a-zA-Z0-9:/.;=_ -]{0,8}")
        .prop_map(|(key, keyed, value)| if keyed { format!("{key}={value}") } else { value });
    prop_oneof![proptest::collection::vec(part, 0..6).prop_map(|parts| parts.join(",")), any::<String>()]
}

fn key() -> impl Strategy<Value = String> {
    "(virtio|e1000|model|macaddr|bridge|file|volume|size|order|ssd|newkey|[a-z]{1,4})"
}

proptest! {
    #[test]
    fn any_line_prints_as_it_was(text in text(), grammar in prop::sample::select(&GRAMMARS)) {
        if let Ok(properties) = Properties::parse(grammar, &text) {
            prop_assert_eq!(properties.to_string(), text.as_str());
            prop_assert_eq!(Properties::parse(grammar, &properties.to_string()).unwrap(), properties);
        }
    }

    #[test]
    fn what_is_set_is_found_and_nothing_else_changes(text in text(), key in key(), value in "[a-zA-Z0-9:/.;=_-]{1,8}", grammar in prop::sample::select(&GRAMMARS)) {
        let Ok(before) = Properties::parse(grammar, &text) else { return Ok(()) };
        let mut after = before.clone();
        after.set(&key, &value).unwrap();
        prop_assert_eq!(after.get(&key), Some(value.as_str()), "{}", after);
        // A spelling that says two things edits both, or becomes two parts.
        let edits = if ["virtio", "e1000"].contains(&key.as_str()) { 2 } else { 1 };
        let old: Vec<&str> = text.split(',').collect();
        let new: Vec<&str> = after.as_str().split(',').collect();
        prop_assert!(new.len() <= old.len() + 2, "{} {}", before, after);
        let mut rest = new.iter();
        let kept = old.iter().filter(|part| rest.clone().any(|other| other == *part) && rest.any(|other| other == *part));
        prop_assert!(kept.count() + edits >= old.len() - usize::from(text.is_empty()), "{} {}", before, after);
        // The same once more changes nothing.
        let again = after.to_string();
        after.set(&key, &value).unwrap();
        prop_assert_eq!(after.to_string(), again);
    }

    #[test]
    fn what_is_removed_is_gone(text in text(), key in key(), grammar in prop::sample::select(&GRAMMARS)) {
        let Ok(mut properties) = Properties::parse(grammar, &text) else { return Ok(()) };
        let was = properties.get(&key).is_some();
        prop_assert_eq!(properties.remove(&key), was);
        prop_assert_eq!(properties.get(&key), None, "{}", properties);
    }
}
