//! Which cluster a name stands for: writes are refused where that is not certain, and reads go on.

use super::{Rules, device, low, on, state};
use lab::{Lab, Options};
use serde_json::json;
use tests::site::quick;

#[tokio::test]
async fn two_names_of_one_cluster_are_refused() {
    let lab = Lab::start(quick()).await.unwrap();
    let devices = json!({"one": device(&[&lab], &json!({})), "two": device(&[&lab], &json!({}))});
    let state = state(&lab, &devices, &lab.directory().join("rules.db")).await;
    for (name, other) in [("one", "two"), ("two", "one")] {
        let refused = low(&state, name, "wide", on::START, json!({"vmid": 122})).await.unwrap_err();
        assert_eq!(refused.code, "cluster_identity");
        assert!(refused.message.contains(name) && refused.message.contains(other), "{}", refused.message);
    }
}

#[tokio::test]
async fn another_cluster_behind_a_known_name_is_refused() {
    let first = Lab::start(quick()).await.unwrap();
    let store = first.directory().join("rules.db");
    {
        let known = state(&first, &json!({"lab": device(&[&first], &json!({}))}), &store).await;
        low(&known, "lab", "wide", on::START, json!({"vmid": 122})).await.unwrap();
    }
    let second = Lab::start(Options { cluster: "lab".to_owned(), ..quick() }).await.unwrap();
    let moved = state(&second, &json!({"lab": device(&[&second], &json!({}))}), &store).await;
    let refused = low(&moved, "lab", "wide", on::START, json!({"vmid": 122})).await.unwrap_err();
    assert_eq!(refused.code, "cluster_identity", "{}", refused.message);
    assert!(refused.message.contains("another one than before"), "{}", refused.message);
    // Nothing hinders looking.
    assert!(moved.connections().next().unwrap().snapshot().get().await.is_ok());
}

#[tokio::test]
async fn the_same_cluster_after_a_restart_is_known() {
    let rules = Rules::start().await;
    let first = rules.acts("wide", on::START, json!({"vmid": 122})).await.identity;
    assert_eq!(rules.acts("wide", on::START, json!({"vmid": 122})).await.identity, first);
    assert!(first.contains("lab"), "{first}");
}
