//! A backup takes a list of guests: no way of writing one reaches a guest that is not granted.

use serde_json::{Value, json};
use tests::site::Site;

use super::{BACKUP, guests, run, with};

#[tokio::test]
async fn of_guests_in_a_backup() {
    let keys = with(guests(&["vmid:112"]), json!({"storages": ["nas"], "nodes": ["*"]}));
    let (site, [client]) = Site::granting([keys]).await;
    let mut sent = 0;
    for list in [
        json!("112 100"),
        json!("112,100"),
        json!("112;100"),
        json!("112\u{0}100"),
        json!("112\n100"),
        json!("112\t100"),
        json!("100"),
        json!(100),
        json!("100,112"),
        json!(",112"),
        json!("112,"),
        json!(" 112"),
        json!("112 "),
        json!("112,112"),
        json!("112,,100"),
        json!("0112"),
        json!("112.0"),
        json!("+112"),
        json!("1e2"),
        json!("112-100"),
        json!("\u{ff11}\u{ff10}\u{ff10}"),
        json!([112, 100]),
        json!(["112", "100"]),
        json!([112, 112]),
        json!(["112,100"]),
        json!([[100]]),
        json!({"vmid": 100}),
        json!(""),
        json!([]),
        Value::Null,
        json!(true),
        json!("all"),
        json!("*"),
        json!("112/../100"),
        json!("112&vmid=100"),
        json!("112%2C100"),
        json!("112%00100"),
        json!([112]),
        json!(112),
    ] {
        site.lab.clear_journal();
        let answer = run(&client, BACKUP, &json!({"vmid": &list, "storage": "nas"})).await;
        for write in site.writes() {
            assert_eq!(write.params["vmid"], "112", "{list}: {write:?}");
            sent += 1;
        }
        if let Err(refused) = answer {
            let code = refused.code.as_str();
            assert!(["invalid_arguments", "not_found", "needs_a_plan"].contains(&code), "{list}: {refused:?}");
            assert!(site.writes().is_empty(), "{list}");
        }
    }
    assert!(sent >= 2, "what is granted is sent: {sent}");
    // And no other way to more guests.
    for more in ["all", "pool", "exclude", "node", "exclude-path", "job-id", "stdout"] {
        site.lab.clear_journal();
        let refused = run(&client, BACKUP, &json!({"vmid": 112, "storage": "nas", more: "1"})).await.unwrap_err();
        assert!(["needs_a_plan", "invalid_arguments"].contains(&refused.code.as_str()), "{more}: {refused:?}");
        assert!(site.writes().is_empty(), "{more}");
    }
}
