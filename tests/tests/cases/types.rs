//! Themes M, I and K: what PVE writes as a number, a text or not at all.

use serde_json::json;
use tests::upstream::{Script, Upstream, data};

/// C111: numbers as text, empty texts, nulls; and one row that cannot be read loses no other (M).
#[tokio::test]
async fn scalars_of_any_type_and_a_bad_row() {
    let resources = json!([
        {"type": "lxc", "id": "lxc/506", "vmid": "506", "node": "node-a", "pid": "114348", "disk": "2843205632",
         "maxdisk": "8388009984", "template": "", "lock": "", "cpu": 0.0048, "status": "running"},
        {"type": "lxc", "id": "lxc/507", "vmid": 507, "node": "node-a", "template": 1, "tags": null, "status": "stopped"},
        {"type": "lxc", "id": 7, "vmid": {"odd": true}, "node": "node-a", "status": "stopped"},
    ]);
    let upstream = Upstream::start(Script::new(&resources)).await;
    let guests = upstream.client.tool("list_guests", json!({})).await.unwrap();
    let (first, second) = (&guests["items"][0], &guests["items"][1]);
    assert_eq!(
        (&first["vmid"], &first["disk"], &first["template"]),
        (&json!(506), &json!(2_843_205_632_u64), &json!(false))
    );
    assert!(first.get("lock").is_none() || first["lock"].is_null(), "{first}");
    assert_eq!((&second["vmid"], &second["template"], &second["tags"]), (&json!(507), &json!(true), &json!([])));
    assert_eq!(guests["total"], 2);
    assert!(guests["missing"].to_string().contains("1 entries"), "{guests}");
}

/// C111 as a node lists its containers: every value of its type, and no zero for what is absent.
#[tokio::test]
async fn containers_as_a_node_lists_them() {
    let rows = json!([
        {"vmid": "506", "pid": "114348", "disk": "2843205632", "maxdisk": "8388009984", "template": "", "lock": "", "cpu": 0.0048, "ha": {"managed": 0}},
        {"vmid": 507, "pid": 1, "template": 1, "tags": null},
    ]);
    let upstream = Upstream::start(Script::new(&json!([])).on("GET /nodes/node-a/lxc", data(&rows))).await;
    let answer = upstream.client.read("lab", "GET /nodes/{node}/lxc", json!({"node": "node-a"})).await.unwrap();
    let (first, second) = (&answer["items"][0], &answer["items"][1]);
    assert_eq!(
        (&first["vmid"], &first["disk"], &first["maxdisk"], &first["template"]),
        (&json!(506), &json!(2_843_205_632_u64), &json!(8_388_009_984_u64), &json!(false))
    );
    assert_eq!((&second["vmid"], &second["template"], second.get("disk")), (&json!(507), &json!(true), None));
    assert_eq!(answer["total"], 2);
}

/// C071: keys for login, which PVE keeps percent-encoded, are read as a person wrote them.
#[tokio::test]
async fn keys_for_login_are_read_plain() {
    let resources = json!([{"type": "qemu", "id": "qemu/100", "vmid": 100, "node": "node-a", "status": "running"}]);
    let config = json!({"name": "a%20b", "sshkeys": "ssh-rsa%20AAAA%2B%2FB%3D%3D%20cardno%3A000%20111%0A"});
    let script = Script::new(&resources).on("GET /nodes/node-a/qemu/100/config", data(&config));
    let upstream = Upstream::start(script).await;
    let read = {
        let config = "GET /nodes/{node}/qemu/{vmid}/config";
        upstream.client.read("lab", config, json!({"vmid": 100})).await.unwrap()
    };
    assert_eq!(read["item"]["sshkeys"].as_str().unwrap().trim_end(), "ssh-rsa AAAA+/B== cardno:000 111");
    assert_eq!(read["item"]["name"], "a%20b");
}

/// C095: sizes of a storage's content as number and as text.
#[tokio::test]
async fn sizes_of_content() {
    let content = json!([
        {"volid": "local:iso/a.iso", "content": "iso", "format": "iso", "size": 123},
        {"volid": "local:iso/b.iso", "content": "iso", "format": "iso", "size": "456"},
    ]);
    let script = Script::new(&json!([])).on("GET /nodes/node-a/storage/local/content", data(&content));
    let upstream = Upstream::start(script).await;
    let arguments = json!({"cluster": "lab", "node": "node-a", "storage": "local"});
    let isos = upstream.client.tool("list_isos", arguments).await.unwrap();
    assert_eq!((&isos["items"][0]["size"], &isos["items"][1]["size"]), (&json!(123), &json!(456)));
}

