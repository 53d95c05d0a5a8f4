//! A pool is read with its members, of which only those that are granted are shown.

use serde_json::{Value, json};
use tests::site::{CLUSTER, Site};

fn ids(members: &Value) -> Vec<&str> {
    members.as_array().unwrap().iter().map(|member| member["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn members_of_a_pool_are_rows_too() {
    let (site, [client, guest, storage]) = Site::granting([
        json!({"pools": ["ci"]}),
        json!({"pools": ["ci"], "guests": ["vmid:101"]}),
        json!({"pools": ["ci"], "nodes": ["pve1"], "storages": ["*"]}),
    ])
    .await;
    for (operation, pointer) in [("GET /pools/{poolid}", "/item/members"), ("GET /pools", "/items/0/members")] {
        let read = async |client: &tests::client::Client| {
            client.read(CLUSTER, operation, json!({"poolid": "ci"})).await.unwrap().pointer(pointer).unwrap().clone()
        };
        let all = read(&site.client).await;
        assert!(ids(&all).contains(&"qemu/101") && ids(&all).len() > 2, "{all}");
        assert_eq!(ids(&read(&client).await), Vec::<&str>::new(), "{operation}");
        assert_eq!(ids(&read(&guest).await), ["qemu/101"], "{operation}");
        let storages = read(&storage).await;
        assert_eq!(ids(&storages), ["storage/pve1/local-lvm"], "{operation}");
    }
}
