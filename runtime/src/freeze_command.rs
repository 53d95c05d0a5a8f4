//! `pvegate freeze` and `pvegate unfreeze`: whether anything may be changed at all. They write the store that a server
//! uses, beside that server, which looks there in the statement before each write.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use chrono::Utc;
use clap::Args;
use pvegate::audit::{Audit, Event, Record, Who};
use pvegate::store::{SqliteStore, Store as _};
use pvegate::untrusted;

use crate::end_time;
use crate::store_flags::StoreFlags;

/// Longest reason, in bytes: refusals repeat it.
const LONGEST: usize = 400;

#[derive(Args)]
pub struct Freeze {
    /// Why; everybody whose change is refused reads it.
    #[arg(long, required_unless_present = "show")]
    reason: Option<String>,
    /// How long (2h, 3d), or until when, with its zone; until unfrozen if absent.
    #[arg(long = "for", value_name = "SPAN")]
    span: Option<String>,
    /// Only show whether changes are frozen.
    #[arg(long, conflicts_with_all = ["reason", "span"])]
    show: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
pub struct Unfreeze {
    #[command(flatten)]
    place: Place,
}

/// Which server's changes are meant.
#[derive(Args)]
struct Place {
    /// The cluster file, beside which the store is unless --store names it.
    #[arg(long, env = "PVEGATE_CLUSTERS", default_value = "clusters.json")]
    clusters: PathBuf,
    #[command(flatten)]
    store: StoreFlags,
    /// The file that gets a line about it; standard error if absent.
    #[arg(long, env = "PVEGATE_AUDIT_LOG", value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

impl Place {
    async fn open(&self) -> Result<SqliteStore> {
        Ok(SqliteStore::operate(&self.store.file(&self.clusters)).await?)
    }

    /// Leaves a line about what is done already.
    fn record(&self, event: Event, by: &str, message: String) -> Result<()> {
        let audit = self.audit_log.as_deref().map_or_else(|| Ok(Audit::stderr()), |path: &Path| Audit::file(path));
        let who = Who { principal: by.to_owned(), actor: Some("operator"), ..Who::default() };
        let record = Record { who: Some(who), message: Some(message), outcome: Some("ok".into()), ..Record::default() };
        audit.and_then(|audit| audit.record(event, &record)).context("that is done, but left no line in the audit log")
    }
}

/// Freezes, or shows.
pub async fn freeze(arguments: Freeze) -> Result<()> {
    let store = arguments.place.open().await?;
    let Some(reason) = arguments.reason else {
        match store.frozen().await? {
            Some(freeze) => println!("all changes are {freeze}"),
            None => println!("not frozen"),
        }
        return Ok(());
    };
    let until =
        arguments.span.as_deref().map(|span| end_time::read(span, Utc::now())).transpose()?.map(SystemTime::from);
    let freeze = store.freeze(&who(), &untrusted::shown(&reason, LONGEST), until).await?;
    eprintln!("Every server that uses {} refuses all changes from now on: {freeze}.", store.path().display());
    arguments.place.record(Event::Freeze, &freeze.by, freeze.to_string())
}

/// Unfreezes.
pub async fn unfreeze(arguments: Unfreeze) -> Result<()> {
    let (store, by) = (arguments.place.open().await?, who());
    let Some(freeze) = store.unfreeze(&by).await? else {
        eprintln!("{} was not frozen.", store.path().display());
        return Ok(());
    };
    eprintln!("Changes are possible again. They were {freeze}.");
    arguments.place.record(Event::Unfreeze, &by, format!("no longer {freeze}"))
}

/// Who runs this: the number is the system's word, the name is what the environment says.
fn who() -> String {
    let uid = format!("uid {}", rustix::process::getuid().as_raw());
    let name = ["SUDO_USER", "LOGNAME", "USER"].into_iter().filter_map(|name| std::env::var(name).ok());
    match name.map(|name| untrusted::shown(&name, 64)).find(|name| !name.is_empty()) {
        Some(name) => format!("{name} ({uid})"),
        None => uid,
    }
}
