//! The cluster of an older release: its operations, its way to keep HA, its way to tell errors.

use lab::{Options, Profile};
use serde_json::{Value, json};

use crate::client::{Bench, quick, url};

async fn old() -> Bench {
    Bench::start(Options { profile: Profile::Old, ..quick() }).await
}

#[tokio::test]
async fn the_old_release_says_what_it_is() {
    let bench = old().await;
    assert_eq!(bench.get("/version").await.data()["release"], "8.4");
    assert_eq!(bench.get("/nodes/pve2/version").await.data()["release"], "8.4");
    let manager = bench.get("/nodes/pve1/status").await.data()["pveversion"].as_str().unwrap().to_owned();
    assert!(manager.starts_with("pve-manager/8.4."), "{manager}");
    assert_eq!(Bench::quick().await.get("/version").await.data()["release"], "9.2");
}

#[tokio::test]
async fn every_read_of_the_old_release_answers() {
    let bench = old().await;
    let mut wrong = Vec::new();
    let samples = bench.lab.sample_reads();
    for sample in &samples {
        let seen = bench.sample(sample).await;
        // What a token may not do, it may not do there either.
        if !matches!(seen.status, 200 | 403) {
            wrong.push(format!("{} -> {} {}", url(sample), seen.status, seen.reason));
        }
    }
    assert!(samples.len() > 300 && wrong.is_empty(), "{} reads\n{}", samples.len(), wrong.join("\n"));
}

#[tokio::test]
async fn what_came_later_is_not_implemented() {
    let bench = old().await;
    for (method, path) in [("GET", "/cluster/ha/rules"), ("GET", "/cluster/sdn/fabrics"), ("POST", "/cluster/ha/rules")]
    {
        let seen = bench.send(method, path, (method == "POST").then_some("")).await;
        assert_eq!((seen.status, seen.reason.clone()), (501, format!("Method '{method} {path}' not implemented")));
        assert_eq!(seen.json(), json!({"data": null}));
    }
    let seen = bench.send("PUT", "/cluster/ha/resources/vm:107", Some("failback=1")).await;
    assert!(seen.status == 400 && seen.error("failback").contains("not defined in schema"), "{seen:?}");
}

#[tokio::test]
async fn groups_are_kept_where_there_are_no_rules() {
    let bench = old().await;
    let groups = "/cluster/ha/groups";
    assert_eq!(bench.get(groups).await.rows()[0]["group"], "main");
    assert_eq!(bench.send("POST", groups, Some("group=spare&nodes=pve3")).await.status, 200);
    assert_eq!(bench.send("PUT", &format!("{groups}/spare"), Some("comment=new&nodes=pve2")).await.status, 200);
    let spare = bench.get(&format!("{groups}/spare")).await.data();
    assert_eq!((&spare["nodes"], &spare["comment"]), (&"pve2".into(), &"new".into()));
    assert_eq!(bench.send("DELETE", &format!("{groups}/spare"), None).await.status, 200);
    let seen = bench.send("DELETE", &format!("{groups}/main"), None).await;
    assert_eq!(seen.reason, "ha group 'main' is used by service 'vm:107'");
}

#[tokio::test]
async fn errors_are_told_by_the_reason_phrase_alone() {
    let bench = old().await;
    let seen = bench.get("/pools/nope").await;
    assert_eq!((seen.status, seen.reason.as_str()), (500, "pool 'nope' does not exist"));
    assert_eq!(seen.json(), json!({"data": null}));
    let seen = bench.get("/version?x=1").await;
    assert_eq!((seen.status, seen.json().get("message")), (400, None::<&Value>));
    assert!(seen.error("x").contains("not defined in schema"));
}
