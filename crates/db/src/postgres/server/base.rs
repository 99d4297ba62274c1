//! Examines a PostgreSQL base directory: where its programs are, and which version they have.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Family;
use crate::server::launch::version_of;
use crate::server::{Base, Error};
use dbdyno_products::Release;
use dbdyno_products::postgres::POSTGRESQL;

/// Paths to the programs in distribution packages, which have one folder for each major version.
const OF_PACKAGES: &[&str] = &["usr/lib/postgresql", "lib/postgresql"];

/// Programs that a base directory must have.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];

pub(in crate::postgres) fn open(path: &Path) -> Result<Option<Base>, Error> {
    let Some(programs) = find_programs(path) else { return Ok(None) };
    let program = programs.join("postgres");
    let version = version_of(&program, &["--version"], parse_version)?;
    Ok(Some(Base {
        family: Family::Postgres,
        path: path.to_path_buf(),
        prefix: path.to_path_buf(),
        program,
        product: POSTGRESQL,
        release: Release::parse(&version).unwrap_or_default(),
        title: format!("{} {version}", POSTGRESQL),
        version,
        plugin_dir: None,
        installer: Some(programs.join("initdb")),
        share_dir: None,
    }))
}

/// Finds the folder with the server's programs in `path`. Nothing is run. If there are several
/// versions, the last one counts.
pub(in crate::postgres) fn find_programs(path: &Path) -> Option<PathBuf> {
    let versions = |folder: &&str| fs::read_dir(path.join(folder)).into_iter().flatten().flatten();
    let mut folders: Vec<(u32, PathBuf)> = OF_PACKAGES
        .iter()
        .flat_map(versions)
        .map(|entry| {
            let major =
                entry.file_name().to_string_lossy().split('.').next().and_then(|word| word.parse().ok());
            (major.unwrap_or(0), entry.path().join("bin"))
        })
        .collect();
    folders.sort();
    std::iter::once(path.join("bin"))
        .chain(folders.into_iter().rev().map(|(_, folder)| folder))
        .find(|folder| PROGRAMS.iter().all(|program| folder.join(program).is_file()))
}

/// Says what [`find_programs`] looks for, for an error message.
pub(in crate::postgres) fn looked_for() -> String {
    "bin/postgres with bin/initdb, usr/lib/postgresql/*/bin/postgres".to_owned()
}

/// Reads `postgres (PostgreSQL) 17.5 (Debian 17.5-1)`.
fn parse_version(line: &str) -> Option<String> {
    let version = line.split_once("(PostgreSQL) ")?.1.split_whitespace().next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_real_servers_print() {
        for (line, version) in [
            ("postgres (PostgreSQL) 9.6.24", "9.6.24"),
            ("postgres (PostgreSQL) 15.19", "15.19"),
            ("postgres (PostgreSQL) 17.5 (Debian 17.5-1)", "17.5"),
            ("postgres (PostgreSQL) 19rc1 (Debian 19~rc1-1)", "19rc1"),
        ] {
            assert_eq!(parse_version(line), Some(version.to_owned()));
        }
        assert_eq!(parse_version("mysqld  Ver 8.0.31 for Linux"), None);
    }

    #[test]
    fn programs_are_found_in_both_layouts_and_of_several_versions_the_last() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(find_programs(folder.path()), None);
        let add = |place: &str, programs: &[&str]| {
            let bin = folder.path().join(place);
            fs::create_dir_all(&bin).unwrap();
            programs.iter().for_each(|program| fs::write(bin.join(program), "").unwrap());
            bin
        };
        add("usr/lib/postgresql/9.6/bin", &PROGRAMS);
        let newest = add("usr/lib/postgresql/17/bin", &PROGRAMS);
        assert_eq!(find_programs(folder.path()), Some(newest.clone()));
        let bin = add("bin", &["postgres"]);
        assert_eq!(find_programs(folder.path()), Some(newest), "without initdb it is of no use");
        add("bin", &["initdb"]);
        assert_eq!(find_programs(folder.path()), Some(bin));
    }

    #[test]
    fn a_folder_without_a_server_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open(folder.path()).unwrap().is_none());
    }
}
