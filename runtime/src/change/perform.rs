//! One change from its record to its end. What is wrong before the intent is on record ends it with nothing sent; what
//! happens afterwards is found out and recorded, whoever still listens.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pvegate_generated::model::Operation;
use serde_json::{Map, Value as Json, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::follow::{self, End};
use super::settle::{self, Before, Found};
use super::target::{self, NotSeen, Seen};
use super::{refusal, told};
use crate::audit::{Acted, Current, Record, Who};
use crate::authorize::{self, Authorized, Write};
use crate::connection::Connection;
use crate::mcp::Refusal;
use crate::pve::Kind;
use crate::server::{self, State};
use crate::store::{
    self, Begun, Change, ChangeId, Claim, Event, Happened, Intent, NewChange, Step, StepOutcome, Store,
};
use crate::tokens::{Actor, Principal};
use crate::values::Upid;
use crate::write::{Call, Outcome};

/// How long a claim lasts, and how much of it has to be left where something is sent: connecting and the whole request.
pub const LEASE: Duration = Duration::from_mins(1);
const NEEDS: Duration = Duration::from_secs(45);

/// A low call that was authorized.
pub struct Job {
    pub state: Arc<State>,
    pub principal: Arc<Principal>,
    pub cluster: String,
    pub operation: &'static Operation,
    pub arguments: Map<String, Json>,
    pub idempotency_key: Option<String>,
    pub reason: Option<String>,
    pub fingerprint: String,
    pub current: Option<Arc<Current>>,
}

/// What the caller gets; nothing where another call does it already.
pub type Ended = Option<Result<Map<String, Json>, Refusal>>;

impl Job {
    /// Records it, tells under which id, and sees it through.
    pub async fn run(self, first: Authorized<Write>, tell: oneshot::Sender<Result<ChangeId, Refusal>>) -> Ended {
        let (change, seen, claim) = match self.begin(first).await {
            Ok(Ok(begun)) => begun,
            Ok(Err(known)) => {
                // Who asked may have hung up.
                let _ = tell.send(Ok(known));
                return None;
            }
            Err(refusal) => {
                let _ = tell.send(Err(refusal));
                return None;
            }
        };
        let _ = tell.send(Ok(change.0.clone()));
        let (id, new) = change;
        let mut recording = Recording::new(Arc::clone(self.state.store()), claim, new);
        let started = Instant::now();
        let ended = self.carry_out(&mut recording, seen.as_ref()).await;
        let outcome = match &ended {
            Ok(end) => told::word(end.outcome).into(),
            Err(refusal) => refusal.code.clone(),
        };
        let record = Record { upid: recording.upid(), ..self.record(&recording).ended(outcome, started.elapsed()) };
        if let Err(error) = self.state.audit().outcome(record).await {
            tracing::error!(%error, change = %id, "the outcome of a change is in the store and not in the audit log");
        }
        Some(match ended {
            Ok(end) => recording.told(&self.state).await.and_then(|object| refused(&id, &end, object)),
            Err(refusal) => Err(refusal),
        })
    }

    /// Looks at what is meant and records the wish. The inner error is another call's change under the same key.
    #[allow(clippy::type_complexity, reason = "it is taken apart at once")]
    async fn begin(
        &self,
        first: Authorized<Write>,
    ) -> Result<Result<((ChangeId, NewChange), Option<Seen>, Claim), ChangeId>, Refusal> {
        let (write, seen) = self.ready(first).await?;
        let store = self.state.store();
        let of_store = |error| refusal::of_store(&error);
        let new = self.wish(write.get());
        let id = match store.begin(new.clone()).await.map_err(of_store)? {
            Begun::New(id) => id,
            Begun::Same(id) => return Ok(Err(id)),
            Begun::OtherArguments(id) => return Err(refusal::other_arguments(&id)),
        };
        let claim = store.claim(&id, self.state.work().holder(), LEASE).await.map_err(of_store)?;
        Ok(Ok(((id, new), seen, claim)))
    }

    fn wish(&self, write: &Write) -> NewChange {
        let call = Call::of(&write.args);
        let guest = target::guest(write);
        let mut arguments = call.arguments();
        self.state.redactor().value(&mut arguments);
        let masked = |text: &String| crate::untrusted::visible(&self.state.redactor().text(text)).into_owned();
        NewChange {
            principal: self.principal.name.clone(),
            person_or_owner: match &self.principal.actor {
                Actor::Agent { owner } => owner.clone(),
                Actor::Human { person } => Some(person.clone()),
            },
            cluster: write.connection.name().to_owned(),
            cluster_identity: Some(write.identity.clone()),
            steps: vec![Step {
                operation: self.operation.name.to_owned(),
                arguments,
                target: Some(told::target(
                    &call,
                    guest.map(|guest| guest.kind.as_str()),
                    guest.map(|guest| &*guest.name),
                )),
            }],
            reason: self.reason.as_ref().map(masked),
            idempotency_key: self.idempotency_key.clone(),
            request_fingerprint: self.fingerprint.clone(),
            approved_by_policy: true,
        }
    }

    /// Looks at the guest that it is about, and authorizes anew where that moved meanwhile.
    async fn ready(&self, mut write: Authorized<Write>) -> Result<(Authorized<Write>, Option<Seen>), Refusal> {
        for again in [true, false] {
            match target::look(write.get()).await {
                Ok(seen) => return Ok((write, seen)),
                Err(NotSeen::Refused(refusal)) => return Err(refusal),
                Err(NotSeen::Pve(error)) if again && error.kind() == Kind::NotFound => {
                    write.get().connection.snapshot().expire();
                    write = self.authorize().await?;
                }
                Err(NotSeen::Pve(error)) => return Err(server::refusal(&self.state, &error)),
            }
        }
        Err(refusal::broken())
    }

    async fn authorize(&self) -> Result<Authorized<Write>, Refusal> {
        let connection = authorize::cluster(&self.principal, &self.state, Some(&self.cluster))?;
        authorize::low(&self.state, &self.principal, connection, self.operation, &self.arguments).await
    }

    /// Everything up to the end. An error is why nothing was sent; it is recorded.
    async fn carry_out(&self, recording: &mut Recording, seen: Option<&Seen>) -> Result<End, Refusal> {
        let subject = recording.new.steps.first().map(|step| Call::stored(self.operation, &step.arguments).subject());
        let turn = format!("{} {}", recording.new.cluster, subject.unwrap_or_default());
        let held = self.state.work().turn(turn).await;
        let sent = match self.send(recording, seen).await {
            Ok(sent) => sent,
            Err(refusal) => {
                recording.append(Event::Void { reason: refusal.message.clone() }).await;
                return Err(refusal);
            }
        };
        let Sent { connection, call, before, written, lacking } = sent;
        let end = match written.outcome() {
            Outcome::Done => {
                let upid = written.task();
                recording.append(Event::Sent { step: 0, upid: upid.as_ref().map(ToString::to_string) }).await;
                // Whoever waits for a turn may begin: this one's task is known.
                drop(held);
                match upid {
                    Some(upid) => follow::task(&self.state, &connection, &call, upid, recording).await,
                    None => done(&self.state, &connection, &call, "").await,
                }
            }
            Outcome::Unknown => {
                recording.append(Event::Sent { step: 0, upid: None }).await;
                find_out(&self.state, &connection, &call, &before, Duration::ZERO, recording).await
            }
            outcome => {
                let (message, kind) = match &written.0 {
                    Err(error) => (server::refusal(&self.state, error).message, error.kind().as_str()),
                    Ok(_) => (String::new(), "other"),
                };
                let mut end = End::new(
                    if outcome == Outcome::Refused { StepOutcome::Refused } else { StepOutcome::NotSent },
                    message,
                );
                end.shown.insert("kind".to_owned(), Json::from(kind));
                if kind == Kind::Forbidden.as_str() && !lacking.is_empty() {
                    // PVE names one; whoever grants them wants to know all.
                    end.message =
                        format!("{}; the server's own API token seems to lack {}", end.message, lacking.join(", "));
                }
                if outcome == Outcome::Refused {
                    // PVE can fail after it has saved.
                    follow::after_refusal(&connection, &call, self.state.redactor(), &mut end).await;
                }
                end
            }
        };
        recording.end(&end).await;
        Ok(end)
    }

    /// Checks everything again, puts the intent on record and sends. An error says that nothing was sent.
    async fn send(&self, recording: &mut Recording, seen: Option<&Seen>) -> Result<Sent, Refusal> {
        if self.state.work().is_stopping() {
            return Err(refusal::stopping());
        }
        let again = self.authorize().await?;
        let (write, now) = self.ready(again).await?;
        if let (Some(guest), Some(before), Some(now)) = (target::guest(write.get()), seen, &now)
            && !before.is_same(now)
        {
            return Err(target::another(guest));
        }
        recording.protection.clone_from(&write.get().warnings);
        let lacking = write.get().lacking.clone();
        let connection = Arc::clone(&write.get().connection);
        let call = Call::of(&write.get().args);
        let digest = now.as_ref().and_then(|seen| seen.digest.clone());
        let before = Before::read(&connection, &call, digest.clone())
            .await
            .map_err(|error| server::refusal(&self.state, &error))?;
        let intent = Intent {
            operation: self.operation.name.to_owned(),
            node: call.get("node").map(str::to_owned),
            vmid: target::guest(write.get()).map(|guest| guest.vmid.get()),
            decided: json!({
                "guest": now.as_ref().map(Seen::told),
                "before": before.told(),
                "protection": recording.protection,
            }),
            needs: NEEDS,
        };
        self.state.audit().intent(self.record(recording)).await?;
        recording.renew().await;
        let recorded = self
            .state
            .store()
            .record_intent(&recording.claim, 0, intent)
            .await
            .map_err(|error| refusal::of_store(&error))?;
        let written = Connection::write(write, recorded, digest.as_deref()).await;
        Ok(Sent { connection, call, before, written, lacking })
    }

    fn record(&self, recording: &Recording) -> Record {
        let acted = Acted::new(self.operation, &self.arguments, self.state.redactor());
        let record = Record {
            change_id: Some(recording.claim.change().to_string()),
            protection: Some(recording.protection.join("; ")).filter(|said| !said.is_empty()),
            ..Record::of(Who::from(&*self.principal), &self.cluster, acted)
        };
        match &self.current {
            Some(current) => current.complete(record),
            None => record,
        }
    }
}

/// What was sent, and all that is needed to find out what came of it.
struct Sent {
    connection: Arc<Connection>,
    call: Call,
    before: Before,
    written: crate::write::Written,
    /// Privileges that seem to be missing.
    lacking: Vec<String>,
}

/// What PVE refused is a refusal to the caller too; its record stays.
fn refused(change: &ChangeId, end: &End, object: Map<String, Json>) -> Result<Map<String, Json>, Refusal> {
    if !matches!(end.outcome, StepOutcome::Refused | StepOutcome::NotSent) {
        return Ok(object);
    }
    let kind = end.shown.get("kind").and_then(Json::as_str).unwrap_or("not_sent").to_owned();
    let what = if end.outcome == StepOutcome::Refused { "PVE refused it" } else { "nothing was sent" };
    Err(Refusal::new(
        kind,
        format!("{what}: {}", end.message),
        format!("get_change {{\"change_id\": \"{change}\"}} has what is known of it. A new call is a new change."),
    ))
}

/// A step that is done and has no task.
pub async fn done(state: &State, connection: &Arc<Connection>, call: &Call, message: &str) -> End {
    let mut end = End::new(StepOutcome::Ok, message);
    follow::read_back(state, connection, call, &mut end).await;
    end
}

/// What came of a write whose answer was lost.
pub async fn find_out(
    state: &State,
    connection: &Arc<Connection>,
    call: &Call,
    before: &Before,
    ago: Duration,
    recording: &mut Recording,
) -> End {
    let looking = settle::settle(state, connection, call, before, ago);
    match recording.renewed_while(looking).await {
        Found::Task(upid) => {
            recording.append(Event::Sent { step: 0, upid: Some(upid.to_string()) }).await;
            follow::task(state, connection, call, upid, recording).await
        }
        Found::Done(message) => done(state, connection, call, &format!("PVE's answer was lost; {message}")).await,
        Found::NotDone(message) => End::new(StepOutcome::NotSent, format!("PVE's answer was lost; {message}")),
        Found::Open(message) | Found::Unreadable(message) => {
            End::new(StepOutcome::Unknown, format!("PVE's answer was lost, and {message}"))
        }
    }
}

/// The record of one change while it is worked on. What the store does not take is kept, so that the caller learns it.
pub struct Recording {
    store: Arc<dyn Store>,
    pub claim: Claim,
    pub new: NewChange,
    /// What has to be told about protected guests that it interrupts.
    protection: Vec<String>,
    events: Vec<Happened>,
    lost: Vec<String>,
}

impl Recording {
    pub fn new(store: Arc<dyn Store>, claim: Claim, new: NewChange) -> Self {
        Self { store, claim, new, protection: Vec::new(), events: Vec::new(), lost: Vec::new() }
    }

    /// The task, if one is known.
    fn upid(&self) -> Option<String> {
        self.events.iter().rev().find_map(|happened| happened.event.upid()).map(str::to_owned)
    }

    pub async fn append(&mut self, event: Event) {
        let sequence = u32::try_from(self.events.len()).unwrap_or_default() + 1;
        self.events.push(Happened { sequence, at: SystemTime::now(), event: event.clone() });
        if let Err(error) = self.store.append(&self.claim, event.clone()).await {
            tracing::error!(%error, change = %self.claim.change(), event = event.name(), "an event was not recorded");
            self.lost.push(format!("the record of this change: {error}"));
        }
    }

    /// Goes on holding the claim; where that fails, what happens is still recorded as long as nobody took over.
    pub async fn renew(&mut self) {
        match self.store.renew(&self.claim, LEASE).await {
            Ok(claim) => self.claim = claim,
            Err(error) => tracing::warn!(%error, change = %self.claim.change(), "a claim was not renewed"),
        }
    }

    async fn renewed_while<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                ended = &mut work => return ended,
                () = tokio::time::sleep(LEASE / 4) => self.renew().await,
            }
        }
    }

    /// Records what came of it.
    pub async fn end(&mut self, end: &End) {
        if !end.shown.is_empty() {
            self.append(Event::ReadBack { step: 0, data: Json::Object(end.shown.clone()) }).await;
        }
        let (outcome, message, upid) = (end.outcome, end.message.clone(), self.upid());
        self.append(Event::Outcome { step: 0, outcome, message: message.clone(), upid }).await;
        self.close(outcome, message).await;
    }

    /// Records that it has ended.
    pub async fn close(&mut self, outcome: StepOutcome, message: String) {
        let last = match outcome {
            StepOutcome::Unknown => Event::Indeterminate { message },
            outcome if outcome.is_done() => Event::Applied,
            _ => Event::Failed,
        };
        self.append(last).await;
    }

    /// As the caller reads it.
    async fn told(&self, state: &State) -> Result<Map<String, Json>, Refusal> {
        let recorded = if self.lost.is_empty() { self.store.change(self.claim.change()).await } else { Ok(None) };
        if let Ok(Some(change)) = recorded {
            return Ok(told::told(state, &change, false));
        }
        let begun = [Event::Planned, Event::Approved { by: "policy".to_owned() }];
        let change = Change {
            id: self.claim.change().clone(),
            new: self.new.clone(),
            events: self.events.clone(),
            state: store::state(begun.iter().chain(self.events.iter().map(|happened| &happened.event)), 1),
            created_at: SystemTime::now(),
        };
        let mut object = told::told(state, &change, false);
        object.insert("missing".to_owned(), json!(self.lost));
        object.insert("partial".to_owned(), Json::from(true));
        Ok(object)
    }
}

/// A task whose id is on record.
pub fn task_of(change: &Change) -> Option<Upid> {
    change.events.iter().rev().find_map(|happened| Upid::parse(happened.event.upid()?).ok())
}
