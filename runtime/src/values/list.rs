//! Decides how a `-list` string is taken apart and put together: PVE splits at more characters than it says.

/// Elements of a `-list` string. PVE splits at `,`, `;`, blanks and NUL, and drops what is empty, so that a comma
/// at the end does no harm.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| matches!(character, ',' | ';' | '\0') || character.is_whitespace())
        .filter(|element| !element.is_empty())
}

/// Whether PVE takes the text for one element, and for this one.
pub fn is_element(text: &str) -> bool {
    split(text).eq([text])
}

/// Writes elements as one list, in the form that all releases take.
pub fn join<T: AsRef<str>>(elements: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    for element in elements {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(element.as_ref());
    }
    out
}
