//! The inventory: all servers that a plan can name, from the catalogue and from the servers folder.
//! A lookup finds a server by its name, and an unknown name gets suggestions.

use std::path::{Path, PathBuf};

use dbdyno_db::server::{Base, list, servers_dir};
use dbdyno_products::Product;
use strsim::levenshtein;

use crate::build::BuildFacts;
use crate::files::{Catalogue, Entry, catalogue};
use crate::{Error, ProbeAnswer, ServerEntry, ServerOrigin};

/// A server that can be fetched or is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedServer {
    pub name: String,
    /// `MariaDB`, `MySQL`, `Percona Server` or `PostgreSQL`; empty when the server does not report.
    pub product: String,
    /// The version from the server's answers, otherwise from its program's output, otherwise from
    /// its entry.
    pub version: String,
    pub entry: Option<Entry>,
    /// The server's installation, if it is in the servers folder.
    pub here: Option<Here>,
}

/// A server's installation in the servers folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    /// The server's base directory, with links resolved.
    pub base_dir: PathBuf,
    /// The server's origin; `None` if it has no readable server entry.
    pub origin: Option<ServerOrigin>,
    /// The server's answers to its last probe; `None` if it was not probed or its program has
    /// changed since.
    pub answer: Option<ProbeAnswer>,
    /// What the server was built from, if dbdyno has built it.
    pub build: Option<BuildFacts>,
    pub problem: Option<String>,
}

/// Lists all servers in `catalogue`, in its order, then the other servers in `servers_dir`. It runs
/// a server's program only with `--version`, and only if the server has not been probed.
pub fn inventory(servers_dir: &Path, catalogue: &Catalogue) -> Vec<ListedServer> {
    let mut there = list(servers_dir);
    there.extend(server_entry_names(servers_dir));
    there.sort();
    there.dedup();
    let of_catalogue = catalogue.entries.iter().map(|entry| {
        let is_installed = there.contains(&entry.name);
        listed_server(servers_dir, &entry.name, Some(entry), is_installed)
    });
    let is_other = |name: &&String| !catalogue.entries.iter().any(|entry| entry.name == **name);
    let others = there.iter().filter(is_other).map(|name| listed_server(servers_dir, name, None, true));
    of_catalogue.chain(others).collect()
}

/// Names that have a server entry, even if the base directory is gone. A server entry does not
/// count while dbdyno is still getting its files, or if dbdyno was killed meanwhile.
fn server_entry_names(servers_dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(servers_dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()));
    let has_server = |name: &String| match ServerEntry::read(servers_dir, name) {
        Ok(Some(ServerEntry { origin: ServerOrigin::Got | ServerOrigin::Built, .. })) => {
            servers_dir.join(name).exists()
        }
        Ok(Some(_)) => true,
        Ok(None) => false,
        Err(_) => true,
    };
    names.filter(has_server).collect()
}

fn listed_server(servers_dir: &Path, name: &str, entry: Option<&Entry>, is_installed: bool) -> ListedServer {
    let promised = entry.map(|entry| (entry.product.clone(), entry.version.clone())).unwrap_or_default();
    let (reported, mut here) = is_installed.then(|| look(servers_dir, name)).unzip();
    let reported = reported.flatten();
    let (product, version) = reported.unwrap_or(promised);
    if let (Some(entry), Some(here)) = (entry, &mut here)
        && !(product == entry.product && entry.means(&version))
    {
        let promise = format!("by its name it should be {} {}", entry.product, entry.version);
        here.problem.get_or_insert(promise);
    }
    ListedServer { name: name.to_owned(), product, version, entry: entry.cloned(), here }
}

