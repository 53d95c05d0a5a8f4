//! Tasks: what a UPID names, its log, and how it ended.

use serde_json::{Map, Value, json};

use crate::access::Caller;

/// A task, running while it has no end.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) upid: String,
    pub(crate) node: String,
    pub(crate) pid: u32,
    pub(crate) pstart: u32,
    pub(crate) started: i64,
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) token: Option<String>,
    pub(crate) log: Vec<String>,
    /// When and how it ended.
    pub(crate) ended: Option<(i64, String)>,
}

impl Task {
    /// A task of which its id is all that is known.
    pub(crate) fn named(upid: &str) -> Option<Self> {
        let parts: Vec<&str> = upid.split(':').collect();
        let [_, node, pid, pstart, started, kind, id, owner, _] = parts.as_slice() else { return None };
        let (user, token) = owner.split_once('!').map_or((*owner, None), |(user, token)| (user, Some(token)));
        Some(Self {
            upid: upid.to_owned(),
            node: (*node).to_owned(),
            pid: u32::from_str_radix(pid, 16).ok()?,
            pstart: u32::from_str_radix(pstart, 16).ok()?,
            started: i64::from_str_radix(started, 16).ok()?,
            kind: (*kind).to_owned(),
            id: (*id).to_owned(),
            user: user.to_owned(),
            token: token.map(str::to_owned),
            log: Vec::new(),
            ended: None,
        })
    }

    pub(crate) fn belongs_to(&self, caller: &Caller) -> bool {
        self.user == caller.user
    }

    /// A row of `/cluster/tasks` and `/nodes/{node}/tasks`.
    pub(crate) fn row(&self) -> Map<String, Value> {
        let mut row = super::guest::object(json!({
            "upid": self.upid,
            "node": self.node,
            "pid": self.pid,
            "pstart": self.pstart,
            "starttime": self.started,
            "type": self.kind,
            "id": self.id,
            "user": self.user,
        }));
        if let Some(token) = &self.token {
            row.insert("tokenid".to_owned(), json!(token));
        }
        if let Some((end, status)) = &self.ended {
            row.insert("endtime".to_owned(), json!(end));
            row.insert("status".to_owned(), json!(status));
        }
        row
    }
}

/// All tasks, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub(crate) all: Vec<Task>,
    last_pid: u32,
}

impl Tasks {
    /// Begins a task and says its UPID.
    pub(crate) fn begin(
        &mut self,
        node: &str,
        kind: &str,
        id: &str,
        (user, token): (&str, Option<&str>),
        started: i64,
    ) -> String {
        self.last_pid += 17;
        let pid = 0x400 + self.last_pid;
        let pstart = 0x000A_0000 + self.last_pid * 251;
        let owner = token.map_or_else(|| user.to_owned(), |token| format!("{user}!{token}"));
        let upid = format!("UPID:{node}:{pid:08X}:{pstart:08X}:{started:08X}:{kind}:{id}:{owner}:");
        self.all.push(Task {
            upid: upid.clone(),
            node: node.to_owned(),
            pid,
            pstart,
            started,
            kind: kind.to_owned(),
            id: id.to_owned(),
            user: user.to_owned(),
            token: token.map(str::to_owned),
            log: Vec::new(),
            ended: None,
        });
        upid
    }

    pub(crate) fn get(&self, upid: &str) -> Option<&Task> {
        self.all.iter().rev().find(|task| task.upid == upid)
    }

    pub(crate) fn get_mut(&mut self, upid: &str) -> Option<&mut Task> {
        self.all.iter_mut().rev().find(|task| task.upid == upid)
    }

    pub(crate) fn log(&mut self, upid: &str, line: impl Into<String>) {
        if let Some(task) = self.get_mut(upid) {
            task.log.push(line.into());
        }
    }

    /// Ends a task; everything but `OK` and warnings is also its last line.
    pub(crate) fn end(&mut self, upid: &str, at: i64, status: &str) {
        let Some(task) = self.get_mut(upid) else { return };
        let line = match status {
            "OK" => "TASK OK".to_owned(),
            warnings if warnings.starts_with("WARNINGS: ") => format!("TASK {warnings}"),
            error => format!("TASK ERROR: {error}"),
        };
        task.log.push(line);
        task.ended = Some((at, status.to_owned()));
    }
}
