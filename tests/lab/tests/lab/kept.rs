//! What writes leave behind: pools, firewalls, storages, backups, SDN, and the words in which PVE refuses.

use crate::client::Bench;

#[tokio::test]
async fn a_guest_moves_between_pools_only_when_asked_to() {
    let bench = Bench::quick().await;
    assert_eq!(bench.send("POST", "/pools", Some("poolid=new")).await.status, 200);
    let seen = bench.send("PUT", "/pools/new", Some("vms=100")).await;
    assert!(seen.reason.contains("belongs already to pool 'ci' and 'allow-move' is not set"), "{}", seen.reason);
    assert_eq!(bench.send("PUT", "/pools/new", Some("vms=100&allow-move=1")).await.status, 200);
    let seen = bench.send("DELETE", "/pools/new", None).await;
    assert_eq!(seen.reason, "delete pool failed: pool 'new' is not empty (contains VM 100)");
}

#[tokio::test]
async fn a_new_rule_is_first_and_its_digest_guards_the_rest() {
    let bench = Bench::quick().await;
    let rules = "/cluster/firewall/rules";
    let before = bench.send("GET", rules, None).await.rows();
    assert_eq!(bench.send("POST", rules, Some("type=out&action=DROP&pos=2")).await.status, 200);
    let after = bench.send("GET", rules, None).await.rows();
    assert_eq!((after.len(), after[0]["type"].as_str()), (before.len() + 1, Some("out")));
    let stale = format!("digest={}", before[0]["digest"].as_str().unwrap());
    let seen = bench.send("DELETE", &format!("{rules}/0?{stale}"), None).await;
    assert!(seen.reason.starts_with("detected modified configuration"), "{}", seen.reason);
}

#[tokio::test]
async fn a_backup_that_is_protected_stays() {
    let bench = Bench::quick().await;
    let content = "/nodes/pve1/storage/nas/content";
    let order = Some("vmid=102&storage=nas&compress=zstd&protected=1");
    assert_eq!(bench.task("POST", "/nodes/pve1/vzdump", order).await, "OK");
    let rows = bench.send("GET", &format!("{content}?content=backup&vmid=102"), None).await.rows();
    let made = rows.iter().find(|row| row["protected"] == 1).unwrap();
    let path = format!("{content}/{}", made["volid"].as_str().unwrap());
    let end = bench.task("DELETE", &path, None).await;
    assert!(end.starts_with("cannot remove protected volume 'backup/vzdump-lxc-102-"), "{end}");
    assert_eq!(bench.send("PUT", &path, Some("protected=0")).await.status, 200);
    assert_eq!(bench.task("DELETE", &path, None).await, "OK");
}

#[tokio::test]
async fn a_zone_waits_until_it_is_applied() {
    let bench = Bench::quick().await;
    assert_eq!(bench.send("POST", "/cluster/sdn/zones", Some("zone=z9&type=simple")).await.status, 200);
    let state = async || {
        let rows = bench.send("GET", "/cluster/sdn/zones?pending=1", None).await.rows();
        let row = rows.into_iter().find(|row| row["zone"] == "z9").unwrap();
        row["state"].as_str().map(str::to_owned)
    };
    assert_eq!(state().await.as_deref(), Some("new"));
    assert_eq!(bench.task("PUT", "/cluster/sdn", Some("")).await, "OK");
    assert_eq!(state().await, None);
}

#[tokio::test]
async fn a_definition_has_the_options_of_its_type() {
    let bench = Bench::quick().await;
    let add = async |form: &str| bench.send("POST", "/storage", Some(form)).await.reason;
    assert_eq!(add("storage=new&type=dir").await, "missing value for required option 'path'");
    assert_eq!(add("storage=new&type=dir&path=/srv/new&server=x.lab.test").await, "unexpected property 'server'");
    assert_eq!(
        add("storage=new&type=nfs&server=192.0.2.9&export=/x").await,
        "create storage failed: storage 'new' is not online"
    );
    assert_eq!(add("storage=new&type=dir&path=/srv/new").await, "OK");
}

