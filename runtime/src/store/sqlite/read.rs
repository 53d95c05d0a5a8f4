//! Reading changes back. What cannot be read as it was written is an error, never left out.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use crate::store::{Change, ChangeId, Event, Filter, Happened, State, StoreError, state, time};

/// Most changes of one answer, whatever is asked for.
const MOST: u32 = 500;

/// How many steps a change has.
pub(super) fn count(steps: usize) -> u32 {
    u32::try_from(steps).unwrap_or(u32::MAX)
}

pub(super) fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Other(format!("a record cannot be read: {error}"))
}

fn happened(row: &SqliteRow) -> Result<Happened, StoreError> {
    let body: &str = row.try_get("body").map_err(unreadable)?;
    let at: i64 = row.try_get("at").map_err(unreadable)?;
    let event: Event = serde_json::from_str(body).map_err(unreadable)?;
    Ok(Happened { sequence: row.try_get("sequence").map_err(unreadable)?, at: time::from_millis(at), event })
}

impl SqliteStore {
    /// The events of a change, in order.
    pub(super) async fn events<'c>(
        &self,
        from: impl sqlx::SqliteExecutor<'c>,
        change: &ChangeId,
    ) -> Result<Vec<Happened>, StoreError> {
        let rows = sqlx::query("SELECT sequence, at, body FROM events WHERE change = ? ORDER BY sequence")
            .bind(change.as_str())
            .fetch_all(from)
            .await;
        rows.map_err(|error| self.failed(&error))?.iter().map(happened).collect()
    }

    /// Changes from rows of events, those of one change together and in order.
    fn whole(&self, rows: Result<Vec<SqliteRow>, sqlx::Error>) -> Result<Vec<Change>, StoreError> {
        let mut changes: Vec<Change> = Vec::new();
        for row in rows.map_err(|error| self.failed(&error))? {
            let id: &str = row.try_get("id").map_err(unreadable)?;
            let event = happened(&row)?;
            if let Some(change) = changes.last_mut().filter(|change| change.id.as_str() == id) {
                change.events.push(event);
                continue;
            }
            let wanted: &str = row.try_get("wanted").map_err(unreadable)?;
            let created_at: i64 = row.try_get("created_at").map_err(unreadable)?;
            changes.push(Change {
                id: ChangeId::parse(id).map_err(unreadable)?,
                new: serde_json::from_str(wanted).map_err(unreadable)?,
                events: vec![event],
                state: State::New,
                created_at: time::from_millis(created_at),
            });
        }
        for change in &mut changes {
            let events = change.events.iter().map(|happened| &happened.event);
            change.state = state(events, count(change.new.steps.len()));
        }
        Ok(changes)
    }

    pub(super) async fn read_change(&self, change: &ChangeId) -> Result<Option<Change>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, created_at, wanted, sequence, at, body FROM changes JOIN events ON change = id
             WHERE id = ? ORDER BY sequence",
        )
        .bind(change.as_str())
        .fetch_all(&self.readers)
        .await;
        Ok(self.whole(rows)?.pop())
    }

    pub(super) async fn read_keyed(&self, principal: &str, key: &str) -> Result<Option<Change>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, created_at, wanted, sequence, at, body FROM changes JOIN events ON change = id
             WHERE principal = ? AND idempotency_key = ? ORDER BY sequence",
        )
        .bind(principal)
        .bind(key)
        .fetch_all(&self.readers)
        .await;
        Ok(self.whole(rows)?.pop())
    }

    pub(super) async fn read_changes(&self, filter: Filter) -> Result<Vec<Change>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, created_at, wanted, sequence, at, body FROM changes JOIN events ON change = id
             WHERE id IN (SELECT id FROM changes WHERE (?1 IS NULL OR principal = ?1) AND (?2 IS NULL OR id < ?2)
                          ORDER BY id DESC LIMIT ?3)
             ORDER BY id DESC, sequence",
        )
        .bind(filter.principal)
        .bind(filter.before.map(String::from))
        .bind(filter.limit.min(MOST))
        .fetch_all(&self.readers)
        .await;
        self.whole(rows)
    }

    pub(super) async fn read_open(&self) -> Result<Vec<Change>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, created_at, wanted, sequence, at, body FROM changes JOIN events ON change = id
             WHERE open = 1 ORDER BY id, sequence",
        )
        .fetch_all(&self.readers)
        .await;
        self.whole(rows)
    }

    pub(super) async fn read_started_by(&self, upid: &str) -> Result<Option<String>, StoreError> {
        let found = sqlx::query_scalar(
            "SELECT changes.principal FROM events JOIN changes ON changes.id = events.change
             WHERE events.upid = ? ORDER BY changes.id LIMIT 1",
        )
        .bind(upid)
        .fetch_optional(&self.readers)
        .await;
        found.map_err(|error| self.failed(&error))
    }
}
