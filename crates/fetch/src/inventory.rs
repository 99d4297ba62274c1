//! The inventory: all servers that a plan can name, from the catalogue and from the servers folder.

use std::path::{Path, PathBuf};

use dbdyno_db::server::{Base, list};

use crate::files::{Catalogue, Entry};
use crate::{Answer, Origin, ServerEntry};

/// A server that can be fetched or is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedServer {
    pub name: String,
    /// `MariaDB`, `MySQL`, `Percona Server` or `PostgreSQL`; empty when the server does not report.
    pub product: String,
    /// The version from the server's answers, otherwise from what its program prints, otherwise
    /// from its entry.
    pub version: String,
    pub entry: Option<Entry>,
    /// Its installation, if it is in the servers folder.
    pub here: Option<Here>,
}

/// A server in the servers folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    /// Its base directory, with links resolved.
    pub base_dir: PathBuf,
    /// Its origin; `None` when no one has asked dbdyno to look at it.
    pub origin: Option<Origin>,
    /// What it answered when it was started once; `None` when it was not, or when its program has
    /// changed since.
    pub answer: Option<Answer>,
    pub problem: Option<String>,
}

/// Everything in `catalogue`, in its order, then the other servers in `servers_dir`. It runs
/// programs only for their `--version`, and only for servers that have not been asked.
pub fn inventory(servers_dir: &Path, catalogue: &Catalogue) -> Vec<ListedServer> {
    let mut there = list(servers_dir);
    there.extend(server_entry_names(servers_dir));
    there.sort();
    there.dedup();
    let of_catalogue = catalogue.entries.iter().map(|entry| {
        let is_here = there.contains(&entry.name);
        listed_server(servers_dir, &entry.name, Some(entry), is_here)
    });
    let is_other = |name: &&String| !catalogue.entries.iter().any(|entry| entry.name == **name);
    let others = there.iter().filter(is_other).map(|name| listed_server(servers_dir, name, None, true));
    of_catalogue.chain(others).collect()
}

/// Names that have a server entry, even if the base directory is gone. A server entry does not
/// count yet while dbdyno is getting its files, or if it was killed while doing so.
fn server_entry_names(servers_dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(servers_dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()));
    let is_of_something = |name: &String| match ServerEntry::read(servers_dir, name) {
        Ok(Some(server_entry)) => server_entry.origin != Origin::Got || servers_dir.join(name).exists(),
        Ok(None) => false,
        Err(_) => true,
    };
    names.filter(is_of_something).collect()
}

fn listed_server(servers_dir: &Path, name: &str, entry: Option<&Entry>, is_here: bool) -> ListedServer {
    let promised = entry.map(|entry| (entry.product.clone(), entry.version.clone())).unwrap_or_default();
    let (reported, mut here) = is_here.then(|| look(servers_dir, name)).unzip();
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

/// Product and version, if they are known, and what is installed.
fn look(servers_dir: &Path, name: &str) -> (Option<(String, String)>, Here) {
    let place = servers_dir.join(name);
    let (server_entry, mut problem) = match ServerEntry::read(servers_dir, name) {
        Ok(server_entry) => (server_entry, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let answer = server_entry.as_ref().and_then(|server_entry| server_entry.current_answer(&place)).cloned();
    let reported = match &answer {
        Some(answer) => Some((answer.product.clone(), answer.version.clone())),
        None => match Base::open(&place) {
            Ok(base) => Some((base.product.to_string(), base.version)),
            Err(error) => {
                problem = Some(error.to_string());
                None
            }
        },
    };
    let base_dir = place.canonicalize().unwrap_or_else(|_| std::fs::read_link(&place).unwrap_or(place));
    (
        reported,
        Here { base_dir, origin: server_entry.map(|server_entry| server_entry.origin), answer, problem },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;

    #[test]
    fn the_catalogue_comes_first_and_what_is_broken_is_shown_with_its_fault() {
        let folder = tempfile::tempdir().unwrap();
        let catalogue = Catalogue { entries: vec![by_name("mysql-8.0.31").unwrap()], own_file: None };
        std::os::unix::fs::symlink("/nowhere/base", folder.path().join("mine")).unwrap();
        let server_entry = ServerEntry { origin: Origin::Added, source: "x".to_owned(), answer: None };
        server_entry.write(folder.path(), "mine").unwrap();
        let server_entry = ServerEntry { origin: Origin::Got, ..server_entry };
        server_entry.write(folder.path(), "mysql-8.0.31").unwrap();
        let all = inventory(folder.path(), &catalogue);
        assert_eq!(
            all.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(),
            ["mysql-8.0.31", "mine"]
        );
        assert!(all[0].here.is_none() && all[0].version == "8.0.31");
        let here = all[1].here.as_ref().unwrap();
        assert_eq!(here.base_dir, Path::new("/nowhere/base"));
        assert!(here.problem.as_ref().unwrap().contains("holds no server that dbdyno knows"));
    }
}
