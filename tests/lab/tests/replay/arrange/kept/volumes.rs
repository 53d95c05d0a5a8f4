//! Volumes that requests name, and programs that their tasks did not find.

use lab::Arrange;
use serde_json::{Value, json};

use crate::question::Question;
use crate::stage::Stage;

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
pub fn before(stage: &mut Stage<'_>, question: &Question, path: &str, missing: bool) {
    if !path.contains("/content/") {
        return;
    }
    if missing || question.says("does not exist") {
        stage.lab.arrange(Arrange::Gone(path.to_owned()));
        return;
    }
    let protected = u8::from(question.says("protected volume"));
    stage.lab.arrange(Arrange::Shows { read: path.to_owned(), data: json!({"protected": protected}) });
}

/// A backup that is restored was there, of the guest that its name tells.
pub async fn sources(stage: &mut Stage<'_>, question: &Question) {
    for name in ["ostemplate", "archive", "volume"] {
        let named = question.given(name).map(str::to_owned).or_else(|| question.queried(name));
        if let Some(id) = named.filter(|id| id.contains(":backup/"))
            && question.status == 200
            && !question.says("does not exist")
        {
            let storage = id.split(':').next().unwrap_or_default();
            let read = format!("/nodes/pve1/storage/{storage}/content/{id}");
            // Made anew, so that it is of the guest as it is now.
            stage.lab.arrange(Arrange::Gone(read.clone()));
            stage.lab.arrange(Arrange::Shows { read, data: Value::Object(serde_json::Map::new()) });
        }
    }
}

/// Programs are there, unless the task says that they were not.
pub fn programs(stage: &mut Stage<'_>, question: &Question) {
    let name = "sendmail";
    let there = !question.says(&format!("unable to find command '{name}'"));
    stage.lab.arrange(Arrange::Program { name: name.to_owned(), there });
}
