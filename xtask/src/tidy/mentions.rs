//! What there is, a reader of the documents can find: crates, drivers, workloads, plans.

use super::{Repository, assert_none};

/// Each thing that must be named, with where it is from.
fn things(repository: &Repository) -> Vec<(String, String)> {
    let mut things = Vec::new();
    let mut add = |from: &str, names: Vec<&str>| {
        things.extend(names.into_iter().map(|name| (name.to_owned(), from.to_owned())));
    };
    add("crates", repository.folders_in("crates"));
    for catalogue in ["crates/drivers/src/lib.rs", "crates/workloads/src/lib.rs"] {
        let names = catalogue_names(repository.text(catalogue));
        assert!(!names.is_empty(), "{catalogue} has no list ALL that this rule can read");
        add(catalogue, names);
    }
    let plans = repository.files.iter().filter_map(|file| file.path.strip_prefix("plans/"));
    add("plans", plans.collect());
    things
}

/// Names in `pub const ALL: ... = &[("name", "what it is"), ...];`.
fn catalogue_names(source: &str) -> Vec<&str> {
    let list = source.split_once("pub const ALL:").and_then(|(_, after)| after.split_once("];"));
    let entries = list.map_or("", |(list, _)| list).split('(');
    entries.filter_map(|entry| entry.trim_start().strip_prefix('"')?.split('"').next()).collect()
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

/// Whether `word` is in `text` with nothing of a name next to it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '_');
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
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
        (
            "crates/drivers/src/lib.rs",
            "pub const ALL: &[(&str, &str)] = &[\n    (\"sqlite\", \"x (y)\"),\n    (\"mysql\", \"y\"),\n];",
        ),
        (
            "crates/workloads/src/lib.rs",
            "pub const ALL: &[(&str, &str)] = &[(\n    \"oltp\",\n    \"x\",\n)];",
        ),
        ("plans/a.toml", "my_cnf = \"configs/a.cnf\""),
        ("plans/configs/a.cnf", ""),
        ("plans/configs/b.cnf", ""),
        ("plans/b.toml", ""),
    ]);
    insta::assert_snapshot!(complaints(&repository).join("\n"), @r"
    mysql (of crates/drivers/src/lib.rs) is named in no document
    oltp (of crates/workloads/src/lib.rs) is named in no document
    configs/b.cnf (of plans) is named in no document
    b.toml (of plans) is named in no document
    ");
}
