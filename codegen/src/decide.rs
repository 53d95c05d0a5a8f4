//! Which entry of the overlay decides about which operation and parameter: exactly one each.

use std::collections::{BTreeMap, BTreeSet};

use crate::overlay::{Decision, Entry, RoleRule, Uses, Words, patterns};
use crate::pattern::Pattern;
use crate::problem::Problems;
use crate::terms::{Role, Tier};

/// The decision about each operation.
pub struct Decisions<'a> {
    entries: &'a [Entry<Decision>],
    /// The entries for one operation each, by its name; there are hundreds.
    named: BTreeMap<&'a str, Vec<&'a Entry<Decision>>>,
    patterns: Vec<&'a Entry<Decision>>,
    uses: Uses,
}

impl<'a> Decisions<'a> {
    /// Over the entries of all area files.
    pub fn new(entries: &'a [Entry<Decision>]) -> Self {
        let mut named: BTreeMap<&str, Vec<&Entry<Decision>>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| !entry.value.is_pattern) {
            named.entry(entry.value.pattern.as_str()).or_default().push(entry);
        }
        let patterns = entries.iter().filter(|entry| entry.value.is_pattern).collect();
        Self { entries, named, patterns, uses: Uses::default() }
    }

    /// The one entry that decides about `operation`. `added` says that the previous pinned release lacks it,
    /// `described_get` that a pattern may call it a read.
    pub fn decide(&mut self, operation: &str, added: bool, problems: &mut Problems) -> Option<&'a Entry<Decision>> {
        let mut deciding = self.named.get(operation).cloned().unwrap_or_default();
        for entry in &deciding {
            self.uses.mark(&entry.place);
        }
        for entry in &self.patterns {
            if !entry.value.pattern.matches(operation) {
                continue;
            }
            if entry.value.except.iter().any(|name| name == operation) {
                self.uses.mark(format!("{} {operation}", entry.place));
            } else {
                self.uses.mark(&entry.place);
                deciding.push(entry);
            }
        }
        match deciding.as_slice() {
            [] => {
                problems.push(operation, "no entry of the overlay decides about it: give it a tier in schema/overlay/");
                None
            }
            [entry] => {
                check_pattern(entry, operation, added, problems);
                Some(entry)
            }
            several => {
                let places: Vec<&str> = several.iter().map(|entry| entry.place.as_str()).collect();
                problems.push(
                    operation,
                    format!("decided by several entries: {}; name it in `except` of the patterns", places.join(", ")),
                );
                None
            }
        }
    }

    /// Reports entries that decided nothing.
    pub fn finish(&self, problems: &mut Problems) {
        for entry in self.entries {
            self.uses.require_entry(&entry.place, &entry.place, problems);
            for name in &entry.value.except {
                self.uses.require_part(&format!("{} {name}", entry.place), name, &entry.place, problems);
            }
        }
    }
}

fn check_pattern(entry: &Entry<Decision>, operation: &str, added: bool, problems: &mut Problems) {
    if !entry.value.is_pattern {
        return;
    }
    if added {
        problems.push(
            operation,
            format!(
                "new in the newest pinned release and covered only by the pattern at {}: name it exactly",
                entry.place
            ),
        );
    }
    match entry.value.keys.tier {
        Tier::Low => problems
            .push(&entry.place, format!("a pattern never sets `low`, and it covers {operation}: name it exactly")),
        Tier::Read if !operation.starts_with("GET ") => {
            problems.push(
                &entry.place,
                format!("a pattern sets `read` for GETs only, and it covers {operation}: name it exactly"),
            );
        }
        Tier::Read | Tier::Destructive => {}
    }
}

/// What a rule can look at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The operation's name; for keys of property strings the parameter's name.
    pub within: &'a str,
    /// The parameter's or key's name.
    pub name: &'a str,
    /// Its named format.
    pub format: Option<&'a str>,
    /// `path`, `query` or `body`; empty inside property strings.
    pub place: &'a str,
}

/// The rules of `[[roles]]` or `[[property_roles]]`.
pub struct Roles<'a> {
    rules: Vec<Compiled<'a>>,
    /// Which rules name a parameter, or its format.
    by_name: BTreeMap<&'a str, Vec<usize>>,
    by_format: BTreeMap<&'a str, Vec<usize>>,
    uses: Uses,
}

struct Compiled<'a> {
    entry: &'a Entry<RoleRule>,
    only: Vec<Filter>,
    except: Vec<Filter>,
}

/// Operations for `[[roles]]`, parameter names for `[[property_roles]]`.
enum Filter {
    Operation(Pattern),
    Parameter(String),
}

