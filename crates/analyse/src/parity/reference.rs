//! The page docs/reference/parity.md, written from the catalogues.

use std::fmt::Write;

use super::classes::{Across, Class, Weight, classes};
use super::traps::{Trap, traps};

const HEAD: &str = "\
# Parity: configuration differences and traps

dbdyno reads the effective settings of each server back after its start. It turns them into
*classes*, words that hold for every product, and compares those between the variants. It also looks
for known *traps*. `dbdyno plan` predicts both. How to use it:
[fair comparison](../concepts/fair-comparison.md#parity). Generated from the catalogues in
`crates/analyse/src/parity`.

## In a plan

```toml
parity = \"refuse\"                   # \"warn\" (default), \"refuse\" or \"off\"
differs = [\"torn-pages\", \"binlog\"]  # classes in which the variants are meant to differ
```

| `parity` | effect |
|---|---|
| `\"warn\"` | differences and traps are in the report and, where they can be predicted, in `dbdyno plan` |
| `\"refuse\"` | variants that differ in a class of weight *result* outside of `differs` end the run with exit status 2 before anything is measured; what cannot be predicted is read back from each variant first |
| `\"off\"` | nothing is compared |

Sizes within 5 % count as equal, because servers round them.
";

/// The whole page, as Markdown.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    section(
        &mut page,
        "Classes",
        "| id | what it is | of | effect of a difference | remedy |",
        5,
        classes().iter().map(class_row),
    );
    page.push_str(
        "\n*Of*: the products that have it, with the setting where it is one. MySQL includes MariaDB and\n\
         Percona Server. `family`: compared only within MySQL's family or between versions of PostgreSQL;\n\
         all others between all products. `detail`: of weight *detail*, all others *result*.\n",
    );
    section(
        &mut page,
        "Traps",
        "| id | what it is | effect on a result | remedy |",
        4,
        traps().iter().map(trap_row),
    );
    page.push_str(
        "\nA trap about a class in `differs` is silent. Conditions: `crates/analyse/src/parity/traps.toml`.\n",
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
    let sources = [("mysql", "MySQL"), ("postgres", "PostgreSQL"), ("sqlite", "SQLite")];
    let from: Vec<String> = sources
        .iter()
        .filter_map(|(family, name)| {
            let source = class.from.get(*family)?;
            Some(if source.ends_with("()") { (*name).to_owned() } else { format!("{name} `{source}`") })
        })
        .collect();
    let family = (class.across == Across::Family).then_some("family");
    let detail = (class.weight == Weight::Detail).then_some("detail");
    let only = family.into_iter().chain(detail).map(str::to_owned);
    let of: Vec<String> = from.into_iter().chain(only).collect();
    let Class { id, meaning, effect, write, .. } = class;
    cells(&[&format!("`{id}`"), meaning, &of.join(", "), effect, write])
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
