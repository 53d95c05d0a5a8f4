//! Decides which forms in free text hold a secret: task logs, error texts, property strings, URLs.

use super::HIDDEN;
use super::names::is_secret;
use regex::{Captures, Regex, RegexSet};
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

/// All forms, and the question whether any is there, answered in one pass.
struct Forms {
    any: RegexSet,
    each: Vec<Form>,
}

/// `None` only if a form could not be compiled, which a test rules out; text is then hidden as a whole.
static FORMS: LazyLock<Option<Forms>> = LazyLock::new(|| {
    let quoted = r#""[^"\r\n]*"?|'[^'\r\n]*'?"#;
    let forms: [(String, Mask); 13] = [
        // A key without its end is masked to the end of the text.
        (r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)".to_owned(), whole),
        (r"(?i)([a-z][a-z0-9+.-]*://)([^/\s?#\x22'<>]*)(@)".to_owned(), middle),
        (r"(?i)\b((?:proxy-)?authorization)(\x22?\s*[:=]\s*)[^\r\n]+".to_owned(), rest),
        (r"(PVEAPIToken|PVEAuthCookie|PBSAPIToken|PMGAPIToken)([= :]+)[^\s,;&\x22']+".to_owned(), rest),
        (r"\b(PVE|PVEVNC|PBS|PMG|PMGQUAR)(:)[^\s:]+:[0-9A-Fa-f]{8}::[^\s,;&\x22']+".to_owned(), rest),
        (r"(?i)\b(bearer)(\s+)[a-z0-9._~+/=-]{8,}".to_owned(), rest),
        // `name=value`, `"name": "value"`, `--name value`.
        (format!(r#"(?i)([\w.-]*(?:{WORDS}))(["']?\s*=\s*)((?:{quoted}|[^\s,;&"'])+)"#), assigned),
        (format!(r#"(?i)([\w.-]*(?:{WORDS}))(["']\s*:\s*)((?:{quoted})+)"#), assigned),
        (format!(r"(?i)(-[\w.-]*(?:{WORDS}))([ \t]+)([^\s\x22'-][^\s]*)"), assigned),
        // A bearer secret of a server like this one, which holds no more than its digest.
        (r"pvegate_[A-Za-z0-9_-]{43}".to_owned(), whole),
        // A header given as a property string (webhooks).
        (
            r"(?i)\b(name=[^,;\s]*(?:auth|key|token|secret|password|cookie)[^,;\s]*)([,;]value=)[^\s,;]+".to_owned(),
            rest,
        ),
        // A line of a configuration, whose value is one word: prose after a colon stays.
        (format!(r"(?im)\b([\w.-]*(?:{WORDS}))([ \t]*:[ \t]+)([^\s]+)[ \t]*$"), assigned),
        // Settings that hold command lines or environment, to the end of the line.
        (r"(?im)^(args|env|cipassword|lxc\.[\w.]+)([ \t]*[:=][ \t]*)[^\r\n]+$".to_owned(), rest),
    ];
    let any = RegexSet::new(forms.iter().map(|(text, _)| text)).ok()?;
    let each = forms.into_iter().map(|(text, mask)| Some(Form { regex: Regex::new(&text).ok()?, mask }));
    Some(Forms { any, each: each.collect::<Option<_>>()? })
});

fn part<'a>(found: &'a Captures<'_>, number: usize) -> &'a str {
    found.get(number).map_or("", |found| found.as_str())
}

/// Nothing is kept.
fn whole(_: &Captures<'_>) -> String {
    HIDDEN.to_owned()
}

/// First and last part are kept.
fn middle(found: &Captures<'_>) -> String {
    format!("{}{HIDDEN}{}", part(found, 1), part(found, 3))
}

/// Name and separator are kept.
fn rest(found: &Captures<'_>) -> String {
    format!("{}{}{HIDDEN}", part(found, 1), part(found, 2))
}

/// Masks the value if the name is a secret's.
fn assigned(found: &Captures<'_>) -> String {
    let name = part(found, 1);
    // `scsi0.password` and `--password` are judged by their last word.
    let last = name.rsplit('.').next().unwrap_or(name).trim_start_matches('-');
    if is_secret(last) { format!("{name}{}{HIDDEN}", part(found, 2)) } else { part(found, 0).to_owned() }
}

/// Whether all forms compiled; without them every text is hidden, and a server that hides everything should not start.
pub(super) fn are_ready() -> bool {
    FORMS.is_some()
}

/// Masks every form. Text without any of the signs that they share is not looked at closely.
pub(super) fn mask(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b'=' | b':' | b' ')) && !text.contains("pvegate_") {
        return Cow::Borrowed(text);
    }
    // Owned, so that who looks only for a change sees one.
    let Some(forms) = FORMS.as_ref() else { return Cow::Owned(HIDDEN.to_owned()) };
    if !forms.any.is_match(text) {
        return Cow::Borrowed(text);
    }
    let mut out = Cow::Borrowed(text);
    for form in &forms.each {
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