impl Filter {
    fn matches(&self, within: &str) -> bool {
        match self {
            Self::Operation(pattern) => pattern.matches(within),
            Self::Parameter(name) => name == within,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Operation(pattern) => pattern.as_str(),
            Self::Parameter(name) => name,
        }
    }
}

impl<'a> Roles<'a> {
    /// Rules about parameters: `only` and `except` are operation patterns.
    pub fn of_parameters(entries: &'a [Entry<RoleRule>], problems: &mut Problems) -> Self {
        Self::compile(entries, problems, |texts, place, problems| {
            patterns(texts, place, problems).into_iter().map(Filter::Operation).collect()
        })
    }

    /// Rules about keys of property strings: `only` and `except` are parameter names.
    pub fn of_keys(entries: &'a [Entry<RoleRule>], problems: &mut Problems) -> Self {
        Self::compile(entries, problems, |texts, _, _| texts.iter().cloned().map(Filter::Parameter).collect())
    }

    fn compile(
        entries: &'a [Entry<RoleRule>],
        problems: &mut Problems,
        filters: impl Fn(&[String], &str, &mut Problems) -> Vec<Filter>,
    ) -> Self {
        let (mut by_name, mut by_format) = (BTreeMap::<&str, Vec<usize>>::new(), BTreeMap::<&str, Vec<usize>>::new());
        let rules = entries
            .iter()
            .enumerate()
            .map(|(at, entry)| {
                for (texts, index) in [(&entry.value.names, &mut by_name), (&entry.value.formats, &mut by_format)] {
                    for text in texts {
                        index.entry(text).or_default().push(at);
                    }
                }
                let RoleRule { names, formats, only, except, places, except_names, .. } = &entry.value;
                if names.is_empty() == formats.is_empty() {
                    problems.push(&entry.place, "a role rule needs either `names` or `formats`");
                }
                if !except_names.is_empty() && formats.is_empty() {
                    problems.push(&entry.place, "`except_names` goes with `formats`");
                }
                if let Some(place) = places.iter().find(|place| !["path", "query", "body"].contains(&place.as_str())) {
                    problems.push(&entry.place, format!("`{place}` is not a place: path, query or body"));
                }
                let mut seen = BTreeSet::new();
                for text in names.iter().chain(formats).chain(places).chain(only).chain(except).chain(except_names) {
                    if !seen.insert(text) {
                        problems.push(&entry.place, format!("`{text}` is written twice"));
                    }
                }
                Compiled {
                    entry,
                    only: filters(only, &entry.place, problems),
                    except: filters(except, &entry.place, problems),
                }
            })
            .collect();
        Self { rules, by_name, by_format, uses: Uses::default() }
    }

    /// The roles of all rules that match, each with the rule's place.
    pub fn deciding(&mut self, subject: Subject<'_>) -> Vec<(Role, &'a str)> {
        let mut found = Vec::new();
        let named = self.by_name.get(subject.name).into_iter().flatten();
        let formatted = subject.format.and_then(|format| self.by_format.get(format)).into_iter().flatten();
        // A rule has names or formats; one that wrongly has both is asked once.
        let asked: BTreeSet<usize> = named.chain(formatted).copied().collect();
        for rule in asked.into_iter().filter_map(|at| self.rules.get(at)) {
            if let Some(role) = rule.role_of(subject, &mut self.uses) {
                found.push((role, rule.entry.place.as_str()));
            }
        }
        found
    }

    /// Reports parts of rules that never mattered.
    pub fn finish(&self, problems: &mut Problems) {
        for Compiled { entry, .. } in &self.rules {
            let RoleRule { names, formats, places, only, except, except_names, .. } = &entry.value;
            for part in names.iter().chain(formats).chain(places).chain(only).chain(except).chain(except_names) {
                self.uses.require_part(&format!("{} {part}", entry.place), part, &entry.place, problems);
            }
        }
    }
}

impl Compiled<'_> {
    fn role_of(&self, subject: Subject<'_>, uses: &mut Uses) -> Option<Role> {
        let RoleRule { role, names, formats, places, except_names, .. } = &self.entry.value;
        let key = names
            .iter()
            .find(|name| *name == subject.name)
            .or_else(|| formats.iter().find(|format| Some(format.as_str()) == subject.format))?;
        let placed = places.is_empty() || places.iter().any(|place| place == subject.place);
        let included: Vec<&Filter> = self.only.iter().filter(|filter| filter.matches(subject.within)).collect();
        if !placed || !self.only.is_empty() && included.is_empty() {
            return None;
        }
        // Exceptions count as used only where they take something from the rule.
        let excluded = self.except.iter().find(|filter| filter.matches(subject.within)).map(Filter::text);
        let excluded = excluded.or_else(|| except_names.iter().find(|name| *name == subject.name).map(String::as_str));
        let mut mark = |part: &str| uses.mark(format!("{} {part}", self.entry.place));
        if let Some(part) = excluded {
            mark(part);
            return None;
        }
        mark(key);
        if !places.is_empty() {
            mark(subject.place);
        }
        for filter in included {
            mark(filter.text());
        }
        Some(*role)
    }
}

