//! What runs and lies inside a guest.

use serde_json::{Value, json};

use crate::recording::Recording;
use crate::stage::Stage;

/// A process that said and ended as a read shows; false where it does not show one.
pub async fn process(stage: &mut Stage<'_>, recording: &Recording) -> bool {
    let question = &recording.question;
    let (Some(pid), Some((exec, _))) = (question.queried("pid"), question.path().rsplit_once("/exec-status")) else {
        return false;
    };
    let data = recording.data();
    let line = |key: &str, to: &str| match data[key].as_str() {
        Some(text) => format!("echo {}{to};", text.trim_end()),
        None => String::new(),
    };
    let script = if data["exited"] == 1 {
        format!("{}{} exit {}", line("out-data", ""), line("err-data", " >&2"), data["exitcode"])
    } else {
        "sleep 60".to_owned()
    };
    let command = json!([["command", "sh"], ["command", "-c"], ["command", script]]);
    let began: Value = stage.call("POST", &format!("{exec}/exec"), &command).await;
    stage.rename(&format!("pid={pid}"), &format!("pid={}", began["data"]["pid"]));
    true
}