/// Product and version, if they are known, and the server's installation.
fn look(servers_dir: &Path, name: &str) -> (Option<(String, String)>, Here) {
    let server_dir = servers_dir.join(name);
    let (server_entry, mut problem) = match ServerEntry::read(servers_dir, name) {
        Ok(server_entry) => (server_entry, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let answer =
        server_entry.as_ref().and_then(|server_entry| server_entry.current_answer(&server_dir)).cloned();
    let reported = match &answer {
        Some(answer) => Some((answer.product.clone(), answer.version.clone())),
        None => match Base::open(&server_dir) {
            Ok(base) => Some((base.product.to_string(), base.version)),
            Err(error) => {
                problem = Some(error.to_string());
                None
            }
        },
    };
    let base_dir =
        server_dir.canonicalize().unwrap_or_else(|_| std::fs::read_link(&server_dir).unwrap_or(server_dir));
    (
        reported,
        {
            let (origin, build) = server_entry.map(|entry| (entry.origin, entry.build)).unzip();
            Here { base_dir, origin, answer, build: build.flatten(), problem }
        },
    )
}

/// Opens the base directory `name` in the servers folder.
pub fn find_named(name: &str) -> Result<Base, Error> {
    use dbdyno_db::server::Error::NotInFolder;

    dbdyno_db::server::find_named(name).map_err(|error| match error {
        NotInFolder { name, folder, .. } => {
            let help = how_to_get(&name, &list(&servers_dir()));
            Error::NotInFolder { name, folder, help }
        }
        other => other.into(),
    })
}

/// Advice for a server `name` that is not installed: how to get it, or which names are similar.
fn how_to_get(name: &str, there: &[String]) -> String {
    // Errors in the user's own catalogue are ignored, because the commands for the catalogue report
    // them.
    let entries = Catalogue::read().map_or_else(|_| catalogue(), |catalogue| catalogue.entries);
    if entries.iter().any(|entry| entry.name == name) {
        return format!("`dbdyno servers get {name}` gets it, as does `dbdyno run --get`");
    }
    let known = there.iter().map(String::as_str).chain(entries.iter().map(|entry| entry.name.as_str()));
    suggestions(name, known)
}

/// Highest number of names that a message suggests.
const MAX_SUGGESTIONS: usize = 4;

/// Suggestions for the end of a message about the unknown `name`: similar names among `known`, and
/// the command that lists all servers.
pub(crate) fn suggestions<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let suggestions = nearest(name, known);
    let all = "`dbdyno servers list` shows all";
    if suggestions.is_empty() {
        all.to_owned()
    } else {
        format!("suggestions: {}; {all}", suggestions.join(", "))
    }
}

/// Finds the known names of the version in `name`, newest first. If there are none, it finds the
/// names with the smallest edit distance, closest first, and in alphabetical order if the distances
/// are equal. The distance is at most a third of the name's letters.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let name = name.to_lowercase();
    let name = Product::name_in_catalogues(&name).unwrap_or(name);
    let is_of_version = |other: &&str| match other.strip_prefix(&name) {
        Some(rest) => rest.is_empty() || rest.starts_with(['.', '-']),
        None => false,
    };
    let mut of_version: Vec<&str> = known.iter().copied().filter(is_of_version).collect();
    if !of_version.is_empty() {
        let numbers = |name: &str| -> Vec<u32> {
            name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
        };
        of_version.sort_by_key(|name| std::cmp::Reverse(numbers(name)));
        of_version.dedup();
        of_version.truncate(MAX_SUGGESTIONS);
        return of_version;
    }
    let mut suggestions: Vec<(usize, &str)> = known
        .into_iter()
        .map(|other| (levenshtein(&name, &other.to_lowercase()), other))
        .filter(|(edits, other)| *edits <= other.chars().count() / 3)
        .collect();
    suggestions.sort();
    suggestions.dedup();
    let best = suggestions.first().map_or(0, |(edits, _)| *edits);
    // The user is unlikely to mean a name that needs many more edits than the closest name.
    suggestions
        .into_iter()
        .filter(|(edits, _)| *edits <= best + 1)
        .map(|(_, other)| other)
        .take(MAX_SUGGESTIONS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;

    #[test]
    fn the_catalogue_comes_first_and_broken_servers_are_shown_with_their_problem() {
        let folder = tempfile::tempdir().unwrap();
        let catalogue = Catalogue { entries: vec![by_name("mysql-8.0.31").unwrap()], own_file: None };
        std::os::unix::fs::symlink("/nowhere/base", folder.path().join("mine")).unwrap();
        let server_entry = ServerEntry { origin: ServerOrigin::Added, source: "x".to_owned(), answer: None, build: None };
        server_entry.write(folder.path(), "mine").unwrap();
        let server_entry = ServerEntry { origin: ServerOrigin::Got, ..server_entry };
        server_entry.write(folder.path(), "mysql-8.0.31").unwrap();
        let all = inventory(folder.path(), &catalogue);
        assert_eq!(
            all.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(),
            ["mysql-8.0.31", "mine"]
        );
        assert!(all[0].here.is_none() && all[0].version == "8.0.31");
        let here = all[1].here.as_ref().unwrap();
        assert_eq!(here.base_dir, Path::new("/nowhere/base"));
        assert!(here.problem.as_ref().unwrap().contains("contains no server that dbdyno supports"));
    }

    #[test]
    fn the_advice_for_a_name_is_a_command_or_suggestions() {
        let there = ["mariadb-10.1.23", "mysql-8.0.31"].map(str::to_owned);
        insta::assert_snapshot!(how_to_get("mysql-8.0.99", &there), @"suggestions: mysql-8.0.12, mysql-8.0.15, mysql-8.0.22, mysql-8.0.31; `dbdyno servers list` shows all");
        assert_eq!(
            how_to_get("mysql-5.7.22", &there),
            "`dbdyno servers get mysql-5.7.22` gets it, as does `dbdyno run --get`"
        );
    }

    #[test]
    fn the_most_similar_names_come_first_and_others_are_left_out() {
        let known = ["mysql-5.5.9", "mysql-8.0.31", "mysql-8.0.33", "mariadb-10.11.5", "pg-18.6"];
        assert_eq!(nearest("mysql-8.0.32", known), ["mysql-8.0.31", "mysql-8.0.33"]);
        assert_eq!(nearest("PG-18.6", known), ["pg-18.6"]);
        assert_eq!(nearest("oracle-23", known), [""; 0]);
        assert_eq!(nearest("postgres-18", known), ["pg-18.6"]);
        assert_eq!(nearest("PostgreSQL-18.6", known), ["pg-18.6"]);
        assert_eq!(nearest("mysql-8", known), ["mysql-8.0.33", "mysql-8.0.31"]);
        assert_eq!(nearest("mysql-8.0", known), ["mysql-8.0.33", "mysql-8.0.31"]);
        assert_eq!(suggestions("oracle-23", known), "`dbdyno servers list` shows all");
    }
}
