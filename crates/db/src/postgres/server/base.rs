//! Examines a PostgreSQL base directory: where its programs are, which version they have, and what
//! the server can do.

use std::fs;
use std::path::{Path, PathBuf};

use dbdyno_products::Release;
use dbdyno_products::postgres::POSTGRESQL;

use crate::server::base::{Abilities, ServerProbe, ThreadPool, TlsAbility};
use crate::server::launch::version_of;
use crate::server::{Base, Error};
use crate::{AnySession, DbError, Family, Session, column, first_i64};

/// Folders in unpacked distribution packages that have one folder for each major version, with the
/// programs in its `bin`.
const PACKAGE_FOLDERS: &[&str] = &["usr/lib/postgresql", "lib/postgresql"];

/// Programs that a base directory must have.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];

/// Implements [`crate::product::Product::open`].
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

/// Finds the folder with the server's programs in `path`, without running them. If there are
/// several versions in packages, the highest one is chosen.
pub(in crate::postgres) fn find_programs(path: &Path) -> Option<PathBuf> {
    let versions = |folder: &&str| fs::read_dir(path.join(folder)).into_iter().flatten().flatten();
    let mut folders: Vec<(u32, PathBuf)> = PACKAGE_FOLDERS
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

/// Lists what [`find_programs`] looks for, for an error message.
pub(in crate::postgres) fn expected_programs() -> String {
    "bin/postgres with bin/initdb, usr/lib/postgresql/*/bin/postgres".to_owned()
}

/// Reads `postgres (PostgreSQL) 17.5 (Debian 17.5-1)`.
fn parse_version(line: &str) -> Option<String> {
    let version = line.split_once("(PostgreSQL) ")?.1.split_whitespace().next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// The value of the ciphers setting in a server that was built without TLS. Before version 12 there
/// is no other sign.
const NO_CIPHERS: &str = "none";

pub(in crate::postgres) async fn abilities(probe: ServerProbe<'_>) -> Result<Abilities, DbError> {
    let ServerProbe { session, description, .. } = probe;
    let setting = |name: &str| description.settings.get(name).map(String::as_str);
    let [major, ..] = description.version;
    let engines = match major {
        12.. => column(session, "SELECT amname FROM pg_am WHERE amtype = 't' ORDER BY amname").await?,
        _ => vec![description.engine.clone()],
    };
    let jit = match major {
        11.. => first_i64(&session.rows("SELECT pg_jit_available()::int").await?) == Some(1),
        _ => false,
    };
    let default_login = setting("password_encryption").filter(|value| *value != "on").unwrap_or("md5");
    let mut logins = choices(session, "password_encryption").await?;
    if logins.is_empty() {
        logins.push(default_login.to_owned());
    }
    logins.sort();
    Ok(Abilities {
        engines,
        default_engine: description.engine.clone(),
        thread_pool: ThreadPool::None,
        logins,
        default_login: default_login.to_owned(),
        tls: tls(setting("ssl_library"), setting("ssl_ciphers")),
        aio: in_use_first(choices(session, "io_method").await?, setting("io_method")),
        jit,
        vector: pgvector(session).await?,
    })
}

/// Reads the values that a setting can have. The list is empty when the setting does not exist or
/// has no list.
async fn choices(session: &mut AnySession, setting: &str) -> Result<Vec<String>, DbError> {
    column(session, &format!("SELECT unnest(enumvals) FROM pg_settings WHERE name = '{setting}'")).await
}

fn in_use_first(mut choices: Vec<String>, in_use: Option<&str>) -> Vec<String> {
    choices.sort_by_key(|choice| Some(choice.as_str()) != in_use);
    choices
}

fn tls(library: Option<&str>, ciphers: Option<&str>) -> TlsAbility {
    let has_tls = match library {
        Some(library) => !library.is_empty(),
        None => ciphers.is_some_and(|ciphers| ciphers != NO_CIPHERS),
    };
    if has_tls { TlsAbility::WithCertificate } else { TlsAbility::None }
}

async fn pgvector(session: &mut AnySession) -> Result<Option<String>, DbError> {
    let sql = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'";
    Ok(column(session, sql).await?.pop().map(|version| format!("pgvector {version}")))
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
    fn programs_are_found_in_both_layouts_and_in_the_highest_version() {
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

    #[test]
    fn tls_shows_in_the_library_or_in_the_ciphers() {
        assert_eq!(tls(Some("OpenSSL"), Some("HIGH")), TlsAbility::WithCertificate);
        assert_eq!(tls(Some(""), Some("none")), TlsAbility::None);
        assert_eq!(tls(None, Some("HIGH:MEDIUM")), TlsAbility::WithCertificate);
        assert_eq!(tls(None, Some("none")), TlsAbility::None);
    }

    #[test]
    fn the_method_in_use_comes_first() {
        let choices = ["sync", "worker", "io_uring"].map(str::to_owned).to_vec();
        assert_eq!(in_use_first(choices, Some("worker")), ["worker", "sync", "io_uring"]);
    }
}
