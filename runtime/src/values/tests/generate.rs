//! Valid values of each kind, as text in the form that the kind prints.

use proptest::collection::vec;
use proptest::prelude::*;

pub(super) fn vmid() -> impl Strategy<Value = String> {
    prop_oneof![100_u32..1000, 100_u32..=999_999_999].prop_map(|number| number.to_string())
}

pub(super) fn node() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?"
        .prop_filter("never localhost", |text| !text.eq_ignore_ascii_case("localhost"))
}

pub(super) fn storage() -> impl Strategy<Value = String> {
    "[a-zA-Z]([a-zA-Z0-9_-]|\\.[a-z]){0,12}[a-zA-Z0-9]"
}

pub(super) fn id() -> impl Strategy<Value = String> {
    "[a-zA-Z][a-zA-Z0-9_-]{1,39}"
}

pub(super) fn pool() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,12}(/[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,12}){0,2}"
}

pub(super) fn iface() -> impl Strategy<Value = String> {
    "[a-z]{1,8}[0-9]{1,3}([.:][0-9]{1,4})?"
}

pub(super) fn dns() -> impl Strategy<Value = String> {
    "([a-zA-Z0-9]([a-zA-Z0-9-]{0,10}[a-zA-Z0-9])?\\.){0,3}[a-zA-Z0-9]([a-zA-Z0-9-]{0,10}[a-zA-Z0-9])?"
}

pub(super) fn tag() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_][a-zA-Z0-9_+.-]{0,12}"
}

pub(super) fn tags() -> impl Strategy<Value = String> {
    vec(tag(), 0..6).prop_map(|tags| tags.join(";"))
}

pub(super) fn mac() -> impl Strategy<Value = String> {
    "[0-9A-F][02468ACE](:[0-9A-F]{2}){5}"
}

pub(super) fn user() -> impl Strategy<Value = String> {
    "[a-z\u{e4}][a-zA-Z0-9.@\u{fc}_-]{0,20}@[a-z][a-z0-9.-]?[a-z0-9_-]{1,10}"
}

pub(super) fn token() -> impl Strategy<Value = String> {
    (user(), "[a-z]([a-zA-Z0-9_-]|\\.[a-z]){1,10}").prop_map(|(user, token)| format!("{user}!{token}"))
}

pub(super) fn cidr() -> impl Strategy<Value = String> {
    prop_oneof![
        (any::<std::net::Ipv4Addr>(), proptest::option::of(0_u8..=32)).prop_map(|(ip, bits)| written(&ip, bits)),
        (any::<std::net::Ipv6Addr>(), proptest::option::of(0_u8..=128)).prop_map(|(ip, bits)| written(&ip, bits)),
    ]
}

fn written(ip: &impl std::fmt::Display, bits: Option<u8>) -> String {
    bits.map_or_else(|| ip.to_string(), |bits| format!("{ip}/{bits}"))
}

pub(super) fn alias() -> impl Strategy<Value = String> {
    prop_oneof![cidr(), id(), id().prop_map(|id| format!("dc/{id}")), id().prop_map(|id| format!("guest/{id}"))]
}

pub(super) fn number() -> impl Strategy<Value = String> {
    "(0|[1-9][0-9]{0,5})(\\.[0-9]{1,4})?"
}

pub(super) fn size() -> impl Strategy<Value = String> {
    "(0|[1-9][0-9]{0,5})(\\.[0-9]{1,4})?[KMGT]?"
}

pub(super) fn growth() -> impl Strategy<Value = String> {
    (any::<bool>(), size()).prop_map(|(by, size)| if by { format!("+{size}") } else { size })
}

pub(super) fn volume() -> impl Strategy<Value = String> {
    let name = || {
        (prop_oneof!["vm", "subvol"], vmid(), 0_u8..20)
            .prop_map(|(kind, vmid, disk)| format!("{kind}-{vmid}-disk-{disk}"))
    };
    let base = || (vmid(), 0_u8..20).prop_map(|(vmid, disk)| format!("base-{vmid}-disk-{disk}"));
    let path = prop_oneof![
        name(),
        (base(), name()).prop_map(|(base, name)| format!("{base}/{name}")),
        (vmid(), name()).prop_map(|(vmid, name)| format!("{vmid}/{name}.qcow2")),
        (vmid(), base(), vmid(), name())
            .prop_map(|(of, base, vmid, name)| format!("{of}/{base}.raw/{vmid}/{name}.qcow2")),
        "(iso|vztmpl|import|snippets)/[a-zA-Z0-9\u{e9}][a-zA-Z0-9 ._()+=@-]{0,20}[a-zA-Z0-9]",
        ("(vm|ct)", vmid(), "20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z")
            .prop_map(|(kind, vmid, time)| format!("backup/{kind}/{vmid}/{time}")),
        ("(qemu|lxc)", vmid(), "20[0-9]{2}_[01][0-9]_[0-3][0-9]-[0-2][0-9]_[0-5][0-9]_[0-5][0-9]\\.(vma|tar)(\\.zst)?")
            .prop_map(|(kind, vmid, rest)| format!("backup/vzdump-{kind}-{vmid}-{rest}")),
    ];
    (storage(), path).prop_map(|(storage, path)| format!("{storage}:{path}"))
}

pub(super) fn disk() -> impl Strategy<Value = String> {
    prop_oneof![
        volume(),
        (storage(), number()).prop_map(|(storage, number)| format!("{storage}:{number}")),
        Just("none".to_owned()),
        Just("cdrom".to_owned()),
        "(/[a-z0-9_-]{1,10}){1,4}",
    ]
}

pub(super) fn upid() -> impl Strategy<Value = String> {
    let subject = prop_oneof![Just(String::new()), vmid(), "[a-z0-9.@_-]{1,12}", Just("100@lab1".to_owned())];
    let who = prop_oneof![user(), token()];
    (node(), "[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}", "[a-z]{1,12}", subject, who)
        .prop_map(|(node, numbers, worker, subject, who)| format!("UPID:{node}:{numbers}:{worker}:{subject}:{who}:"))
}

pub(super) fn pbs_upid() -> impl Strategy<Value = String> {
    (node(), "[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8,16}:[0-9A-F]{8}", "[a-z_-]{1,12}", "[a-z0-9.@_-]{0,12}", user())
        .prop_map(|(node, numbers, worker, subject, who)| format!("UPID:{node}:{numbers}:{worker}:{subject}:{who}:"))
}

pub(super) fn segment() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_:@!~+=,;&'()*$-][a-zA-Z0-9._:@!~+=,;&'()*$-]{0,30}"
}
