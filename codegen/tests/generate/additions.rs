//! What matches nothing, is written twice, or is not known is refused, and the refusal names it.

use toml::{Table, Value};

use crate::schema::{AREAS, real};

fn entry(text: &str) -> Value {
    Value::Table(text.parse::<Table>().unwrap())
}

/// The refusal after an entry is added to a list of a file.
fn refusal_with(file: &str, list: &str, text: &str) -> String {
    let mut table = real().table(file);
    table.entry(list).or_insert_with(|| Value::Array(Vec::new())).as_array_mut().unwrap().push(entry(text));
    real().refusal(file, &table)
}

/// The refusal after a key is set in a section of a file.
fn refusal_with_key(file: &str, section: &str, key: &str, value: &str) -> String {
    let mut table = real().table(file);
    let value = entry(&format!("value = {value}"))["value"].clone();
    table[section].as_table_mut().unwrap().insert(key.to_owned(), value);
    real().refusal(file, &table)
}

/// The refusal after a text is added to a list inside the first entry that has such a list.
fn refusal_with_part(file: &str, list: &str, part: &str, text: &str) -> String {
    let mut table = real().table(file);
    let entries = table[list].as_array_mut().unwrap();
    let texts = entries
        .iter_mut()
        .find_map(|entry| entry.get_mut(part))
        .and_then(Value::as_array_mut)
        .unwrap_or_else(|| panic!("{file} has no {part} in {list}"));
    texts.push(Value::String(text.to_owned()));
    real().refusal(file, &table)
}

#[track_caller]
fn assert_names(refusal: &str, names: &[&str]) {
    for name in names {
        assert!(refusal.contains(name), "`{name}` is not in: {refusal}");
    }
}

#[test]
fn an_operation_that_does_not_exist() {
    for file in AREAS {
        let refusal =
            refusal_with_key(file, "operations", "GET /no/such", "{ tier = \"read\", summary = \"Read nothing\" }");
        assert_names(&refusal, &[file, "GET /no/such", "matches nothing"]);
    }
}

#[test]
fn a_pattern_that_matches_nothing() {
    let refusal = refusal_with(
        "cluster.toml",
        "patterns",
        "match = \"GET /no/such/**\"\ntier = \"read\"\nsummary = \"Read nothing\"",
    );
    assert_names(&refusal, &["cluster.toml:", "GET /no/such/**", "matches nothing"]);
}

#[test]
fn an_operation_that_two_entries_decide() {
    let refusal = refusal_with(
        "cluster.toml",
        "patterns",
        "match = \"GET /version\"\ntier = \"read\"\nsummary = \"Read the version\"",
    );
    assert_names(&refusal, &["GET /version: decided by several entries", "cluster.toml:"]);
}

#[test]
fn parts_of_role_rules_that_match_nothing() {
    let rule = |keys: &str| refusal_with("roles.toml", "roles", &format!("role = \"plain\"\n{keys}"));
    assert_names(&rule("names = [\"no-such-name\"]"), &["roles.toml:", "no-such-name"]);
    assert_names(&rule("formats = [\"no-such-format\"]"), &["roles.toml:", "no-such-format"]);
    assert_names(
        &refusal_with("roles.toml", "property_roles", "role = \"plain\"\nnames = [\"no-such-key\"]"),
        &["roles.toml:", "no-such-key"],
    );
    for part in ["names", "formats", "only", "except", "except_names"] {
        let text = if ["only", "except"].contains(&part) { "GET /no/such" } else { "no-such" };
        assert_names(&refusal_with_part("roles.toml", "roles", part, text), &["roles.toml:", text]);
    }
    assert_names(&refusal_with_part("roles.toml", "property_roles", "only", "no-such[n]"), &["no-such[n]"]);
}

#[test]
fn a_parameter_that_two_rules_decide() {
    let refusal = refusal_with(
        "roles.toml",
        "roles",
        "role = \"plain\"\nnames = [\"node\"]\nonly = [\"GET /nodes/{node}/status\"]",
    );
    assert_names(&refusal, &["GET /nodes/{node}/status node", "several rules"]);
}

#[test]
fn words_that_nobody_reads() {
    let refusal =
        refusal_with("params.toml", "words", "name = \"no-such\"\ntext = \"Seconds to wait before nothing happens.\"");
    assert_names(&refusal, &["params.toml:", "no-such", "matches nothing"]);
    assert_names(&refusal_with_part("params.toml", "words", "only", "GET /no/such"), &["params.toml:", "GET /no/such"]);
}

#[test]
fn words_that_only_repeat_the_name() {
    let mut table = real().table("params.toml");
    let words = table["words"].as_array_mut().unwrap();
    let at = words.iter().position(|entry| entry["name"].as_str() == Some("timeout")).unwrap();
    words[at]
        .as_table_mut()
        .unwrap()
        .insert("text".to_owned(), Value::String("The optional timeout value.".to_owned()));
    assert_names(&real().refusal("params.toml", &table), &["params.toml:", "`timeout`", "only repeat its name"]);
}

#[test]
fn privileges_of_nothing() {
    assert_names(
        &refusal_with_key("privileges.toml", "operations", "GET /no/such", "{ kind = \"any-user\", rule = \"none\" }"),
        &["privileges.toml", "GET /no/such"],
    );
    for kind in ["qemu", "lxc"] {
        assert_names(
            &refusal_with_key("privileges.toml", kind, "no-such", "\"VM.Config.CPU\""),
            &["privileges.toml", "no-such", kind],
        );
    }
}

