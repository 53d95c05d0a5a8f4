//! What an entry has to say and does not is refused, and so is what it says and may not.

use toml::Value;

use crate::schema::{AREAS, real};

/// The refusal after an operation's entry is edited.
fn refusal(operation: &str, edit: impl Fn(&mut toml::Table)) -> String {
    let file = AREAS.into_iter().find(|file| real().table(file)["operations"].get(operation).is_some()).unwrap();
    let mut table = real().table(file);
    edit(table["operations"][operation].as_table_mut().unwrap());
    real().refusal(file, &table)
}

#[track_caller]
fn assert_says(refusal: &str, operation: &str, what: &str) {
    assert!(refusal.contains(operation) && refusal.contains(what), "`{operation}` or `{what}` is not in: {refusal}");
}

const START: &str = "POST /nodes/{node}/qemu/{vmid}/status/start";
const CONFIG: &str = "GET /nodes/{node}/qemu/{vmid}/config";
const LIST: &str = "GET /nodes/{node}/qemu";

#[test]
fn every_key_that_is_needed() {
    for (operation, key, what) in [
        (START, "task", "set `task`"),
        (START, "settle", "`settle`"),
        (START, "undo", "`undo`"),
        (START, "args", "lists its `args`"),
        (LIST, "rows", "`rows`"),
    ] {
        let refusal = refusal(operation, |entry| {
            entry.remove(key).unwrap();
        });
        assert_says(&refusal, operation, what);
    }
    for key in ["tier", "summary"] {
        let refusal = refusal(START, |entry| {
            entry.remove(key).unwrap();
        });
        assert!(refusal.contains("guests.toml:") && refusal.contains(key), "{refusal}");
    }
}

/// Reads of one object that tell of the whole cluster through what their path or arguments name. No grammar tells them
/// from others, so they stand here too.
const OBJECTS_OF_EVERYTHING: [&str; 10] = [
    "GET /cluster/sdn/dry-run",
    "GET /nodes/{node}/ceph/cfg/raw",
    "GET /nodes/{node}/ceph/cfg/value",
    "GET /nodes/{node}/ceph/cmd-safety",
    "GET /nodes/{node}/ceph/crush",
    "GET /nodes/{node}/ceph/osd",
    "GET /nodes/{node}/ceph/osd/{osdid}/lv-info",
    "GET /nodes/{node}/ceph/osd/{osdid}/metadata",
    "GET /nodes/{node}/ceph/pool/{name}/status",
    "GET /nodes/{node}/ceph/status",
];

#[test]
fn objects_of_everything_say_so() {
    let tables: Vec<toml::Table> = AREAS.iter().map(|file| real().table(file)).collect();
    for operation in OBJECTS_OF_EVERYTHING {
        let entry = tables.iter().find_map(|table| table["operations"].get(operation)).unwrap();
        assert_eq!(entry.get("rows").and_then(toml::Value::as_str), Some("all"), "{operation}");
    }
}

/// All of them at once, in every file: each refusal names its operation.
#[test]
fn no_operation_gets_by_without_them() {
    for file in AREAS {
        for key in ["task", "settle", "undo", "rows", "args"] {
            let mut table = real().table(file);
            let mut named = Vec::new();
            for (operation, entry) in table["operations"].as_table_mut().unwrap() {
                if entry.as_table_mut().unwrap().remove(key).is_some() {
                    named.push(operation.clone());
                }
            }
            if named.is_empty() {
                continue;
            }
            let refusal = real().refusal(file, &table);
            for operation in named {
                if key == "rows" && OBJECTS_OF_EVERYTHING.contains(&operation.as_str()) {
                    continue;
                }
                assert!(refusal.contains(&operation), "{key} of {operation} is missed by nobody");
            }
        }
    }
}

