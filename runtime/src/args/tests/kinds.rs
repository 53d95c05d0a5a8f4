//! Kinds of arguments by example: in which forms a caller may give them, and in which one they are sent.

use pvegate_generated::catalog::{OPERATIONS, operation};
use pvegate_generated::property_strings::{LXC_ROOTFS, PVE_QM_BOOT, QEMU_NET};
use pvegate_generated::terms::Release;
use serde_json::{Map, Value as Json, json};

use super::refused;
use crate::args::decode::decode_lenient;
use crate::args::{PropertyText, decode, encode};

const CONFIG: &str = "PUT /nodes/{node}/qemu/{vmid}/config";

/// What is sent for one argument beside node and vmid, or what is wrong.
#[allow(clippy::needless_pass_by_value, reason = "calls read better with the value in place")]
fn sent(name: &str, argument: &str, json: Json) -> Result<String, String> {
    let mut arguments = Map::new();
    arguments.insert("node".to_owned(), json!("pve1"));
    arguments.insert("vmid".to_owned(), json!(100));
    arguments.insert(argument.to_owned(), json);
    match decode(operation(name).unwrap(), &arguments, Release::NEWEST) {
        Ok(args) => Ok(encode(&args).unwrap().form),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn tags_are_sent_with_semicolons() {
    for same in [json!("Prod;web"), json!("Prod,web"), json!("Prod web"), json!(["Prod", "web"]), json!(";Prod;;web;")]
    {
        assert_eq!(sent(CONFIG, "tags", same.clone()).unwrap(), "tags=Prod%3Bweb", "{same}");
    }
    for bad in [json!("-x"), json!(["a b"]), json!([]), json!(";"), json!("pr\u{f6}d")] {
        assert!(sent(CONFIG, "tags", bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn keys_for_login_are_given_plain_and_sent_encoded_twice() {
    let wire = "sshkeys=ssh-rsa%2520AAAA%252B%252FB%253D%253D%2520cardno%253A000%2520111";
    let plain = "ssh-rsa AAAA+/B== cardno:000 111";
    for same in [plain, "ssh-rsa%20AAAA%2B%2FB%3D%3D%20cardno%3A000%20111"] {
        assert_eq!(sent(CONFIG, "sshkeys", json!(same)).unwrap(), wire, "{same}");
    }
    assert!(sent(CONFIG, "sshkeys", json!("%ff%fe")).is_err());
}

#[test]
fn booleans_are_ones_and_zeros() {
    for (json, wire) in [(json!(true), "1"), (json!(1), "1"), (json!("1"), "1"), (json!(false), "0"), (json!("0"), "0")]
    {
        assert_eq!(sent(CONFIG, "onboot", json.clone()).unwrap(), format!("onboot={wire}"), "{json}");
    }
    for bad in [json!("true"), json!("on"), json!("yes"), json!(2), json!(""), json!(null), json!([true])] {
        assert!(sent(CONFIG, "onboot", bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn members_of_a_family_stay_within_its_range() {
    let mut families = 0;
    for operation in OPERATIONS {
        for parameter in operation.params {
            let Some((first, last)) = parameter.index else { continue };
            families += 1;
            let family = parameter.name.strip_suffix("[n]").unwrap();
            let known = |member: String| operation.parameter(&member).is_some_and(|found| found.name == parameter.name);
            assert!(
                known(format!("{family}{first}")) && known(format!("{family}{last}")),
                "{} {family}",
                operation.name
            );
            for bad in [format!("{}", last + 1), "00".to_owned(), "01".to_owned(), "+1".to_owned(), String::new()] {
                assert!(!known(format!("{family}{bad}")), "{} {family}{bad}", operation.name);
            }
        }
    }
    assert!(families > 40, "{families}");
    for (argument, good) in [("net31", "virtio"), ("scsi30", "local:8"), ("ide3", "none,media=cdrom")] {
        assert!(sent(CONFIG, argument, json!(good)).unwrap().starts_with(argument));
    }
    for argument in ["net32", "scsi31", "ide4", "virtio16", "sata6", "net01", "net", "net[n]"] {
        assert_eq!(
            refused(CONFIG, json!({"node": "pve1", "vmid": 100, argument: "virtio"})).first().unwrap().0,
            argument
        );
    }
}

#[test]
fn drives_hold_volumes_new_ones_and_nothing() {
    for good in [
        "local-lvm:32,ssd=1",
        "local-lvm:vm-100-disk-0,size=528K",
        "local:iso/x.iso,media=cdrom",
        "none,media=cdrom",
        "cdrom",
        "/dev/sdb",
        "volume=local:0,import-from=local:import/x.qcow2",
        "file=local-lvm:base-9000-disk-0/vm-100-disk-0",
    ] {
        assert!(sent(CONFIG, "scsi0", json!(good)).is_ok(), "{good}: {:?}", sent(CONFIG, "scsi0", json!(good)));
    }
    for bad in [
        "32",
        "local-lvm",
        "local-lvm:32,size=1g",
        "local-lvm:32,size=+1G",
        "local:0,import-from=none",
        "/dev/../x",
        "ssd=1",
    ] {
        assert!(sent(CONFIG, "scsi0", json!(bad)).is_err(), "{bad}");
    }
    assert!(PropertyText::from_text(&LXC_ROOTFS, "local-lvm:8").is_ok());
    assert!(PropertyText::from_text(&LXC_ROOTFS, "none").is_err());
    let resize = "PUT /nodes/{node}/qemu/{vmid}/resize";
    let size = |size: &str| {
        let one = json!({"size": size}).as_object().unwrap().clone();
        decode_lenient(operation(resize).unwrap(), &one).len() == 1
    };
    assert!(size("+1G") && size("3G") && size("+0.5G") && !size("+1g") && !size("big") && !size("-1G"));
}

#[test]
fn whole_numbers_may_look_like_others() {
    for same in [json!(2), json!(2.0), json!("2"), json!("02")] {
        assert_eq!(sent(CONFIG, "cores", same.clone()).unwrap(), "cores=2", "{same}");
    }
    for bad in [json!(2.5), json!("2.0"), json!("0x2"), json!("2e0"), json!(" 2"), json!(true), json!(0)] {
        assert!(sent(CONFIG, "cores", bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn nodes_of_a_rule_may_have_a_priority() {
    let rule = operation("POST /cluster/ha/rules").unwrap();
    let nodes = |nodes: &str| {
        let one = json!({"nodes": nodes}).as_object().unwrap().clone();
        decode_lenient(rule, &one).pop().map(|arg| arg.value.wire().into_owned())
    };
    assert_eq!(nodes("pve1:2,pve2;pve3").as_deref(), Some("pve1:2,pve2,pve3"));
    assert!(["pve1:", "pve1:a", "localhost:1", "pve1:1:2", "pve1/x:1"].into_iter().all(|bad| nodes(bad).is_none()));
}

#[test]
fn names_of_guests_are_told_about_before_pve_is_asked() {
    let told = sent(CONFIG, "name", json!("debian_12")).unwrap_err();
    assert!(told.contains("`debian_12` is not a DNS name"), "{told}");
    assert_eq!(sent(CONFIG, "name", json!("debian-12")).unwrap(), "name=debian-12");
}

#[test]
fn what_is_unset_is_not_set() {
    let both =
        refused(CONFIG, json!({"node": "pve1", "vmid": 100, "nameserver": "10.0.0.1", "delete": "tags,nameserver"}));
    assert_eq!(both, [("nameserver".to_owned(), "is set and unset at once; decide for one".to_owned())]);
    assert_eq!(sent(CONFIG, "delete", json!("tags; nameserver,")).unwrap(), "delete=tags%2Cnameserver");
    for (json, told) in [(json!(""), "name it in `delete`"), (json!(null), "name it in `delete`")] {
        let problem = sent(CONFIG, "nameserver", json).unwrap_err();
        assert!(problem.contains(told), "{problem}");
    }
}

#[test]
fn arrays_are_sent_one_by_one() {
    let exec = "POST /nodes/{node}/qemu/{vmid}/agent/exec";
    let form = |json: Json| sent(exec, "command", json);
    assert_eq!(form(json!(["echo", "a,b;c d"])).unwrap(), "command=echo&command=a%2Cb%3Bc%20d");
    assert_eq!(form(json!("uptime -p")).unwrap(), "command=uptime%20-p");
    assert!(form(json!([])).is_err() && form(json!(["a\0b"])).is_err() && form(json!([["a"]])).is_err());
}

#[test]
fn what_pve_has_is_edited_and_otherwise_left_alone() {
    let net = "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,newkey=7";
    let edit = |changes: Json| {
        PropertyText::edited(&QEMU_NET, net, changes.as_object().unwrap()).map(|text| text.as_str().to_owned())
    };
    assert_eq!(edit(json!({"bridge": "vmbr1"})).unwrap(), "virtio=BC:24:11:00:00:01,bridge=vmbr1,firewall=1,newkey=7");
    assert_eq!(
        edit(json!({"firewall": false, "tag": 7, "newkey": null})).unwrap(),
        "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=0,tag=7"
    );
    for bad in [
        json!({"bridge": "a/b"}),
        json!({"newkey": 8}),
        json!({"firewall": "perhaps"}),
        json!({"model": null}),
        json!({"bridge": "vmbr1,tag=2"}),
        json!({"bridge": {}}),
    ] {
        assert!(edit(bad.clone()).is_err(), "{bad}");
    }
    // A caller may not give what the catalog does not know.
    assert!(PropertyText::from_text(&QEMU_NET, net).is_err());
    for empty in ["", ",", " "] {
        assert!(PropertyText::from_text(&PVE_QM_BOOT, empty).is_err(), "{empty:?}");
    }
    let boot = PropertyText::from_text(&PVE_QM_BOOT, "order=scsi0;net0").unwrap();
    assert_eq!(boot.list("order").collect::<Vec<_>>(), ["scsi0", "net0"]);
    let changes = json!({"order": ["ide2", "scsi0"]});
    let boot = PropertyText::edited(&PVE_QM_BOOT, boot.as_str(), changes.as_object().unwrap()).unwrap();
    assert_eq!(boot.as_str(), "order=ide2;scsi0");
    assert!(PropertyText::edited(&PVE_QM_BOOT, "order=scsi0", json!({"order": null}).as_object().unwrap()).is_err());
}

/// C081: what stands in a path is one segment, whatever it holds.
#[test]
fn volumes_are_one_segment_of_a_path() {
    let remove = operation("DELETE /nodes/{node}/storage/{storage}/content/{volume}").unwrap();
    let path = |volume: &str| {
        let given = json!({"node": "pve1", "storage": "pbs", "volume": volume});
        decode(remove, given.as_object().unwrap(), Release::NEWEST).map(|args| encode(&args).unwrap())
    };
    let sent = path("pbs:backup/vm/101/2025-09-15T13:54:03Z").unwrap();
    assert_eq!(sent.path, "/nodes/pve1/storage/pbs/content/pbs%3Abackup%2Fvm%2F101%2F2025-09-15T13%3A54%3A03Z");
    assert_eq!((sent.query.as_str(), sent.form.as_str()), ("", ""));
    for bad in ["pbs:backup/../../x", "pbs:", "", "pbs:a\nb", "other:iso/x.iso"] {
        assert!(path(bad).is_err(), "{bad:?}");
    }
}

/// C022: an option that is given empty would be sent empty, and PVE checks who may set it.
#[test]
fn features_of_a_container_are_not_sent_empty() {
    let config = "PUT /nodes/{node}/lxc/{vmid}/config";
    for empty in [json!(""), json!(null), json!({})] {
        assert!(sent(config, "features", empty.clone()).is_err(), "{empty}");
    }
    assert_eq!(sent(config, "features", json!({"nesting": true})).unwrap(), "features=nesting%3D1");
}

/// C021, C067: a lock is somebody's, and what passes over it is never among what may be given without a plan.
#[test]
fn no_lock_is_passed_over() {
    let known = |name: &str| OPERATIONS.iter().any(|operation| operation.parameter(name).is_some());
    assert!(known("skiplock"));
    for operation in OPERATIONS {
        assert!(!operation.low_args.contains(&"skiplock"), "{}", operation.name);
    }
}