#[tokio::test]
async fn a_restored_guest_is_what_it_was_when_it_was_backed_up() {
    let bench = Bench::quick().await;
    let order = Some("vmid=102&storage=nas&compress=zstd");
    let before = bench.send("GET", "/nodes/pve1/lxc/102/config", None).await.data()["memory"].clone();
    let rows = async || bench.send("GET", "/nodes/pve1/storage/nas/content?content=backup&vmid=102", None).await.rows();
    let old: Vec<_> = rows().await.into_iter().map(|row| row["volid"].clone()).collect();
    assert_eq!(bench.task("POST", "/nodes/pve1/vzdump", order).await, "OK");
    let made = rows().await.into_iter().find(|row| !old.contains(&row["volid"])).unwrap();
    let changed = bench.send("PUT", "/nodes/pve1/lxc/102/config", Some("memory=777")).await;
    assert_eq!(changed.status, 200, "{}", changed.reason);
    let archive = made["volid"].as_str().unwrap().replace(':', "%3A");
    let form = format!("vmid=390&ostemplate={archive}&restore=1&rootfs=local-lvm%3A4");
    assert_eq!(bench.task("POST", "/nodes/pve1/lxc", Some(&form)).await, "OK");
    assert_eq!(bench.send("GET", "/nodes/pve1/lxc/390/config", None).await.data()["memory"], before);
    let inside = bench.send("GET", &format!("/nodes/pve1/vzdump/extractconfig?volume={archive}"), None).await;
    assert!(inside.data().as_str().unwrap().contains(&format!("memory: {before}\n")), "{}", inside.data());
}

#[tokio::test]
async fn sdn_keeps_what_is_below_its_entries() {
    let bench = Bench::quick().await;
    let read = async |path: &str| bench.send("GET", path, None).await.data().clone();
    for (list, add, one, change, expected) in [
        (
            "/cluster/sdn/fabrics/node/fab1",
            "node_id=pve2&protocol=openfabric&ip=10.80.0.2&interfaces=name%3Deno3",
            "/cluster/sdn/fabrics/node/fab1/pve2",
            "protocol=openfabric&ip=10.80.0.9&interfaces=name%3Deno3&delete=ip6",
            ("ip", "10.80.0.9"),
        ),
        (
            "/cluster/sdn/route-maps/entries",
            "route-map-id=rm1&order=20&action=deny",
            "/cluster/sdn/route-maps/entries/rm1/entry/20",
            "action=permit",
            ("action", "permit"),
        ),
        (
            "/cluster/sdn/prefix-lists/pl1/entries",
            "action=deny&prefix=192.0.2.0%2F24&seq=20",
            "/cluster/sdn/prefix-lists/pl1/entries/20",
            "action=permit",
            ("action", "permit"),
        ),
    ] {
        let added = bench.send("POST", list, Some(add)).await;
        assert_eq!(added.status, 200, "{list}: {}", added.reason);
        assert_ne!(bench.send("POST", list, Some(add)).await.status, 200, "{list}: twice");
        let changed = bench.send("PUT", one, Some(change)).await;
        assert_eq!(changed.status, 200, "{one}: {}", changed.reason);
        assert_eq!(read(one).await[expected.0], expected.1, "{one}");
        assert_eq!(bench.send("DELETE", one, None).await.status, 200, "{one}");
        assert_eq!(bench.send("GET", one, None).await.status, 404, "{one}");
    }
    let (ips, own) = ("/cluster/sdn/vnets/vnet20/ips", "zone=vlans&ip=203.0.113.9");
    let held = async || {
        let rows = bench.send("GET", "/cluster/sdn/ipams/pve/status", None).await.rows();
        rows.into_iter().find(|row| row["ip"] == "203.0.113.9").map(|row| row["mac"].clone())
    };
    assert_eq!(bench.send("POST", ips, Some(&format!("{own}&mac=BC%3A24%3A11%3A00%3A00%3A01"))).await.status, 200);
    assert_eq!(bench.send("PUT", ips, Some(&format!("{own}&mac=BC%3A24%3A11%3A00%3A00%3A02"))).await.status, 200);
    assert_eq!(held().await.unwrap(), "BC:24:11:00:00:02");
    assert_eq!(bench.send("DELETE", &format!("{ips}?{own}"), None).await.status, 200);
    assert_eq!(held().await, None);
}
