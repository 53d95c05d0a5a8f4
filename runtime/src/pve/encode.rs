//! Decides how values are written into a URL or a form: every byte that means something to any parser
//! on the way is percent-encoded.
//!
//! PVE's form parser splits on `&` and `;` and cuts values at a second raw `=`, so nothing reserved stays raw.
//! For paths this is not protection but good manners: see [`crate::values`].

use crate::values::ValueError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// RFC 3986's unreserved characters stay; everything else is encoded.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One path value. Dots alone are refused: no encoding keeps them from meaning a folder.
pub fn segment(value: &str) -> Result<String, ValueError> {
    if matches!(value, "" | "." | "..") {
        return Err(ValueError::new("a path value", value, "not empty, `.` or `..`"));
    }
    Ok(escaped(value))
}

/// Text in which nothing reserved is left.
pub fn escaped(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Pairs for a query or a form, in the order given; a name may come more than once.
pub fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::new();
    for (name, value) in pairs {
        if !out.is_empty() {
            out.push('&');
        }
        out.extend(utf8_percent_encode(name, RESERVED));
        out.push('=');
        out.extend(utf8_percent_encode(value, RESERVED));
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reserved_bytes_are_encoded() {
        assert_eq!(segment("local:iso/a b.iso").unwrap(), "local%3Aiso%2Fa%20b.iso");
        assert_eq!(segment("root@pam!x").unwrap(), "root%40pam%21x");
        assert!(segment("..").is_err());
        assert_eq!(
            pairs([("net0", "virtio,bridge=vmbr0;x&y+z%"), ("ä", "")]),
            "net0=virtio%2Cbridge%3Dvmbr0%3Bx%26y%2Bz%25&%C3%A4="
        );
    }

    proptest! {
        #[test]
        fn decoding_gives_the_value_back(value: String) {
            let encoded = pairs([("k", value.as_str())]);
            let text = encoded.strip_prefix("k=").unwrap();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
            prop_assert_eq!(percent_encoding::percent_decode_str(text).decode_utf8().unwrap(), value);
        }
    }
}
