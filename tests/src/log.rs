//! Everything that a test logs, searched as it is written for texts that must never be logged.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pvegate::mcp::LOG_DIRECTIVE;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A log.
#[derive(Debug, Default)]
pub struct Log {
    needles: Mutex<Vec<String>>,
    found: Mutex<Vec<String>>,
    ours: AtomicUsize,
}

impl Log {
    /// Looks for this text from now on.
    pub fn look_for(&self, text: &str) {
        self.needles.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }

    /// The lines in which a text was found.
    pub fn found(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines pvegate wrote.
    pub fn ours(&self) -> usize {
        self.ours.load(Ordering::Relaxed)
    }
}

/// Writes lines into the log.
#[derive(Clone, Debug)]
struct Search(Arc<Log>);

impl io::Write for Search {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        if text.contains(" pvegate::") {
            self.0.ours.fetch_add(1, Ordering::Relaxed);
        }
        let needles = self.0.needles.lock().unwrap_or_else(PoisonError::into_inner);
        if needles.iter().any(|needle| text.contains(needle.as_str())) {
            self.0.found.lock().unwrap_or_else(PoisonError::into_inner).push(text.into_owned());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log that is captured until this is dropped.
#[derive(Debug)]
pub struct Capture {
    /// What is captured.
    pub log: Arc<Log>,
    _until: DefaultGuard,
}

/// Captures what this thread logs, at the finest level, with the one restriction that the server always sets. Where
/// the runtime has one thread, that is what client, server and lab log.
pub fn capture() -> Capture {
    let log = Arc::new(Log::default());
    let filter = EnvFilter::new("trace").add_directive(LOG_DIRECTIVE.parse().unwrap());
    let search = Search(Arc::clone(&log));
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter);
    let until = subscriber.with_writer(move || search.clone()).set_default();
    Capture { log, _until: until }
}
