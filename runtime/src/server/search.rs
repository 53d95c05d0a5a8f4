//! Finding operations by words.

use std::sync::OnceLock;

use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Offered, Operation};
use pvegate_generated::terms::Tier;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::State;
use super::page;
use crate::mcp::{Answer, Refusal};

/// How many are shown where the caller does not say.
const USUAL: usize = 10;

/// Longest query, in bytes, and how many of its words are looked for: every one is compared with the whole catalog.
const LONGEST_QUERY: usize = 1000;
const MOST_WORDS: usize = 16;

/// With fewer hits than this, those that lack one word are shown too.
const FEW: usize = 3;

/// What can be asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    query: String,
    tier: Option<String>,
    area: Option<String>,
    limit: Option<usize>,
}

/// Words that stand for others in this field.
const SYNONYMS: &[(&str, &str)] = &[
    ("vm", "qemu"),
    ("vms", "qemu"),
    ("virtual", "qemu"),
    ("container", "lxc"),
    ("containers", "lxc"),
    ("ct", "lxc"),
    ("backup", "vzdump"),
    ("backups", "backup"),
    ("image", "iso"),
    ("disk", "disks"),
    ("memory", "status"),
    ("cpu", "status"),
    ("user", "users"),
    ("log", "tasks"),
    ("ip", "interfaces"),
    ("permission", "acl"),
    ("permissions", "acl"),
    ("rule", "rules"),
    ("snapshots", "snapshot"),
    ("machine", "qemu"),
    ("machines", "qemu"),
    ("ram", "status"),
    ("swap", "status"),
    ("usage", "status"),
    ("health", "status"),
    ("address", "interfaces"),
    ("addresses", "interfaces"),
    ("gpu", "pci"),
    ("update", "apt"),
    ("updates", "apt"),
];

/// Words of sentences that say nothing about an operation.
const FILLERS: &[&str] = &[
    "a", "all", "an", "and", "are", "at", "by", "can", "do", "does", "for", "from", "has", "have", "how", "i", "in",
    "is", "it", "list", "many", "me", "much", "my", "of", "on", "or", "please", "show", "that", "the", "there", "to",
    "what", "where", "which", "who", "with",
];

struct Entry {
    operation: &'static Operation,
    summary: Vec<String>,
    path: Vec<String>,
    params: Vec<String>,
}

fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let entry = |operation: &&'static Operation| Entry {
            operation,
            summary: words(operation.summary),
            path: words(operation.path),
            params: operation.params.iter().flat_map(|parameter| words(parameter.name)).collect(),
        };
        OPERATIONS.iter().map(entry).collect()
    })
}

fn words(text: &str) -> Vec<String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// The words of a query that are looked for, each once.
fn wanted(query: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words(query) {
        if !all.contains(&word) && all.len() < 4 * MOST_WORDS {
            all.push(word);
        }
    }
    let mut telling: Vec<String> = all.iter().filter(|word| !FILLERS.contains(&word.as_str())).cloned().collect();
    if telling.is_empty() {
        telling = all;
    }
    telling.truncate(MOST_WORDS);
    telling
}

