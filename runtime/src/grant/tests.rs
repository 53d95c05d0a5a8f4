//! Selectors and networks: what they cover, and that they print as they are read.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use proptest::prelude::*;
use pvegate_generated::terms::Tier;

use super::*;
use crate::values::Vmid;

fn guests(texts: &[&str]) -> Guests {
    Guests::from_texts(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn networks(texts: &[&str]) -> Networks {
    Networks::from_texts(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn both_ends_of_a_range_are_in_it() {
    let range = guests(&["vmid:600-699"]);
    let new = |number| range.covers_new(Vmid::new(number).unwrap(), None);
    assert_eq!([599, 600, 699, 700].map(new), [false, true, true, false]);
}

#[test]
fn what_is_not_there_yet_has_neither_tag_nor_node_nor_kind() {
    let vmid = Vmid::new(600).unwrap();
    assert!(!guests(&["tag:ci", "node:pve1", "type:qemu"]).covers_new(vmid, None));
    let pool = guests(&["pool:lab"]);
    assert!(pool.covers_new(vmid, Some("lab")));
    assert!(!pool.covers_new(vmid, Some("lab/inner")) && !pool.covers_new(vmid, None));
    assert!(Guests::All.covers_new(vmid, None) && !Guests::None.covers_new(vmid, None));
}

#[test]
fn a_vlan_is_granted_by_itself() {
    let some = networks(&["vmbr0", "vmbr1:20-29"]);
    assert!(some.covers("vmbr0", None) && some.covers("vmbr1", Some(20)) && some.covers("vmbr1", Some(29)));
    assert!(!some.covers("vmbr0", Some(1)) && !some.covers("vmbr1", None) && !some.covers("vmbr1", Some(30)));
    assert!(!some.covers("vmbr2", None) && !Networks::None.covers("vmbr0", None));
}

#[test]
fn what_is_wider_is_told() {
    assert!(guests(&["vmid:100-200", "tag:ci"]).includes(&guests(&["tag:CI", "vmid:150"])));
    assert!(!guests(&["vmid:100-200"]).includes(&guests(&["vmid:100-201"])));
    assert!(Guests::All.includes(&guests(&["tag:ci"])) && !guests(&["tag:ci"]).includes(&Guests::All));
    assert!(networks(&["vmbr0:20-29"]).includes(&networks(&["vmbr0:25"])));
    assert!(!networks(&["vmbr0:20-29"]).includes(&networks(&["vmbr0"])));
}

#[test]
fn what_selects_nothing_is_refused() {
    for text in [
        "",
        "600",
        "vmid:",
        "vmid:99",
        "vmid:0600",
        "vmid:700-600",
        "vmid:600-",
        "tag:",
        "tag:a b",
        "pool:../x",
        "node:a/b",
        "type:vm",
        "vmid:600,700",
        "Tag:ci",
    ] {
        assert!(Selector::parse(text).is_err(), "{text}");
    }
    for text in ["", "vmbr0:", "vmbr0:0", "vmbr0:4095", "vmbr0:020", "vmbr0:30-20", "vm br0"] {
        assert!(Reach::parse(text).is_err(), "{text}");
    }
    assert!(Guests::from_texts(&["*".to_owned(), "tag:ci".to_owned()]).is_err());
}

#[test]
fn tiers_are_as_written() {
    let tiers = Tiers::from_texts(&["read".to_owned(), "low".to_owned()]).unwrap();
    assert!(tiers.allows(Tier::Read) && tiers.allows(Tier::Low) && !tiers.allows(Tier::Destructive));
    assert!(Tiers::from_texts(&["high".to_owned()]).is_err());
    assert!(Tiers::default().allows(Tier::Read) && !Tiers::default().allows(Tier::Low));
}

proptest! {
    #[test]
    fn selectors_print_as_they_are_read(text in "(vmid:[1-9][0-9]{2,4}(-[1-9][0-9]{5})?|tag:[a-z][a-z0-9_-]{0,9}|pool:[a-z]{1,5}(/[a-z]{1,5})?|node:[a-z]{1,9}|type:(qemu|lxc))") {
        let selector = Selector::parse(&text).unwrap();
        prop_assert_eq!(Selector::parse(&selector.to_string()).unwrap(), selector);
    }

    #[test]
    fn networks_print_as_they_are_read(text in "vmbr[0-9]{1,3}(:[1-9][0-9]{0,2}(-4[0-9]{3})?)?") {
        if let Ok(network) = Reach::parse(&text) {
            prop_assert_eq!(network.to_string(), text);
        }
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC*") {
        let _ = (Selector::parse(&text), Reach::parse(&text));
    }
}
