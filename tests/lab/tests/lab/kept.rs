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
