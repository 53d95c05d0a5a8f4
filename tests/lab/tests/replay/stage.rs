//! Where recordings are replayed: a lab, and what is known so far of the tasks that began in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lab::Lab;
use serde_json::Value;

use crate::arrange;
use crate::compare;
use crate::raw;
use crate::recording::Recording;
use crate::wire::{self, Answer};

const ROOT: &str = "root@pam!lab";
/// How often a task is asked whether it ended.
const ASKED: u32 = 400;
/// How often before the next recording.
const SETTLED: u32 = 25;

/// A lab on which one area is replayed.
pub struct Stage<'a> {
    pub lab: &'a Lab,
    pub all: &'a [Recording],
    /// Task ids of the lab by those that were recorded.
    tasks: BTreeMap<String, String>,
    /// Texts of the next request's URL that stand for others in the lab.
    renamed: Vec<(String, String)>,
    /// Names of what was replayed.
    done: BTreeSet<&'a str>,
    /// The ticket and its guard that stand for those that were recorded.
    ticket: Option<(String, String)>,
}

impl<'a> Stage<'a> {
    pub fn new(lab: &'a Lab, all: &'a [Recording]) -> Self {
        Self { lab, all, tasks: BTreeMap::new(), renamed: Vec::new(), done: BTreeSet::new(), ticket: None }
    }

    /// Brings the lab into the recording's state, sends its request and compares the answer.
    pub async fn replay(&mut self, recording: &'a Recording) -> Result<(), String> {
        if let Some(origin) = recording.of_task()
            && !self.done.contains(origin)
        {
            let all = self.all;
            let origin = all.iter().find(|other| other.name == origin).ok_or("what began the task is not recorded")?;
            // What begins tasks of the other areas starts from the baseline too.
            self.lab.arrange(lab::Arrange::Baseline);
            self.perform(origin).await?;
        }
        let answer = self.perform(recording).await?;
        compare::compare(recording, &answer)
    }

    async fn perform(&mut self, recording: &'a Recording) -> Result<Answer, String> {
        if recording.of_task().is_none() {
            arrange::before(self, recording).await;
        }
        let mut url = recording.url().to_owned();
        for (recorded, own) in &self.tasks {
            url = url.replace(recorded, own).replace(&encoded(recorded), &encoded(own));
        }
        for (recorded, own) in std::mem::take(&mut self.renamed) {
            url = url.replace(&recorded, &own);
        }
        if recording.of_task().is_some() && recording.data()["status"] != "running" {
            self.finished(&url).await;
        }
        let authorization = self.authorization(recording);
        let request = raw::request(recording, &url, authorization.as_deref(), self.ticket.as_ref())
            .ok_or("nothing tells what was sent")?;
        let answer = wire::send(self.lab, &request).await;
        self.done.insert(&recording.name);
        let began = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
        for (recorded, own) in [(recording.data(), &began["data"]), (&recording.data()["upid"], &began["data"]["upid"])]
        {
            if let (Some(recorded), Some(own)) = (recorded.as_str(), own.as_str())
                && recorded.starts_with("UPID:")
                && own.starts_with("UPID:")
            {
                self.tasks.insert(recorded.to_owned(), own.to_owned());
                self.settle(own).await;
            }
        }
        Ok(answer)
    }

    /// The header's value: of a token by its short name, or as it was sent. Secrets were zeroed when recorded: where
    /// the login succeeded the real one is put back.
    fn authorization(&self, recording: &Recording) -> Option<String> {
        let sent = match recording.request["auth"].as_str() {
            Some(sent) => sent,
            // Sent as raw bytes, always as root.
            None if recording.request["method"].is_null() => "root",
            None => return None,
        };
        let id = match sent {
            "root" => ROOT,
            "full" => "automation@pve!full",
            "ro" => "auditor@pve!ro",
            "sep" => "automation@pve!sep",
            "none" => "nobody@pve!none",
            "t1" => "vmadmin@pve!t1",
            literal if recording.status() == 401 => return Some(literal.to_owned()),
            literal => {
                let (scheme, credential) = literal.split_at(literal.find(['=', ' '])? + 1);
                let id = credential.split('=').next().unwrap_or_default();
                return Some(format!("{scheme}{}", self.lab.token(id)?));
            }
        };
        Some(format!("PVEAPIToken={}", self.lab.token(id)?))
    }

    /// Gives a task the time that most take, so that it does not meet what is arranged for the next recording.
    async fn settle(&self, upid: &str) {
        for _ in 0..SETTLED {
            let status =
                self.ask("GET", &format!("/api2/json/nodes/pve1/tasks/{}/status", encoded(upid)), &Value::Null).await;
            if status["data"]["status"] != "running" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits for the end of the task that a URL is about.
    async fn finished(&self, url: &str) {
        let Some((task, _)) = url.rsplit_once('/') else { return };
        for _ in 0..ASKED {
            let status = self.ask("GET", &format!("{task}/status"), &Value::Null).await;
            if status["data"]["status"] != "running" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A task of the lab that stands for one that was recorded.
    pub fn stand_in(&mut self, recorded: &str, own: &str) {
        self.tasks.insert(recorded.to_owned(), own.to_owned());
    }

    /// A text of the next request's URL that is another one in the lab.
    pub fn rename(&mut self, recorded: &str, own: &str) {
        self.renamed.push((recorded.to_owned(), own.to_owned()));
    }

    /// Gets a ticket to put in the place of one that was recorded.
    pub async fn log_in(&mut self, user: &str, password: &str) {
        let form = serde_json::json!({"username": user, "password": password});
        let answer = self.ask("POST", "/api2/json/access/ticket", &form).await;
        let text = |key: &str| answer["data"][key].as_str().unwrap_or_default().to_owned();
        self.ticket = Some((text("ticket"), text("CSRFPreventionToken")));
    }

    /// From now on a recorded task id stands for itself.
    pub fn forget(&mut self, upid: &str) {
        self.tasks.remove(upid);
    }

    /// Calls the lab as root and waits for the task that this may begin; the body of the answer.
    pub async fn call(&self, method: &str, path: &str, form: &Value) -> Value {
        let answer = self.ask(method, &format!("/api2/json{path}"), form).await;
        if let Some(upid) = answer["data"].as_str().filter(|data| data.starts_with("UPID:")) {
            self.finished(&format!("/api2/json/nodes/pve1/tasks/{upid}/status")).await;
        }
        answer
    }

    /// Calls the lab as root, without waiting for anything; the body of the answer.
    pub async fn ask(&self, method: &str, url: &str, form: &Value) -> Value {
        let token = self.lab.token(ROOT).unwrap_or_default();
        let body = raw::encode(form);
        let kind = if method == "GET" || method == "DELETE" {
            String::new()
        } else {
            format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n", body.len())
        };
        let token = if url.ends_with("/access/ticket") { String::new() } else { token };
        let request = format!(
            "{method} {url} HTTP/1.1\r\nHost: localhost\r\nAuthorization: PVEAPIToken={token}\r\n{kind}\r\n{body}"
        );
        let answer = wire::send(self.lab, request.as_bytes()).await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }
}

fn encoded(upid: &str) -> String {
    upid.replace(':', "%3A").replace('@', "%40").replace('!', "%21")
}
