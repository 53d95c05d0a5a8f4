//! A recording of genuine PVE, as its file tells it.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A request and what PVE answered.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file it is from.
    pub area: String,
    pub seq: u64,
    pub name: String,
    /// Something was missing on the recording host: status, keys and form count, texts and values do not.
    pub limited: bool,
    pub request: Value,
    pub response: Value,
}

impl Recording {
    pub fn status(&self) -> u64 {
        self.response["status"].as_u64().unwrap_or_default()
    }

    pub fn method(&self) -> &str {
        self.request["method"].as_str().unwrap_or_default()
    }

    pub fn url(&self) -> &str {
        self.request["url"].as_str().unwrap_or_default()
    }

    /// The path below `/api2/json`, without the query, as sent.
    pub fn path(&self) -> &str {
        let url = self.url().split('?').next().unwrap_or_default();
        url.strip_prefix("/api2/json").unwrap_or(url)
    }

    /// The steps of the path.
    pub fn steps(&self) -> Vec<&str> {
        self.path().split('/').filter(|step| !step.is_empty()).collect()
    }

    /// What `data` of the answer was.
    pub fn data(&self) -> &Value {
        &self.response["json"]["data"]
    }

    /// The answer's `message`, or its reason phrase.
    pub fn message(&self) -> &str {
        self.response["json"]["message"].as_str().or_else(|| self.response["reason"].as_str()).unwrap_or_default()
    }

    /// Everything that a refusal says: its message and what is wrong with which parameter.
    pub fn complaint(&self) -> String {
        format!("{}{}", self.message(), self.response["json"]["errors"])
    }

    /// A parameter of the form or the JSON body.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.request["form"][name].as_str().or_else(|| self.request["json"][name].as_str())
    }

    /// All values of a form's parameter, repeated or as a list.
    pub fn all_given(&self, name: &str) -> Vec<String> {
        let values: Vec<&Value> = match &self.request["form"] {
            Value::Object(fields) => fields.get(name).into_iter().collect(),
            Value::Array(pairs) => pairs.iter().filter(|pair| pair[0] == name).map(|pair| &pair[1]).collect(),
            _ => Vec::new(),
        };
        let texts = values.into_iter().flat_map(|value| match value {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            value => value.as_str().into_iter().collect::<Vec<_>>(),
        });
        texts.flat_map(|text| text.split([',', ';', ' '])).map(str::to_owned).collect()
    }

    /// The recording whose task this one is about.
    pub fn of_task(&self) -> Option<&str> {
        self.name.strip_suffix("__task_status").or_else(|| self.name.strip_suffix("__task_log"))
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
            let mut line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{area}: {error}"));
            all.push(Recording {
                area: area.clone(),
                seq: line["seq"].as_u64().unwrap_or_default(),
                name: line["name"].as_str().unwrap_or_default().to_owned(),
                limited: line["source"].as_str().is_some_and(|source| source.contains("limited")),
                request: line["request"].take(),
                response: line["response"].take(),
            });
        }
    }
    all.sort_by_key(|recording| recording.seq);
    all
}

/// The areas, each once.
pub fn areas(all: &[Recording]) -> Vec<&str> {
    let mut areas: Vec<&str> = all.iter().map(|recording| recording.area.as_str()).collect();
    areas.sort_unstable();
    areas.dedup();
    areas
}
