//! Decides how often a task is asked about, for how long, and what a failure to ask means.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pvegate_generated::internal::{self, node_tasks};
use serde_json::Value as Json;
use tokio::time::Instant;

use super::log::{self, Log};
use super::{GuestState, Outcome, Wanted, outcome};
use crate::authorize::{Authorized, Read};
use crate::connection::Connection;
use crate::pve::{Kind, PveError, Reply};
use crate::redact::Redactor;
use crate::untrusted;
use crate::values::{Upid, Vmid};

/// The first pause between two looks, and the longest.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(5);
/// Lines of the log in one request.
const PAGE: u64 = 5000;
/// Most requests for the log in one look.
const MOST_PAGES: usize = 12;
/// Longest exit status that is kept, in characters: some hold whole command lines.
const STATUS: usize = 1000;

/// A task that is followed.
#[derive(Debug)]
pub struct Task {
    connection: Arc<Connection>,
    redactor: Redactor,
    upid: Upid,
    /// Whether PVE has ever known it.
    known: bool,
    /// Its exit status, as soon as it has ended; empty where PVE has none.
    stopped: Option<String>,
    ended: Option<i64>,
    log: Log,
    /// Whether all that an ended task leaves behind was read.
    closed: bool,
    /// The guest when last seen, where the HA manager was asked to do something with it.
    guest: Option<GuestState>,
}

/// What is known of a task at one time.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it stands.
    pub outcome: Outcome,
    /// PVE's own word for how it ended; masked, and nothing to be trusted.
    pub exit_status: Option<String>,
    /// What the outcome means, where the exit status does not say it.
    pub says: Option<String>,
    /// When it ended, in seconds since 1970.
    pub ended: Option<i64>,
    /// How far the present part of it is.
    pub percent: Option<f64>,
    /// The last lines of its log; masked, and nothing to be trusted.
    pub log_tail: Vec<String>,
    /// Lines that warn.
    pub warnings: Vec<String>,
    /// Lines that tell of a part that failed.
    pub failures: Vec<String>,
    /// The guest, where the HA manager was asked to do something with it.
    pub guest: Option<GuestState>,
    /// What could not be read.
    pub missing: Vec<String>,
    /// Whether the outcome is unknown only because nobody answers.
    lost: bool,
}

impl Report {
    /// Whether looking again changes nothing.
    pub fn is_final(&self) -> bool {
        self.outcome != Outcome::Running && !self.lost
    }
}

/// Somebody who wants to know how it goes on.
pub trait Watcher: Send {
    /// Whether anybody does. If not, the log is read once at the end.
    fn watches(&self) -> bool;

    /// Called after each look at a task that goes on.
    fn saw(&mut self, report: &Report) -> impl Future<Output = ()> + Send;
}

/// Nobody.
impl Watcher for () {
    fn watches(&self) -> bool {
        false
    }

    async fn saw(&mut self, _report: &Report) {}
}

impl Task {
    /// For somebody who may read the status of this task.
    pub fn of_read(read: Authorized<Read<'_>>, upid: Upid, redactor: Redactor) -> Self {
        Self::new(Arc::clone(read.into_inner().connection()), upid, redactor, false)
    }

    /// A task that a change of ours began. That PVE does not know it later does not mean that there was none.
    pub(crate) fn of_change(connection: &Arc<Connection>, upid: Upid, redactor: Redactor) -> Self {
        Self::new(Arc::clone(connection), upid, redactor, true)
    }

    fn new(connection: Arc<Connection>, upid: Upid, redactor: Redactor, known: bool) -> Self {
        Self {
            connection,
            redactor,
            upid,
            known,
            stopped: None,
            ended: None,
            log: Log::default(),
            closed: false,
            guest: None,
        }
    }

    /// Its id.
    pub fn upid(&self) -> &Upid {
        &self.upid
    }

