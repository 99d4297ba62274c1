//! Tests for rules about the repository that no common tool checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::workspace;

/// The lists of products, and the list of the layouts in which makers pack builds, below `crates`.
/// Only these files may name a product outside its folders.
const LISTS: [&str; 3] = ["db/src/products.rs", "fetch/src/files/archives.rs", "products/src/lib.rs"];

/// Folders and files about another program, whose own words name products. They are the command
/// lines of sysbench and pgbench, and the known-answer server, which speaks protocols and shares no
/// code with `db`.
const OTHER_PROGRAMS: [&str; 4] = ["/pgbench/", "/sysbench/", "known-answer/", "known_answer.rs"];

/// Returns the folder of each family of products, and all its names.
fn names_of_products() -> impl Iterator<Item = (&'static str, Vec<String>)> {
    dbdyno_products::ALL.iter().map(|family| {
        let words = family.products.iter().flat_map(|product| [product.word, product.name]);
        let plain = |name: &str| name.replace(' ', "").to_ascii_lowercase();
        (family.name, words.chain([family.name]).map(plain).collect())
    })
}

/// Returns path below `crates` and text of each file of product code.
fn product_code() -> Vec<(String, String)> {
    fn read(folder: &Path, found: &mut Vec<(String, String)>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(workspace::root().join("crates")).unwrap().display().to_string();
            let is_of_tests = ["/tests", "_tests.rs", "/fixture", "/node_modules", "/examples"];
            if is_of_tests.iter().any(|part| name.contains(part)) {
                continue;
            }
            match path.is_dir() {
                true => read(&path, found),
                false if name.ends_with(".rs") => found.push((name, fs::read_to_string(&path).unwrap())),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    read(&workspace::root().join("crates"), &mut found);
    assert!(found.len() > 50, "the sources were not found");
    found
}

/// Returns the first line that names a product outside its folders, also as one of several words in
/// a name (`is_mysql`). Comments, `mod postgres;` and code that is only for tests do not count.
fn names_product<'a>(path: &str, text: &'a str) -> Option<&'a str> {
    let foreign = names_of_products().filter(|(folder, _)| {
        !path.contains(&format!("/{folder}/")) && !path.ends_with(&format!("/{folder}.rs"))
    });
    let names: Vec<String> = foreign.flat_map(|(_, names)| names).collect();
    let product = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut is_test = false;
    product.lines().find(|line| {
        let code = line.trim_start();
        let was_test = std::mem::replace(&mut is_test, code.starts_with("#[cfg(test)]"));
        let mut words =
            code.split(|character: char| !character.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
        let is_module = code.trim_start_matches("pub ").trim_start_matches("pub(crate) ").starts_with("mod ");
        !is_module && !was_test && !code.starts_with("//") && words.any(|word| names.contains(&word))
    })
}

#[test]
fn no_product_code_outside_its_folders_names_a_product() {
    let code = product_code();
    let own = code.iter().filter(|(path, _)| !OTHER_PROGRAMS.iter().any(|part| path.contains(part)));
    let named = own.filter(|(path, text)| names_product(path, text).is_some());
    let found: BTreeSet<&str> = named.map(|(path, _)| path.as_str()).collect();
    assert_eq!(found, BTreeSet::from(LISTS), "product code names a product");
}

#[test]
fn a_product_that_is_named_elsewhere_is_found() {
    let named = |path, text| names_product(path, text).is_some();
    assert!(named("cli/src/a.rs", "fn run() {}\nlet x = \"MariaDB\";"));
    assert!(named("cli/src/a.rs", "#[cfg(test)]\nmod fake;\nfn is_mysql() {}"));
    assert!(!named("cli/src/a.rs", "// PostgreSQL\nlet x = \"postgress\";\n#[cfg(test)]\nfn postgres() {}"));
    assert!(!named("db/src/lib.rs", "pub mod postgres;"));
    assert!(!named("db/src/postgres/mod.rs", "pub struct Postgres;"));
}

/// A crate's name without `dbdyno-`, and which of our crates it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn imports_of_manifests() -> Imports {
    let crates = fs::read_dir(workspace::root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let imports = |path: std::path::PathBuf| {
        let manifest: toml::Table =
            fs::read_to_string(path.join("Cargo.toml")).unwrap().parse().expect("a manifest");
        let ours = manifest["dependencies"].as_table().unwrap().keys();
        let ours = ours.filter_map(|name| name.strip_prefix("dbdyno-")).map(str::to_owned).collect();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), ours)
    };
    crates.map(imports).collect()
}

/// Reads the table from the page. `all` means every other crate of `known`.
fn imports_of_page(page: &str, known: &Imports) -> Imports {
    let (_, section) = page.split_once("## The tree").expect("the section of the table");
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let row = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, list] = cells[..] else { panic!("a row without three cells: {row}") };
        let names = match list {
            "all" => known.keys().filter(|other| *other != name).cloned().collect(),
            "–" => BTreeSet::new(),
            _ => list.split(", ").map(str::to_owned).collect(),
        };
        (name.to_owned(), names)
    };
    rows.map(row).collect()
}

#[test]
fn the_import_table_is_what_the_manifests_say() {
    let real = imports_of_manifests();
    let page = fs::read_to_string(workspace::root().join("ARCHITECTURE.md")).unwrap();
    assert_eq!(imports_of_page(&page, &real), real, "ARCHITECTURE.md, and what each Cargo.toml says");
}

/// Every direct dependency has one version, for a small binary, and a reason. deny.toml checks that
/// crates take it from the workspace and that it is used.
#[test]
fn every_dependency_has_a_reason_and_one_version() {
    let read = |name: &str| fs::read_to_string(workspace::root().join(name)).unwrap();
    let (manifest, lock) = (read("Cargo.toml"), read("Cargo.lock"));
    let (_, section) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    for line in section.lines().take_while(|line| !line.starts_with('[')).filter(|line| line.contains(" = "))
    {
        let (name, _) = line.split_once(" = ").unwrap();
        assert!(line.contains("path = ") || line.contains(" # "), "Cargo.toml: no reason for {line}");
        let versions = lock.matches(&format!("[[package]]\nname = \"{name}\"\n")).count();
        assert_eq!(versions, 1, "Cargo.lock: versions of {name}");
    }
}
