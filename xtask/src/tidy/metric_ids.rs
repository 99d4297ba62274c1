//! A metric's id is text in its own entry of the catalogue, and in no other product code: keys of
//! JSON, columns and pages are made from the entries. Other code names the field, which the
//! compiler checks.

use std::collections::BTreeSet;
use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};

use super::{Repository, assert_none, is_product, product_lines};

const CATALOGUE: &str = "crates/analyse/src/metrics/";

/// Files of product code that have such words as text, with the reason.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    ("crates/cli/src/sysbench/text.rs", &["qps"], "sysbench's word"),
    (
        "crates/report/src/evidence/of_all.rs",
        &["client_cpu_us", "fsyncs_per_commit", "rmbps", "server_cpu_us", "write_amplification"],
        "which metrics have a table of all steps",
    ),
    (
        "crates/report/src/parquet/tables.rs",
        &["queue_depth", "read_kib_per_second", "written_kib_per_second"],
        "columns of the device by second, where the metrics are of a whole step",
    ),
    ("crates/sample/src/sources/cgroup.rs", &["rss"], "the kernel's word"),
];

/// Of the entries, which begin with id, name and unit: `ips: "ips", "rows/s", 0`.
fn ids(repository: &Repository) -> BTreeSet<&str> {
    let groups = repository.texts(".rs").filter(|(path, _)| path.starts_with(CATALOGUE));
    let lines = groups.flat_map(|(_, text)| product_lines(text).map(|(_, line)| line.trim_start()));
    let entries =
        lines.filter_map(|line| line.split_once(": \"").filter(|(_, rest)| rest.contains("\", \"")));
    entries.map(|(id, _)| id).filter(|id| words(id).eq([*id])).collect()
}

/// A `{` belongs to its word: `{rss}` in a text is a variable.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !sign.is_alphanumeric() && !matches!(sign, '-' | '_' | '{'))
}

fn literals(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => literals(group.stream(), found),
            TokenTree::Literal(literal) => found.push(literal.to_string()),
            _ => {}
        }
    }
}

fn complaints(repository: &Repository, exceptions: &[(&str, &[&str], &str)]) -> Vec<String> {
    let ids = ids(repository);
    let mut found = BTreeSet::new();
    let others = |path: &str| is_product(path) && !path.starts_with(CATALOGUE);
    for (path, text) in repository.texts(".rs").filter(|(path, _)| others(path)) {
        let code: String = product_lines(text).flat_map(|(_, line)| [line, "\n"]).collect();
        // Few files have such a word, and only these are parsed.
        if words(&code).any(|word| ids.contains(word)) {
            let mut texts = Vec::new();
            literals(TokenStream::from_str(&code).expect("a source file that compiles"), &mut texts);
            let named = texts.iter().flat_map(|text| words(text)).filter_map(|word| ids.get(word));
            found.extend(named.map(|id| (path, *id)));
        }
    }
    let allowed: BTreeSet<(&str, &str)> =
        exceptions.iter().flat_map(|(path, ids, _)| ids.iter().map(move |id| (*path, *id))).collect();
    let named = found.difference(&allowed).map(|(path, id)| format!("{path}: has the metric {id} as text"));
    let unused = allowed.difference(&found).map(|(path, id)| format!("{path}: {id} needs no exception"));
    named.chain(unused).collect()
}

#[test]
fn no_product_code_but_its_entry_has_a_metrics_id_as_text() {
    let repository = Repository::load();
    let ids = ids(&repository);
    assert!(["ips", "cpu_o", "server_cpu_us", "busy_share"].iter().all(|id| ids.contains(id)), "{ids:?}");
    assert_none(&complaints(&repository, EXCEPTIONS));
}

#[test]
fn an_id_in_another_text_is_found() {
    let entries = "struct { id: \"\", name: \"\" }\nserver_us: \"server\", \"µs/op\", 2, Less, of(\"cpu_us\"),\n    \
                   \"CPU.\";\nfsyncs: \"fsyncs\", \"1/op\", 3, Less, \"All.\";";
    let repository = Repository::of(&[
        ("crates/analyse/src/metrics/cost.rs", entries),
        ("crates/analyse/src/measure/cost.rs", "Cost { server_us: of(\"cpu_us\"), fsyncs: of(\"sync\") }"),
        ("crates/report/src/a.rs", "// \"fsyncs\"\nconst SHOWN: [&str; 2] = [\"id\", \"cost.server_us\"];"),
        ("crates/report/src/b.rs", "say!(\"{fsyncs} fsyncs_2\");\n#[cfg(test)]\nmod tests {\n\"fsyncs\"\n}"),
        ("crates/report/src/c.rs", "f(r\"\n  fsyncs\"); // Of `server_us`."),
        ("crates/report/tests/d.rs", "\"fsyncs\""),
    ]);
    assert_eq!(ids(&repository).into_iter().collect::<Vec<_>>(), ["fsyncs", "server_us"]);
    let exceptions: [(&str, &[&str], &str); 2] = [
        ("crates/report/src/b.rs", &["fsyncs"], "stale"),
        ("crates/report/src/c.rs", &["fsyncs"], "a reason"),
    ];
    insta::assert_snapshot!(complaints(&repository, &exceptions).join("\n"), @r"
    crates/report/src/a.rs: has the metric server_us as text
    crates/report/src/b.rs: fsyncs needs no exception
    ");
}