    /// Looks until it has ended or `until` is over, and answers before `by`. An error means that nothing is known of it.
    pub async fn follow<W: Watcher>(
        &mut self,
        until: Instant,
        by: Instant,
        watcher: &mut W,
    ) -> Result<Report, PveError> {
        let mut pause = FIRST;
        loop {
            let last = Instant::now() >= until;
            let report = match tokio::time::timeout_at(by, self.look(watcher.watches() || last)).await {
                Ok(report) => report?,
                Err(_) => self.lost(self.silent())?,
            };
            if last || report.is_final() || Instant::now() >= by {
                return Ok(report);
            }
            watcher.saw(&report).await;
            tokio::time::sleep_until(until.min(Instant::now() + pause)).await;
            pause = (pause * 8 / 5).min(LONGEST);
        }
    }

    /// Looks once. The log of a task that goes on is read only if wanted.
    async fn look(&mut self, with_log: bool) -> Result<Report, PveError> {
        if let Err(error) = self.status().await {
            return self.lost(error);
        }
        let mut missing = Vec::new();
        if !self.closed && (with_log || self.stopped.is_some()) {
            match self.read_log().await {
                Ok(()) => self.closed = self.stopped.is_some(),
                Err(error) => missing.push(format!("log: {}", self.said(&error))),
            }
        }
        let Some(exit_status) = self.stopped.clone() else {
            return Ok(self.report(Outcome::Running, None, missing));
        };
        if self.ended.is_none() && self.guest.is_none() {
            // It stands in lists only. Without it the answer is still one.
            self.ended = self.read_end().await.unwrap_or_default();
        }
        let (outcome, says) = outcome::judge(self.upid.worker(), &exit_status, &self.log);
        let wanted = Wanted::of(self.upid.worker(), &self.log)
            .filter(|_| matches!(outcome, Outcome::Ok | Outcome::OkWithWarnings));
        let Some(wanted) = wanted else {
            return Ok(self.report(outcome, says, missing));
        };
        let Ok(vmid) = Vmid::parse(self.upid.subject()) else {
            let says = "the HA manager took the request; the task does not say for which guest".to_owned();
            return Ok(self.report(Outcome::Unknown, Some(says), missing));
        };
        // Its node is looked up anew where it may be another by now, and not for every look: that list is long.
        let settled = self.guest.as_ref().is_some_and(|guest| guest.status.is_some());
        let look_up = !settled || matches!(wanted, Wanted::On(_));
        match GuestState::read(&self.connection, vmid, look_up).await {
            Ok(guest) => {
                let (reached, says) = guest.judge(&wanted, self.age());
                let outcome = if reached == Outcome::Ok { outcome } else { reached };
                self.guest = Some(guest);
                Ok(self.report(outcome, Some(says), missing))
            }
            Err(error) => {
                missing.push(format!("guest: {}", self.said(&error)));
                let says = "the HA manager took the request; whether it was done cannot be read".to_owned();
                let mut report = self.report(Outcome::Unknown, Some(says), missing);
                report.lost = is_passing(error.kind());
                Ok(report)
            }
        }
    }

    /// What is left to say when asking failed.
    fn lost(&self, error: PveError) -> Result<Report, PveError> {
        if !self.known {
            return Err(error);
        }
        let says = if error.kind() == Kind::NotFound {
            "PVE does not know this task any more: how it ended shows only in what it worked on".to_owned()
        } else {
            format!("PVE knew this task and cannot be asked now, so it may go on or have ended: {}", self.said(&error))
        };
        let mut report = self.report(Outcome::Unknown, Some(says), Vec::new());
        report.lost = is_passing(error.kind());
        Ok(report)
    }

    /// What a failure says, without what the server holds.
    fn said(&self, error: &PveError) -> String {
        self.redactor.text(error.message()).into_owned()
    }

    fn silent(&self) -> PveError {
        let message = format!(
            "node {} of cluster {} did not answer in time about the task; ask again",
            self.upid.node(),
            self.connection.name()
        );
        PveError::new(Kind::Timeout, message)
    }

