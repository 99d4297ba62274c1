//! A database product is named by its own folders and by the lists of products, and by no other
//! product code.

use super::{Repository, assert_none, has_word, is_product, product_lines};

/// A product, or a family of products that are served alike: the name of its folders, and its other
/// names.
const PRODUCTS: &[(&str, &[&str])] = &[
    (
        "mysql",
        &["Mysql", "MySql", "MySQL", "mariadb", "MariaDb", "MariaDB", "percona", "Percona", "PerconaServer"],
    ),
    ("postgres", &["Postgres", "postgresql", "Postgresql", "PostgreSQL"]),
    ("sqlite", &["Sqlite", "SQLite"]),
];

/// Where product code names a product that is not its own, with the reason. The list only gets
/// shorter.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/drivers/src/products.rs", "the list of products"),
    ("crates/provision/src/families.rs", "the list of families"),
    ("crates/provision/src/release.rs", "the list of names and versions"),
    ("crates/provision/src/intents/", "data of the configuration language, and its page"),
    ("crates/provision/src/template/key.rs", "the code that makes data directories is a part of their key"),
    ("crates/provision/src/datadir.rs", "processes that outlive the first one of a killed server"),
    ("crates/provision/src/error.rs", "forms of addresses in a message"),
    ("crates/plan/src/model/", "kinds of variants, and guesses of their speed"),
    ("crates/plan/src/check", "keys of variants that only one product has, and forms of addresses"),
    ("crates/fetch/src/ask/mod.rs", "the list of questions on abilities"),
    ("crates/fetch/src/files/", "rules of some builds"),
    ("crates/known-answer/", "speaks protocols, and shares no code with drivers"),
    ("crates/cli/src/args/known_answer.rs", "protocols of the known-answer server"),
    ("crates/cli/src/commands/known_answer.rs", "protocols of the known-answer server"),
    ("crates/cli/src/doctor/calibrate.rs", "protocols of the known-answer server"),
    ("crates/cli/src/commands/init.rs", "an example in a question"),
    ("crates/cli/src/sysbench/", "the options of sysbench, which name products"),
    ("crates/cli/src/pgbench/", "pgbench asks PostgreSQL only"),
    ("crates/cli/src/commands/cards.rs", "a heading"),
    ("crates/cli/src/commands/overview.rs", "a hint"),
    ("crates/cli/src/commands/plan.rs", "the embedded database in a list of variants"),
    ("crates/cli/src/conductor/", "the embedded database, which is not provided as servers are"),
    ("crates/cli/src/configs.rs", "pragmas"),
    ("crates/cli/src/limits.rs", "threads and files of the embedded database"),
    ("crates/cli/src/option_files.rs", "a reason in a message"),
    ("crates/cli/src/parity.rs", "the embedded database has a version of its own"),
    ("crates/cli/src/variants.rs", "the embedded database, which is not provided as servers are"),
    ("crates/analyse/src/parity/", "comparison of settings, by product"),
    ("crates/analyse/src/measure/", "counters of one product"),
    ("crates/analyse/src/notices/", "warnings on one product"),
    ("crates/analyse/src/compare/query_plans.rs", "forms of query plans"),
    ("crates/report/src/", "captions"),
    ("crates/workloads/src/", "deviations tell how originals treat products"),
];

fn names(line: &str, (folder, others): &(&str, &[&str])) -> bool {
    has_word(line, folder) || others.iter().any(|name| has_word(line, name))
}

/// `mod postgres;`
fn declares_folder(line: &str) -> bool {
    line.split_once("mod ").is_some_and(|(before, _)| matches!(before.trim(), "" | "pub" | "pub(crate)"))
}

fn is_own(path: &str, folder: &str) -> bool {
    path.contains(&format!("/{folder}/")) || path.ends_with(&format!("/{folder}.rs"))
}

fn complaints(repository: &Repository, exceptions: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut used = vec![false; exceptions.len()];
    for (path, text) in repository.texts(".rs").filter(|(path, _)| is_product(path)) {
        for product in PRODUCTS.iter().filter(|(folder, _)| !is_own(path, folder)) {
            let names_it = |(_, line): &(usize, &str)| !declares_folder(line) && names(line, product);
            let Some((index, _)) = product_lines(text).find(names_it) else { continue };
            match exceptions.iter().position(|(place, _)| path.starts_with(place)) {
                Some(exception) => used[exception] = true,
                None => found.push(format!("{path}:{}: names the product {}", index + 1, product.0)),
            }
        }
    }
    let unused = exceptions.iter().zip(used).filter(|(_, used)| !used);
    found.extend(unused.map(|((place, _), _)| format!("{place}: needs no exception")));
    found
}

#[test]
fn no_product_code_outside_its_folders_names_a_product() {
    assert_none(&complaints(&Repository::load(), EXCEPTIONS));
}

#[test]
fn a_product_that_is_named_elsewhere_is_found() {
    let repository = Repository::of(&[
        ("crates/drivers/src/postgres/mod.rs", "pub struct Postgres;"),
        ("crates/plan/src/products/postgres.rs", "\"PostgreSQL\""),
        ("crates/drivers/src/lib.rs", "pub mod postgres;\npub use postgres::Session;"),
        ("crates/plan/src/lib.rs", "mod postgres;"),
        ("crates/cli/src/a.rs", "// PostgreSQL\nlet x = \"postgress\";\n#[cfg(test)]\nfn postgres() {}"),
        ("crates/cli/src/b.rs", "fn run() {}\nlet x = \"MariaDB\";"),
        ("crates/cli/tests/c.rs", "postgres"),
    ]);
    let exceptions = [("crates/drivers/src/lib.rs", "the list"), ("crates/cli/src/a.rs", "stale")];
    insta::assert_snapshot!(complaints(&repository, &exceptions).join("\n"), @r"
    crates/cli/src/b.rs:2: names the product mysql
    crates/cli/src/a.rs: needs no exception
    ");
}
