//! pvegate as its users meet it: through the running server, in front of a lab whose journal shows what was sent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may stop where it stands"
)]

mod adversarial;
mod arguments;
mod audit;
mod canary;
mod cases;
mod clusters;
mod crash;
mod documented;
mod doors;
mod everywhere;
mod failures;
mod fakepve;
mod files;
mod fuzzing;
mod golden;
mod grants;
mod hostile;
mod limits;
mod lists;
mod low;
mod low_rules;
mod matrix;
mod named;
mod odd_answers;
mod paths;
mod programs;
mod sharing;
mod sight;
mod tasks;
mod tidy;
mod token_command;
mod tools;
mod urls;
