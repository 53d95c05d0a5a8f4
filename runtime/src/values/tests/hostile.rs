//! Over arbitrary text: no parser panics, whatever it takes is printed as the same value, and none lets a path escape.

use crate::values::*;
use proptest::prelude::*;

/// Text near the grammars' edges, which uniformly random text never reaches.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9:/.@!%_ ;,+\\-\\\\\u{0}\u{a0}\u{e9}]{0,40}",
        "(UPID:)?[a-z]{1,5}:[0-9A-F]{8}:[0-9A-F]{8,9}:([0-9A-F]{8,9}:)?[0-9A-F]{8}:[a-z/.]{0,6}:[0-9a-z/.@]{0,6}:[a-z@!]{0,8}:?",
        "[a-z]{1,4}:[a-z/.%]{0,12}",
        "[0-9+.]{1,22}[KMGT]?",
        "[a-zA-Z0-9._@!-]{0,70}",
        "(%[0-9a-fA-F]{2}|[a-z %-]){0,12}",
        "[0-9a-f:.]{0,20}(/[0-9]{0,4})?",
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
        same!(Vmid, NodeName, NodePriority, StorageId, ConfigId, SnapshotName, PoolId, Iface, FirewallName, DnsName, Tag, Mac, UserId, TokenId, VolumeId, Upid, PbsUpid, Cidr, CidrOrAlias, Size, Growth, Gib, PathSegment);
    }

    #[test]
    fn what_parses_keeps_its_meaning(text in hostile()) {
        if let Ok(disk) = DiskSource::parse(&text) {
            prop_assert_eq!(disk.to_string(), text.as_str());
        }
        if let Ok(tags) = Tags::parse(&text) {
            prop_assert_eq!(Tags::parse(tags.as_str()), Ok(tags.clone()));
            prop_assert!(tags.iter().map(Tag::as_str).eq(list::split(&text)));
        }
        if let Ok(encoded) = EncodedText::parse(&text) {
            prop_assert_eq!(EncodedText::parse(&encoded.to_string()), Ok(encoded.clone()));
            prop_assert_eq!(EncodedText::read(&encoded.to_string()), Some(encoded));
        }
        let joined = list::join(list::split(&text));
        prop_assert!(list::split(&joined).eq(list::split(&text)));
        prop_assert!(list::split(&text).all(list::is_element));
    }

    #[test]
    fn only_three_kinds_hold_a_slash(text in hostile()) {
        if text.contains('/') {
            macro_rules! refused {
                ($($kind:ident),*) => {$( prop_assert!($kind::parse(&text).is_err()); )*};
            }
            refused!(Vmid, NodeName, NodePriority, StorageId, ConfigId, SnapshotName, Iface, FirewallName, DnsName, Tag, Mac, UserId, TokenId, Upid, Size, PathSegment);
        }
    }

    #[test]
    fn no_text_is_a_task_of_both_servers(text in hostile()) {
        prop_assert!(Upid::parse(&text).is_err() || PbsUpid::parse(&text).is_err());
    }

    #[test]
    fn a_tag_that_is_listed_is_found_whatever_its_case(text in hostile()) {
        for name in tags::names(&text) {
            prop_assert!(tags::has(&text, &name.to_uppercase()) || name.to_uppercase().to_lowercase() != name.to_lowercase());
            prop_assert!(tags::has(&text, name));
        }
    }

    #[test]
    fn a_size_is_written_as_it_is_read(bytes: u64) {
        let size = Size::of_bytes(bytes);
        prop_assert_eq!(size.bytes(), bytes);
        prop_assert_eq!(Size::parse(size.as_str()), Ok(size));
    }

    #[test]
    fn a_secret_shows_nowhere(text in "[a-z]{12,40}") {
        let secret = Secret::new(text.clone());
        let shown = format!("{secret:?} {secret:#?}");
        prop_assert!(!shown.contains(&text));
        prop_assert_eq!(secret.expose(), text);
    }
}
