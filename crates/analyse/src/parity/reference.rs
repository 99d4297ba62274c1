//! The page docs/reference/parity.md, written from the catalogues.

use std::fmt::Write;

use super::classes::{Across, Class, Weight, classes};
use super::traps::{Trap, traps};

const HEAD: &str = "\
# Parity: configuration differences and traps

dbdyno reads the effective settings of each server back after its start, turns them into *classes*
(words that hold for every product), compares those between the variants, and looks for known
*traps*. `dbdyno plan` predicts the same without starting anything. How to use it:
[fair comparison](../concepts/fair-comparison.md#parity). Generated from the catalogues in
`crates/analyse/src/parity`.

## In a plan

```toml
parity = \"refuse\"                   # \"warn\" (default), \"refuse\" or \"off\"
differs = [\"torn-pages\", \"binlog\"]  # classes in which the variants are meant to differ
```

| `parity` | effect |
|---|---|
| `\"warn\"` | differences and traps are in the report and, as far as they can be predicted, before the run |
| `\"refuse\"` | a run whose variants differ in a class of weight *result* that `differs` does not name ends with exit status 2: at once when it can be predicted, else after each variant was started once and read back, before anything is measured |
| `\"off\"` | nothing is compared |

Sizes within 5 % count as equal, because servers round them. A class compared *in the family* is
compared between MariaDB, MySQL and Percona Server, or between versions of PostgreSQL, but not
across.
";

/// The whole page, as Markdown.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    section(
        &mut page,
        "Classes",
        "| id | what it is | from | only | effect of a difference | remedy |",
        6,
        classes().iter().map(class_row),
    );
    page.push_str(
        "\n*From*: product families that have it, with the setting, or without where it is computed from\n\
         several. *Only*: `family` is compared in the family, all others between all products; `detail` is\n\
         of weight *detail*, all others *result*.\n",
    );
    section(
        &mut page,
        "Traps",
        "| id | what it is | effect on a result | remedy |",
        4,
        traps().iter().map(trap_row),
    );
    page.push_str(
        "\nA trap about a class that the plan names in `differs` is silent. The conditions of each trap are\n\
         in `crates/analyse/src/parity/traps.toml`.\n",
    );
    page
}

fn section(page: &mut String, title: &str, heads: &str, columns: usize, rows: impl Iterator<Item = String>) {
    let rule = "|---".repeat(columns);
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## {title}\n\n{heads}\n{rule}|\n");
    for row in rows {
        page.push_str(&row);
        page.push('\n');
    }
}

fn class_row(class: &Class) -> String {
    let sources = [("mysql", "MySQL, MariaDB"), ("postgres", "PostgreSQL"), ("sqlite", "SQLite")];
    let from: Vec<String> = sources
        .iter()
        .filter_map(|(family, name)| {
            let source = class.from.get(*family)?;
            Some(if source.ends_with("()") { (*name).to_owned() } else { format!("{name} `{source}`") })
        })
        .collect();
    let family = (class.across == Across::Family).then_some("family");
    let detail = (class.weight == Weight::Detail).then_some("detail");
    let only: Vec<&str> = family.into_iter().chain(detail).collect();
    let Class { id, title, meaning, effect, write, .. } = class;
    cells(&[
        &format!("`{id}`"),
        &format!("**{title}**: {meaning}"),
        &from.join(", "),
        &only.join(", "),
        effect,
        write,
    ])
}

fn trap_row(trap: &Trap) -> String {
    cells(&[&format!("`{}`", trap.id), &trap.title, &trap.effect, &trap.write])
}

fn cells(texts: &[&str]) -> String {
    format!("| {} |", texts.iter().map(|text| text.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Run the tests with `DBDYNO_UPDATE=1` to write the page anew.
    #[test]
    fn the_page_is_what_the_catalogues_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/parity.md");
        let page = reference();
        if std::env::var_os("DBDYNO_UPDATE").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(there, page, "run `DBDYNO_UPDATE=1 cargo test -p dbdyno-analyse reference`");
    }
}
