//! The import table of ARCHITECTURE.md is what the crates' manifests say.

use std::collections::{BTreeMap, BTreeSet};

use super::{Repository, assert_none};

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## The import table";

/// Names of crates without `dbdyno-`, each with those it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn complaints(repository: &Repository) -> Vec<String> {
    let real = real(repository);
    let stated = stated(repository.text(PAGE), &real);
    let names: BTreeSet<&String> = real.keys().chain(stated.keys()).collect();
    let list = |imports: Option<&BTreeSet<String>>| match imports {
        None => "no such crate".to_owned(),
        Some(names) if names.is_empty() => "–".to_owned(),
        Some(names) => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
    };
    let differing = names.into_iter().filter(|name| real.get(*name) != stated.get(*name));
    let complaint = |name: &String| {
        format!("{name}: {PAGE} says {}; Cargo.toml says {}", list(stated.get(name)), list(real.get(name)))
    };
    differing.map(complaint).collect()
}

fn real(repository: &Repository) -> Imports {
    let imports = |name: &&str| {
        let manifest = repository.text(&format!("crates/{name}/Cargo.toml"));
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap().keys();
        let ours = dependencies.filter_map(|dependency| dependency.strip_prefix("dbdyno-"));
        ((*name).to_owned(), ours.map(str::to_owned).collect())
    };
    repository.folders_in("crates").iter().map(imports).collect()
}

/// The table as it is in the page. `all` means every other crate.
fn stated(page: &str, real: &Imports) -> Imports {
    let section = page.split_once(HEADING).map_or("", |(_, after)| after);
    let rows =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut imports = Imports::new();
    for row in rows.skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, list] = cells[..] else {
            panic!("a row of the import table without three cells: {row}")
        };
        let names = match list {
            "all" => real.keys().filter(|other| *other != name).cloned().collect(),
            "–" => BTreeSet::new(),
            _ => list.split(", ").map(str::to_owned).collect(),
        };
        imports.insert(name.to_owned(), names);
    }
    imports
}

#[test]
fn the_import_table_is_what_the_manifests_say() {
    assert_none(&complaints(&Repository::load()));
}

#[test]
fn a_missing_and_a_false_import_and_an_unknown_crate_are_found() {
    let page = "## The import table\n\n| crate | its job | imports (ours) |\n|---|---|---|\n| a | x | – |\n\
                | b | x | a, c |\n| gone | x | – |\n| top | x | all |\n\nmore\n";
    let repository = Repository::of(&[
        (PAGE, page),
        ("crates/a/Cargo.toml", "[dependencies]\nserde = \"1\"\ndbdyno-b.workspace = true\n"),
        (
            "crates/b/Cargo.toml",
            "[dependencies]\ndbdyno-a.workspace = true\n[dev-dependencies]\ndbdyno-c = \"1\"\n",
        ),
        ("crates/top/Cargo.toml", "[dependencies]\ndbdyno-a = \"1\"\ndbdyno-b = \"1\"\n"),
    ]);
    insta::assert_snapshot!(complaints(&repository).join("\n"), @r"
    a: ARCHITECTURE.md says –; Cargo.toml says b
    b: ARCHITECTURE.md says a, c; Cargo.toml says a
    gone: ARCHITECTURE.md says –; Cargo.toml says no such crate
    ");
}
