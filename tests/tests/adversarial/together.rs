//! Many at once, and again after an answer that was lost: each wish is sent once.

use lab::{Fault, FrontOptions};
use serde_json::{Value, json};
use tests::site::{CLUSTER, Site, low_token, quick};

use super::START;

/// One guest, many callers: one after the other, and each says what came of it.
#[tokio::test]
async fn callers_for_one_guest() {
    let site = Site::low().await;
    let calls: Vec<_> = (1..=32)
        .map(|cores: u32| {
            let client = site.client.clone();
            let asked =
                json!({"cluster": CLUSTER, "vmid": 118, "cores": cores, "idempotency_key": format!("k{cores}")});
            tokio::spawn(async move { client.tool("update_vm_config", asked).await })
        })
        .collect();
    let mut applied = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(answer) => {
                assert_eq!(answer["outcome"], "ok", "{answer:#}");
                applied += 1;
            }
            Err(refused) => {
                assert!(["locked", "conflict", "busy"].contains(&refused.code.as_str()), "{refused:?}");
            }
        }
    }
    let writes = site.writes();
    let done = writes.iter().filter(|write| write.status == 200).count();
    assert!(applied > 0 && done == applied, "{applied} of {}", writes.len());
    let sent: std::collections::BTreeSet<String> =
        writes.iter().map(|write| write.params["cores"].to_string()).collect();
    assert_eq!(sent.len(), writes.len(), "none is sent twice");
}

/// What is repeated after its answer was lost, with the key that it had, is not sent again, whether it was done or not.
#[tokio::test]
async fn again_with_the_key_of_a_lost_answer() {
    for fault in [Fault::CutBefore, Fault::CutAfter, Fault::Late599, Fault::EmptyBody] {
        let site = Site::low().await;
        site.lab.set_fault(fault.clone().on(START).times(1)).await;
        let asked = json!({"cluster": CLUSTER, "vmid": 118, "idempotency_key": "k"});
        let mut ids = Vec::new();
        for _ in 0..3 {
            match site.client.tool("start_vm", asked.clone()).await {
                Ok(answer) => ids.push(answer["change_id"].as_str().unwrap().to_owned()),
                Err(refused) => {
                    let at = refused.next.find("chg_").unwrap_or_else(|| panic!("{fault}: {refused:?}"));
                    ids.push(refused.next[at..at + 30].to_owned());
                }
            }
        }
        ids.dedup();
        assert_eq!((ids.len(), site.writes().len()), (1, 1), "{fault}: {ids:?}");
    }
}

/// A key is its principal's: with another's, nothing of another is learned.
#[tokio::test]
async fn the_key_of_another() {
    let (other, entry) = low_token("other");
    let site = Site::low_with(quick(), FrontOptions { more_tokens: vec![entry], ..FrontOptions::default() }).await;
    let theirs = site.client.with_token(&other);
    let keyed = |vmid: u32| json!({"cluster": CLUSTER, "vmid": vmid, "idempotency_key": "k"});
    let (mine, yours) = tokio::join!(site.client.tool("start_vm", keyed(118)), theirs.tool("start_vm", keyed(113)));
    let (mine, yours) = (mine.unwrap(), yours.unwrap());
    assert_ne!(mine["change_id"], yours["change_id"]);
    assert_eq!(site.writes().len(), 2);
    let ask = async |id: &Value| theirs.tool("get_change", json!({"change_id": id})).await;
    let refused = ask(&mine["change_id"]).await.unwrap_err();
    assert_eq!(refused.code, "not_found", "{refused:?}");
    assert_eq!(ask(&yours["change_id"]).await.unwrap()["state"], "applied");
}
