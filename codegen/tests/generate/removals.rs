//! No entry of the overlay can be removed unnoticed.
//!
//! Each is removed on its own, and the join has to refuse and name what is then undecided; where an
//! entry only adds to what is generated, the output has to differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use toml::{Table, Value};

use crate::schema::{AREAS, Real, real};

/// One removal: the file, where in it, and what the refusal has to name (one of several, with `|`).
struct Removal {
    file: String,
    path: Vec<Step>,
    named: String,
}

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    At(usize),
}

impl Removal {
    fn of(file: &str, path: &[Step], named: &str) -> Self {
        Self { file: file.to_owned(), path: path.to_vec(), named: named.to_owned() }
    }

    fn table(&self, tables: &BTreeMap<&str, Table>) -> Table {
        let mut root = Value::Table(tables[self.file.as_str()].clone());
        remove(&mut root, &self.path);
        match root {
            Value::Table(table) => table,
            _ => unreachable!("a file is a table"),
        }
    }

    /// What is wrong with how the removal is noticed.
    fn complaint(&self, real: &Real, tables: &BTreeMap<&str, Table>) -> Option<String> {
        let Self { file, path, named } = self;
        match real.with_table(file, &self.table(tables)) {
            Err(problems) if named.split('|').any(|name| problems.to_string().contains(name)) => None,
            Err(problems) => Some(format!("{file} {path:?}: the refusal does not name `{named}`: {problems}")),
            Ok(model) => {
                real.differing(&model).is_empty().then(|| format!("{file} {path:?} ({named}): removed unnoticed"))
            }
        }
    }
}

/// Removes what is at the path; a list that becomes empty goes as well, as a person would do it.
fn remove(value: &mut Value, path: &[Step]) {
    let [step, rest @ ..] = path else { return };
    let inner = match (value, step) {
        (Value::Table(table), Step::Key(key)) if rest.is_empty() => {
            table.remove(key).unwrap();
            return;
        }
        (Value::Array(items), Step::At(at)) if rest.is_empty() => {
            items.remove(*at);
            return;
        }
        (Value::Table(table), Step::Key(key)) => {
            let inner = table.get_mut(key).unwrap();
            remove(inner, rest);
            if matches!(inner, Value::Array(items) if items.is_empty()) && rest.len() == 1 && path.len() > 1 {
                table.remove(key);
            }
            return;
        }
        (Value::Array(items), Step::At(at)) => &mut items[*at],
        _ => unreachable!("paths come from the file itself"),
    };
    remove(inner, rest);
}

fn key(key: &str) -> Step {
    Step::Key(key.to_owned())
}

fn assert_noticed(removals: &[Removal]) {
    let real = real();
    let tables: BTreeMap<&str, Table> = removals
        .iter()
        .map(|removal| removal.file.as_str())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|file| (file, real.table(file)))
        .collect();
    let next = AtomicUsize::new(0);
    let complaints = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(removal) = removals.get(next.fetch_add(1, Ordering::Relaxed)) {
                    complaints.lock().unwrap().extend(removal.complaint(real, &tables));
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{} of {} removals:\n{}", complaints.len(), removals.len(), complaints.join("\n"));
}

fn items<'a>(table: &'a Table, key: &str) -> Vec<&'a Table> {
    table
        .get(key)
        .and_then(Value::as_array)
        .map(|items| items.iter().filter_map(Value::as_table).collect())
        .unwrap_or_default()
}

/// Each element of a list of strings in an entry.
fn parts(
    file: &str,
    list: &str,
    at: usize,
    entry: &Table,
    keys: &[&str],
    named: impl Fn(&str) -> String,
) -> Vec<Removal> {
    let of = |part: &&str| -> Vec<Removal> {
        let texts: Vec<&str> =
            entry.get(*part).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        // Without its only name a rule is no rule.
        let alone = texts.len() == 1 && ["names", "formats"].contains(part);
        texts
            .into_iter()
            .enumerate()
            .filter(|_| !alone)
            .map(|(number, text)| {
                Removal::of(file, &[key(list), Step::At(at), key(part), Step::At(number)], &named(text))
            })
            .collect()
    };
    keys.iter().flat_map(of).collect()
}

#[test]
fn decisions() {
    let mut removals = Vec::new();
    for file in AREAS {
        let table = real().table(file);
        for name in table["operations"].as_table().unwrap().keys() {
            removals.push(Removal::of(file, &[key("operations"), key(name)], name));
        }
        for (at, pattern) in items(&table, "patterns").into_iter().enumerate() {
            removals.push(Removal::of(file, &[key("patterns"), Step::At(at)], "no entry of the overlay decides"));
            removals.extend(parts(file, "patterns", at, pattern, &["except"], str::to_owned));
        }
    }
    assert_eq!(removals.len(), real().model.operations.len());
    assert_noticed(&removals);
}

#[test]
fn roles() {
    let table = real().table("roles.toml");
    let mut removals = Vec::new();
    for list in ["roles", "property_roles"] {
        for (at, rule) in items(&table, list).into_iter().enumerate() {
            removals.push(Removal::of("roles.toml", &[key(list), Step::At(at)], "no rule gives it a role"));
            removals.extend(parts("roles.toml", list, at, rule, &["names", "except_names"], str::to_owned));
            // What these select is named by operation and parameter, or the rule that is left over by its place.
            removals.extend(parts("roles.toml", list, at, rule, &["formats", "places", "only", "except"], |_| {
                "role".to_owned()
            }));
        }
    }
    assert_noticed(&removals);
}

