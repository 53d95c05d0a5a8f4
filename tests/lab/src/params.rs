//! How parameters travel: percent-decoding, the form parser with PVE's own rules, JSON bodies.

mod json;

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::answer::Answer;

/// Parameters by name. A repeated key is an array.
pub(crate) type Params = BTreeMap<String, Value>;

/// Decodes a path the way PVE does before it routes: all at once, each byte one Latin-1 character.
pub(crate) fn decode_path(raw: &str) -> String {
    percent_decode_str(raw).map(char::from).collect()
}

/// Reads a query or a form: pairs end at `&` and at `;`, and a value ends at a second `=`.
pub(crate) fn decode_form(form: &str) -> Params {
    let mut params = Params::new();
    for pair in form.split(['&', ';']).filter(|pair| !pair.is_empty()) {
        let mut parts = pair.split('=');
        let name = decode_text(parts.next().unwrap_or_default());
        // A bare key names a parameter without giving it.
        let value = parts.next().map_or(Value::Null, |value| Value::String(decode_text(value)));
        match params.get_mut(&name) {
            None => {
                params.insert(name, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    params
}

fn decode_text(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// Reads a body by its content type.
pub(crate) fn decode_body(content_type: Option<&str>, body: &[u8]) -> Result<Params, Answer> {
    let kind = content_type
        .unwrap_or("application/x-www-form-urlencoded")
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match kind.as_str() {
        "application/x-www-form-urlencoded" => Ok(decode_form(&String::from_utf8_lossy(body))),
        "application/json" => decode_json(body),
        "multipart/form-data" => Err(Answer::proxy(500, "upload failed")),
        other => Err(Answer::proxy(506, &format!("upload 'Content-Type '{other}' not implemented"))),
    }
}

fn decode_json(body: &[u8]) -> Result<Params, Answer> {
    // Errors of the parser name the place in PVE's own program.
    let died = |what: String, line: u32| {
        Answer::died(&format!("{what} at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line {line}."))
    };
    let scalar =
        |text: &str| died(format!("Can't use string (\"{text}\") as a HASH ref while \"strict refs\" in use"), 978);
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(fields)) => Ok(fields.into_iter().map(|(name, value)| (name, plain(value))).collect()),
        Ok(Value::Array(_)) => Err(died("Not a HASH reference".to_owned(), 978)),
        Ok(Value::Null) => Err(died("Can't use an undefined value as a HASH reference".to_owned(), 978)),
        Ok(Value::String(text)) => Err(scalar(&text)),
        Ok(other) => Err(scalar(&other.to_string())),
        Err(_) => Err(died(json::complaint(&String::from_utf8_lossy(body)), 934)),
    }
}

/// Scalars are text to PVE, wherever they come from.
fn plain(value: Value) -> Value {
    match value {
        Value::Bool(flag) => Value::String(if flag { "1" } else { "0" }.to_owned()),
        Value::Number(number) => Value::String(written(&number)),
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        other => other,
    }
}

/// A number as Perl writes it: without a fraction of zero.
fn written(number: &serde_json::Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The text of a scalar parameter.
pub(crate) fn text<'a>(params: &'a Params, name: &str) -> Option<&'a str> {
    params.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

    use super::*;
    use serde_json::json;

    #[test]
    fn the_form_parser_cuts_where_pve_cuts() {
        let params = decode_form("net0=virtio,bridge=vmbr0&a=1;b=2&a=3&bare");
        assert_eq!(params.get("net0").unwrap(), &json!("virtio,bridge"));
        assert_eq!(params.get("a").unwrap(), &json!(["1", "3"]));
        assert_eq!(params.get("b").unwrap(), &json!("2"));
        assert_eq!(params.get("bare").unwrap(), &Value::Null);
    }

    #[test]
    fn a_path_is_decoded_byte_by_byte() {
        assert_eq!(decode_path("/qemu/100%2Fconfig"), "/qemu/100/config");
        assert_eq!(decode_path("/schn%C3%A4"), "/schnÃ¤");
        assert_eq!(decode_path("/a+b"), "/a+b");
    }
}
