//! Themes C, G, H and L: refusals of PVE that a caller has to be able to act on.

use serde_json::{Value, json};
use tests::client::Refused;
use tests::upstream::{Bytes, Script, Upstream, answer};

/// What a read of one guest's configuration says when PVE answers so.
async fn told(bytes: Bytes) -> Refused {
    let resources = json!([{"type": "qemu", "id": "qemu/100", "vmid": 100, "node": "node-a", "status": "running"}]);
    let upstream = Upstream::start(Script::new(&resources).on("GET /nodes/node-a/qemu/100/config", bytes)).await;
    upstream.client.read("lab", "GET /nodes/{node}/qemu/{vmid}/config", json!({"vmid": 100})).await.unwrap_err()
}

/// C023, C085: the text is in the status line alone, in the message, or by argument; it is read from each.
#[tokio::test]
async fn the_text_is_found_wherever_it_stands() {
    let status = "403 Permission check failed (/sdn/zones/localnetwork/vmbr0, SDN.Use)";
    let bare = told(answer(status, r#"{"data":null}"#)).await;
    assert_eq!(bare.code, "forbidden");
    assert!(bare.message.contains("SDN.Use") && bare.message.contains("/sdn/zones/localnetwork/vmbr0"), "{bare:?}");
    assert!(bare.next.contains("SDN.Use") && bare.next.contains("/sdn/zones/localnetwork/vmbr0"), "{bare:?}");

    let body = r#"{"data":null,"message":"unable to read VM 118 - it is odd\nsecond line\n"}"#;
    let message = told(answer("500 unable to read VM 118 - it is odd", body)).await;
    assert!(message.message.contains("it is odd; second line"), "{message:?}");
    let body =
        r#"{"data":null,"errors":{"vmid":"VM 218 already exists"},"message":"Parameter verification failed.\n"}"#;
    let by_name = told(answer("400 Parameter verification failed.", body)).await;
    assert_eq!(by_name.code, "exists");
    assert!(by_name.message.contains("vmid: VM 218 already exists"), "{by_name:?}");
}

/// C021: what only root@pam itself may do is said to be out of reach of every token.
#[tokio::test]
async fn what_no_token_may_do_is_said_so() {
    for status in [
        "403 Permission check failed (user != root@pam)",
        "403 Permission check failed (changing feature flags for privileged container is only allowed for root@pam)",
        "500 only root can set 'args' config",
    ] {
        let refused = told(answer(status, r#"{"data":null}"#)).await;
        assert_eq!(refused.code, "forbidden", "{status}");
        assert!(refused.message.contains("lets no API token"), "{refused:?}");
    }
}

/// C067, C103, and the kinds that nearly every failure hides behind a 500.
#[tokio::test]
async fn a_500_has_a_kind() {
    for (text, code, word) in [
        ("VM is locked (backup)", "locked", "backup"),
        ("can't lock file '/var/lock/qemu-server/lock-200.conf' - got timeout", "locked", "lock"),
        ("QEMU guest agent is not running", "agent", "agent"),
        ("No QEMU guest agent configured", "agent", "agent"),
        ("cluster not ready - no quorum?", "no_quorum", "quorum"),
        ("storage 'nas' is not online", "unavailable", "nas"),
        ("unable to create image: No space left on device", "no_space", "space"),
        ("VM 100 not running", "not_running", "100"),
        ("can't remove VM 100 - protection mode enabled", "protected", "protection"),
        // C098: what a backup that is kept answers to whoever would remove it.
        ("cannot remove protected volume 'vzdump-qemu-100-2026_11_29-02_00_00.vma.zst' on 'nas'", "protected", "nas"),
        ("checksum mismatch (file change by other user?)", "conflict", "checksum"),
        ("cannot index groups: ha groups have been migrated to rules", "unavailable", "rules"),
        ("delete pool failed: pool 'p1' is not empty (contains pool 'p1/sub')", "in_use", "not empty"),
        ("VM 200 is running - destroy failed", "running", "200"),
        ("create user failed: user 'bob@pve' already exists", "exists", "bob"),
        ("no options specified", "invalid", "no options"),
        ("something that nobody has seen before", "other", "nobody has seen"),
    ] {
        let body = json!({"data": null, "message": format!("{text}\n")}).to_string();
        let refused = told(answer(&format!("500 {text}"), &body)).await;
        assert_eq!(refused.code, code, "{text}");
        assert!(refused.message.contains(word) && !refused.next.is_empty(), "{refused:?}");
        // The same from a release that has the text in its status line alone.
        let old = told(answer(&format!("500 {text}"), r#"{"data":null}"#)).await;
        assert_eq!((old.code.as_str(), old.message), (code, refused.message));
    }
}

/// The kinds that the status tells.
#[tokio::test]
async fn a_status_has_a_kind() {
    for (status, code, word) in [
        ("401 Authentication failed!", "unauthorized", "API token"),
        ("501 Method 'GET /nodes/node-a/qemu/100/config' not implemented", "not_implemented", "release"),
        ("595 Connection refused", "node_down", "node-a"),
        ("595 Connection timed out", "timeout", "node-a"),
        ("596 Connection timed out", "timeout", "node-a"),
        ("599 Too many redirections", "node_down", "node-a"),
        ("503 Service Unavailable", "busy", "busy"),
        ("301 Moved Permanently", "not_json", "redirect"),
    ] {
        let refused = told(answer(status, "")).await;
        assert_eq!(refused.code, code, "{status}: {refused:?}");
        assert!(refused.message.contains(word) && refused.message.contains("lab"), "{refused:?}");
    }
    let large = told(answer("200 OK", &json!({"data": "x".repeat(9 << 20)}).to_string())).await;
    assert_eq!(large.code, "too_large");
    assert_eq!(told(Vec::new()).await.code, "unreachable");
}

/// C146: PVE's words never carry the server's own credential or a password back.
#[tokio::test]
async fn secrets_in_error_texts() {
    let body = json!({"data": null, "message": "login failed: password=hunter2hunter2 PVEAPIToken=svc@pve!tok=11111111-2222-3333-4444-555555555555\n"});
    let refused = told(answer("500 login failed", &body.to_string())).await;
    let text = refused.text();
    assert!(!text.contains("hunter2") && !text.contains("11111111-2222"), "{text}");
}

/// C105, C107: running a program inside a guest is not offered, whoever asks.
#[tokio::test]
async fn programs_in_guests_are_not_offered() {
    let upstream = Upstream::start(Script::new(&json!([]))).await;
    for operation in ["POST /nodes/{node}/qemu/{vmid}/agent/exec", "GET /nodes/{node}/qemu/{vmid}/agent/exec-status"] {
        let described = upstream.client.tool("describe_operation", json!({"operation": operation})).await.unwrap();
        let offered = described["offered"].as_str().unwrap();
        assert!(offered.starts_with("never") || offered.starts_with("not here"), "{operation}: {offered}");
        let refused = upstream.client.read("lab", operation, json!({"vmid": 100, "pid": 1})).await.unwrap_err();
        assert!(["not_offered", "not_a_read"].contains(&refused.code.as_str()), "{refused:?}");
    }
    assert!(upstream.sent().is_empty());
}

/// C078: values that wait for a restart stand beside those that are in force.
#[tokio::test]
async fn pending_values_are_told_from_present_ones() {
    let resources = json!([{"type": "qemu", "id": "qemu/100", "vmid": 100, "node": "node-a", "status": "running"}]);
    let pending =
        json!([{"key": "memory", "value": 2048, "pending": 4096}, {"key": "net1", "value": "virtio", "delete": 1}]);
    let script = Script::new(&resources).on("GET /nodes/node-a/qemu/100/pending", tests::upstream::data(&pending));
    let upstream = Upstream::start(script).await;
    let operation = "GET /nodes/{node}/qemu/{vmid}/pending";
    let answer = upstream.client.read("lab", operation, json!({"vmid": 100})).await.unwrap();
    let rows = answer["items"].as_array().unwrap();
    let memory = rows.iter().find(|row| row["key"] == "memory").unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    assert_eq!((text(&memory["value"]), text(&memory["pending"])), ("2048".to_owned(), "4096".to_owned()));
    assert!(rows.iter().any(|row| row["key"] == "net1" && row["delete"] == 1), "{rows:?}");
}
