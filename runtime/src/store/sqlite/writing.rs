//! One transaction that writes, and is undone unless it is kept.
//!
//! Not sqlx's own: SQLite ends a transaction by itself when the disk is full, which sqlx does not learn, and from then on
//! it would refuse every further one on that connection, also when there is room again.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::{Executor as _, Sqlite, SqliteConnection, SqlitePool};

/// A connection on which a transaction was begun.
#[derive(Debug)]
pub(super) struct Writing(Option<PoolConnection<Sqlite>>);

impl Writing {
    /// Begins one that keeps all others from writing, so that what is read in it stays true.
    pub(super) async fn begin(pool: &SqlitePool) -> Result<Self, sqlx::Error> {
        // In the guard before anything is sent: whoever waits for this may be gone at any moment.
        let mut writing = Self(Some(pool.acquire().await?));
        writing.execute("BEGIN IMMEDIATE").await?;
        Ok(writing)
    }

    /// Makes it last.
    pub(super) async fn keep(mut self) -> Result<(), sqlx::Error> {
        self.execute("COMMIT").await?;
        self.0 = None;
        Ok(())
    }
}

#[expect(clippy::expect_used, reason = "the connection is taken out by `keep` and `drop` alone, which end this value")]
impl Deref for Writing {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.0.as_ref().expect("the transaction goes on")
    }
}

#[expect(clippy::expect_used, reason = "the connection is taken out by `keep` and `drop` alone, which end this value")]
impl DerefMut for Writing {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.0.as_mut().expect("the transaction goes on")
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let Some(mut connection) = self.0.take() else { return };
        match tokio::runtime::Handle::try_current() {
            // The connection is used again when that is over. An error says that SQLite has undone it already.
            Ok(runtime) => {
                runtime.spawn(async move { connection.execute("ROLLBACK").await.is_ok() });
            }
            // Its end undoes it too.
            Err(_) => drop(connection.detach()),
        }
    }
}
