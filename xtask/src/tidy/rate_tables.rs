//! A table of rates is named by its own file and by the list of tables, and by no other product
//! code.

use std::collections::BTreeSet;

use super::circles::{crates, references};
use super::{Repository, assert_none};

const CRATE: &str = "crates/report";

/// Of the tables; its `mod.rs` has the list.
const FOLDER: &str = "rates";

/// What the list has, one a line: `throughput::tables,`.
fn tables(repository: &Repository) -> Vec<&str> {
    let list = repository.text(&format!("{CRATE}/src/{FOLDER}/mod.rs"));
    list.lines().filter_map(|line| line.trim().strip_suffix("::tables,")).collect()
}

fn complaints(repository: &Repository) -> Vec<String> {
    let tables = tables(repository);
    let crates = crates(repository, |name| name == CRATE);
    let mut found = BTreeSet::new();
    for (from, to) in references(&crates[CRATE]) {
        let [folder, table, ..] = to.as_slice() else { continue };
        let is_table = folder == FOLDER && tables.contains(&table.as_str());
        let may_name_it = *from == [FOLDER] || from.starts_with(&to[..2]);
        if is_table && !may_name_it {
            found.insert(format!("{CRATE}, {}: uses the table {table}", from.join("/")));
        }
    }
    found.into_iter().collect()
}

#[test]
fn no_product_code_but_the_list_names_a_table_of_rates() {
    let repository = Repository::load();
    let tables = tables(&repository);
    assert!(tables.contains(&"throughput") && tables.len() >= 5, "{tables:?}");
    assert_none(&complaints(&repository));
}

#[test]
fn a_table_that_is_named_elsewhere_is_found() {
    let list = "mod cells;\nmod sweeps;\npub use sweeps::TITLE;\nconst TABLES: [Tables; 1] = [\n    \
                sweeps::tables,\n];\nfn one() { sweeps::tables() }";
    let repository = Repository::of(&[
        ("crates/report/src/lib.rs", "mod answer; mod rates; mod run;"),
        ("crates/report/src/rates/mod.rs", list),
        ("crates/report/src/rates/sweeps.rs", "use super::cells::word; use self::Point; struct Point;"),
        ("crates/report/src/rates/cells.rs", "fn word() { super::sweeps::tables() }"),
        ("crates/report/src/run.rs", "use crate::rates::{TITLE, one};"),
        ("crates/report/src/answer.rs", "use crate::rates::one;\n#[cfg(test)]\nuse crate::rates::TITLE;"),
    ]);
    insta::assert_snapshot!(complaints(&repository).join("\n"), @r"
    crates/report, rates/cells: uses the table sweeps
    crates/report, run: uses the table sweeps
    ");
}
