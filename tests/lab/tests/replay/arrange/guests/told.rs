//! What a recording tells in words: its own answer, and how the task ended that it began.

use crate::recording::Recording;

pub struct Told {
    text: String,
    /// How the task ended, where that was recorded.
    exit: Option<String>,
}

impl Told {
    pub fn of(all: &[Recording], recording: &Recording) -> Self {
        let mut text = recording.message().to_owned();
        for (_, error) in recording.response["json"]["errors"].as_object().into_iter().flatten() {
            text = text + "\n" + error.as_str().unwrap_or_default();
        }
        if let Some(shown) = recording.data().as_str().filter(|shown| shown.starts_with("ERROR:")) {
            text = text + "\n" + shown;
        }
        let mut exit = None;
        let named = |end: &str| all.iter().find(|other| other.name == format!("{}{end}", recording.name));
        if let Some(status) = named("__task_status") {
            exit = status.data()["exitstatus"].as_str().map(str::to_owned);
            text = text + "\n" + exit.as_deref().unwrap_or_default();
        }
        if let Some(log) = named("__task_log") {
            for line in log.data().as_array().into_iter().flatten() {
                text = text + "\n" + line["t"].as_str().unwrap_or_default();
            }
        }
        // The same task may have been looked at under a name of its own.
        if let Some(upid) = recording.data().as_str().filter(|data| data.starts_with("UPID:")) {
            let encoded = upid.replace(':', "%3A").replace('@', "%40").replace('!', "%21");
            for other in all.iter().filter(|other| other.url().contains(&encoded) || other.url().contains(upid)) {
                if let Some(status) = other.data()["exitstatus"].as_str() {
                    exit.get_or_insert_with(|| status.to_owned());
                    text = text + "\n" + status;
                }
            }
        }
        Self { text, exit }
    }

    pub fn says(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    /// What stands between two texts, wherever it does.
    pub fn missing(&self, before: &str, after: &str) -> Vec<String> {
        let parts = self.text.split(before).skip(1);
        parts.filter_map(|part| part.split_once(after)).map(|(name, _)| name.to_owned()).collect()
    }

    pub fn went_well(&self, recording: &Recording) -> bool {
        recording.status() == 200 && self.exit.as_deref().is_none_or(|exit| exit == "OK")
    }

    /// Whether the guest ran when the recording was made.
    pub fn runs(&self, recording: &Recording) -> bool {
        let steps = recording.steps();
        let rest = steps.get(4..).unwrap_or_default();
        let data = recording.data();
        if let Some(status) = data["status"].as_str() {
            return status == "running";
        }
        if self.says("not running\n")
            || self.says("not running") && !self.says("agent is not running") && !self.says("Agent is not running")
        {
            return false;
        }
        if self.says("is running") || self.says("already running") || self.says("hotplug problem") {
            return true;
        }
        let in_list = |key: &str| data.as_array().is_some_and(|rows| rows.iter().any(|row| row.get(key).is_some()));
        match rest {
            ["pending"] => in_list("pending") || in_list("delete"),
            ["agent", ..]
            | ["sendkey" | "vncproxy" | "termproxy" | "monitor"]
            | ["status", "reset" | "suspend" | "resume" | "reboot"] => true,
            ["snapshot"] if recording.method() == "GET" => {
                data.as_array().is_some_and(|rows| rows.iter().any(|row| row["running"] == 1))
            }
            ["status", "shutdown"] => recording.limited || self.says("got timeout") || self.says("interrupt"),
            ["config" | "snapshot" | "resize" | "clone" | "unlink" | "move_disk", ..] => recording.limited,
            _ => false,
        }
    }
}
