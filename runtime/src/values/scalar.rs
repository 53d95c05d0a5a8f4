//! Decides how scalars in PVE's answers are read: Perl does not tell numbers from text, so one column may hold
//! `1`, `"1"` and `true`.

use serde_json::{Number, Value};

/// A boolean: true and false, 0 and 1, as numbers or text, and the words that PVE's configuration files have.
/// Nothing at all and empty text are no. `None`: it is none of these.
pub fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Null => Some(false),
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => number.as_f64().map(|number| number != 0.0),
        Value::String(text) if text.is_empty() => Some(false),
        Value::String(text) => word(text),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A boolean inside a property string or a configuration file.
pub fn word(text: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(["1", "on", "yes", "true"]) {
        Some(true)
    } else if is_one_of(["0", "off", "no", "false"]) {
        Some(false)
    } else {
        None
    }
}

/// A whole number, as a number or text.
pub fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A whole number as it is passed on: also one that is too large to be counted with here (ids and sizes without sign).
pub fn exact(value: &Value) -> Option<Number> {
    let unsigned = || value.as_str()?.parse::<u64>().ok();
    integer(value)
        .map(Number::from)
        .or_else(|| unsigned().map(Number::from))
        .or_else(|| whole(value.as_str().and_then(|_| number(value))?).map(Number::from))
}

/// A number as it is passed on: what is whole loses no digit.
pub fn measure(value: &Value) -> Option<Number> {
    exact(value).or_else(|| Number::from_f64(number(value)?))
}

/// A number, as a number or text. Text like `inf` is none: JSON has no such number.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

/// Numbers up to 2^53 are exact as floating point.
#[allow(clippy::cast_possible_truncation, reason = "checked: whole and within the exact range")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}