/// C112: a point that has no value stays without one; a time span that PVE does not have is refused before it is asked.
#[tokio::test]
async fn statistics_with_gaps() {
    let points = json!([{"time": 1}, {"time": 2, "cpu": 0.1}, {"time": 3, "cpu": null}]);
    let script = Script::new(&json!([])).on("GET /nodes/node-a/rrddata", data(&points));
    let upstream = Upstream::start(script).await;
    let ask = async |timeframe: &str| {
        let arguments = json!({"node": "node-a", "timeframe": timeframe});
        upstream.client.read("lab", "GET /nodes/{node}/rrddata", arguments).await
    };
    let rows = ask("hour").await.unwrap()["items"].clone();
    assert!(rows[0].get("cpu").is_none() && rows[2].get("cpu").is_none_or(serde_json::Value::is_null), "{rows}");
    assert_eq!(rows[1]["cpu"], 0.1);
    let sent = upstream.sent().len();
    assert_eq!(ask("soon").await.unwrap_err().code, "invalid_arguments");
    assert_eq!(upstream.sent().len(), sent);
}

/// C086: whatever separates tags, and in whatever case, a protecting tag protects.
#[tokio::test]
async fn protecting_tags_however_they_are_written() {
    let guest = |vmid: u32, tags: &str| json!({"type": "qemu", "id": format!("qemu/{vmid}"), "vmid": vmid, "node": "node-a", "status": "stopped", "name": "x", "tags": tags});
    let resources = json!([
        guest(101, "prod;Protected"),
        guest(102, "prod,protected"),
        guest(103, "prod protected"),
        guest(104, "unprotected"),
        guest(105, ""),
    ]);
    let upstream = Upstream::start(Script::new(&resources)).await;
    let guests = upstream.client.tool("list_guests", json!({"fields": ["vmid", "protected"]})).await.unwrap();
    let protected: Vec<&serde_json::Value> =
        guests["items"].as_array().unwrap().iter().map(|guest| &guest["protected"]).collect();
    assert_eq!(protected[..3], [&json!(true), &json!(true), &json!(true)]);
    assert!(protected[3..].iter().all(|value| **value != json!(true)), "{guests}");
    let tagged = upstream.client.tool("list_guests", json!({"tag": "prod"})).await.unwrap();
    assert_eq!(tagged["total"], 3, "{tagged}");
}

/// C093: a shared storage comes once for each node; each row says which node and that it is shared.
#[tokio::test]
async fn shared_storage_is_marked() {
    let storages = json!([
        {"storage": "nfs", "type": "nfs", "content": "backup", "shared": 1, "total": "100"},
        {"storage": "local", "type": "dir", "content": "iso", "shared": 0, "total": 50},
    ]);
    let script = Script::new(&json!([]))
        .on("GET /nodes/node-a/storage", data(&storages))
        .on("GET /nodes/node-b/storage", data(&storages));
    let upstream = Upstream::start(script).await;
    let answer = upstream.client.tool("get_storage", json!({"cluster": "lab", "node": "*"})).await.unwrap();
    let rows = answer["items"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["shared"], row["storage"] == "nfs", "{row}");
        assert!(row["node"] == "node-a" || row["node"] == "node-b", "{row}");
    }
}

/// C098: whether a backup is protected against removal is shown.
#[tokio::test]
async fn protected_backups_are_shown() {
    let content = json!([
        {"volid": "nas:backup/vzdump-qemu-100-2026_11_29-02_00_00.vma.zst", "content": "backup", "format": "vma.zst", "vmid": "100", "size": 1, "ctime": 1, "protected": 1},
        {"volid": "nas:backup/vzdump-qemu-100-2026_11_30-02_00_00.vma.zst", "content": "backup", "format": "vma.zst", "vmid": 100, "size": 1, "ctime": 2},
    ]);
    let script = Script::new(&json!([])).on("GET /nodes/node-a/storage/nas/content", data(&content));
    let upstream = Upstream::start(script).await;
    let arguments = json!({"cluster": "lab", "node": "node-a", "storage": "nas"});
    let backups = upstream.client.tool("list_backups", arguments).await.unwrap();
    assert_eq!(backups["items"][0]["protected"], true, "{backups}");
    assert_ne!(backups["items"][1]["protected"], true, "{backups}");
}