    fn report(&self, outcome: Outcome, says: Option<String>, mut missing: Vec<String>) -> Report {
        if let Some((before, last)) = self.log.skipped() {
            missing.push(format!("log lines {} to {last}: they are too many to be read", before + 1));
        }
        Report {
            outcome,
            exit_status: self.stopped.clone().filter(|status| !status.is_empty()),
            says,
            ended: self.ended,
            percent: self.log.percent().filter(|_| self.stopped.is_none()),
            log_tail: self.log.tail().map(str::to_owned).collect(),
            warnings: self.log.warnings().to_vec(),
            failures: self.log.failures().to_vec(),
            guest: self.guest.clone(),
            missing,
            lost: false,
        }
    }

    /// Asks whether it has ended, unless that is known.
    async fn status(&mut self) -> Result<(), PveError> {
        if self.stopped.is_some() {
            return Ok(());
        }
        let data = self.connection.ask(internal::TASK_STATUS, self.path()).await?.data;
        let text = |key: &str| data.get(key).and_then(Json::as_str);
        match text("status") {
            Some("running") => {}
            // An exit status is there only now; before, a key of that name means nothing.
            Some("stopped") => {
                let status = text("exitstatus").unwrap_or_default();
                self.stopped = Some(untrusted::shown(&self.redactor.text(status), STATUS));
            }
            // Neither goes on nor has ended.
            _ => {
                let message = format!(
                    "node {} of cluster {} answered about the task with something that is no state; look at it in PVE's own list",
                    self.upid.node(),
                    self.connection.name()
                );
                return Err(PveError::new(Kind::NotJson, message));
            }
        }
        self.known = true;
        Ok(())
    }

    async fn read_log(&mut self) -> Result<(), PveError> {
        for _ in 0..MOST_PAGES {
            let page = [
                (internal::task_log::START, Json::from(self.log.next())),
                (internal::task_log::LIMIT, Json::from(PAGE)),
            ];
            let given = self.path().into_iter().chain(page);
            let Reply { data, mut total, .. } = self.connection.ask(internal::TASK_LOG, given).await?;
            let Json::Array(mut rows) = data else { return Ok(()) };
            if log::clean(&mut rows, &mut total).is_none() {
                return Err(PveError::new(Kind::NotFound, "it is not there any more"));
            }
            if !self.log.take(self.upid.worker(), &self.redactor, &rows, total) {
                break;
            }
        }
        Ok(())
    }

    /// When it ended, from the list of what began in the same second.
    async fn read_end(&self) -> Result<Option<i64>, PveError> {
        let given = [
            ("node", Json::from(self.upid.node().as_str())),
            (node_tasks::SINCE, Json::from(self.upid.started())),
            (node_tasks::UNTIL, Json::from(self.upid.started())),
            (node_tasks::TYPEFILTER, Json::from(self.upid.worker())),
            (node_tasks::SOURCE, Json::from("all")),
            (node_tasks::LIMIT, Json::from(500)),
        ];
        let data = self.connection.ask(internal::NODE_TASKS, given).await?.data;
        let own = |row: &&Json| row.get("upid").and_then(Json::as_str) == Some(self.upid.as_str());
        let row = data.as_array().and_then(|rows| rows.iter().find(own));
        Ok(row.and_then(|row| row.get("endtime")).and_then(Json::as_i64))
    }

    fn path(&self) -> [(&'static str, Json); 2] {
        [("node", Json::from(self.upid.node().as_str())), ("upid", Json::from(self.upid.as_str()))]
    }

    /// How long ago it began, by this machine's clock.
    fn age(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(Duration::from_secs(u64::from(self.upid.started())))
    }
}

/// Whether a failure to ask may be over a moment later.
fn is_passing(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::NotFound
            | Kind::Forbidden
            | Kind::Unauthorized
            | Kind::Certificate
            | Kind::NotImplemented
            | Kind::Invalid
    )
}
