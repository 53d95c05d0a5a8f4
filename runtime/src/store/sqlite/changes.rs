//! Writing changes: each function is one transaction, whose insert or update carries the condition that decides.

use std::time::{Duration, Instant};

use super::SqliteStore;
use super::read::{count, unreadable};
use super::writing::Writing;
use crate::store::{Begun, ChangeId, Claim, Event, Intent, NewChange, Recorded, State, StoreError, after, state, time};

/// Who approves where no person is needed.
const POLICY: &str = "policy";

/// What has happened to a change so far.
struct History {
    state: State,
    steps: u32,
    next: u32,
}

impl History {
    /// The same with what follows. Refuses what may not.
    fn followed_by(&self, change: &ChangeId, event: &Event) -> Result<Self, StoreError> {
        if let Some(state) = after(self.state, event, self.steps) {
            return Ok(Self { state, steps: self.steps, next: self.next.saturating_add(1) });
        }
        let step = event.step().map(|step| format!(" of step {step}")).unwrap_or_default();
        Err(StoreError::Conflict(format!(
            "{change} is {}, so `{}`{step} cannot be recorded for it",
            self.state.name(),
            event.name()
        )))
    }
}

impl SqliteStore {
    pub(super) async fn begin_change(&self, new: NewChange) -> Result<Begun, StoreError> {
        if new.steps.is_empty() {
            return Err(StoreError::Conflict("a change without a step changes nothing".to_owned()));
        }
        let id = ChangeId::new((self.clock)())
            .map_err(|error| StoreError::Other(format!("the system gave no random bytes: {error}")))?;
        let steps = count(new.steps.len());
        let wanted = serde_json::to_string(&new).map_err(unreadable)?;
        let mut writing = self.write(true).await?;
        let now = self.now();
        let inserted = sqlx::query(
            "INSERT INTO changes (id, created_at, principal, idempotency_key, fingerprint, steps, open, wanted)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(id.as_str())
        .bind(now)
        .bind(&new.principal)
        .bind(&new.idempotency_key)
        .bind(&new.request_fingerprint)
        .bind(steps)
        .bind(new.approved_by_policy)
        .bind(wanted)
        .execute(&mut *writing)
        .await
        .map_err(|error| self.failed(&error))?;
        if inserted.rows_affected() == 0 {
            return self.known(writing, &new).await;
        }
        let mut history = History { state: State::New, steps, next: 1 };
        self.add(&mut writing, &id, &mut history, now, &Event::Planned, None).await?;
        if new.approved_by_policy {
            let approved = Event::Approved { by: POLICY.to_owned() };
            self.add(&mut writing, &id, &mut history, now, &approved, None).await?;
        }
        self.keep(writing).await?;
        Ok(Begun::New(id))
    }

    /// The change that has the key. Changes are never removed, so who could not insert finds it.
    async fn known(&self, mut writing: Writing, new: &NewChange) -> Result<Begun, StoreError> {
        let (id, fingerprint): (String, String) =
            sqlx::query_as("SELECT id, fingerprint FROM changes WHERE principal = ? AND idempotency_key = ?")
                .bind(&new.principal)
                .bind(&new.idempotency_key)
                .fetch_one(&mut *writing)
                .await
                .map_err(|error| self.failed(&error))?;
        let id = ChangeId::parse(&id).map_err(unreadable)?;
        let same = fingerprint == new.request_fingerprint;
        Ok(if same { Begun::Same(id) } else { Begun::OtherArguments(id) })
    }

    pub(super) async fn claim_change(
        &self,
        change: &ChangeId,
        holder: &str,
        lease: Duration,
    ) -> Result<Claim, StoreError> {
        let mut writing = self.write(true).await?;
        let mut history = self.history(&mut writing, change).await?;
        let now = self.now();
        let until = now + time::span_millis(lease);
        let event = Event::Claimed { holder: holder.to_owned(), until: time::from_millis(until) };
        history.followed_by(change, &event)?;
        let claimed: Option<i64> = sqlx::query_scalar(
            "INSERT INTO claims (change, number, holder, until) VALUES (?1, 1, ?2, ?3)
             ON CONFLICT (change) DO UPDATE SET number = claims.number + 1, holder = ?2, until = ?3
             WHERE claims.until <= ?4
             RETURNING number",
        )
        .bind(change.as_str())
        .bind(holder)
        .bind(until)
        .bind(now)
        .fetch_optional(&mut *writing)
        .await
        .map_err(|error| self.failed(&error))?;
        let Some(number) = claimed else {
            let (holder, until): (String, i64) = sqlx::query_as("SELECT holder, until FROM claims WHERE change = ?")
                .bind(change.as_str())
                .fetch_one(&mut *writing)
                .await
                .map_err(|error| self.failed(&error))?;
            return Err(StoreError::Claimed { holder, until: time::from_millis(until) });
        };
        self.add(&mut writing, change, &mut history, now, &event, None).await?;
        self.keep(writing).await?;
        Ok(Claim { change: change.clone(), holder: holder.to_owned(), number, until: time::from_millis(until) })
    }

    pub(super) async fn renew_claim(&self, claim: &Claim, lease: Duration) -> Result<Claim, StoreError> {
        let mut writing = self.write(true).await?;
        let now = self.now();
        let until = now + time::span_millis(lease);
        // A shorter lease than there is would let another take over while the holder counts on the longer one.
        let renewed: Option<i64> = sqlx::query_scalar(
            "UPDATE claims SET until = max(until, ?1) WHERE change = ?2 AND number = ?3 AND until > ?4 RETURNING until",
        )
        .bind(until)
        .bind(claim.change.as_str())
        .bind(claim.number)
        .bind(now)
        .fetch_optional(&mut *writing)
        .await
        .map_err(|error| self.failed(&error))?;
        let Some(until) = renewed else { return Err(StoreError::LeaseLost(claim.change.clone())) };
        self.keep(writing).await?;
        Ok(Claim { until: time::from_millis(until), ..claim.clone() })
    }

    pub(super) async fn intend(
        &self,
        claim: &Claim,
        step: u32,
        intent: Intent,
    ) -> Result<Recorded<Intent>, StoreError> {
        let change = &claim.change;
        if !claim.may_send() {
            return Err(StoreError::Conflict(format!(
                "{change} was left by somebody else; who took over finds out what came of it, and sends nothing"
            )));
        }
        let mut writing = self.write(true).await?;
        let history = self.history(&mut writing, change).await?;
        let needs = intent.needs;
        let event = Event::Intent { step, request: intent.clone() };
        history.followed_by(change, &event)?;
        let (now, looked) = (self.now(), Instant::now());
        // Freeze, lease and intent in one: nothing comes in between.
        let until: Option<i64> = sqlx::query_scalar(
            "INSERT INTO events (change, sequence, at, event, step, body)
             SELECT claims.change, ?1, ?2, 'intent', ?3, ?4 FROM claims
             WHERE claims.change = ?5 AND claims.number = ?6 AND claims.until - ?2 >= ?7
               AND NOT EXISTS (SELECT 1 FROM freezes WHERE frozen = 1 AND (until IS NULL OR until > ?2)
                               AND sequence = (SELECT max(sequence) FROM freezes))
             ON CONFLICT DO NOTHING
             RETURNING (SELECT until FROM claims WHERE change = ?5)",
        )
        .bind(history.next)
        .bind(now)
        .bind(step)
        .bind(serde_json::to_string(&event).map_err(unreadable)?)
        .bind(change.as_str())
        .bind(claim.number)
        .bind(time::span_millis(needs))
        .fetch_optional(&mut *writing)
        .await
        .map_err(|error| self.failed(&error))?;
        let Some(until) = until else {
            return Err(match self.frozen_in(&mut *writing).await? {
                Some(freeze) => StoreError::Frozen(freeze),
                None => StoreError::LeaseLost(change.clone()),
            });
        };
        self.keep(writing).await?;
        let left = Duration::from_millis(u64::try_from(until - now).unwrap_or_default());
        let good_until = looked.checked_add(left.saturating_sub(needs)).unwrap_or(looked);
        Ok(Recorded::new(intent, change.clone(), step, good_until))
    }

    pub(super) async fn append_claimed(&self, claim: &Claim, event: Event) -> Result<(), StoreError> {
        let by_holder = matches!(
            event,
            Event::Sent { .. }
                | Event::Outcome { .. }
                | Event::ReadBack { .. }
                | Event::Applied
                | Event::Failed
                | Event::Void { .. }
                | Event::Indeterminate { .. }
        );
        if !by_holder {
            return Err(StoreError::Conflict(format!("`{}` is not recorded by who works on a change", event.name())));
        }
        let mut writing = self.write(true).await?;
        let mut history = self.history(&mut writing, &claim.change).await?;
        let now = self.now();
        self.add(&mut writing, &claim.change, &mut history, now, &event, Some(claim)).await?;
        self.keep(writing).await
    }

    pub(super) async fn append_decision(&self, change: &ChangeId, event: Event) -> Result<(), StoreError> {
        let by_decision = matches!(
            event,
            Event::Approved { .. }
                | Event::Rejected { .. }
                | Event::Void { .. }
                | Event::Expired
                | Event::Cancelled { .. }
                | Event::Settled { .. }
        );
        let mut writing = self.write(true).await?;
        let mut history = self.history(&mut writing, change).await?;
        if !by_decision || history.state.is_under_way() {
            return Err(StoreError::Conflict(format!(
                "{change} is {}, so `{}` cannot be decided about it",
                history.state.name(),
                event.name()
            )));
        }
        let now = self.now();
        self.add(&mut writing, change, &mut history, now, &event, None).await?;
        self.keep(writing).await
    }

    async fn history(&self, writing: &mut Writing, change: &ChangeId) -> Result<History, StoreError> {
        let steps: Option<u32> = sqlx::query_scalar("SELECT steps FROM changes WHERE id = ?")
            .bind(change.as_str())
            .fetch_optional(&mut **writing)
            .await
            .map_err(|error| self.failed(&error))?;
        let Some(steps) = steps else { return Err(StoreError::Conflict(format!("there is no change {change}"))) };
        let events = self.events(&mut **writing, change).await?;
        let next = events.last().map_or(0, |last| last.sequence).saturating_add(1);
        Ok(History { state: state(events.iter().map(|happened| &happened.event), steps), steps, next })
    }

    /// Records what follows a history, in the one place that there is for it; for a claim only while nobody took over.
    async fn add(
        &self,
        writing: &mut Writing,
        change: &ChangeId,
        history: &mut History,
        now: i64,
        event: &Event,
        claim: Option<&Claim>,
    ) -> Result<(), StoreError> {
        let followed = history.followed_by(change, event)?;
        let inserted = sqlx::query(
            "INSERT INTO events (change, sequence, at, event, step, upid, body) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
             WHERE ?8 IS NULL OR EXISTS (SELECT 1 FROM claims WHERE change = ?1 AND number = ?8)",
        )
        .bind(change.as_str())
        .bind(history.next)
        .bind(now)
        .bind(event.name())
        .bind(event.step())
        .bind(event.upid())
        .bind(serde_json::to_string(event).map_err(unreadable)?)
        .bind(claim.map(|claim| claim.number))
        .execute(&mut **writing)
        .await
        .map_err(|error| self.failed(&error))?;
        if inserted.rows_affected() == 0 {
            return Err(StoreError::LeaseLost(change.clone()));
        }
        // What nobody may be working on any more is found by this: what is under way, and what waits for nobody.
        let open = followed.state.is_under_way() || followed.state == State::Approved && by_policy(event);
        if followed.state != history.state {
            sqlx::query("UPDATE changes SET open = ? WHERE id = ?")
                .bind(open)
                .bind(change.as_str())
                .execute(&mut **writing)
                .await
                .map_err(|error| self.failed(&error))?;
        }
        *history = followed;
        Ok(())
    }
}

fn by_policy(event: &Event) -> bool {
    matches!(event, Event::Approved { by } if by == POLICY)
}
