//! What was asked, and no more of the answer than whether it was given.
//!
//! Whatever arranges the lab before a recording sees its question alone: never the data that the lab's answer is
//! compared with. A refusal keeps its words, and a task that failed keeps how it ended: they tell what PVE missed, such
//! as that a guest was locked, and the lab has to refuse by itself.

use serde_json::Value;

/// A request, how it ended, and the words of a refusal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// The file it is from.
    pub area: String,
    pub seq: u64,
    pub name: String,
    /// Something was missing on the recording host: status, keys and form count, texts and values do not.
    pub limited: bool,
    pub request: Value,
    pub status: u64,
    /// Why it was refused; empty where it was not.
    pub refusal: String,
    /// What was wrong with which parameter.
    pub errors: Value,
    /// How the task ended that it began, where that was not well.
    pub failure: Option<String>,
    /// The type of the task that it began.
    pub begun: Option<String>,
    /// Whether the task that it asks about still ran.
    pub early: bool,
}

impl Question {
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

    /// The same with all escapes resolved.
    pub fn plain_path(&self) -> String {
        decoded(self.path())
    }

    /// The steps of the path.
    pub fn steps(&self) -> Vec<&str> {
        self.path().split('/').filter(|step| !step.is_empty()).collect()
    }

    /// A parameter of the query.
    pub fn queried(&self, name: &str) -> Option<String> {
        let (_, query) = self.url().split_once('?')?;
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        Some(decoded(value))
    }

    /// Everything that a refusal says: its message and what is wrong with which parameter.
    pub fn complaint(&self) -> String {
        format!("{}{}", self.refusal, self.errors)
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

    /// The fields that were sent.
    pub fn fields(&self) -> &Value {
        if self.request["form"].is_null() { &self.request["json"] } else { &self.request["form"] }
    }

    /// The recording whose task this one is about.
    pub fn of_task(&self) -> Option<&str> {
        self.name.strip_suffix("__task_status").or_else(|| self.name.strip_suffix("__task_log"))
    }

    /// Whether it was refused, or the task that it began failed, in words that hold these.
    pub fn says(&self, words: &str) -> bool {
        self.words().any(|text| text.contains(words))
    }

    /// What stands between two texts in the words of a refusal or a failure.
    pub fn named(&self, before: &str, after: &str) -> Vec<String> {
        let parts = self.words().flat_map(|text| text.split(before).skip(1));
        parts.filter_map(|part| part.split_once(after)).map(|(name, _)| name.to_owned()).collect()
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        let errors = self.errors.as_object().into_iter().flatten().filter_map(|(_, text)| text.as_str());
        std::iter::once(self.refusal.as_str()).chain(errors).chain(self.failure.as_deref())
    }

    pub fn went_well(&self) -> bool {
        self.status == 200 && self.refusal.is_empty() && self.failure.is_none()
    }
}

pub fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}
