//! What had been written before a read, as the other recordings tell: each set of their writes that can have been done.
//!
//! Only writes that touch what is read count, and what these need. Removals come last.

use std::collections::BTreeSet;

use super::{Start, Way, kept};
use crate::known::Known;
use crate::question::{Question, decoded};
use crate::recording::Recording;
use crate::stage::Stage;

/// With more writes than this, not every set of them is tried.
const ALL_SETS: usize = 5;
/// How many ways there are at most.
const MOST: usize = 70;
/// Writes that are further away were made in another session.
const NEAR: u64 = 120;

/// The ways to a read.
pub fn ways<'a>(question: &Question, known: Known<'a>) -> Vec<Way<'a>> {
    let mut ways =
        vec![Way { start: Start::Baseline, ..Way::default() }, Way { start: Start::Empty, ..Way::default() }];
    let path = question.plain_path();
    let mut writes: Vec<&Recording> = known.writes().filter(|other| touches(&path, other)).collect();
    writes.retain(|other| other.question.seq.abs_diff(question.seq) <= NEAR);
    writes.sort_by_key(|other| (order(other), other.question.seq));
    for set in sets(&writes) {
        let mut all = Vec::new();
        for write in set {
            needs(write, known, &mut all);
        }
        for start in [Start::Baseline, Start::Empty] {
            ways.push(Way { start, writes: all.clone(), ..Way::default() });
        }
    }
    ways.truncate(MOST);
    ways
}

/// The ways that other reads of the same show: of the same path, of the list that it is in, of the entries that it lists,
/// and of lists that hold the same.
pub fn shown<'a>(question: &Question, known: Known<'a>) -> Vec<Way<'a>> {
    let path = question.plain_path();
    let list = path.rsplit_once('/').map_or("", |(list, _)| list);
    let lists = |other: &str| match list_of(&path) {
        Some(family) => list_of(other) == Some(family),
        None => false,
    };
    let mut near: Vec<&Recording> =
        known.reads().filter(|other| other.question.seq.abs_diff(question.seq) <= NEAR).collect();
    near.extend(known.reads().filter(|other| other.question.seq == 0 && question.seq > NEAR));
    near.sort_by_key(|other| other.question.seq.abs_diff(question.seq));
    let of = |fits: &dyn Fn(&str) -> bool| -> Vec<&'a Recording> {
        near.iter().copied().filter(|other| fits(&other.question.plain_path())).collect()
    };
    let same = of(&|other| other == path);
    // Of something small, such as a guest, other parts tell too.
    let beside = list.matches('/').count() >= 4;
    let parents =
        of(&|other| other == list || lists(other) || beside && other.starts_with(&format!("{list}/")) && other != path);
    let children = of(&|other| other.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/')));
    let one = |other: &&'a Recording| Way { start: Start::Baseline, shown: vec![*other], ..Way::default() };
    let mut ways: Vec<Way<'a>> = same.iter().chain(&parents).map(one).collect();
    if !children.is_empty() {
        ways.push(Way { start: Start::Baseline, shown: children.clone(), ..Way::default() });
        ways.push(Way { start: Start::Empty, shown: children.clone(), ..Way::default() });
        ways.extend(children.iter().map(|other| Way { start: Start::Empty, shown: vec![*other], ..Way::default() }));
    }
    ways.truncate(MOST);
    ways
}

/// Lists that hold the same things.
fn list_of(path: &str) -> Option<&'static str> {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    match steps.as_slice() {
        ["nodes", _, "storage", _, "content" | "prunebackups", ..] | ["nodes", _, "vzdump", "extractconfig"] => {
            Some("content")
        }
        ["nodes", _, "qemu" | "lxc" | "storage"] | ["nodes", _, "storage", _, "status"] | ["cluster", "resources"] => {
            Some("resources")
        }
        _ => None,
    }
}

/// Repeats writes; what failed for want of another one is tried again.
pub async fn repeat(stage: &Stage<'_>, writes: &[&Recording]) {
    let mut left: Vec<&Recording> = writes.to_vec();
    for _ in 0..3 {
        let mut failed = Vec::new();
        for write in left {
            let answer = stage.repeat(write).await;
            if answer.get("message").is_some() {
                failed.push(write);
            }
        }
        if failed.is_empty() {
            return;
        }
        left = failed;
    }
}

