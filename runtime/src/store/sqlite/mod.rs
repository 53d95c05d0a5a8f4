//! The store in one SQLite file, for one server.
//!
//! One process writes changes, the one that holds the lock file; another reads. Freezing is not bound to it: an operator's
//! command writes it through SQLite's own locks, and the statement that records an intent looks at it.

mod changes;
mod files;
mod operator;
mod read;
#[cfg(test)]
mod tests;
mod writing;

use std::path::Path;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};
use sqlx::{ConnectOptions as _, SqlSafeStr as _, Sqlite};

use self::files::{Lock, Opened};
use self::writing::Writing;
use super::{
    Begun, Change, ChangeId, Claim, Event, Filter, Freeze, Identified, Intent, NewChange, Recorded, Store, StoreError,
    time,
};

pub use files::OpenError;

/// How long a statement waits for another process.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often, and how long in between, a store is looked at that another process is just making or letting go.
const LOOKS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(25);

/// What this process may do with the store.
#[derive(Debug)]
enum Role {
    /// It is the one that writes changes.
    Serving,
    /// It writes what operators decide: freezes and identities.
    Operating,
    /// Another has it.
    Held(String),
    /// Nothing can be written.
    ReadOnly,
}

/// A store in a file.
#[derive(Debug)]
pub struct SqliteStore {
    role: Role,
    files: Opened,
    readers: SqlitePool,
    writer: Option<SqlitePool>,
    clock: fn() -> SystemTime,
}

impl SqliteStore {
    /// Opens the store to serve, and makes it if there is none. `about` says in the lock file what this process is.
    /// Where another process has it, or where it cannot be written, it can be read, and says so to whoever writes.
    pub async fn serve(path: &Path, about: &str) -> Result<Self, OpenError> {
        files::check_folder(path)?;
        for _ in 0..LOOKS {
            match Lock::take(path, about)? {
                Lock::Taken(lock) => {
                    let writer = Self::made(path).await?;
                    return Self::new(path, Role::Serving, Some(lock), Some(writer)).await;
                }
                Lock::Held(holder) if is_ready(path).await? => {
                    return Self::new(path, Role::Held(holder), None, None).await;
                }
                Lock::ReadOnly if is_ready(path).await? => return Self::new(path, Role::ReadOnly, None, None).await,
                Lock::Held(_) => tokio::time::sleep(BETWEEN).await,
                Lock::ReadOnly => break,
            }
        }
        Err(unfinished(path))
    }

    /// Opens the store for an operator's command, beside the server that has it. It has to be there: one that was made in
    /// the wrong place would freeze nothing.
    pub async fn operate(path: &Path) -> Result<Self, OpenError> {
        files::check_folder(path)?;
        if !files::check(path)? {
            return Err(OpenError::new(path, "does not exist; name the file that the server uses with --store"));
        }
        if !is_ready(path).await? {
            return Err(OpenError::new(path, "is not one of this version; start the server with it first"));
        }
        Self::new(path, Role::Operating, None, Some(connect(path, false).await?)).await
    }

    /// The file, made if there is none, open to write.
    async fn made(path: &Path) -> Result<SqlitePool, OpenError> {
        if !files::check(path)? {
            files::create(path)?;
        }
        let writer = migrated(path).await?;
        files::keep_in_folder(path)?;
        Ok(writer)
    }

    async fn new(
        path: &Path,
        role: Role,
        lock: Option<files::LockFile>,
        writer: Option<SqlitePool>,
    ) -> Result<Self, OpenError> {
        let (files, readers) = (Opened::new(path, lock), connect(path, true).await?);
        // The first read opens what SQLite has beside the file, which may lose its name too.
        sqlx::query("SELECT 1 FROM freezes LIMIT 1")
            .fetch_optional(&readers)
            .await
            .map_err(|error| OpenError::new(path, format!("cannot be read: {error}")))?;
        Ok(Self { role, files, readers, writer, clock: SystemTime::now })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.files.path()
    }

    /// What holds the store, if it is another process.
    pub fn held_by(&self) -> Option<&str> {
        match &self.role {
            Role::Held(holder) => Some(holder),
            _ => None,
        }
    }

    /// The store's clock, in milliseconds.
    fn now(&self) -> i64 {
        time::millis((self.clock)())
    }

    /// Begins to write. SQLite lets one process at a time write, so that what is read in here stays true.
    async fn write(&self, for_changes: bool) -> Result<Writing, StoreError> {
        let writer = match (&self.role, &self.writer) {
            (Role::Serving, Some(writer)) => writer,
            (Role::Operating, Some(writer)) if !for_changes => writer,
            (Role::Operating, _) => {
                return Err(StoreError::Other("an operator's command does not write changes".to_owned()));
            }
            (Role::Held(holder), _) => return Err(StoreError::Held { holder: holder.clone() }),
            (Role::ReadOnly | Role::Serving, _) => return Err(StoreError::ReadOnly(self.path().to_owned())),
        };
        self.still_there()?;
        Writing::begin(writer).await.map_err(|error| self.failed(&error))
    }

    /// Makes what was written last. Only what is in a file with its name counts as written.
    async fn keep(&self, written: Writing) -> Result<(), StoreError> {
        written.keep().await.map_err(|error| self.failed(&error))?;
        self.still_there()
    }

    fn still_there(&self) -> Result<(), StoreError> {
        if self.files.are_there() { Ok(()) } else { Err(StoreError::Gone(self.path().to_owned())) }
    }

