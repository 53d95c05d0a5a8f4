//! Where recordings are replayed: a lab, and what is known so far of the tasks that began in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lab::{Arrange, Lab};
use serde_json::Value;

use crate::arrange::{self, Way};
use crate::compare;
use crate::known::Known;
use crate::question::Question;
use crate::raw;
use crate::recording::Recording;
use crate::show;
use crate::wire::{self, Answer};

const ROOT: &str = "root@pam!lab";
/// How often a task is asked whether it ended.
const ASKED: u32 = 400;
/// How often before the next recording.
const SETTLED: u32 = 25;

/// How a recording came to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// From what else is known.
    Known,
    /// Only after its own answer told the lab its state.
    Itself,
}

/// A lab on which one area is replayed.
pub struct Stage<'a> {
    pub lab: &'a Lab,
    /// What is known beside the recording that is replayed.
    pub known: Known<'a>,
    all: &'a [Recording],
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
    pub fn new(lab: &'a Lab, all: &'a [Recording], known: Known<'a>) -> Self {
        Self { lab, known, all, tasks: BTreeMap::new(), renamed: Vec::new(), done: BTreeSet::new(), ticket: None }
    }

    /// Brings the lab into a state that the recording can have been made in, sends its request and compares the answer;
    /// each such state in turn. Only where none fits, the recording tells its state by itself.
    pub async fn replay(&mut self, recording: &'a Recording) -> Result<Match, String> {
        let origin = match recording.question.of_task() {
            Some(origin) => {
                let found = self.all.iter().find(|other| other.question.name == origin);
                Some(found.ok_or("what began the task is not recorded")?)
            }
            None => None,
        };
        let question = &origin.unwrap_or(recording).question;
        self.known = self.known.without(&question.name);
        let mut first: Option<String> = None;
        for way in arrange::ways(question, self.known) {
            match self.attempt(recording, origin, &way).await {
                Ok(()) => return Ok(Match::Known),
                Err(difference) => first = first.or(Some(difference)),
            }
        }
        let first = first.unwrap_or_default();
        if show::by_itself(self, recording).await {
            let answer = self.perform(recording).await?;
            compare::compare(recording, &answer)?;
            let Question { area, seq, name, .. } = &recording.question;
            println!("told by itself: {area} {seq} {name}: else {first}\n");
            return Ok(Match::Itself);
        }
        Err(first)
    }

    async fn attempt(
        &mut self,
        recording: &'a Recording,
        origin: Option<&'a Recording>,
        way: &Way<'a>,
    ) -> Result<(), String> {
        if let Some(origin) = origin {
            if *way == Way::default() && self.done.contains(origin.question.name.as_str()) {
                let answer = self.perform(recording).await?;
                return compare::compare(recording, &answer);
            }
            // What begins tasks of the other areas starts from the baseline too.
            self.lab.arrange(Arrange::Baseline);
            arrange::before(self, &origin.question, way).await;
            self.perform(origin).await?;
        } else {
            arrange::before(self, &recording.question, way).await;
        }
        let answer = self.perform(recording).await?;
        compare::compare(recording, &answer)
    }

    /// Sends the request of a recording.
    async fn perform(&mut self, recording: &'a Recording) -> Result<Answer, String> {
        let question = &recording.question;
        let mut url = question.url().to_owned();
        for (recorded, own) in &self.tasks {
            url = url.replace(recorded, own).replace(&encoded(recorded), &encoded(own));
        }
        for (recorded, own) in std::mem::take(&mut self.renamed) {
            url = url.replace(&recorded, &own);
        }
        if question.of_task().is_some() && !question.early {
            self.finished(&url).await;
        }
        let authorization = self.authorization(question);
        let request = raw::request(question, &url, authorization.as_deref(), self.ticket.as_ref())
            .ok_or("nothing tells what was sent")?;
        let answer = wire::send(self.lab, &request).await;
        self.done.insert(&question.name);
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

    /// Sends the request of another recording as root, and waits for its task.
    pub async fn repeat(&self, other: &Recording) -> Value {
        let question = &other.question;
        let Some(token) = self.lab.token(ROOT) else { return Value::Null };
        let authorization = format!("PVEAPIToken={token}");
        let Some(request) = raw::request(question, question.url(), Some(&authorization), None) else {
            return Value::Null;
        };
        let answer = wire::send(self.lab, &request).await;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if let Some(upid) = body["data"].as_str().filter(|data| data.starts_with("UPID:")) {
            self.finished(&format!("/api2/json/nodes/pve1/tasks/{upid}/status")).await;
        }
        body
    }

    /// The header's value: of a token by its short name, or as it was sent. Secrets were zeroed when recorded: where
    /// the login succeeded the real one is put back.
    fn authorization(&self, question: &Question) -> Option<String> {
        let sent = match question.request["auth"].as_str() {
            Some(sent) => sent,
            // Sent as raw bytes, always as root.
            None if question.request["method"].is_null() => "root",
            None => return None,
        };
        let id = match sent {
            "root" => ROOT,
            "full" => "automation@pve!full",
            "ro" => "auditor@pve!ro",
            "sep" => "automation@pve!sep",
            "none" => "nobody@pve!none",
            "t1" => "vmadmin@pve!t1",
            literal if question.status == 401 => return Some(literal.to_owned()),
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

pub fn encoded(upid: &str) -> String {
    upid.replace(':', "%3A").replace('@', "%40").replace('!', "%21")
}
