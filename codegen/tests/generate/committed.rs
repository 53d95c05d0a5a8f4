//! What is committed under `generated/` is what the generator writes, and reads as people review it.

use std::collections::{BTreeMap, BTreeSet};

use pvegate_codegen::files::describe;
use toml::Value;

use crate::schema::{real, workspace};

#[test]
fn generated_is_up_to_date() {
    let differences = real().output.compare(&workspace()).unwrap();
    assert!(
        differences.is_empty(),
        "run `cargo codegen`, then review `git diff generated/`:\n{}",
        describe(&differences)
    );
}

#[test]
fn the_same_inputs_give_the_same_output() {
    let again = pvegate_codegen::generate(&real().inputs).unwrap();
    assert!(again == real().output);
}

#[test]
fn policy_has_one_sorted_line_for_each_operation() {
    let policy = &real().output.files["generated/POLICY.tsv"];
    let mut lines = policy.lines();
    let columns = lines.next().unwrap().split('\t').count();
    let names: Vec<&str> = lines
        .map(|line| {
            assert_eq!(line.split('\t').count(), columns, "{line}");
            line.split('\t').next().unwrap()
        })
        .collect();
    let by_path = |name: &&str| name.split_once(' ').map(|(verb, path)| (path.to_owned(), verb.to_owned()));
    assert!(names.is_sorted_by_key(by_path));
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 675);
    assert_eq!(names.len(), 675);
}

/// The cells of the table under a heading of REPORT.md.
fn report_table(heading: &str) -> Vec<Vec<String>> {
    let report = &real().output.files["generated/REPORT.md"];
    let section = report.split(&format!("## {heading}\n")).nth(1).unwrap();
    let rows =
        section.lines().skip_while(|line| !line.starts_with("| ---")).skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

fn number(cell: &str) -> usize {
    cell.parse().unwrap_or_else(|_| panic!("{cell} is no number"))
}

#[test]
fn the_counts_of_the_report_add_up() {
    let releases: BTreeMap<String, (usize, usize, usize)> = report_table("Releases")
        .iter()
        .map(|row| (row[0].clone(), (number(&row[1]), number(&row[2]), number(&row[3]))))
        .collect();
    assert_eq!(
        releases.iter().map(|(release, counts)| (release.as_str(), counts.0)).collect::<Vec<_>>(),
        [("8.4", 605), ("9.1", 646), ("9.2", 675)]
    );
    for (release, (total, kept, gone)) in &releases {
        assert_eq!(kept + gone, *total, "{release}");
    }

    let mut areas = report_table("Tiers");
    let all: Vec<usize> = areas.pop().unwrap()[1..].iter().map(|cell| number(cell)).collect();
    assert_eq!(all[0], 675);
    for column in 0..all.len() {
        assert_eq!(areas.iter().map(|row| number(&row[column + 1])).sum::<usize>(), all[column], "column {column}");
    }
    for row in areas.iter().map(|row| row[1..].iter().map(|cell| number(cell)).collect::<Vec<_>>()) {
        assert_eq!(row[0], row[1] + row[2] + row[3], "tiers");
        assert_eq!(row[0], row[4] + row[5] + row[6], "offered");
    }
    assert_eq!(all[2], 31, "low operations");

    let roles: usize = report_table("Roles").iter().map(|row| number(&row[1])).sum();
    assert_eq!(roles, real().model.operations.iter().map(|operation| operation.params.len()).sum::<usize>());
    let mut tools = report_table("Tool lists");
    let all = tools.pop().unwrap();
    for column in [1, 2] {
        assert_eq!(tools.iter().map(|row| number(&row[column])).sum::<usize>(), number(&all[column]));
    }
    assert_eq!(number(&all[1]), real().model.tools.iter().map(|tool| 1 + tool.also_in.len()).sum::<usize>());
}

/// How many lines differ over all files, each counted once for either side.
fn differing_lines(file: &str, operation: &str, edit: impl Fn(&mut toml::Table)) -> (usize, Vec<String>) {
    let mut table = real().table(file);
    edit(table["operations"][operation].as_table_mut().unwrap());
    let model = real().with_table(file, &table).unwrap();
    let output = pvegate_codegen::output(&model);
    let paths = real().differing(&model);
    let count = paths.iter().map(|path| {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (real().output.files[path].lines().collect(), output.files[path].lines().collect());
        let (olds, news): (BTreeSet<&&str>, BTreeSet<&&str>) = (old.iter().collect(), new.iter().collect());
        olds.difference(&news).count().max(news.difference(&olds).count())
    });
    (count.sum(), paths)
}

#[test]
fn one_overlay_line_gives_a_diff_of_a_few_lines() {
    let (lines, paths) = differing_lines("guests.toml", "POST /nodes/{node}/qemu/{vmid}/status/start", |entry| {
        entry.insert("summary".to_owned(), Value::String("Let a VM run".to_owned()));
    });
    assert!((1..=6).contains(&lines), "{lines} lines in {paths:?}");

    let (lines, paths) = differing_lines("guests.toml", "POST /nodes/{node}/lxc/{vmid}/status/suspend", |entry| {
        entry.insert(
            "tier".to_owned(),
            Value::String(if entry["tier"].as_str() == Some("low") { "destructive" } else { "low" }.to_owned()),
        );
        if entry["tier"].as_str() == Some("low") {
            entry.insert("args".to_owned(), Value::Array(Vec::new()));
        } else {
            entry.remove("args");
        }
    });
    assert!((1..=6).contains(&lines), "{lines} lines in {paths:?}");
}