#[test]
fn repairs_of_nothing() {
    let read_again = |list: &str, text: &str| {
        let mut table = real().table("fixups.toml");
        table[list].as_array_mut().unwrap().push(entry(text));
        let mut inputs = real().inputs.clone();
        inputs.files.insert("overlay/fixups.toml".to_owned(), toml::to_string(&table).unwrap());
        pvegate_codegen::model(&inputs).unwrap_err().to_string()
    };
    let refusal =
        read_again("fixups", "at = \"PUT /cluster/options no-such\"\nset = { minimum = 1 }\nreason = \"none\"");
    assert_names(&refusal, &["fixups.toml:", "PUT /cluster/options no-such"]);
    let refusal =
        read_again("fixups", "at = \"GET /nodes/{node}/status node\"\nset = { type = \"string\" }\nreason = \"none\"");
    assert_names(&refusal, &["fixups.toml:", "GET /nodes/{node}/status node", "PVE repaired it"]);
    let refusal =
        read_again("fixups", "at = \"GET /nodes/{node}/status node\"\nremove = [\"no-such\"]\nreason = \"none\"");
    assert_names(&refusal, &["fixups.toml:", "no-such"]);
    let refusal = read_again(
        "synthetic",
        "at = \"GET /no/{such}\"\nname = \"such\"\nschema = { type = \"string\" }\nreason = \"none\"",
    );
    assert_names(&refusal, &["fixups.toml:", "GET /no/{such}"]);
    let refusal = read_again(
        "synthetic",
        "at = \"GET /nodes/{node}/status\"\nname = \"node\"\nschema = { type = \"string\" }\nreason = \"none\"",
    );
    assert_names(&refusal, &["fixups.toml:", "declares `node` now"]);
    assert_names(
        &refusal_with("fixups.toml", "ranges", "names = [\"no-such[n]\"]\nfirst = 0\nlast = 1"),
        &["fixups.toml:", "no-such[n]"],
    );
}

#[test]
fn internal_operations_that_do_not_exist() {
    assert_names(
        &refusal_with_key("internal.toml", "operations", "nothing", "\"GET /no/such\""),
        &["internal.toml", "nothing", "GET /no/such"],
    );
    for (name, parameter) in [("nodes", "no_such"), ("nothing", "limit")] {
        assert_names(
            &refusal_with_key("internal.toml", "parameters", name, &format!("[\"{parameter}\"]")),
            &["internal.toml", name, parameter],
        );
    }
}

#[test]
fn tools_of_nothing() {
    let tool = |keys: &str| {
        refusal_with(
            "tools/nodes.toml",
            "tools",
            &format!("title = \"Nothing\"\ndescription = \"Nothing at all.\"\n{keys}"),
        )
    };
    assert_names(
        &tool("name = \"get_nothing\"\noperation = \"GET /no/such\""),
        &["tools/nodes.toml:", "get_nothing", "GET /no/such"],
    );
    assert_names(
        &tool("name = \"get_nothing\"\noperation = \"GET /nodes\"\nargs = [\"no-such\"]"),
        &["get_nothing", "no-such"],
    );
    assert_names(
        &tool("name = \"get_nothing\"\noperation = \"GET /nodes\"\nfixed = { no-such = \"1\" }"),
        &["get_nothing", "no-such"],
    );
    assert_names(
        &tool("name = \"get_nothing\"\noperation = \"GET /nodes\"\nprojection = \"no-such\""),
        &["get_nothing", "no-such"],
    );
    for toolset in ["no-such", "nodes"] {
        let listed = format!("name = \"get_nothing\"\noperation = \"GET /nodes\"\nalso_in = [\"{toolset}\"]");
        assert_names(&tool(&listed), &["get_nothing", "also_in", toolset]);
    }
    assert_names(
        &tool("name = \"get_node_status\"\noperation = \"GET /nodes\""),
        &["get_node_status", "another tool has this name"],
    );
    assert_names(&tool("name = \"Get-Nothing\"\noperation = \"GET /nodes\""), &["Get-Nothing", "40 characters"]);
    assert_names(
        &tool("name = \"get_nothing\"\noperation = \"GET /nodes/{node}/status\""),
        &["get_nothing", "needs `node`"],
    );
}

#[test]
fn unknown_keys_are_named_with_file_and_line() {
    for (path, text) in &real().inputs.files {
        let Some(file) = path.strip_prefix("overlay/") else { continue };
        // A key of the file itself.
        let refusal = real().with_text(file, &format!("no_such_key = 1\n{text}")).unwrap_err().to_string();
        assert_names(&refusal, &[&format!("{file}:1"), "no_such_key"]);
        // A key of its last entry: what follows the last table header belongs to that entry.
        if !text.contains("\n[[") {
            continue;
        }
        let lines = text.trim_end().lines().count();
        let refusal =
            real().with_text(file, &format!("{}\nno_such_key = 1\n", text.trim_end())).unwrap_err().to_string();
        assert_names(&refusal, &["no_such_key", &format!("{file}:{}", lines + 1)]);
    }
}

#[test]
fn unknown_keys_of_a_line_are_named_with_file_and_line() {
    for file in AREAS {
        let text = &real().inputs.files[&format!("overlay/{file}")];
        let at = text.lines().position(|line| line.contains("{ tier = ")).unwrap();
        let edited = text.replacen("{ tier = ", "{ no_such_key = 1, tier = ", 1);
        let refusal = real().with_text(file, &edited).unwrap_err().to_string();
        assert_names(&refusal, &["no_such_key", &format!("{file}:{}", at + 1)]);
    }
}