    /// What SQLite says, in the store's terms.
    fn failed(&self, error: &sqlx::Error) -> StoreError {
        const BUSY: u32 = 5;
        const READ_ONLY: u32 = 8;
        const FULL: u32 = 13;
        const MOVED: u32 = 1032;
        let path = || self.path().to_owned();
        let sqlx::Error::Database(database) = error else { return StoreError::Other(error.to_string()) };
        let code = database.code().and_then(|code| code.parse::<u32>().ok()).unwrap_or_default();
        match code & 0xff {
            _ if code == MOVED => StoreError::Gone(path()),
            _ if database.is_unique_violation() => {
                StoreError::Conflict("something else happened to this change meanwhile; look at it again".to_owned())
            }
            FULL => StoreError::Full(path()),
            READ_ONLY => StoreError::ReadOnly(path()),
            BUSY => StoreError::Other(format!("another process kept it busy for {} s", PATIENCE.as_secs())),
            _ => StoreError::Other(database.message().to_owned()),
        }
    }
}

/// One connection to the file, made at once and kept: reads go on when the file has lost its name, and SQLite's files
/// beside it stay while it is open.
async fn connect(path: &Path, read_only: bool) -> Result<SqlitePool, OpenError> {
    let mut options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(read_only)
        .busy_timeout(PATIENCE)
        .disable_statement_logging();
    if !read_only {
        // Every commit is on disk before it counts.
        options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
    }
    let pool = PoolOptions::<Sqlite>::new()
        .max_connections(1)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(options);
    pool.await.map_err(|error| OpenError::new(path, format!("cannot be opened: {error}")))
}

fn migrator() -> Migrator {
    let migration = |version, description: &'static str, sql: &'static str| {
        Migration::new(version, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    Migrator::with_migrations(vec![migration(1, "changes", include_str!("../../../migrations/0001_changes.sql"))])
}

/// Opens the file to write, brought to this version's tables.
async fn migrated(path: &Path) -> Result<SqlitePool, OpenError> {
    let writer = connect(path, false).await?;
    migrator().run(&writer).await.map_err(|error| match error {
        MigrateError::VersionMissing(_) | MigrateError::VersionTooOld(..) | MigrateError::VersionTooNew(..) => {
            OpenError::new(path, "was written by a newer pvegate; use that version")
        }
        error => OpenError::new(path, format!("cannot be used: {error}")),
    })?;
    Ok(writer)
}

fn unfinished(path: &Path) -> OpenError {
    OpenError::new(
        path,
        "is not there or of an older version, and whoever may write it does not bring it up to date; start that server \
         first, or give this user a folder that it may write",
    )
}

/// Whether the file is there with all tables of this version.
async fn is_ready(path: &Path) -> Result<bool, OpenError> {
    if !files::check(path)? {
        return Ok(false);
    }
    // An error here and below: it is not yet a database, or one without this table, while another process makes it.
    let Ok(reader) = connect(path, true).await else { return Ok(false) };
    let newest: Result<i64, _> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success").fetch_one(&reader).await;
    reader.close().await;
    let wanted = migrator().iter().map(|migration| migration.version).max();
    match newest {
        Ok(newest) if Some(newest) > wanted => {
            Err(OpenError::new(path, "was written by a newer pvegate; use that version"))
        }
        Ok(newest) => Ok(Some(newest) == wanted),
        Err(_) => Ok(false),
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn begin(&self, new: NewChange) -> Result<Begun, StoreError> {
        self.begin_change(new).await
    }

    async fn keyed(&self, principal: &str, idempotency_key: &str) -> Result<Option<Change>, StoreError> {
        self.read_keyed(principal, idempotency_key).await
    }

    async fn claim(&self, change: &ChangeId, holder: &str, lease: Duration) -> Result<Claim, StoreError> {
        self.claim_change(change, holder, lease).await
    }

    async fn renew(&self, claim: &Claim, lease: Duration) -> Result<Claim, StoreError> {
        self.renew_claim(claim, lease).await
    }

    async fn record_intent(&self, claim: &Claim, step: u32, intent: Intent) -> Result<Recorded<Intent>, StoreError> {
        self.intend(claim, step, intent).await
    }

    async fn append(&self, claim: &Claim, event: Event) -> Result<(), StoreError> {
        self.append_claimed(claim, event).await
    }

    async fn decide(&self, change: &ChangeId, event: Event) -> Result<(), StoreError> {
        self.append_decision(change, event).await
    }

    async fn change(&self, change: &ChangeId) -> Result<Option<Change>, StoreError> {
        self.read_change(change).await
    }

    async fn changes(&self, filter: Filter) -> Result<Vec<Change>, StoreError> {
        self.read_changes(filter).await
    }

    async fn open(&self) -> Result<Vec<Change>, StoreError> {
        self.read_open().await
    }

    async fn started_by(&self, upid: &str) -> Result<Option<String>, StoreError> {
        self.read_started_by(upid).await
    }

    async fn freeze(&self, by: &str, reason: &str, until: Option<SystemTime>) -> Result<Freeze, StoreError> {
        self.write_freeze(by, reason, until).await
    }

    async fn unfreeze(&self, by: &str) -> Result<Option<Freeze>, StoreError> {
        self.write_unfreeze(by).await
    }

    async fn frozen(&self) -> Result<Option<Freeze>, StoreError> {
        self.read_frozen().await
    }

    async fn identity(&self, cluster: &str) -> Result<Option<String>, StoreError> {
        self.read_identity(cluster).await
    }

    async fn set_identity(&self, cluster: &str, identity: &str) -> Result<Identified, StoreError> {
        self.write_identity(cluster, identity).await
    }

    async fn replace_identity(&self, cluster: &str, identity: &str) -> Result<(), StoreError> {
        self.overwrite_identity(cluster, identity).await
    }
}
