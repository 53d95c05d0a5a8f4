//! When something ends, as it is written on the command line.

use anyhow::{Result, bail, ensure};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

/// A time from one with its zone, or from a span that begins now. It has to be ahead.
pub(crate) fn read(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>> {
    let end = match DateTime::parse_from_rfc3339(text) {
        Ok(time) => time.with_timezone(&Utc),
        Err(_) => match span(text).and_then(|span| now.checked_add_signed(span)) {
            Some(time) => time,
            None => bail!("`{text}` is neither a time like 2027-01-31T12:00:00Z nor a span like 90d, 12h or 30m"),
        },
    };
    ensure!(end > now, "{} is over already", end.to_rfc3339_opts(SecondsFormat::Secs, true));
    Ok(end)
}

fn span(text: &str) -> Option<TimeDelta> {
    let unit = text.chars().last()?;
    let number: u32 = text.strip_suffix(unit)?.parse().ok().filter(|number| (1..=100_000).contains(number))?;
    let minutes = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        _ => return None,
    };
    TimeDelta::try_minutes(i64::from(number) * minutes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::read;

    #[test]
    fn spans_and_times() {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        for (text, end) in [
            ("30m", "2026-11-30T12:30:00Z"),
            ("2h", "2026-11-30T14:00:00Z"),
            ("3d", "2026-12-03T12:00:00Z"),
            ("2026-12-01T00:00:00+01:00", "2026-11-30T23:00:00Z"),
        ] {
            assert_eq!(read(text, now).unwrap(), end.parse::<chrono::DateTime<chrono::Utc>>().unwrap(), "{text}");
        }
        for text in ["", "h", "0h", "2", "2w", "-2h", "2026-11-30T11:00:00Z", "2h ", "99999999999h", "\u{fc}"] {
            assert!(read(text, now).is_err(), "{text}");
        }
    }
}
