//! Recordings of genuine PVE, as their files tell them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::question::Question;

/// A request and what PVE answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    pub question: Question,
    pub response: Value,
}

impl Recording {
    /// What `data` of the answer was.
    pub fn data(&self) -> &Value {
        &self.response["json"]["data"]
    }

    /// Whether it reads something, and did.
    pub fn shows(&self) -> bool {
        self.question.method() == "GET" && self.question.status == 200
    }

    /// Whether it is a write that was accepted, and whose task did not fail.
    pub fn wrote(&self) -> bool {
        matches!(self.question.method(), "POST" | "PUT" | "DELETE") && self.question.went_well()
    }

    /// Whether it is a write that got as far as the work: what failed there may have changed something all the same.
    pub fn tried(&self) -> bool {
        matches!(self.question.method(), "POST" | "PUT" | "DELETE") && matches!(self.question.status, 200 | 500)
    }
}

/// Where the recordings are, if there are any.
pub fn folder() -> Option<PathBuf> {
    let folder = match std::env::var_os("PVEGATE_FIXTURES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"),
    };
    folder.is_dir().then_some(folder)
}

/// All recordings in the order of recording.
pub fn load(folder: &Path) -> Vec<Recording> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).expect("the folder is read") {
        let path = file.expect("the folder is read").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let area = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a file of recordings is read");
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{area}: {error}"));
            all.push(recording(&area, line));
        }
    }
    all.sort_by_key(|recording| recording.question.seq);
    let ends: Vec<End> = all.iter().map(|recording| end(&all, recording)).collect();
    for (recording, end) in all.iter_mut().zip(ends) {
        (recording.question.failure, recording.question.begun) = end;
    }
    all
}

fn recording(area: &str, mut line: Value) -> Recording {
    let response = line["response"].take();
    let status = response["status"].as_u64().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let message = text(&response["json"]["message"]).or_else(|| text(&response["reason"])).unwrap_or_default();
    // The monitor refuses in what it answers.
    let monitor = text(&response["json"]["data"]).filter(|data| data.starts_with("ERROR:"));
    let refusal = if status == 200 { monitor.unwrap_or_default() } else { message };
    let question = Question {
        area: area.to_owned(),
        seq: line["seq"].as_u64().unwrap_or_default(),
        name: line["name"].as_str().unwrap_or_default().to_owned(),
        limited: line["source"].as_str().is_some_and(|source| source.contains("limited")),
        request: line["request"].take(),
        status,
        refusal,
        errors: response["json"]["errors"].clone(),
        early: response["json"]["data"]["status"] == "running",
        ..Question::default()
    };
    Recording { question, response }
}

/// How a task ended where that was not well, and its type.
type End = (Option<String>, Option<String>);

fn end(all: &[Recording], recording: &Recording) -> End {
    let begun = [recording.data(), &recording.data()["upid"]].into_iter().find_map(Value::as_str);
    let Some(upid) = begun.filter(|upid| upid.starts_with("UPID:")) else { return (None, None) };
    let about = |other: &&Recording| other.question.plain_path().contains(upid);
    let exit = all.iter().filter(about).find_map(|other| other.data()["exitstatus"].as_str());
    let kind = upid.split(':').nth(5).map(str::to_owned);
    (exit.filter(|status| *status != "OK").map(str::to_owned), kind)
}

/// What reads answered in the state that most recordings start from.
pub fn baseline(folder: &Path) -> Vec<Recording> {
    let Ok(text) = std::fs::read_to_string(folder.join("baseline-state.json")) else { return Vec::new() };
    let reads: Value = serde_json::from_str(&text).expect("the baseline is JSON");
    let reads = reads.as_object().into_iter().flatten().filter(|(path, _)| path.starts_with('/'));
    reads
        .map(|(path, data)| {
            recording(
                "baseline",
                serde_json::json!({
                    "seq": 0, "name": format!("baseline {path}"), "source": "genuine",
                    "request": {"method": "GET", "url": format!("/api2/json{path}"), "auth": "root"},
                    "response": {"status": 200, "reason": "OK", "json": {"data": data}},
                }),
            )
        })
        .collect()
}

/// The areas, each once.
pub fn areas(all: &[Recording]) -> Vec<&str> {
    let mut areas: Vec<&str> = all.iter().map(|recording| recording.question.area.as_str()).collect();
    areas.sort_unstable();
    areas.dedup();
    areas
}
