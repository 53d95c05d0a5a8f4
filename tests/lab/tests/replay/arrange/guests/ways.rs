//! The states that a guest can have been in before a request, as the other recordings tell.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{config, subject};
use crate::arrange::Way;
use crate::known::Known;
use crate::question::Question;
use crate::recording::Recording;

/// Configurations of a guest that are tried.
const CONFIGS: usize = 5;
/// Writes to a guest that are tried one by one, and in pairs.
const SINGLES: usize = 30;
const PAIRED: usize = 6;
/// How many ways there are at most.
const MOST: usize = 240;
/// Writes that are further away were made in another session.
const NEAR: u64 = 40;

/// A guest before a request; one without a configuration was not there.
#[derive(Clone, Debug, PartialEq)]
pub struct Before {
    pub(super) config: Value,
    pub(super) running: bool,
    /// The lock that it was under.
    pub(super) lock: Option<String>,
    /// Whether HA managed it.
    pub(super) managed: bool,
}

/// The ways to a request about a guest: each configuration that is known of it, idle and running, as it was and behind
/// the writes to it that were recorded near; under the locks that others met, and managed.
pub fn ways<'a>(question: &Question, known: Known<'a>) -> Vec<Way<'a>> {
    let Some((kind, vmid)) = subject(question) else { return Vec::new() };
    let configs = config::candidates(known, kind, vmid, question.seq, CONFIGS);
    let near = |other: &&Recording| {
        subject(&other.question) == Some((kind, vmid)) && other.question.seq.abs_diff(question.seq) <= NEAR
    };
    let plain = |config: &Value, running: bool| Before { config: config.clone(), running, lock: None, managed: false };
    let mut guests: Vec<Before> =
        configs.iter().flat_map(|config| [false, true].map(|running| plain(config, running))).collect();
    let first = configs.first().cloned().unwrap_or_default();
    let mut ways = Vec::new();
    let running_matters = known.others().filter(near).any(|other| other.question.limited);
    if question.method() == "GET" {
        let locks: BTreeSet<String> =
            known.others().filter(near).flat_map(|other| other.question.named("is locked (", ")")).collect();
        guests.extend(locks.into_iter().map(|lock| Before { lock: Some(lock), ..plain(&first, false) }));
        if known.others().filter(near).any(|other| other.question.says("used in HA resources")) {
            guests.push(Before { managed: true, ..plain(&first, false) });
        }
        let makers = known.writes().filter(|other| config::makes(other, kind, vmid));
        for maker in makers.filter(|other| other.question.seq.abs_diff(question.seq) <= NEAR) {
            let guest = Some(plain(&Value::Null, false));
            ways.push(Way { guest, writes: vec![maker], ..Way::default() });
        }
        for writes in sets(question, known.others().filter(near)) {
            let few = [0, 2, 4, 1].into_iter().filter_map(|place| guests.get(place));
            for guest in few.filter(|guest| writes.len() == 1 || !guest.running || running_matters) {
                ways.push(Way { guest: Some(guest.clone()), writes: writes.clone(), ..Way::default() });
            }
        }
    }
    let alone = guests.into_iter().map(|guest| Way { guest: Some(guest), ..Way::default() });
    let mut all: Vec<Way<'_>> = alone.chain(ways).collect();
    all.truncate(MOST);
    all
}

/// Sets of the writes to a guest that a read may show: each alone, and each two of the nearest, in either order; writes whose tasks failed
/// leave something too.
fn sets<'a>(question: &Question, near: impl Iterator<Item = &'a Recording>) -> Vec<Vec<&'a Recording>> {
    let mut writes: Vec<&Recording> = near.filter(|other| other.tried()).collect();
    let below = |question: &Question, at: usize| question.plain_path().split('/').nth(at + 1).map(str::to_owned);
    let read = below(question, 4).unwrap_or_default();
    writes.retain(|other| {
        let step = below(&other.question, 4).unwrap_or_default();
        match read.as_str() {
            "snapshot" => step == "snapshot",
            "agent" => {
                below(&other.question, 5).as_deref() == Some("file-write")
                    && question.queried("file").as_deref() == other.question.given("file")
            }
            "config" | "pending" => matches!(step.as_str(), "config" | "snapshot" | "resize"),
            "status" => step == "config" || other.question.steps().ends_with(&["status", "suspend"]),
            _ => false,
        }
    });
    writes.sort_by_key(|other| other.question.seq.abs_diff(question.seq));
    let mut sets: Vec<Vec<&Recording>> = writes.iter().take(SINGLES).map(|write| vec![*write]).collect();
    for (place, one) in writes.iter().enumerate().take(PAIRED) {
        for other in writes.iter().take(PAIRED).skip(place + 1) {
            sets.push(vec![*one, *other]);
            sets.push(vec![*other, *one]);
        }
    }
    sets
}
