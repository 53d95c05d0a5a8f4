//! From runs to the numbers that are printed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::load::Run;

/// pvegate and its bare counterpart, measured in turns.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// What was measured.
    pub(crate) row: &'static str,
    /// Requests in flight.
    pub(crate) in_flight: usize,
    /// The least ratio of requests/s that it has to reach, where there is one.
    pub(crate) target: Option<f64>,
    /// One run for each round.
    pub(crate) pvegate: Vec<Run>,
    /// The same rounds.
    pub(crate) bare: Vec<Run>,
}

struct Side {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn side(runs: &[Run]) -> Side {
    let mut times: Vec<Duration> = runs.iter().flat_map(|run| run.times.iter().copied()).collect();
    times.sort_unstable();
    let at = |percent: usize| {
        times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    Side { rate: median(runs.iter().map(|run| run.rate).collect()), p50: at(50), p99: at(99) }
}

impl Comparison {
    /// pvegate's requests/s as a part of the bare server's: the median of the rounds' ratios.
    pub(crate) fn ratio(&self) -> f64 {
        median(self.pvegate.iter().zip(&self.bare).map(|(pvegate, bare)| pvegate.rate / bare.rate).collect())
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let (pvegate, bare) = (side(&self.pvegate), side(&self.bare));
        let numbers = |side: &Side| json!({"requests_per_second": side.rate, "p50_us": side.p50.as_micros(), "p99_us": side.p99.as_micros()});
        json!({
            "row": self.row,
            "in_flight": self.in_flight,
            "rounds": self.pvegate.len(),
            "pvegate": numbers(&pvegate),
            "bare": numbers(&bare),
            "ratio": self.ratio(),
            "p99_ratio": pvegate.p99.as_secs_f64() / bare.p99.as_secs_f64(),
            "target_ratio": self.target,
        })
    }

    /// For people: a row of a Markdown table.
    pub(crate) fn markdown(&self) -> String {
        let (pvegate, bare) = (side(&self.pvegate), side(&self.bare));
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        format!(
            "| {} | {} | {:.0} | {:.0} | {:.2} | {} | {:.2} / {:.2} | {:.2} / {:.2} |",
            self.row,
            self.in_flight,
            pvegate.rate,
            bare.rate,
            self.ratio(),
            self.target.map_or_else(|| "-".to_owned(), |target| format!("{target}")),
            ms(pvegate.p50),
            ms(pvegate.p99),
            ms(bare.p50),
            ms(bare.p99),
        )
    }
}

/// The head of the table that [`Comparison::markdown`] makes rows of.
pub(crate) const TABLE_HEAD: &str = "\
| what | in flight | pvegate requests/s | bare requests/s | ratio | target | pvegate p50 / p99 ms | bare p50 / p99 ms |
| --- | --- | --- | --- | --- | --- | --- | --- |";
