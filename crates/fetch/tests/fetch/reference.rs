//! Tests that the page on servers shows the current catalogue.

use std::fs;
use std::path::Path;

use dbdyno_fetch::{Entry, Source, catalogue};

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

fn table() -> String {
    let (untested, tested): (Vec<Entry>, Vec<Entry>) =
        catalogue().into_iter().partition(|entry| entry.untested);
    let mut text = String::new();
    for entry in tested {
        let download = entry.download_mb.map_or(String::new(), |mb| format!(", {mb} MB"));
        text.push_str(&format!("* {}: {}{download}\n", entry.name, from(&entry)));
    }
    let untested: Vec<String> = untested.into_iter().map(|entry| entry.name).collect();
    text + &format!("* *Untested*: {}\n", untested.join(", "))
}

fn from(entry: &Entry) -> String {
    match &entry.source {
        Source::Maven { artifact, .. } => format!("Maven `{artifact}`"),
        Source::Npm { package, .. } => format!("npm `{package}`"),
        Source::Debian { suite, .. } => format!("Debian {suite}"),
        Source::Tarball { url, .. } => format!("<{}>", url.as_deref().unwrap_or_default()),
        Source::Basedir { path } => path.display().to_string(),
    }
}
