//! A workload is named by its own folder and by the list of all workloads, and by no other product
//! code.

use super::{Repository, assert_none, has_word, is_product, product_lines};

const FOLDER: &str = "crates/workloads/src";

/// Where product code names a workload that is not its own, with the reason. Some are names of
/// originals too.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/workloads/src/lib.rs", "", "the list of all workloads"),
    ("crates/workloads/src/dbt3/", "oltp", "its random draws"),
    ("crates/workloads/src/microbenchmarks/", "oltp", "they run on its tables and connections"),
    ("crates/workloads/src/microbenchmarks/mod.rs", "sysbench", "files of its original"),
    ("crates/workloads/src/oltp/", "sysbench", "its original"),
    ("crates/workloads/src/sysbench/", "oltp", "its ladders, paces and distributions"),
    ("crates/workloads/src/pgbench/", "oltp", "its ladders and paces"),
    ("crates/cli/src/sysbench/", "", "sysbench's command line"),
    ("crates/cli/src/pgbench/", "", "pgbench's command line"),
    ("crates/cli/src/args.rs", "", "the same"),
    ("crates/cli/src/main.rs", "", "the same"),
    ("crates/cli/src/args/known_answer.rs", "sysbench", "an example of another client"),
];

/// A workload: its folder, and every form of its name.
pub(super) struct Named<'a> {
    folder: String,
    forms: Vec<String>,
    pub(super) name: &'a str,
}

/// Folders whose `mod.rs` says `const NAME: &'static str = "..."`.
pub(super) fn workloads(repository: &Repository) -> Vec<Named<'_>> {
    let folders = repository.folders_in(FOLDER).into_iter();
    let named = folders.filter_map(|folder| {
        let text = repository.text(&format!("{FOLDER}/{folder}/mod.rs"));
        let (_, rest) = text.split_once("const NAME: &'static str = \"")?;
        let name = rest.split('"').next()?;
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        let type_name: String = folder.split('_').map(capital).collect();
        let forms = vec![name.to_owned(), folder.to_owned(), type_name];
        Some(Named { folder: format!("{FOLDER}/{folder}/"), forms, name })
    });
    named.collect()
}

fn complaints(repository: &Repository, exceptions: &[(&str, &str, &str)]) -> Vec<String> {
    let workloads = workloads(repository);
    let mut found = Vec::new();
    let mut used = vec![false; exceptions.len()];
    for (path, text) in repository.texts(".rs").filter(|(path, _)| is_product(path)) {
        for workload in workloads.iter().filter(|workload| !path.starts_with(&workload.folder)) {
            let names_it = |line: &str| workload.forms.iter().any(|form| has_word(line, form));
            let mut lines = product_lines(text).filter(|(_, line)| names_it(line));
            let Some((index, _)) = lines.next() else { continue };
            let allowed = exceptions.iter().position(|(place, name, _)| {
                path.starts_with(place) && (name.is_empty() || *name == workload.name)
            });
            match allowed {
                Some(exception) => used[exception] = true,
                None => found.push(format!("{path}:{}: names the workload {}", index + 1, workload.name)),
            }
        }
    }
    let unused = exceptions.iter().zip(used).filter(|(_, used)| !used);
    found.extend(unused.map(|((place, ..), _)| format!("{place}: needs no exception")));
    found
}

#[test]
fn no_product_code_outside_its_folder_names_a_workload() {
    let repository = Repository::load();
    let names: Vec<&str> = workloads(&repository).iter().map(|workload| workload.name).collect();
    assert!(names.contains(&"oltp") && names.len() >= 3, "{names:?}");
    assert_none(&complaints(&repository, EXCEPTIONS));
}

#[test]
fn a_workload_that_is_named_elsewhere_is_found() {
    let repository = Repository::of(&[
        ("crates/workloads/src/pg_bench/mod.rs", "const NAME: &'static str = \"pg-bench\"; // PgBench"),
        ("crates/workloads/src/lib.rs", "mod pg_bench;"),
        ("crates/cli/src/a.rs", "// pg-bench\nlet x = \"pg-benches\";\n#[cfg(test)]\nfn pg_bench() {}"),
        ("crates/cli/src/b.rs", "fn run() {}\nuse dbdyno_workloads::PgBench;"),
        ("crates/cli/tests/c.rs", "pg_bench"),
    ]);
    let exceptions = [("crates/workloads/src/lib.rs", "", "the list"), ("crates/cli/src/a.rs", "", "stale")];
    insta::assert_snapshot!(complaints(&repository, &exceptions).join("\n"), @r"
    crates/cli/src/b.rs:2: names the workload pg-bench
    crates/cli/src/a.rs: needs no exception
    ");
}