#[test]
fn words() {
    let table = real().table("params.toml");
    let mut removals: Vec<Removal> = table["wire"]
        .as_table()
        .unwrap()
        .keys()
        .map(|name| Removal::of("params.toml", &[key("wire"), key(name)], name))
        .collect();
    for (at, entry) in items(&table, "words").into_iter().enumerate() {
        let name = entry["name"].as_str().unwrap();
        removals.push(Removal::of("params.toml", &[key("words"), Step::At(at)], name));
        // Without any `only`, words cover operations that need none so far: a text for the next tool, and nothing that is decided.
        let several = entry.get("only").and_then(Value::as_array).is_some_and(|only| only.len() > 1);
        removals.extend(parts(
            "params.toml",
            "words",
            at,
            entry,
            if several { &["only", "except"] } else { &["except"] },
            |_| name.to_owned(),
        ));
    }
    assert_noticed(&removals);
}

#[test]
fn privileges() {
    let table = real().table("privileges.toml");
    let of = |section: &str| -> Vec<Removal> {
        table[section]
            .as_table()
            .unwrap()
            .keys()
            .map(|name| Removal::of("privileges.toml", &[key(section), key(name)], name))
            .collect()
    };
    assert_noticed(&["operations", "qemu", "lxc"].into_iter().flat_map(of).collect::<Vec<_>>());
}

#[test]
fn operations_that_the_server_needs() {
    let table = real().table("internal.toml");
    let of = |section: &str| -> Vec<Removal> {
        let names = table[section].as_table().unwrap().keys();
        names.map(|name| Removal::of("internal.toml", &[key(section), key(name)], name)).collect()
    };
    assert_noticed(&["operations", "parameters"].into_iter().flat_map(of).collect::<Vec<_>>());
}

#[test]
fn ranges() {
    let table = real().table("fixups.toml");
    let mut removals = Vec::new();
    for (at, range) in items(&table, "ranges").into_iter().enumerate() {
        let first = range["names"][0].as_str().unwrap();
        removals.push(Removal::of("fixups.toml", &[key("ranges"), Step::At(at)], first));
        removals.extend(parts("fixups.toml", "ranges", at, range, &["names"], str::to_owned));
        removals.extend(parts("fixups.toml", "ranges", at, range, &["only"], |_| "[n]".to_owned()));
    }
    assert_noticed(&removals);
}

#[test]
fn tools() {
    let mut removals = Vec::new();
    for file in real()
        .inputs
        .files
        .keys()
        .filter_map(|path| path.strip_prefix("overlay/"))
        .filter(|file| file.starts_with("tools/"))
    {
        for (at, tool) in items(&real().table(file), "tools").into_iter().enumerate() {
            // What is left without use is named: its words.
            removals.push(Removal::of(file, &[key("tools"), Step::At(at)], "params.toml"));
            removals.extend(parts(file, "tools", at, tool, &["args"], |_| {
                format!("params.toml|{}", tool["name"].as_str().unwrap())
            }));
            for name in tool.keys().filter(|name| {
                !["name", "title", "description", "operation", "operations", "args", "arguments"]
                    .contains(&name.as_str())
            }) {
                removals.push(Removal::of(
                    file,
                    &[key("tools"), Step::At(at), key(name)],
                    &format!("params.toml|{}", tool["name"].as_str().unwrap()),
                ));
            }
            for (number, argument) in items(tool, "arguments").into_iter().enumerate() {
                removals.push(Removal::of(
                    file,
                    &[key("tools"), Step::At(at), key("arguments"), Step::At(number)],
                    argument["name"].as_str().unwrap(),
                ));
            }
        }
    }
    assert_noticed(&removals);
}

/// Fixups change the pin as it is read, so the newest is read again each time.
#[test]
fn fixups() {
    let real = real();
    let table = real.table("fixups.toml");
    let mut complaints = Vec::new();
    for list in ["fixups", "synthetic"] {
        for (at, entry) in items(&table, list).into_iter().enumerate() {
            let mut removals = vec![Removal::of("fixups.toml", &[key(list), Step::At(at)], "")];
            removals.extend(parts("fixups.toml", list, at, entry, &["remove"], |_| String::new()));
            for name in entry.get("set").and_then(Value::as_table).into_iter().flat_map(Table::keys) {
                removals.push(Removal::of("fixups.toml", &[key(list), Step::At(at), key("set"), key(name)], ""));
            }
            let at = entry["at"].as_str().unwrap();
            let operation: String = at.split(' ').take(2).collect::<Vec<_>>().join(" ");
            for removal in removals {
                let text = toml::to_string(&removal.table(&[("fixups.toml", table.clone())].into())).unwrap();
                let mut inputs = real.inputs.clone();
                inputs.files.insert("overlay/fixups.toml".to_owned(), text);
                match pvegate_codegen::model(&inputs) {
                    Err(problems) if names(&problems.to_string(), &operation) => {}
                    Err(problems) => complaints
                        .push(format!("{:?}: the refusal does not name {operation}: {problems}", removal.path)),
                    Ok(model) if real.differing(&model).is_empty() => {
                        complaints.push(format!("{:?} ({at}): removed unnoticed", removal.path));
                    }
                    Ok(_) => {}
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// By its name, or by verb and path apart as places in the apidoc are written.
fn names(text: &str, operation: &str) -> bool {
    let (verb, path) = operation.split_once(' ').unwrap();
    text.contains(operation) || text.contains(path) && text.contains(verb)
}
