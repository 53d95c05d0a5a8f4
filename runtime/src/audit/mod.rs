//! The trail of what was asked, refused, begun and done: JSON, one line for each event.
//!
//! No filter of the log reaches it. Each line is one write of its own, so that what was written is there whatever
//! becomes of the process, and a line that could not be written is known at once: as long as the last one failed,
//! nothing may be changed ([`Audit::healthy`]). A line holds names and what a call is about; values of other arguments
//! never, and what a client says of itself stands apart, as not verified.

mod call;
mod record;
mod sink;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::Serialize;

pub use call::{Call, Current, current};
pub use record::{Acted, Asserted, Record, Target, Who};
use sink::Sink;

use crate::mcp::{Refusal, Turned};
use crate::tokens::Principal;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The server serves.
    Start,
    /// The server ends.
    Stop,
    /// Files were read again, and taken over or not.
    Reload,
    /// A tool was called and answered.
    Call,
    /// A call or a request was refused.
    Refused,
    /// A write is about to be sent.
    Intent,
    /// What came of a write.
    Outcome,
    /// All changes are refused from now on.
    Freeze,
    /// Changes are possible again.
    Unfreeze,
    /// Lines before this one could not be written.
    Lost,
}

/// Why there is no line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// The file is not one that lines may be written to.
    #[error("the audit log {} {problem}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A line could not be written.
    #[error("the last line for the audit log could not be written to {to}: {problem}")]
    Write {
        /// Where to.
        to: String,
        /// What the system said.
        problem: String,
    },
}

impl From<AuditError> for Refusal {
    fn from(error: AuditError) -> Self {
        Self::new(
            "no_audit",
            format!("nothing is changed while there is no trail of it: {error}"),
            "An operator has to make room for the audit log, or put right who may write it. Reads go on.",
        )
    }
}

/// The way to the trail. Clones write to the same place, one line at a time.
#[derive(Clone, Debug)]
pub struct Audit(Arc<Mutex<Trail>>);

#[derive(Debug)]
struct Trail {
    sink: Sink,
    failed: Option<AuditError>,
    lost: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self::stderr()
    }
}

impl Audit {
    /// To standard error.
    pub fn stderr() -> Self {
        Self::to(Sink::Stderr)
    }

    /// To the end of a file, which is made for its owner alone where there is none.
    pub fn file(path: &Path) -> Result<Self, AuditError> {
        Sink::file(path).map(Self::to)
    }

    /// To anything that takes bytes.
    pub fn writer(writer: Box<dyn Write + Send>) -> Self {
        Self::to(Sink::Writer(writer))
    }

    fn to(sink: Sink) -> Self {
        Self(Arc::new(Mutex::new(Trail { sink, failed: None, lost: 0 })))
    }

    fn trail(&self) -> MutexGuard<'_, Trail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the file anew, since it may have been moved away. Where that fails the old one is written on.
    pub fn reopen(&self) -> Result<(), AuditError> {
        let mut trail = self.trail();
        if let Some(path) = trail.sink.path() {
            trail.sink = Sink::file(path)?;
        }
        Ok(())
    }

    /// Whether the last line was written. Whatever changes something asks before it begins.
    pub fn healthy(&self) -> Result<(), AuditError> {
        self.trail().failed.clone().map_or(Ok(()), Err)
    }

    /// Writes one line.
    pub fn record(&self, event: Event, record: &Record) -> Result<(), AuditError> {
        self.trail().write(event, record, false)
    }

    /// Writes one line that lasts: it is on the disk before this returns.
    pub fn record_durably(&self, event: Event, record: &Record) -> Result<(), AuditError> {
        self.trail().write(event, record, true)
    }

    /// Says that a write is about to be sent. Where this fails it must not be.
    pub async fn intent(&self, record: Record) -> Result<(), AuditError> {
        self.durably(Event::Intent, record).await
    }

    /// Says what came of a write.
    pub async fn outcome(&self, record: Record) -> Result<(), AuditError> {
        self.durably(Event::Outcome, record).await
    }

    /// Says that a request was refused before it reached a tool.
    pub fn turned_away(&self, turned: &Turned<'_, Principal>) {
        let record = Record {
            request_id: Some(call::request_id()),
            who: turned.principal.map(Who::from),
            outcome: Some(turned.code.to_owned().into()),
            status: turned.status,
            ..Record::default()
        };
        let _ = self.record(Event::Refused, &record);
    }

    async fn durably(&self, event: Event, record: Record) -> Result<(), AuditError> {
        let audit = self.clone();
        // A disk may take its time, and whoever else is served must not wait for it.
        let written = tokio::task::spawn_blocking(move || audit.record_durably(event, &record)).await;
        written.unwrap_or_else(|error| Err(AuditError::Write { to: "its task".to_owned(), problem: error.to_string() }))
    }
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    event: Event,
    #[serde(flatten)]
    record: &'a Record,
}

#[derive(Serialize)]
struct LostLine {
    time: String,
    event: Event,
    lines: u64,
}

impl Trail {
    fn write(&mut self, event: Event, record: &Record, durably: bool) -> Result<(), AuditError> {
        let line = Line { time: now(), event, record };
        let written = self.tell_lost().and_then(|()| self.line(&line, durably));
        if let Err(error) = &written {
            self.lost += 1;
            if self.failed.is_none() {
                tracing::error!(%error, "nothing is changed until the audit log can be written again");
            }
        }
        self.failed = written.as_ref().err().cloned();
        written
    }

    /// A trail with a gap says so.
    fn tell_lost(&mut self) -> Result<(), AuditError> {
        if self.lost > 0 {
            self.line(&LostLine { time: now(), event: Event::Lost, lines: self.lost }, false)?;
            self.lost = 0;
        }
        Ok(())
    }

    fn line(&mut self, line: &impl Serialize, durably: bool) -> Result<(), AuditError> {
        let mut bytes = Vec::with_capacity(512);
        serde_json::to_writer(&mut bytes, line)
            .map_err(std::io::Error::from)
            .and_then(|()| {
                bytes.push(b'\n');
                self.sink.write(&bytes)
            })
            .and_then(|()| if durably { self.sink.sync() } else { Ok(()) })
            .map_err(|error| AuditError::Write { to: self.sink.to_string(), problem: error.to_string() })
    }
}

fn now() -> String {
    chrono::DateTime::<chrono::Utc>::from(SystemTime::now()).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
