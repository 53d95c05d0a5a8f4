//! Decides how text that a guest, a user of PVE or a caller wrote is shown to people: on one line,
//! without characters that move the cursor, hide or reorder what follows, and not too long.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces control and direction characters by their escapes.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) {
            // Writing into a String cannot fail.
            let _ = write!(out, "{}", character.escape_default());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// [`visible`], cut after `limit` characters.
pub fn shown(text: &str, limit: usize) -> String {
    // Escapes only make text longer, so cutting first bounds the work on hostile input.
    let end = text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at);
    let head = text.get(..end).unwrap_or(text);
    let mut out = visible(head).into_owned();
    if end < text.len() {
        out.push('…');
    }
    out
}

/// Characters that are not what they look like on a terminal or in a chat.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_untouched_and_tricks_are_escaped() {
        assert!(matches!(visible("web-01 (Ümlaut)"), Cow::Borrowed(_)));
        assert_eq!(visible("a\u{1b}[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb\\nc\\u{202e}d");
        assert_eq!(shown("abcdef", 3), "abc…");
        assert_eq!(shown("äöü", 3), "äöü");
    }
}
