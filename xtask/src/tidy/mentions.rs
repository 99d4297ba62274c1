//! What there is, a reader of the documents can find: crates, drivers, workloads, plans.

use super::workload_names::workloads;
use super::{Repository, assert_none, has_word};

const DRIVERS: &str = "crates/drivers/src/";

/// Each thing that must be named, with where it is from.
fn things(repository: &Repository) -> Vec<(String, String)> {
    let mut things = Vec::new();
    let mut add = |from: &str, names: Vec<&str>| {
        things.extend(names.into_iter().map(|name| (name.to_owned(), from.to_owned())));
    };
    add("crates", repository.folders_in("crates"));
    let products = products(repository);
    assert!(!products.is_empty(), "{DRIVERS} has no product that this rule can read");
    add(DRIVERS, products);
    add("workloads", workloads(repository).into_iter().map(|workload| workload.name).collect());
    let plans = repository.files.iter().filter_map(|file| file.path.strip_prefix("plans/"));
    add("plans", plans.collect());
    things
}

/// What `const NAME: &'static str = "..."` says in the products' own files.
fn products(repository: &Repository) -> Vec<&str> {
    let files = repository.texts("/product.rs").filter(|(path, _)| path.starts_with(DRIVERS));
    files
        .filter_map(|(_, text)| text.split_once("const NAME: &'static str = \"")?.1.split('"').next())
        .collect()
}

fn complaints(repository: &Repository) -> Vec<String> {
    let is_document = |path: &str| path.starts_with("docs/") || !path.contains('/');
    // A plan is explained by its own comments, and names its option files.
    let plans = repository.texts(".toml").filter(|(path, _)| path.starts_with("plans/"));
    let pages = repository.texts(".md").filter(|(path, _)| is_document(path));
    let documents: Vec<(&str, &str)> = pages.chain(plans).collect();
    let is_named = |name: &str| documents.iter().any(|(_, text)| has_word(text, name));
    let missing = things(repository).into_iter().filter(|(name, _)| !is_named(name));
    missing.map(|(name, from)| format!("{name} (of {from}) is named in no document")).collect()
}

#[test]
fn everything_is_named_in_the_documents() {
    assert_none(&complaints(&Repository::load()));
}

#[test]
fn what_no_document_names_is_found() {
    let repository = Repository::of(&[
        ("README.md", "`sqlite`, mysqld; plans/a.toml; the crate drivers; [page](docs/x/page.md)"),
        ("docs/x/page.md", "workloads"),
        ("crates/drivers/src/mysql/product.rs", "const NAME: &'static str = \"mysql\";"),
        ("crates/drivers/src/sqlite/product.rs", "const NAME: &'static str = \"sqlite\";"),
        ("crates/workloads/src/tpcc/mod.rs", "const NAME: &'static str = \"tpcc\";"),
        ("plans/a.toml", "my_cnf = \"configs/a.cnf\""),
        ("plans/configs/a.cnf", ""),
        ("plans/configs/b.cnf", ""),
        ("plans/b.toml", ""),
    ]);
    insta::assert_snapshot!(complaints(&repository).join("\n"), @r"
    mysql (of crates/drivers/src/) is named in no document
    tpcc (of workloads) is named in no document
    configs/b.cnf (of plans) is named in no document
    b.toml (of plans) is named in no document
    ");
}
