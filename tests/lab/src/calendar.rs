//! Calendar events such as `mon..fri 02:00`, `*/15` or `daily`: whether a text is one, and when it is due next.

use std::collections::BTreeSet;

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MINUTE: i64 = 60;
/// A year and a day of minutes: a rule that is not due by then never is.
const HORIZON: i64 = 367 * 24 * 60;

/// When something is due, in UTC.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    days: BTreeSet<u32>,
    dates: Option<(BTreeSet<u32>, BTreeSet<u32>)>,
    hours: BTreeSet<u32>,
    minutes: BTreeSet<u32>,
}

impl Calendar {
    /// Reads an event; none if the text is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let spelled = match lower.as_str() {
            "minutely" => "*:*",
            "hourly" => "*:00",
            "daily" => "00:00",
            "weekly" => "mon 00:00",
            "monthly" => "*-*-1 00:00",
            "yearly" | "annually" => "*-1-1 00:00",
            "quarterly" => "*-1,4,7,10-1 00:00",
            "semiannually" | "semi-annually" => "*-1,7-1 00:00",
            other => other,
        };
        let mut event =
            Self { days: (0..7).collect(), dates: None, hours: (0..1).collect(), minutes: (0..1).collect() };
        let parts: Vec<&str> = spelled.split_whitespace().collect();
        if parts.is_empty() || parts.len() > 3 {
            return None;
        }
        let timed = parts.len() == 1 || parts.iter().any(|part| part.contains(':') || part.starts_with(['*', '/']));
        for part in &parts {
            if part.starts_with(|c: char| c.is_ascii_alphabetic()) {
                event.days = days(part)?;
            } else if part.contains('-') {
                let steps: Vec<&str> = part.split('-').collect();
                let (months, dates) = match steps.as_slice() {
                    [_, months, dates] | [months, dates] => (*months, *dates),
                    _ => return None,
                };
                event.dates = Some((numbers(months, 1, 12)?, numbers(dates, 1, 31)?));
            } else if let Some((hours, minutes)) = part.split_once(':') {
                let minutes = minutes.split(':').next().unwrap_or(minutes);
                event.hours = numbers(hours, 0, 23)?;
                event.minutes = numbers(minutes, 0, 59)?;
            } else if timed {
                event.hours = (0..24).collect();
                event.minutes = numbers(part, 0, 59)?;
            } else {
                return None;
            }
        }
        Some(event)
    }

    /// The first due time after another.
    pub(crate) fn next(&self, after: i64) -> Option<i64> {
        let first = after.div_euclid(MINUTE) + 1;
        (first..first + HORIZON).find(|minute| self.due(*minute)).map(|minute| minute * MINUTE)
    }

    fn due(&self, minute: i64) -> bool {
        let part = |value: i64| u32::try_from(value).unwrap_or_default();
        if !self.minutes.contains(&part(minute.rem_euclid(60)))
            || !self.hours.contains(&part(minute.div_euclid(60).rem_euclid(24)))
        {
            return false;
        }
        let day = minute.div_euclid(24 * 60);
        // The first of January 1970 was a Thursday.
        if !self.days.contains(&part((day + 4).rem_euclid(7))) {
            return false;
        }
        let (month, date) = month_and_day(day);
        self.dates.as_ref().is_none_or(|(months, dates)| months.contains(&month) && dates.contains(&date))
    }
}

/// Year and month of a day since the epoch.
pub(crate) fn year_and_month(day: i64) -> (i64, u32) {
    let (month, _) = month_and_day(day);
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365 + era * 400;
    (if month <= 2 { year + 1 } else { year }, month)
}

/// A time as year, month, day, hour, minute, second, in UTC.
pub(crate) fn parts(time: i64) -> (i64, u32, u32, i64, i64, i64) {
    let day = time.div_euclid(86_400);
    let of_day = time.rem_euclid(86_400);
    let ((year, month), (_, date)) = (year_and_month(day), month_and_day(day));
    (year, month, date, of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// Month and day of the month of a day since the epoch.
fn month_and_day(day: i64) -> (u32, u32) {
    let shifted = day + 719_468;
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (u32::try_from(month).unwrap_or_default(), u32::try_from(date).unwrap_or_default())
}

fn day(text: &str) -> Option<u32> {
    let short = text.get(..3)?;
    let at = DAYS.iter().position(|name| *name == short)?;
    u32::try_from(at).ok()
}

fn days(text: &str) -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = match part.split_once("..") {
            Some((first, last)) => (day(first)?, day(last)?),
            None => (day(part)?, day(part)?),
        };
        let mut at = first;
        found.insert(at);
        while at != last {
            at = (at + 1) % 7;
            found.insert(at);
        }
    }
    Some(found)
}

/// `*`, `5`, `1,3`, `2..6`, `*/15`, `0/30`.
fn numbers(text: &str, least: u32, most: u32) -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        let (span, every) = match part.split_once('/') {
            Some((span, every)) => (span, Some(every.parse().ok().filter(|every: &u32| *every > 0)?)),
            None => (part, None),
        };
        let (from, to) = match (span, span.split_once("..")) {
            ("*" | "", _) if span == "*" || every.is_some() => (least, most),
            (_, Some((low, high))) => (low.parse().ok()?, high.parse().ok()?),
            (_, None) => {
                let one = span.parse().ok()?;
                (one, if every.is_some() { most } else { one })
            }
        };
        if from < least || to > most || from > to {
            return None;
        }
        let stride = usize::try_from(every.unwrap_or(1)).unwrap_or(1);
        found.extend((from..=to).step_by(stride));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

    use super::*;

    #[test]
    fn events_are_due_when_they_say() {
        // Monday, 30 November 2026, 12:14:17 UTC.
        let now = 1_796_040_857;
        let next = |text: &str| Calendar::parse(text).unwrap().next(now).unwrap() - now;
        assert_eq!(next("daily"), 42_343);
        assert_eq!(next("mon..fri 02:00"), 49_543);
        assert_eq!(next("*/15"), 43);
        assert_eq!(next("hourly"), 2743);
        assert_eq!(next("monthly"), 42_343);
        assert!(Calendar::parse("whenever").is_none());
        assert!(Calendar::parse("25:00").is_none());
        assert!(Calendar::parse("mon 61").is_none());
    }
}
