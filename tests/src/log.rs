//! Everything that the process logs, searched as it is written for texts that must never be logged.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pvegate::mcp::LOG_DIRECTIVE;
use tracing_subscriber::EnvFilter;

/// The log of this process.
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
#[derive(Clone, Copy, Debug)]
struct Search(&'static Log);

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

/// Captures the log of this process at its finest level, with the one restriction that the server always sets.
pub fn capture() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    static STARTED: OnceLock<()> = OnceLock::new();
    let log = LOG.get_or_init(Log::default);
    STARTED.get_or_init(|| {
        let filter = EnvFilter::new("trace").add_directive(LOG_DIRECTIVE.parse().unwrap());
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter);
        subscriber.with_writer(move || Search(log)).init();
    });
    log
}
