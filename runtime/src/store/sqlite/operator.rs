//! Writing what operators decide: whether anything may be sent, and which cluster a name stands for.

use std::time::SystemTime;

use sqlx::{Row as _, SqliteExecutor};

use super::SqliteStore;
use super::read::unreadable;
use crate::store::{Freeze, Identified, StoreError, time};

impl SqliteStore {
    pub(super) async fn write_freeze(
        &self,
        by: &str,
        reason: &str,
        until: Option<SystemTime>,
    ) -> Result<Freeze, StoreError> {
        self.switch(by, Some(reason), until).await?;
        self.read_frozen().await?.ok_or_else(|| StoreError::Conflict("that freeze is over already".to_owned()))
    }

    pub(super) async fn write_unfreeze(&self, by: &str) -> Result<Option<Freeze>, StoreError> {
        let was = self.read_frozen().await?;
        self.switch(by, None, None).await?;
        Ok(was)
    }

    /// The newest row counts, so whoever writes last decides; what was before stays on record.
    async fn switch(&self, by: &str, reason: Option<&str>, until: Option<SystemTime>) -> Result<(), StoreError> {
        let mut writing = self.write(false).await?;
        sqlx::query("INSERT INTO freezes (at, by, frozen, reason, until) VALUES (?, ?, ?, ?, ?)")
            .bind(self.now())
            .bind(by)
            .bind(reason.is_some())
            .bind(reason.unwrap_or_default())
            .bind(until.map(time::millis))
            .execute(&mut *writing)
            .await
            .map_err(|error| self.failed(&error))?;
        self.keep(writing).await
    }

    pub(super) async fn read_frozen(&self) -> Result<Option<Freeze>, StoreError> {
        self.frozen_in(&self.readers).await
    }

    pub(super) async fn frozen_in<'c>(&self, from: impl SqliteExecutor<'c>) -> Result<Option<Freeze>, StoreError> {
        let row = sqlx::query("SELECT at, by, frozen, reason, until FROM freezes ORDER BY sequence DESC LIMIT 1")
            .fetch_optional(from)
            .await
            .map_err(|error| self.failed(&error))?;
        let Some(row) = row else { return Ok(None) };
        let frozen: bool = row.try_get("frozen").map_err(unreadable)?;
        let until: Option<i64> = row.try_get("until").map_err(unreadable)?;
        if !frozen || until.is_some_and(|until| until <= self.now()) {
            return Ok(None);
        }
        let since: i64 = row.try_get("at").map_err(unreadable)?;
        Ok(Some(Freeze {
            by: row.try_get("by").map_err(unreadable)?,
            reason: row.try_get("reason").map_err(unreadable)?,
            since: time::from_millis(since),
            until: until.map(time::from_millis),
        }))
    }

    async fn known_identity<'c>(
        &self,
        from: impl SqliteExecutor<'c>,
        cluster: &str,
    ) -> Result<Option<String>, StoreError> {
        let known = sqlx::query_scalar("SELECT identity FROM identities WHERE cluster = ?")
            .bind(cluster)
            .fetch_optional(from)
            .await;
        known.map_err(|error| self.failed(&error))
    }

    pub(super) async fn read_identity(&self, cluster: &str) -> Result<Option<String>, StoreError> {
        self.known_identity(&self.readers, cluster).await
    }

    pub(super) async fn write_identity(&self, cluster: &str, identity: &str) -> Result<Identified, StoreError> {
        // Nearly always it is known, and then nothing is written: also a server that may not write can tell.
        match self.read_identity(cluster).await? {
            Some(known) if known == identity => return Ok(Identified::Same),
            Some(known) => return Ok(Identified::Changed { known }),
            None => {}
        }
        let mut writing = self.write(true).await?;
        let inserted =
            sqlx::query("INSERT INTO identities (cluster, identity, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
                .bind(cluster)
                .bind(identity)
                .bind(self.now())
                .execute(&mut *writing)
                .await
                .map_err(|error| self.failed(&error))?;
        if inserted.rows_affected() == 1 {
            self.keep(writing).await?;
            return Ok(Identified::New);
        }
        if let Some(known) = self.known_identity(&mut *writing, cluster).await? {
            return Ok(if known == identity { Identified::Same } else { Identified::Changed { known } });
        }
        let cluster = sqlx::query_scalar("SELECT cluster FROM identities WHERE identity = ?")
            .bind(identity)
            .fetch_one(&mut *writing)
            .await
            .map_err(|error| self.failed(&error))?;
        Ok(Identified::Twice { cluster })
    }

    pub(super) async fn overwrite_identity(&self, cluster: &str, identity: &str) -> Result<(), StoreError> {
        let mut writing = self.write(false).await?;
        sqlx::query(
            "INSERT INTO identities (cluster, identity, since) VALUES (?1, ?2, ?3)
             ON CONFLICT (cluster) DO UPDATE SET identity = ?2, since = ?3",
        )
        .bind(cluster)
        .bind(identity)
        .bind(self.now())
        .execute(&mut *writing)
        .await
        .map_err(|error| match self.failed(&error) {
            StoreError::Conflict(_) => {
                StoreError::Conflict(format!("another name than `{cluster}` stands for this cluster already"))
            }
            error => error,
        })?;
        self.keep(writing).await
    }
}