/// The best matches.
pub fn answer(state: &State, asked: &Search) -> Result<Answer, Refusal> {
    if asked.query.len() > LONGEST_QUERY {
        return Err(Refusal::new(
            "invalid_arguments",
            format!("`query` has {} bytes, and at most {LONGEST_QUERY} are taken", asked.query.len()),
            "Give a few words such as `snapshot rollback`.",
        ));
    }
    let wanted = wanted(&asked.query);
    if wanted.is_empty() {
        return Err(Refusal::new(
            "invalid_arguments",
            "`query` has no word in it",
            "Give words such as `snapshot rollback`.",
        ));
    }
    let tier = known("tier", asked.tier.as_deref(), Tier::ALL.iter().map(|tier| tier.as_str()))?;
    let area =
        known("area", asked.area.as_deref(), pvegate_generated::terms::Area::ALL.iter().map(|area| area.as_str()))?;
    let matches: Vec<(usize, u32, &'static Operation)> = entries()
        .iter()
        .filter(|entry| {
            tier.is_none_or(|tier| entry.operation.tier.as_str() == tier)
                && area.is_none_or(|area| entry.operation.area.as_str() == area)
        })
        .map(|entry| (score(entry, &wanted), entry.operation))
        .map(|((words, sum), operation)| (words, sum, operation))
        .collect();
    // Those that have most of the words; usually that is all of them.
    let most = matches.iter().map(|(words, ..)| *words).max().unwrap_or_default().max(1);
    let best = matches.iter().filter(|(words, ..)| *words == most).count();
    let least = if best < FEW && most > 1 { most - 1 } else { most };
    let mut found: Vec<(bool, usize, u32, &'static Operation)> = matches
        .into_iter()
        .filter(|(words, ..)| *words >= least)
        .map(|(words, sum, operation)| (reachable(state, operation), words, sum, operation))
        .collect();
    found.sort_by_key(|(reachable, words, sum, operation)| {
        (!reachable, std::cmp::Reverse((*words, *sum)), operation.name.len(), operation.name)
    });
    let total = found.len();
    let rows_shown = asked.limit.unwrap_or(USUAL).clamp(1, 50);
    let rows: Vec<Json> =
        found.into_iter().take(rows_shown).map(|(reachable, _, _, operation)| row(operation, reachable)).collect();
    // No cursor: who wants more than the best says other words.
    let mut answer = json!({"items": rows, "total": total});
    if let (Some(answer), true) = (answer.as_object_mut(), total > rows_shown) {
        answer.insert("more".to_owned(), Json::from("Other words or a higher limit show the rest."));
    }
    page::of_object(answer, &[])
}

fn known<'a>(
    name: &str,
    asked: Option<&'a str>,
    words: impl Iterator<Item = &'static str> + Clone,
) -> Result<Option<&'a str>, Refusal> {
    match asked {
        Some(word) if !words.clone().any(|known| known == word) => Err(Refusal::new(
            "invalid_arguments",
            format!("`{name}` has to be one of {}", words.collect::<Vec<_>>().join(", ")),
            "Leave it out to search all.",
        )),
        other => Ok(other),
    }
}

fn reachable(state: &State, operation: &Operation) -> bool {
    match operation.offered {
        Offered::Yes => true,
        Offered::OptIn(_) => state.opted_in(operation.name),
        Offered::Never(_) => false,
    }
}

fn row(operation: &Operation, reachable: bool) -> Json {
    let mut row = json!({"operation": operation.name, "summary": operation.summary, "tier": operation.tier.as_str()});
    if let (Some(row), false) = (row.as_object_mut(), reachable) {
        let reason = match operation.offered {
            Offered::OptIn(reason) | Offered::Never(reason) => reason.as_str(),
            Offered::Yes => "",
        };
        row.insert("not_offered".to_owned(), Json::from(reason));
    }
    row
}

/// How many of the words are somewhere in the entry, and how well: where they are, and how whole.
fn score(entry: &Entry, wanted: &[String]) -> (usize, u32) {
    let mut words = 0;
    let mut sum = 0;
    for word in wanted {
        let synonym = SYNONYMS.iter().find(|(known, _)| known == word).map(|(_, other)| *other);
        let best = [Some(word.as_str()), synonym]
            .into_iter()
            .flatten()
            .map(|word| score_word(entry, word))
            .max()
            .unwrap_or_default();
        words += usize::from(best > 0);
        sum += best;
    }
    (words, sum)
}

fn score_word(entry: &Entry, word: &str) -> u32 {
    let within = |list: &[String], whole: u32, part: u32| {
        if list.iter().any(|known| known == word) {
            whole
        } else if word.len() > 2
            && list.iter().any(|known| known.starts_with(word) || known.len() > 3 && word.starts_with(known.as_str()))
        {
            part
        } else {
            0
        }
    };
    let verb = u32::from(entry.operation.verb.as_str().eq_ignore_ascii_case(word));
    within(&entry.summary, 6, 4) + within(&entry.path, 5, 3) + within(&entry.params, 2, 1) + verb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_become_few_telling_words() {
        assert_eq!(wanted("How much memory does my VM use?"), ["memory", "vm", "use"]);
        assert_eq!(wanted("list all"), ["list", "all"]);
        assert_eq!(wanted("snapshot snapshot rollback"), ["snapshot", "rollback"]);
        let many: Vec<String> = (0..500).map(|number| format!("w{number}")).collect();
        assert_eq!(wanted(&many.join(" ")).len(), MOST_WORDS);
    }
}
