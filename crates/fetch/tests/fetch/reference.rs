//! Tests that the page on servers shows the current catalogue.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use dbdyno_fetch::{Entry, Source, catalogue};

#[path = "../../../../xtask/src/filled.rs"]
mod filled;

use filled::filled;

const BEGIN: &str = "<!-- from servers.toml; DBDYNO_UPDATE=1 cargo test -p dbdyno-fetch --test fetch -->\n";
const END: &str = "<!-- end -->\n";

/// With `DBDYNO_UPDATE=1` the test writes the list into the page.
#[test]
fn the_page_on_servers_has_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/servers.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the list");
    let (_, after) = rest.split_once(END).expect("the list has an end");
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", table());
    if std::env::var_os("DBDYNO_UPDATE").is_some() {
        fs::write(&path, wanted).unwrap();
    } else {
        assert!(page == wanted, "the list is not that of the catalogue; write it again: DBDYNO_UPDATE=1");
    }
}

/// Returns a line of names per origin, and one of the entries that were never fetched.
fn table() -> String {
    let (untested, tested): (Vec<Entry>, Vec<Entry>) =
        catalogue().into_iter().partition(|entry| entry.untested);
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in tested {
        names.entry(origin(&entry.source)).or_default().push(entry.name);
    }
    let untested: Vec<String> = untested.into_iter().map(|entry| entry.name).collect();
    let lines = names.into_iter().chain([("*Untested*".to_owned(), untested)]);
    filled(&lines.map(|(origin, names)| format!("* {origin}: {}\n", names.join(", "))).collect::<String>())
}

fn origin(source: &Source) -> String {
    match source {
        Source::Maven { .. } => "Maven".to_owned(),
        Source::Npm { .. } => "npm".to_owned(),
        Source::Debian { suite, .. } => format!("Debian {suite}"),
        Source::Tarball { .. } => "vendors' tarballs".to_owned(),
        Source::Basedir { path } => path.display().to_string(),
    }
}
