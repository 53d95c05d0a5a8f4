//! Times of events: milliseconds in the store, RFC 3339 where people read them.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// Milliseconds since 1970; what lies before or too far ahead is brought into range.
pub(super) fn millis(time: SystemTime) -> i64 {
    let span = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    span_millis(span)
}

/// A span in milliseconds.
pub(super) fn span_millis(span: Duration) -> i64 {
    // Half of the range, so that a sum of two stays within it.
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 2)
}

/// The time of so many milliseconds since 1970.
pub(super) fn from_millis(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

/// A time as people read it.
pub(super) fn shown(time: SystemTime) -> String {
    // A time that the calendar cannot show is none that anybody meant.
    let shown = i64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs())
        .ok()
        .and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
    shown.unwrap_or(DateTime::<Utc>::MAX_UTC).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Serializes a time in milliseconds.
pub(super) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let shown = DateTime::<Utc>::from_timestamp_millis(millis(*time)).unwrap_or(DateTime::<Utc>::MAX_UTC);
    serializer.serialize_str(&shown.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// Reads what [`serialize`] wrote.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
    let text = String::deserialize(deserializer)?;
    DateTime::parse_from_rfc3339(&text).map(SystemTime::from).map_err(D::Error::custom)
}
