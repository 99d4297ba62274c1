//! Test that writes the page docs/reference/parity.md from the catalogues.

use std::fmt::Write;
use std::path::Path;

use super::classes::{Across, Class, Weight, classes};
use super::pitfalls::pitfalls;

#[path = "../../../../../xtask/src/filled.rs"]
mod filled;

const HEAD: &str = "\
# Parity: configuration differences and pitfalls

After each start dbdyno reads the server's effective settings, maps them to *classes*, which mean
the same for every product, and compares those between the variants. It also looks for known
*pitfalls*. `dbdyno plan` predicts both, from the settings that a build answered with when it was
got. [How to use it](../concepts/fair-comparison.md#parity).

With `parity = \"refuse\"` in a [plan](plan-file.md#top-level), a difference in a class of weight
*result* outside `differs` ends the run with exit status 2 before anything is measured; what cannot
be predicted is read from each variant first. With `\"off\"` nothing is compared.

Sizes within 5 % count as equal, because servers round them.

A server that is [neither MySQL, MariaDB nor
PostgreSQL](../guides/your-own-server.md#a-server-that-is-neither-mysql-mariadb-nor-postgresql) has
no known class, even where its settings have a product's names: the report says so, and
`\"refuse\"` refuses it next to other variants.
";

const CLASSES: &str = "
## Classes

Each line gives the products, the setting if the class is a single setting, the effect of a difference and, after →, how to make
it equal. MySQL includes MariaDB and Percona Server. *family*: compared only within MySQL's family
or between versions of PostgreSQL. *detail*: of weight *detail*, with the remedy in `dbdyno plan`
and the report only; all others are of weight *result*.

";

const PITFALLS: &str = "
## Pitfalls

Each entry has the finding and its effect. `dbdyno plan` and the report print the remedy. A pitfall
about a class in `differs` is not reported. The settings and values that each is about:
`crates/analyse/src/parity/pitfalls.toml`.

";

static NONE: String = String::new();

/// The whole page, as Markdown.
fn reference() -> String {
    let mut page = HEAD.to_owned();
    page.push_str(CLASSES);
    classes().iter().for_each(|class| write_class(&mut page, class));
    page.push_str(PITFALLS);
    for pitfall in pitfalls() {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "* `{}`: {}. {}", pitfall.id, pitfall.title, pitfall.effect);
    }
    filled::filled(&page)
}

fn write_class(page: &mut String, class: &Class) {
    let sources = [("mysql", "MySQL"), ("postgres", "PostgreSQL"), ("sqlite", "SQLite")];
    let from: Vec<String> = sources
        .iter()
        .filter_map(|(family, name)| {
            let source = class.from.get(*family).or(class.absent.get(*family).map(|_| &NONE))?;
            let is_setting = !source.is_empty() && !source.ends_with("()");
            Some(if is_setting { format!("{name} `{source}`") } else { (*name).to_owned() })
        })
        .collect();
    let family = (class.across == Across::Family).then_some("*family*");
    let detail = (class.weight == Weight::Detail).then_some("*detail*");
    let only = family.into_iter().chain(detail).map(str::to_owned);
    let of: Vec<String> = from.into_iter().chain(only).collect();
    let Class { id, meaning, effect, write, .. } = class;
    // Writing to a String cannot fail.
    let write = if class.weight == Weight::Detail { String::new() } else { format!(" → {write}") };
    let _ = writeln!(page, "* `{id}` ({}): {meaning} {effect}{write}", of.join(", "));
}

/// With `DBDYNO_UPDATE=1` this test writes the page again.
#[test]
fn the_page_has_the_text_of_the_catalogues() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/parity.md");
    let page = reference();
    if std::env::var_os("DBDYNO_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(there, page, "run `DBDYNO_UPDATE=1 cargo test -p dbdyno-analyse reference`");
}
