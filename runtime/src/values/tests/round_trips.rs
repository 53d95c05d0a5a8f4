//! Valid values of every kind: printing gives the text back, and parsing the value.

use super::generate as valid;
use crate::values::*;
use proptest::prelude::*;

macro_rules! round_trips {
    ($($test:ident: $kind:ident from $strategy:expr;)*) => {
        proptest! {
            $(
                #[test]
                fn $test(text in $strategy) {
                    let value = $kind::parse(&text);
                    prop_assert!(value.is_ok(), "{:?}", value);
                    let value = value.unwrap();
                    prop_assert_eq!(value.to_string(), text.as_str());
                    prop_assert_eq!(value.to_string().parse::<$kind>(), Ok(value.clone()));
                    let json = serde_json::to_value(&value).unwrap();
                    prop_assert_eq!(serde_json::from_value::<$kind>(json).unwrap(), value);
                }
            )*
        }
    };
}

round_trips! {
    vmids: Vmid from valid::vmid();
    nodes: NodeName from valid::node();
    nodes_with_priorities: NodePriority from (valid::node(), "(:[0-9]{1,4})?").prop_map(|(node, rest)| node + &rest);
    storages: StorageId from valid::storage();
    ids: ConfigId from valid::id();
    snapshots: SnapshotName from valid::id();
    firewall_names: FirewallName from valid::id();
    pools: PoolId from valid::pool();
    interfaces: Iface from valid::iface();
    dns_names: DnsName from valid::dns();
    tag: Tag from valid::tag();
    tags: Tags from valid::tags();
    macs: Mac from valid::mac();
    users: UserId from valid::user();
    tokens: TokenId from valid::token();
    addresses: Cidr from valid::cidr();
    addresses_and_aliases: CidrOrAlias from valid::alias();
    sizes: Size from valid::size();
    growths: Growth from valid::growth();
    gibs: Gib from valid::number();
    volumes: VolumeId from valid::volume();
    disks: DiskSource from valid::disk();
    upids: Upid from valid::upid();
    upids_of_backup_servers: PbsUpid from valid::pbs_upid();
    segments: PathSegment from valid::segment();
}

proptest! {
    #[test]
    fn numbers_of_guests(number in 100_u32..=999_999_999) {
        let vmid = Vmid::new(number).unwrap();
        prop_assert_eq!(Vmid::parse(&vmid.to_string()), Ok(vmid));
        prop_assert_eq!(serde_json::from_value::<Vmid>(serde_json::json!(number.to_string())).unwrap(), vmid);
    }

    #[test]
    fn encoded_text(text in "[^\u{0}]{1,40}") {
        let value = EncodedText::parse(&text).unwrap_or_else(|_| EncodedText::parse("x").unwrap());
        let printed = value.to_string();
        prop_assert!(encoded::is_encoded(&printed));
        prop_assert_eq!(EncodedText::parse(&printed), Ok(value));
        // Only what looks encoded is taken for it.
        if !encoded::is_encoded(&text) {
            let plain = EncodedText::parse(&text).unwrap();
            prop_assert_eq!(plain.plain(), text.as_str());
        }
    }

    #[test]
    fn tags_with_other_separators(list in proptest::collection::vec(valid::tag(), 1..6), between in "[;, ]{1,3}") {
        let tags = Tags::parse(&list.join(&between)).unwrap();
        prop_assert_eq!(tags.to_string(), list.join(";"));
    }

    #[test]
    fn lists_with_other_separators(list in proptest::collection::vec("[^,;\u{0}\\s]{1,8}", 0..6), between in "[;, \u{0}\n\u{2003}]{1,3}") {
        let ended = list.join(&between) + &between;
        prop_assert!(list::split(&ended).eq(list.iter().map(String::as_str)));
        prop_assert!(list::split(&list::join(&list)).eq(list.iter().map(String::as_str)));
    }
}