/// An entry, and the operations that it is about and not about.
type Compared<'a> = (&'a Entry<Words>, Vec<Pattern>, Vec<Pattern>);

/// The words about parameters, by name.
pub struct Glossary<'a> {
    entries: BTreeMap<&'a str, Vec<Compared<'a>>>,
    uses: Uses,
}

impl<'a> Glossary<'a> {
    /// Over `params.toml`. A text that only repeats its name is a problem.
    pub fn new(entries: &'a [Entry<Words>], problems: &mut Problems) -> Self {
        let mut by_name: BTreeMap<&str, Vec<Compared>> = BTreeMap::new();
        for entry in entries {
            if says_nothing(&entry.value.name, &entry.value.text) {
                problems.push(&entry.place, format!("the words for `{}` only repeat its name: say what it is, its unit or form, its effect, and what leaving it out means", entry.value.name));
            }
            let only = patterns(&entry.value.only, &entry.place, problems);
            let except = patterns(&entry.value.except, &entry.place, problems);
            by_name.entry(&entry.value.name).or_default().push((entry, only, except));
        }
        Self { entries: by_name, uses: Uses::default() }
    }

    /// The words about a parameter of an operation; none or several is a problem.
    pub fn words(&mut self, operation: &str, name: &str, problems: &mut Problems) -> Option<&'a str> {
        let mut found: Vec<&Entry<Words>> = Vec::new();
        for (entry, only, except) in self.entries.get(name).into_iter().flatten() {
            if !only.is_empty() && !only.iter().any(|pattern| pattern.matches(operation)) {
                continue;
            }
            if let Some(pattern) = except.iter().find(|pattern| pattern.matches(operation)) {
                self.uses.mark(format!("{} {}", entry.place, pattern.as_str()));
                continue;
            }
            self.uses.mark(&entry.place);
            for pattern in only.iter().filter(|pattern| pattern.matches(operation)) {
                self.uses.mark(format!("{} {}", entry.place, pattern.as_str()));
            }
            found.push(entry);
        }
        match found.as_slice() {
            [] => problems.push(
                format!("{operation} {name}"),
                "a tool or low operation takes it, and schema/overlay/params.toml has no words about it",
            ),
            [entry] => return Some(&entry.value.text),
            several => {
                let places: Vec<&str> = several.iter().map(|entry| entry.place.as_str()).collect();
                problems.push(
                    format!("{operation} {name}"),
                    format!("several entries have words about it: {}", places.join(", ")),
                );
            }
        }
        None
    }

    /// Reports words that nobody reads.
    pub fn finish(&self, problems: &mut Problems) {
        for (entry, only, except) in self.entries.values().flatten() {
            self.uses.require_entry(&entry.place, &format!("{} ({})", entry.place, entry.value.name), problems);
            for pattern in only.iter().chain(except) {
                self.uses.require_part(
                    &format!("{} {}", entry.place, pattern.as_str()),
                    pattern.as_str(),
                    &entry.place,
                    problems,
                );
            }
        }
    }
}

/// Whether a text consists of nothing but the name's own words and filler.
pub fn says_nothing(name: &str, text: &str) -> bool {
    const FILLER: &[&str] = &[
        "a",
        "an",
        "the",
        "of",
        "to",
        "for",
        "this",
        "is",
        "its",
        "value",
        "parameter",
        "argument",
        "option",
        "name",
        "id",
        "identifier",
        "string",
        "number",
        "set",
        "sets",
        "optional",
        "specify",
        "given",
    ];
    let own: BTreeSet<String> = words_of(name);
    words_of(text).iter().filter(|word| !own.contains(*word) && !FILLER.contains(&word.as_str())).count() < 3
}

fn words_of(text: &str) -> BTreeSet<String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.to_lowercase().trim_end_matches('s').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::says_nothing;

    #[test]
    fn texts_made_of_the_name_say_nothing() {
        assert!(says_nothing("vmid", "The VMID."));
        assert!(says_nothing("target-node", "The name of the target node"));
        assert!(says_nothing("timeout", "Optional timeout value."));
        assert!(!says_nothing("timeout", "Seconds to wait before the task fails. Absent: 60."));
    }
}
