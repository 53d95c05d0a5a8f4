//! The flags that set the limits of the HTTP side.

use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use pvegate::mcp::Limits;
use pvegate::runaway::Bounds;

/// What is allowed at once and in a second; 0 switches a limit off.
#[allow(clippy::struct_field_names, reason = "the names are those of the flags")]
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Limits (0: none)")]
pub(crate) struct LimitFlags {
    /// Open connections.
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// Requests in flight, over all tokens.
    #[arg(long, value_name = "N", default_value_t = Limits::default().in_flight)]
    max_in_flight: usize,
    /// Requests in flight of one token.
    #[arg(long, value_name = "N", default_value_t = Limits::default().in_flight_per_token)]
    max_in_flight_per_token: usize,
    /// Requests of one token in a second, over time.
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests_per_second)]
    max_rate: u32,
    /// Requests that a token which was quiet may send at once.
    #[arg(long, value_name = "N", default_value_t = Limits::default().burst, value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    max_burst: u32,
    /// Seconds that a request waits for its turn before it is refused.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().wait.as_secs(), value_parser = RangedU64ValueParser::<u64>::new().range(..=60))]
    max_wait: u64,
    /// Bytes of a request's body.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().body_bytes)]
    max_body: usize,
    /// Bytes of JSON in an answer.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().answer_bytes)]
    max_answer: usize,
    /// Refusals of one call of a token within a minute, after which it is not made for a minute.
    #[arg(long, value_name = "N", default_value_t = Bounds::default().refusals)]
    max_same_refusals: u32,
    /// Changes of one token within a minute, after which it makes none for a minute.
    #[arg(long, value_name = "N", default_value_t = Bounds::default().changes)]
    max_changes: u32,
}

impl From<LimitFlags> for Limits {
    fn from(flags: LimitFlags) -> Self {
        Self {
            connections: flags.max_connections,
            in_flight: flags.max_in_flight,
            in_flight_per_token: flags.max_in_flight_per_token,
            requests_per_second: flags.max_rate,
            burst: flags.max_burst,
            wait: Duration::from_secs(flags.max_wait),
            body_bytes: flags.max_body,
            answer_bytes: flags.max_answer,
            runaway: Bounds { refusals: flags.max_same_refusals, changes: flags.max_changes, ..Bounds::default() },
            ..Self::default()
        }
    }
}
