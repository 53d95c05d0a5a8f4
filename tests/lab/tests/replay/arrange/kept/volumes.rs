//! Volumes that requests name, and programs that their tasks did not find.

use lab::Arrange;
use serde_json::{Value, json};

use crate::recording::Recording;
use crate::stage::Stage;

/// What the task that a recording began ended with, and its log, as far as they are recorded.
fn task(stage: &Stage<'_>, recording: &Recording) -> String {
    let of = |end: &str| stage.all.iter().find(|other| other.name == format!("{}{end}", recording.name));
    let status = of("__task_status").map(|status| status.data()["exitstatus"].as_str().unwrap_or_default().to_owned());
    let log = of("__task_log").map(|log| log.data().to_string());
    [status, log].into_iter().flatten().collect()
}

/// Waits for tasks that remove or copy, so that none works on what is arranged next.
pub async fn settled(stage: &mut Stage<'_>) {
    for _ in 0..200 {
        let active = stage.ask("GET", "/api2/json/nodes/pve1/tasks?source=active", &Value::Null).await;
        let busy = active["data"].as_array().is_some_and(|tasks| {
            tasks.iter().any(|task| matches!(task["type"].as_str(), Some("imgdel" | "imgcopy" | "download")))
        });
        if !busy {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// The volume of a path was there, protected or not, as the end of the task tells.
pub fn before(stage: &mut Stage<'_>, recording: &Recording, path: &str) {
    if !path.contains("/content/") {
        return;
    }
    let told = task(stage, recording);
    if told.contains("does not exist") {
        stage.lab.arrange(Arrange::Gone(path.to_owned()));
        return;
    }
    let protected = u8::from(told.contains("protected volume"));
    stage.lab.arrange(Arrange::Shows { read: path.to_owned(), data: json!({"protected": protected}) });
}

/// A backup that is restored was there.
pub fn sources(stage: &mut Stage<'_>, recording: &Recording) {
    for name in ["ostemplate", "archive"] {
        if let Some(id) = recording.given(name).filter(|id| id.contains(":backup/"))
            && recording.status() == 200
            && !task(stage, recording).contains("does not exist")
        {
            let storage = id.split(':').next().unwrap_or_default();
            let read = format!("/nodes/pve1/storage/{storage}/content/{id}");
            stage.lab.arrange(Arrange::Shows { read, data: Value::Object(serde_json::Map::new()) });
        }
    }
}

/// Programs are there, unless the task says that they were not.
pub fn programs(stage: &mut Stage<'_>, recording: &Recording) {
    let told = task(stage, recording);
    let name = "sendmail";
    let there = !told.contains(&format!("unable to find command '{name}'"));
    stage.lab.arrange(Arrange::Program { name: name.to_owned(), there });
}