fn order(write: &Recording) -> u8 {
    match write.question.method() {
        "POST" => 0,
        "PUT" => 1,
        _ => 2,
    }
}

/// The collection that something belongs to, over all nodes.
fn family(path: &str) -> String {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    match steps.as_slice() {
        ["nodes", _, "storage", ..] | ["storage", ..] => "storage".to_owned(),
        [first @ ("pools" | "access"), ..] => (*first).to_owned(),
        ["nodes", _, second, ..] | ["cluster", second, ..] => (*second).to_owned(),
        _ => String::new(),
    }
}

/// Whether a write changes what a read of the path shows.
fn touches(path: &str, write: &Recording) -> bool {
    let own = write.question.plain_path();
    if family(&own) != family(path) || family(path).is_empty() {
        return false;
    }
    let made = kept::made(&write.question).unwrap_or_default();
    let within = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
    if within(&own, path) || within(path, &own) || within(&made, path) || within(path, &made) {
        return true;
    }
    let id = path.rsplit('/').next().unwrap_or_default();
    let list = path.matches('/').count() < 3;
    // A list shows what its entries are given elsewhere too.
    values(&write.question).contains(id) || list && values(&write.question).contains(path.trim_start_matches('/'))
}

/// Everything that a write gives, element by element, with the names of what it gives.
fn values(question: &Question) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |name: &str, text: &str| {
        let elements = text.split([',', ';', ' ']).filter(|element| !element.is_empty());
        let elements: Vec<String> = elements.map(str::to_owned).collect();
        if !elements.is_empty() {
            found.insert(format!("access/{name}"));
        }
        found.extend(elements);
    };
    match question.fields() {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let texts = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                texts.iter().filter_map(|text| text.as_str()).for_each(|text| add(name, text));
            }
        }
        serde_json::Value::Array(pairs) => {
            for pair in pairs {
                add(pair[0].as_str().unwrap_or_default(), pair[1].as_str().unwrap_or_default());
            }
        }
        _ => {}
    }
    found
}

/// A write behind those that make what it is about and what it names.
fn needs<'a>(write: &'a Recording, known: Known<'a>, all: &mut Vec<&'a Recording>) {
    if all.contains(&write) {
        return;
    }
    let path = write.question.plain_path();
    let mut named = values(&write.question);
    named.extend(path.split('/').map(decoded));
    let makers: Vec<&Recording> = known
        .writes()
        .filter(|other| other.question.method() == "POST" && *other != write)
        .filter(|other| family(&other.question.plain_path()) == family(&path))
        .filter(|other| {
            let made = kept::made(&other.question).unwrap_or_default();
            made.rsplit('/').next().is_some_and(|id| !id.is_empty() && named.contains(id))
                && Some(&made) != kept::made(&write.question).as_ref()
        })
        .collect();
    let mut before: Vec<&Recording> = Vec::new();
    for maker in makers {
        if !all.contains(&maker) && !before.contains(&maker) {
            before.push(maker);
        }
    }
    all.extend(before);
    all.push(write);
}

/// The sets of writes that are tried, the likeliest first.
fn sets<'a>(writes: &[&'a Recording]) -> Vec<Vec<&'a Recording>> {
    let posted = |write: &&&Recording| write.question.method() == "POST";
    let stays = |write: &&&Recording| write.question.method() != "DELETE";
    let makers: Vec<&Recording> = writes.iter().filter(posted).copied().collect();
    let kept: Vec<&Recording> = writes.iter().filter(stays).copied().collect();
    let mut found = vec![kept.clone(), makers.clone(), writes.to_vec()];
    if writes.len() <= ALL_SETS {
        for bits in 1..(1_u32 << writes.len()) {
            let chosen = writes.iter().enumerate().filter(|(place, _)| bits & (1 << place) != 0);
            found.push(chosen.map(|(_, write)| *write).collect());
        }
    } else {
        for (place, write) in writes.iter().enumerate() {
            let mut with = makers.clone();
            if !with.contains(write) {
                with.push(write);
            }
            found.push(with);
            found.push(vec![write]);
            // Up to a point, and from there on.
            found.push(writes.iter().take(place + 1).copied().collect());
            found.push(kept.iter().filter(|other| other != &write).copied().collect());
        }
    }
    let mut different: Vec<Vec<&Recording>> = Vec::new();
    for set in found {
        if !set.is_empty() && !different.contains(&set) {
            different.push(set);
        }
    }
    different
}
