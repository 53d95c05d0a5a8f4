//! The table of who may do what, made from the catalog by the same function that the server decides by. It is a file under
//! review: a change of any answer shows there. `UPDATE_GOLDEN=1` writes it anew.

use pvegate::authorize::decide::{Case, Covered, decide, may_endanger};
use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Offered, Operation};
use std::collections::BTreeMap;
use std::path::PathBuf;

const HEAD: &str = "\
# What becomes of each operation. Columns: operation, tier, offered (opt-in ones as if the operator asked for them), guards,
# then for a token without its tier, and for one with it whose grant covers nothing of what is named, all that is named, and
# every guest. One answer holds whatever is protected; four are those where no guest is protected / one is / one is and a
# waiver lifts it / one is and the cluster is a lab (with or without a waiver).
operation\ttier\toffered\tguards\tno tier\tnothing\tnamed\teverything
";

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/authorization.tsv")
}

fn answer(case: &Case) -> String {
    let of = |protected, waived, lab| decide(&Case { protected, waived, lab, ..*case }).to_string();
    let plain = of(false, false, false);
    for (waived, lab) in [(true, false), (false, true), (true, true)] {
        assert_eq!(
            of(false, waived, lab),
            plain,
            "{}: where nothing is protected, nothing is lifted",
            case.operation.name
        );
    }
    assert_eq!(
        of(true, true, true),
        of(true, false, true),
        "{}: a lab is a lab with a waiver too",
        case.operation.name
    );
    let all = [plain, of(true, false, false), of(true, true, false), of(true, false, true)];
    if all.iter().all(|one| *one == all[0]) { all[0].clone() } else { all.join("/") }
}

fn line(operation: &'static Operation) -> String {
    let offered = match operation.offered {
        Offered::Yes => "yes",
        Offered::OptIn(_) => "opt-in",
        Offered::Never(_) => "never",
    };
    let guards: Vec<&str> = operation.guards.iter().map(|guard| guard.as_str()).collect();
    let guards = if guards.is_empty() { "-".to_owned() } else { guards.join(" ") };
    let case = Case { endangers: may_endanger(operation), ..Case::granted(operation) };
    let cells = [
        answer(&Case { tier: false, ..case }),
        answer(&Case { covered: Covered::No, ..case }),
        answer(&Case { covered: Covered::Named, ..case }),
        answer(&Case { covered: Covered::Everything, ..case }),
    ];
    format!("{}\t{}\t{offered}\t{guards}\t{}", operation.name, operation.tier, cells.join("\t"))
}

fn table() -> BTreeMap<&'static str, String> {
    OPERATIONS.iter().map(|operation| (operation.name, line(operation))).collect()
}

#[test]
fn who_may_do_what_is_as_reviewed() {
    let table = table();
    let text = format!("{HEAD}{}\n", table.values().cloned().collect::<Vec<_>>().join("\n"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file(), &text).unwrap();
    }
    let reviewed = std::fs::read_to_string(file()).unwrap();
    let (old, new): (Vec<&str>, Vec<&str>) = (reviewed.lines().collect(), text.lines().collect());
    let gone = old.iter().filter(|line| !new.contains(line)).map(|line| format!("- {line}"));
    let come = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+ {line}"));
    let differences: Vec<String> = gone.chain(come).collect();
    assert!(
        differences.is_empty() && reviewed == text,
        "tests/golden/authorization.tsv is not what the server decides; look at each line, then UPDATE_GOLDEN=1:\n{}",
        differences.join("\n")
    );
}

#[test]
fn the_table_has_every_operation_once() {
    let table = table();
    assert_eq!(table.len(), OPERATIONS.len());
    assert_eq!(table.len(), 675);
}

/// What must hold whatever the table says.
#[test]
fn nothing_acts_without_its_tier_or_grant() {
    for line in table().values() {
        let cells: Vec<&str> = line.split('\t').collect();
        let (tier, no_tier, nothing, named) = (cells[1], cells[4], cells[5], cells[6]);
        assert!(!no_tier.contains("acts") && !no_tier.contains("plans") && !no_tier.contains("reads"), "{line}");
        assert!(!nothing.contains("acts") && !nothing.contains("plans"), "{line}");
        assert!(!named.contains("acts") || tier == "low", "{line}");
        assert!(!line.contains("acts") || tier == "low", "{line}");
    }
}
