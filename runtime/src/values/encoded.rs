//! Decides how text travels that PVE keeps percent-encoded (`sshkeys`): written encoded, and once more as every
//! form value is; read decoded.

use super::ValueError;
use crate::pve::encode;
use percent_encoding::percent_decode_str;
use std::fmt;

/// Text whose form in PVE's configuration is percent-encoded. It is printed encoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EncodedText(Box<str>);

impl EncodedText {
    /// Takes plain text, or text that is encoded already: what has escapes in it and nothing that would need one.
    /// Public keys have blanks in them, so theirs is never in doubt.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        let plain = if has_escapes(text) && is_encoded(text) { decode(text) } else { Some(text.to_owned()) };
        plain.and_then(Self::new).ok_or_else(|| {
            ValueError::new("text that can be encoded", text, "not empty, in UTF-8, and without NUL bytes")
        })
    }

    /// Reads what PVE answers. `None`: PVE would not take this for encoded text.
    pub fn read(encoded: &str) -> Option<Self> {
        decode(encoded).filter(|_| is_encoded(encoded)).and_then(Self::new)
    }

    fn new(plain: String) -> Option<Self> {
        (!plain.is_empty() && !plain.contains('\0')).then(|| Self(plain.into()))
    }

    /// What people read.
    pub fn plain(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EncodedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode::escaped(&self.0))
    }
}

/// The characters that PVE lets stand in encoded text.
pub fn is_encoded(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-%_.!~*'()".contains(&byte))
}

/// Whether there is an escape, and no percent sign that begins none.
fn has_escapes(text: &str) -> bool {
    let mut after = text.split('%').skip(1).peekable();
    after.peek().is_some()
        && after.all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

fn decode(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}
