//! What runs and lies inside a guest.

use lab::Arrange;
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
    let script = if data["signal"].is_number() {
        format!("kill -{} $$", data["signal"])
    } else if data["exited"] == 1 {
        format!("{}{} exit {}", line("out-data", ""), line("err-data", " >&2"), data["exitcode"])
    } else {
        "sleep 60".to_owned()
    };
    let command = json!([["command", "sh"], ["command", "-c"], ["command", script]]);
    let began: Value = stage.call("POST", &format!("{exec}/exec"), &command).await;
    stage.rename(&format!("pid={pid}"), &format!("pid={}", began["data"]["pid"]));
    true
}

/// A file with what was read of it; false where none was read.
pub fn file(stage: &Stage<'_>, vmid: u32, recording: &Recording) -> bool {
    let (Some(path), Some(content)) = (recording.question.queried("file"), recording.data()["content"].as_str()) else {
        return false;
    };
    let content = content.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
    stage.lab.arrange(Arrange::File { vmid, path, content });
    true
}
