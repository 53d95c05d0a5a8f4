//! C148: what the audit log holds of a write, before it is sent and after it has ended; without that nothing is sent.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lab::FrontOptions;
use pvegate::audit::Audit;
use serde_json::{Value, json};
use tests::site::{CLUSTER, Site, quick};

use super::START;

/// A place that can be made to take no more.
#[derive(Clone, Default)]
struct Place {
    full: Arc<AtomicBool>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl io::Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Place {
    async fn site(&self) -> Site {
        let audit = Some(Audit::writer(Box::new(self.clone())));
        Site::low_with(quick(), FrontOptions { audit, ..FrontOptions::default() }).await
    }

    fn lines(&self, event: &str) -> Vec<Value> {
        let written = self.written.lock().unwrap();
        let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()).filter(|line| line["event"] == event).collect()
    }
}

#[tokio::test]
async fn a_write_leaves_a_line_before_and_one_after() {
    let place = Place::default();
    let site = place.site().await;
    let answer = site.client.tool("start_vm", json!({"cluster": CLUSTER, "vmid": 118})).await.unwrap();
    let lines = (place.lines("intent"), place.lines("outcome"));
    let ([intent], [outcome]) = (lines.0.as_slice(), lines.1.as_slice()) else { panic!("{lines:#?}") };
    for line in [intent, outcome] {
        for (key, value) in [
            ("principal", json!("operator")),
            ("actor", json!("agent")),
            ("owner", json!("ada")),
            ("tool", json!("start_vm")),
            ("cluster", json!(CLUSTER)),
            ("operation", json!(START)),
            ("tier", json!("low")),
            ("target", json!({"vmid": 118})),
            ("change_id", answer["change_id"].clone()),
        ] {
            assert_eq!(line[key], value, "{key}: {line:#}");
        }
        assert!(line["request_id"].is_string() && line["asserted"]["verified"] == false, "{line:#}");
    }
    assert_eq!((&outcome["outcome"], &outcome["upid"]), (&json!("ok"), &answer["upid"]), "{outcome:#}");
    assert!(outcome["duration_ms"].is_u64() && intent["outcome"].is_null(), "{intent:#} {outcome:#}");
    let call = place.lines("call").pop().unwrap();
    assert_eq!((&call["change_id"], &call["upid"]), (&answer["change_id"], &answer["upid"]), "{call:#}");
    // A refusal leaves its line too.
    let stop = json!({"cluster": CLUSTER, "vmid": 107});
    let refused = site.client.tool("stop_vm", stop).await.unwrap_err();
    let line = place.lines("refused").pop().unwrap();
    assert_eq!((&line["outcome"], &line["target"]["vmid"]), (&json!(refused.code), &json!(107)), "{line:#}");
}

#[tokio::test]
async fn without_a_trail_nothing_is_sent() {
    let place = Place::default();
    let site = place.site().await;
    place.full.store(true, Ordering::SeqCst);
    let start = json!({"cluster": CLUSTER, "vmid": 118});
    for _ in 0..2 {
        let refused = site.client.tool("start_vm", start.clone()).await.unwrap_err();
        assert_eq!(refused.code, "no_audit", "{refused:?}");
    }
    assert!(site.writes().is_empty());
    assert!(site.client.tool("get_guest", start.clone()).await.is_ok(), "reads go on");
    // With room again the next line is written, and what acts may act.
    place.full.store(false, Ordering::SeqCst);
    site.client.tool("get_guest", start.clone()).await.unwrap();
    site.client.tool("start_vm", start).await.unwrap();
    assert_eq!(site.writes().len(), 1);
}
