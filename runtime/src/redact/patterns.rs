//! Decides which forms in free text hold a secret: task logs, error texts, property strings, URLs.

use super::HIDDEN;
use super::names::is_secret;
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// What stays of a form, with the secret masked.
type Mask = fn(&Captures<'_>) -> String;

/// A form and what is kept of it.
struct Form {
    regex: Regex,
    mask: Mask,
}

/// Words whose value follows `=`. The whole word around it is judged by name.
const WORDS: &str = r"password|passwd|passphrase|pwd|secret|token|ticket|api[_-]?key|private[_-]?key|client[_-]?key|secret[_-]?key|access[_-]?key|master[_-]?key|encryption[_-]?key|hmac[_-]?key|keyring|crypted|otp|challenge|authorization";

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let forms: [(String, Mask); 10] = [
        // A key without its end is masked to the end of the text.
        (r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)".to_owned(), |_| {
            HIDDEN.to_owned()
        }),
        (r"(?i)([a-z][a-z0-9+.-]*://)[^/\s?#\x22'<>]*@".to_owned(), |found| format!("{}{HIDDEN}@", part(found, 1))),
        (r"(?i)\b((?:proxy-)?authorization)(\x22?\s*[:=]\s*)[^\r\n]+".to_owned(), |found| {
            format!("{}{}{HIDDEN}", part(found, 1), part(found, 2))
        }),
        (
            r"(PVE(?:API|VNC)?(?:API)?(?:Token|AuthCookie)|PBSAPIToken|PMGAPIToken)[= :]+[^\s,;&\x22']+".to_owned(),
            |found| format!("{}={HIDDEN}", part(found, 1)),
        ),
        (r"\b(PVE|PVEVNC|PBS|PMG|PMGQUAR):[^\s:]+:[0-9A-Fa-f]{8}::[^\s,;&\x22']+".to_owned(), |found| {
            format!("{}:{HIDDEN}", part(found, 1))
        }),
        (r"(?i)\b(bearer)\s+[a-z0-9._~+/=-]{8,}".to_owned(), |found| format!("{} {HIDDEN}", part(found, 1))),
        // `name=value`, `"name": "value"`, `--name value`.
        (format!(r#"(?i)([\w.-]*(?:{WORDS}))(["']?\s*=\s*)((?:"[^"\r\n]*"?|'[^'\r\n]*'?|[^\s,;&"'])+)"#), assigned),
        (format!(r#"(?i)([\w.-]*(?:{WORDS}))(["']\s*:\s*)((?:"[^"\r\n]*"?|'[^'\r\n]*'?)+)"#), assigned),
        (format!(r"(?i)(-[\w.-]*(?:{WORDS}))([ \t]+)([^\s\x22'-][^\s]*)"), assigned),
        // A line of a configuration, whose value is one word: prose after a colon stays.
        (format!(r"(?im)\b([\w.-]*(?:{WORDS}))([ \t]*:[ \t]+)([^\s]+)[ \t]*$"), assigned),
    ];
    let mut list: Vec<Form> =
        forms.into_iter().filter_map(|(text, mask)| Some(Form { regex: Regex::new(&text).ok()?, mask })).collect();
    // Settings that hold command lines or environment, to the end of the line.
    if let Ok(regex) = Regex::new(r"(?im)^((?:args|env|cipassword|lxc\.[\w.]+))([ \t]*[:=][ \t]*)([^\r\n]+)$") {
        list.push(Form { regex, mask: |found| format!("{}{}{HIDDEN}", part(found, 1), part(found, 2)) });
    }
    list
});

fn part<'a>(found: &'a Captures<'_>, number: usize) -> &'a str {
    found.get(number).map_or("", |found| found.as_str())
}

/// Masks the value if the name is a secret's.
fn assigned(found: &Captures<'_>) -> String {
    let name = part(found, 1);
    // `scsi0.password` and `--password` are judged by their last word.
    let last = name.rsplit('.').next().unwrap_or(name).trim_start_matches('-');
    if is_secret(last) { format!("{name}{}{HIDDEN}", part(found, 2)) } else { part(found, 0).to_owned() }
}

/// Masks every form. Text without any of the signs that they share is not looked at closely.
pub(super) fn mask(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b'=' | b':' | b' ')) {
        return Cow::Borrowed(text);
    }
    let mut out = Cow::Borrowed(text);
    for form in FORMS.iter() {
        if !form.regex.is_match(&out) {
            continue;
        }
        let masked = form.regex.replace_all(&out, form.mask).into_owned();
        if masked != *out {
            out = Cow::Owned(masked);
        }
    }
    out
}

/// Whether a line opens a private key.
pub(super) fn begins_private_key(line: &str) -> bool {
    line.contains("-----BEGIN") && line.contains("PRIVATE KEY-----")
}

/// Whether a line closes one.
pub(super) fn ends_private_key(line: &str) -> bool {
    line.contains("-----END") && line.contains("PRIVATE KEY-----")
}
