//! Decides what a caller is told about a failed answer: PVE's own words, masked and made harmless, and what to do.

use super::reading::{is_out_of_time, kind_of, kind_of_text};
use super::reply::{Answered, Envelope};
use super::{Kind, Lane, PveError, Request};
use crate::{redact, untrusted};
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest text of PVE that a message repeats, in characters.
const SHOWN: usize = 1000;
/// Most arguments that a message names.
const PARAMETERS: usize = 32;

/// Makes an error of an answer that is not a success. `cluster` is what messages call it.
pub fn error_from(cluster: &str, request: &Request, answered: Answered<'_>) -> PveError {
    let Answered { status, reason, body, .. } = answered;
    let reason = text_of(reason);
    let envelope = Envelope::read(body).ok();
    let said =
        envelope.as_ref().and_then(|envelope| envelope.message.as_str()).map(str::trim).filter(|text| !text.is_empty());
    let mut parameters = envelope.as_ref().map(|envelope| parameters(&envelope.errors)).unwrap_or_default();
    // The message has all lines, the reason only the first; older releases have just the reason.
    let full = said.map_or_else(|| plain_body(body).unwrap_or_else(|| reason.trim().to_owned()), str::to_owned);
    let judged =
        std::iter::once(full.as_str()).chain(parameters.values().map(String::as_str)).collect::<Vec<_>>().join("\n");
    let kind = kind_of(status, &judged, request.lane == Lane::Slow);
    if kind == Kind::Invalid && parameters.is_empty() {
        parameters = wrapped_parameters(&full);
    }
    // Values are masked before they are shortened, or half a secret could remain.
    let words = untrusted::shown(&harmless(&full), SHOWN);
    let parameters: BTreeMap<String, String> = parameters
        .into_iter()
        .take(PARAMETERS)
        .map(|(name, text)| {
            // PVE repeats values that it refuses.
            let text = if redact::is_secret(&name) { redact::HIDDEN.to_owned() } else { harmless(&text) };
            (untrusted::shown(&name, 64), untrusted::shown(&text, 300))
        })
        .collect();
    let message = sentence(kind, cluster, request, status, &words, &parameters);
    let error = PveError::new(kind, message)
        .with_status(status)
        .with_parameters(parameters)
        .context(format!("{request}: status {status}"));
    match kind {
        Kind::NodeDown if status == 595 => error.not_sent(),
        // Who waits for a lock has not begun.
        Kind::Locked => error.refused(),
        // PVE gave up on what it began, and that may go on.
        _ if status == 500 && is_out_of_time(&judged) => error,
        // The agent said no, or could not be asked. With a 596 its words were lost.
        Kind::Agent if status == 500 => error.refused(),
        // Not an answer of PVE's, or one that came too late: the work may have been done.
        Kind::NodeDown | Kind::Timeout | Kind::Agent | Kind::Busy => error,
        Kind::Other if envelope.is_none() && is_foreign(status, reason.trim(), body) => error,
        _ => error.refused(),
    }
}

/// What to do, after what happened and to what.
fn sentence(
    kind: Kind,
    cluster: &str,
    request: &Request,
    status: u16,
    words: &str,
    parameters: &BTreeMap<String, String>,
) -> String {
    let words = if words.is_empty() { format!("status {status}") } else { words.trim_end_matches('.').to_owned() };
    let node = request.node.as_ref().map_or_else(|| "the node".to_owned(), |node| format!("node {node}"));
    match kind {
        Kind::Unauthorized => {
            format!(
                "cluster {cluster} does not accept the server's API token ({words}); an operator has to check token_id, its secret, its expiry, and that the user is enabled"
            )
        }
        Kind::Forbidden
            if words.contains("root@pam")
                || words.contains("API token")
                || words.contains("only root")
                || words.contains("Only root") =>
        {
            format!("cluster {cluster} lets no API token do {request}: {words}")
        }
        Kind::Forbidden => {
            format!("the server's API token on cluster {cluster} lacks a privilege for {request}: {words}")
        }
        Kind::Invalid if !parameters.is_empty() => {
            let list: Vec<String> = parameters.iter().map(|(name, text)| format!("{name}: {text}")).collect();
            format!("PVE refused arguments of {request}: {}", list.join("; "))
        }
        Kind::NotFound | Kind::Exists if !parameters.is_empty() => {
            let list: Vec<String> = parameters.iter().map(|(name, text)| format!("{name}: {text}")).collect();
            format!("{request} on cluster {cluster}: {}", list.join("; "))
        }
        Kind::NodeDown if status == 596 && words.contains("certificate") => format!(
            "{node} of cluster {cluster} was not trusted by the node that asked it for {request} ({words}); this is between the nodes: look whether their certificates are in order (pvecm updatecerts)"
        ),
        Kind::NodeDown => format!(
            "{node} of cluster {cluster} did not answer {request} ({words}); look at its status in the cluster's node list"
        ),
        Kind::Timeout => format!(
            "{request} on {node} of cluster {cluster} took too long ({words}); what it does may still go on there"
        ),
        Kind::Agent if status == 596 => format!(
            "the guest agent failed in a way that PVE cannot pass on ({words}); a missing program is the usual cause"
        ),
        Kind::Agent => format!("{request}: {words}; the guest needs a running qemu-guest-agent and the agent option"),
        Kind::Locked => format!("{request}: {words}; another task holds the lock, so try again when it has ended"),
        Kind::Busy => format!("cluster {cluster} is too busy for {request} ({words}); try again in a few seconds"),
        Kind::NotImplemented => {
            format!("cluster {cluster} does not have {request}; its PVE release may be older ({words})")
        }
        _ => format!("PVE on cluster {cluster} failed {request}: {words}"),
    }
}

/// `errors` by name. Its texts may hold several lines.
fn parameters(errors: &Value) -> BTreeMap<String, String> {
    let entries = errors.as_object().into_iter().flatten();
    entries.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.trim().to_owned()))).collect()
}

/// A 400 that PVE wrapped as a 500 has its details as lines of the message.
fn wrapped_parameters(message: &str) -> BTreeMap<String, String> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_[].".contains(&byte))
    };
    let lines = message.lines().skip(1).filter_map(|line| line.split_once(": "));
    lines.filter(|(name, _)| is_name(name)).map(|(name, text)| (name.to_owned(), text.trim().to_owned())).collect()
}

/// pveproxy's own errors are plain text; an HTML page says nothing worth repeating.
fn plain_body(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    (!text.is_empty() && text.len() <= 4096 && !text.starts_with(['<', '{', '[']) && kind_of_text(text).is_some())
        .then(|| text.to_owned())
}

/// A reason phrase or header text: UTF-8 where it is, Latin-1 otherwise.
fn text_of(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect(), str::to_owned)
}

/// Whether an answer is of something between the server and PVE, which may have passed the request on before it failed.
/// PVE's own failures outside JSON are a 500 that says in plain text what is wrong.
fn is_foreign(status: u16, reason: &str, body: &[u8]) -> bool {
    status != 500 || reason == "Internal Server Error" || body.trim_ascii_start().first() == Some(&b'<')
}

/// Masked line by line, as the text was written: some forms of secrets end with their line.
fn harmless(text: &str) -> String {
    one_line(&redact::text(text))
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