#[test]
fn keys_of_another_kind_of_operation() {
    let set = |operation: &str, key: &str, value: &str| {
        let value = format!("value = {value}").parse::<toml::Table>().unwrap()["value"].clone();
        refusal(operation, |entry| {
            entry.insert(key.to_owned(), value.clone());
        })
    };
    assert_says(&set(CONFIG, "settle", "\"task\""), CONFIG, "`settle` is for operations that change something");
    assert_says(
        &set(CONFIG, "undo", "{ none = \"nothing\" }"),
        CONFIG,
        "`undo` is for operations that change something",
    );
    assert_says(&set(CONFIG, "args", "[\"current\"]"), CONFIG, "`args` is for low operations");
    assert_says(&set(CONFIG, "task", "\"yes\""), CONFIG, "`task` is for operations that return a string");
    let refusal = set(CONFIG, "rows", "\"bound\"");
    assert!(
        refusal.contains("guests.toml:") && refusal.contains("`rows` is for reads that return a list"),
        "{refusal}"
    );
    assert_says(&set(START, "args", "[\"no-such\"]"), START, "no parameter `no-such`");
    assert_says(&set(START, "args", "[\"vmid\"]"), START, "`vmid` is in the path");
    assert_says(&set(START, "fixed", "{ no-such = \"1\" }"), START, "no parameter `no-such`");
    assert_says(&set(START, "undo", "\"POST /no/such\""), START, "there is no operation `POST /no/such`");
    assert_says(&set(START, "summary", "\"\""), START, "`summary` has to have 1 to 100 characters");
    assert_says(
        &set(START, "summary", &format!("\"{}\"", "x".repeat(101))),
        START,
        "`summary` has to have 1 to 100 characters",
    );
    assert_says(&set(LIST, "rows", "[\"guest:no-such\"]"), LIST, "no column `no-such`");
}

#[test]
fn a_read_that_may_return_a_secret_is_closed() {
    let refusal = refusal(CONFIG, |entry| {
        entry.insert("flags".to_owned(), Value::Array(vec![Value::String("secret-out".to_owned())]));
        entry.remove("offered");
        entry.remove("leaves");
    });
    assert_says(&refusal, CONFIG, "its answer may hold a secret");
    // Where an entry says which keys may leave, they are what opens it.
    let leaving = |file: &&str| {
        real().table(file)["operations"]
            .as_table()
            .unwrap()
            .iter()
            .find(|(_, entry)| {
                entry.get("leaves").is_some()
                    && entry.get("flags").is_some_and(|flags| flags.to_string().contains("secret-out"))
            })
            .map(|(name, _)| name.clone())
    };
    for operation in AREAS.iter().filter_map(leaving) {
        let refusal = self::refusal(&operation, |entry| {
            entry.remove("leaves").unwrap();
        });
        assert_says(&refusal, &operation, "its answer may hold a secret");
    }
}

#[test]
fn a_change_that_no_token_reaches_is_never_offered() {
    let never = real()
        .model
        .operations
        .iter()
        .find(|operation| operation.mutates() && operation.permission == pvegate_codegen::model::Permission::RootOnly)
        .unwrap();
    let refusal = refusal(&never.name, |entry| {
        entry.remove("offered").unwrap();
    });
    assert_says(&refusal, &never.name, "root-only");
}

#[test]
fn patterns_neither_set_low_nor_read_for_a_post() {
    let pattern = |operation: &str, keys: &str| {
        let file = AREAS.into_iter().find(|file| real().table(file)["operations"].get(operation).is_some()).unwrap();
        let mut table = real().table(file);
        table["operations"].as_table_mut().unwrap().remove(operation).unwrap();
        let entry =
            format!("match = \"{operation}\"\nsummary = \"Do something\"\n{keys}").parse::<toml::Table>().unwrap();
        table
            .entry("patterns")
            .or_insert_with(|| Value::Array(Vec::new()))
            .as_array_mut()
            .unwrap()
            .push(Value::Table(entry));
        real().refusal(file, &table)
    };
    let refusal =
        pattern(START, "tier = \"low\"\nargs = []\ntask = \"yes\"\nsettle = \"task\"\nundo = { none = \"nothing\" }");
    assert_says(&refusal, START, "a pattern never sets `low`");
    let refusal = pattern(START, "tier = \"read\"\ntask = \"yes\"");
    assert_says(&refusal, START, "a pattern sets `read` for GETs only");
    // New in the newest release: named exactly or not at all.
    let newest = real().model.releases.len() - 1;
    let added =
        real().model.operations.iter().find(|operation| operation.since == newest && operation.verb == "GET").unwrap();
    let refusal = pattern(&added.name, "tier = \"read\"\nrows = \"all\"");
    assert_says(&refusal, &added.name, "covered only by the pattern");
}
