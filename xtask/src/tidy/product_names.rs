//! A database product is named by its own folders and by the lists of products, and by no other
//! product code.

use super::{Repository, assert_none, is_product, product_lines};

/// A product, or a family of products that are served alike: the name of its folders, and its other
/// names, in small letters.
const PRODUCTS: &[(&str, &[&str])] =
    &[("mysql", &["mariadb", "percona", "perconaserver"]), ("postgres", &["postgresql"]), ("sqlite", &[])];

/// Why product code names a product that is not its own, and the files where. The lists only get
/// shorter.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    (
        "the lists of products",
        &[
            "crates/analyse/src/parity/products/mod.rs",
            "crates/drivers/src/products.rs",
            "crates/plan/src/products/mod.rs",
            "crates/provision/src/families.rs",
        ],
    ),
    ("keys of plans", &["crates/plan/src/model/mod.rs"]),
    ("old records, which do not say what is embedded", &["crates/analyse/src/readings/measured.rs"]),
    ("processes that outlive the first one of a killed server", &["crates/provision/src/datadir.rs"]),
    (
        "names that makers of builds use, and what some builds need",
        &["crates/fetch/src/files/maven.rs", "crates/fetch/src/files/tools.rs"],
    ),
    (
        "names of one product that others use or show",
        &["crates/cli/src/commands/servers/table.rs", "crates/drivers/src/null/mod.rs"],
    ),
    (
        "speaks protocols, and shares no code with drivers",
        &[
            "crates/cli/src/args/known_answer.rs",
            "crates/cli/src/commands/known_answer.rs",
            "crates/cli/src/doctor/calibrate.rs",
            "crates/known-answer/src/behaviour.rs",
            "crates/known-answer/src/fault.rs",
            "crates/known-answer/src/listen.rs",
            "crates/known-answer/src/protocol.rs",
            "crates/known-answer/src/session.rs",
        ],
    ),
    (
        "words of sysbench and pgbench, which name products",
        &[
            "crates/cli/src/pgbench/invocation.rs",
            "crates/cli/src/pgbench/mod.rs",
            "crates/cli/src/sysbench/command_line.rs",
            "crates/cli/src/sysbench/invocation.rs",
            "crates/workloads/src/pgbench/mod.rs",
            "crates/workloads/src/sysbench/host.rs",
            "crates/workloads/src/sysbench/options.rs",
        ],
    ),
    (
        "words of a message or a page",
        &[
            "crates/cli/src/commands/cards.rs",
            "crates/cli/src/commands/init.rs",
            "crates/cli/src/commands/manual.rs",
            "crates/cli/src/option_files.rs",
            "crates/provision/src/error.rs",
            "crates/workloads/src/insert_benchmark/check.rs",
            "crates/workloads/src/oltp/option_words.rs",
        ],
    ),
];

/// Whether a word is the product, also one of several in a name: `is_mysql`.
fn names(line: &str, (folder, others): &(&str, &[&str])) -> bool {
    line.split(|sign: char| !sign.is_ascii_alphanumeric()).map(str::to_ascii_lowercase).any(|word| {
        let word = word.as_str();
        word == *folder || others.contains(&word)
    })
}

/// `mod postgres;`
fn declares_folder(line: &str) -> bool {
    line.split_once("mod ").is_some_and(|(before, _)| matches!(before.trim(), "" | "pub" | "pub(crate)"))
}

fn is_own(path: &str, folder: &str) -> bool {
    path.contains(&format!("/{folder}/")) || path.ends_with(&format!("/{folder}.rs"))
}

fn complaints(repository: &Repository, exceptions: &[(&str, &[&str])]) -> Vec<String> {
    let mut found = Vec::new();
    let exceptions: Vec<&str> = exceptions.iter().flat_map(|(_, files)| *files).copied().collect();
    let mut used = vec![false; exceptions.len()];
    for (path, text) in repository.texts(".rs").filter(|(path, _)| is_product(path)) {
        for product in PRODUCTS.iter().filter(|(folder, _)| !is_own(path, folder)) {
            let names_it = |(_, line): &(usize, &str)| !declares_folder(line) && names(line, product);
            let Some((index, _)) = product_lines(text).find(names_it) else { continue };
            match exceptions.iter().position(|file| *file == path) {
                Some(exception) => used[exception] = true,
                None => found.push(format!("{path}:{}: names the product {}", index + 1, product.0)),
            }
        }
    }
    let unused = exceptions.iter().zip(used).filter(|(_, used)| !used);
    found.extend(unused.map(|(file, _)| format!("{file}: needs no exception")));
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
        ("crates/cli/src/c.rs", "#[cfg(test)]\nmod fake;\nfn is_mysql() {}\nconst SQLITE_FILES: u64 = 4;"),
        ("crates/cli/tests/d.rs", "postgres"),
    ]);
    let exceptions: [(&str, &[&str]); 2] =
        [("the list", &["crates/drivers/src/lib.rs"]), ("stale", &["crates/cli/src/a.rs"])];
    insta::assert_snapshot!(complaints(&repository, &exceptions).join("\n"), @r"
    crates/cli/src/b.rs:2: names the product mysql
    crates/cli/src/c.rs:3: names the product mysql
    crates/cli/src/c.rs:4: names the product sqlite
    crates/cli/src/a.rs: needs no exception
    ");
}
