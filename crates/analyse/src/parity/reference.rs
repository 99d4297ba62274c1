//! The page docs/reference/parity.md, written from the catalogues.

use std::fmt::Write;

use super::classes::{Across, Class, Weight, classes};
use super::traps::{Fires, Trap, traps};

const HEAD: &str = "\
# Parity: what variants were told, and in what they differ

A comparison of two servers is worth nothing when one of them ignored half its configuration. dbdyno reads each server's effective settings back after its
start, turns them into *classes* (words that hold for every product), compares those between the variants, and looks for known *traps*. `dbdyno plan`
shows the same before anything is started, from each version's defaults and the option file. How to use it: [fair comparison](../concepts/fair-comparison.md#parity).

This page is written from the catalogues in `crates/analyse/src/parity`; a test holds it against them.

## In a plan

```toml
parity = \"refuse\"                   # \"warn\" (default), \"refuse\" or \"off\"
differs = [\"torn-pages\", \"binlog\"]  # classes in which the variants are meant to differ
```

With `\"warn\"`, differences and traps stand in the report and, as far as they can be predicted, before the run. With `\"refuse\"`, a run whose variants differ in a
class of weight *result* that `differs` does not name ends with exit status 2: at once when it can be predicted, else after each variant has been started
once and read back, before anything is measured. With `\"off\"` nothing is compared.

Sizes within 5 % count as equal, because servers round them. A class *of the family* is compared between MariaDB, MySQL and Percona Server, or between versions
of PostgreSQL, but not across.
";

/// The whole page, as Markdown.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    section(
        &mut page,
        "Classes",
        "| id | what it is | from | compared | weight | what a difference does | what to write |",
        7,
        classes().iter().map(class_row),
    );
    page.push_str(
        "\n`several settings`: computed from more than one; the functions are in `crates/analyse/src/parity/derive.rs`. A family that is not named has nothing of the \
         kind.\n",
    );
    section(
        &mut page,
        "Traps",
        "| id | what it is | recognised by | what it does to a result | what to write |",
        5,
        traps().iter().map(trap_row),
    );
    page.push_str(
        "\nA trap fires for each variant for which all conditions hold, or, marked *on some*, when they hold for some of the variants that have such a setting and not for all. A trap about a class that \
         the plan names in `differs` is silent. `run.data` is what the tables take, `run.connections` the most connections at once; `class.X` is what a class comes to.\n",
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
            let source = class.source(family)?;
            let source = if source.contains(' ') { source.to_owned() } else { format!("`{source}`") };
            Some(format!("{name}: {source}"))
        })
        .collect();
    let across = match class.across {
        Across::All => "with all",
        Across::Family => "in the family",
    };
    let weight = match class.weight {
        Weight::Result => "result",
        Weight::Detail => "detail",
    };
    let Class { id, title, meaning, effect, write, .. } = class;
    cells(&[
        &format!("`{id}`"),
        &format!("**{title}**: {meaning}"),
        &from.join("; "),
        across,
        weight,
        effect,
        write,
    ])
}

fn trap_row(trap: &Trap) -> String {
    let listed =
        |texts: &[String]| texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(" and ");
    let mut when = listed(&trap.when);
    if trap.fires == Fires::Differs {
        when.push_str(", *on some*");
    }
    if !trap.among.is_empty() {
        when.push_str(&format!(" of those with {}", listed(&trap.among)));
    }
    cells(&[&format!("`{}`", trap.id), &trap.title, &when, &trap.effect, &trap.write])
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
