//! Decides what may stand in a path where PVE's schema gives no grammar: one segment, never more.

use super::text_value;

text_value!(
    /// A path value of no particular kind: an id, a realm, a service.
    PathSegment,
    "a value for a path",
    "1 to 255 ASCII characters without `/`, `\\`, `%`, `?`, `#`, blanks and control characters, and not `.` or `..`",
    |text| text.len() <= 255
        && !text.is_empty()
        && !matches!(text, "." | "..")
        // PVE takes each byte of a path for a character of Latin-1, so that other letters arrive as others.
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\' | b'%' | b'?' | b'#'))
);
