//! Examines a base directory: which product and version it holds, where its parts are, and what the
//! server can do.

use std::path::{Path, PathBuf};

use dbdyno_products::mysql::{MARIADB, MYSQL, PERCONA};
use dbdyno_products::{Product, Release};

use crate::server::base::{Abilities, ServerProbe, ThreadPool, TlsAbility};
use crate::server::launch::version_of;
use crate::server::{Base, Error};
use crate::{AnySession, DbError, Family, Session, column};

/// The places where a server program may be. Each is a prefix, which the server calls its base
/// directory, and the program's path below it.
///
/// Tarballs have `bin`, source installs have `sbin` or `libexec`, and unpacked distribution
/// packages have `usr/sbin`.
const PROGRAMS: &[(&str, &str)] = &[
    ("", "bin/mysqld"),
    ("", "bin/mariadbd"),
    ("", "sbin/mysqld"),
    ("", "sbin/mariadbd"),
    ("usr", "sbin/mysqld"),
    ("usr", "sbin/mariadbd"),
    ("", "libexec/mysqld"),
    ("", "libexec/mariadbd"),
];

const SHARE_DIRS: &[&str] = &["share", "share/mysql", "share/mariadb"];
const PLUGIN_DIRS: &[&str] = &["lib/plugin", "lib/mysql/plugin", "lib/mariadb/plugin", "lib64/mysql/plugin"];
const INSTALLERS: &[&str] = &[
    "bin/mariadb-install-db",
    "scripts/mariadb-install-db",
    "bin/mysql_install_db",
    "scripts/mysql_install_db",
];

impl Base {
    pub(in crate::mysql) fn is_mariadb(&self) -> bool {
        self.product == MARIADB
    }
}

/// Implements [`crate::product::Product::open`].
pub(in crate::mysql) fn open(path: &Path) -> Result<Option<Base>, Error> {
    let Some((prefix, program)) = find_program(path) else { return Ok(None) };
    let (product, release, version) = version_of(&program, &["--no-defaults", "--version"], parse_version)?;
    let [major, minor, patch] = release.0;
    // Some archives store a link as an empty file.
    let has_text = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
    Ok(Some(Base {
        family: Family::Mysql,
        path: path.to_path_buf(),
        product,
        version,
        release,
        title: format!("{product} {major}.{minor}.{patch}"),
        plugin_dir: first_with(&prefix, PLUGIN_DIRS, ""),
        installer: INSTALLERS.iter().map(|name| prefix.join(name)).find(has_text),
        share_dir: first_with(&prefix, SHARE_DIRS, "english/errmsg.sys"),
        prefix,
        program,
    }))
}

/// Finds prefix and program for the server in `path`, without running it.
pub(in crate::mysql) fn find_program(path: &Path) -> Option<(PathBuf, PathBuf)> {
    PROGRAMS.iter().find_map(|(prefix, program)| {
        let prefix = if prefix.is_empty() { path.to_path_buf() } else { path.join(prefix) };
        let program = prefix.join(program);
        program.is_file().then_some((prefix, program))
    })
}

/// Lists [`PROGRAMS`] for an error message.
pub(in crate::mysql) fn expected_programs() -> String {
    let names: Vec<String> = PROGRAMS
        .iter()
        .map(
            |(prefix, program)| {
                if prefix.is_empty() { program.to_string() } else { format!("{prefix}/{program}") }
            },
        )
        .collect();
    names.join(", ")
}

/// Returns the first of `candidates` below `prefix` that exists and contains `inside`.
fn first_with(prefix: &Path, candidates: &[&str], inside: &str) -> Option<PathBuf> {
    let has_it = |path: &PathBuf| if inside.is_empty() { path.exists() } else { path.join(inside).exists() };
    candidates.iter().map(|name| prefix.join(name)).find(has_it)
}

/// Reads `mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)`.
fn parse_version(line: &str) -> Option<(&'static Product, Release, String)> {
    let text = line.split_once("Ver ")?.1.split_whitespace().next()?;
    let product = if line.contains("MariaDB") {
        MARIADB
    } else if line.contains("Percona") {
        PERCONA
    } else {
        MYSQL
    };
    Some((product, Release::parse(text)?, text.to_owned()))
}

#[cfg(test)]
impl Base {
    /// A base directory that exists on no disk, for tests without I/O.
    pub(super) fn sample(product: &'static Product, version: (u32, u32, u32)) -> Self {
        Self::sample_in(Path::new("/s/base"), product, version)
    }

    /// A base directory at `path`, which may exist.
    pub(crate) fn sample_in(
        path: &Path,
        product: &'static Product,
        (major, minor, patch): (u32, u32, u32),
    ) -> Self {
        let path = path.to_path_buf();
        Self {
            family: Family::Mysql,
            prefix: path.clone(),
            program: path.join("bin/mysqld"),
            product,
            release: Release([major, minor, patch]),
            version: format!("{major}.{minor}.{patch}"),
            title: format!("{product} {major}.{minor}.{patch}"),
            share_dir: Some(path.join("share")),
            plugin_dir: None,
            installer: None,
            path,
        }
    }
}

/// A user that dbdyno creates to find out the default authentication plugin.
const NEW_USER: &str = "'dbdyno'@'localhost'";

pub(in crate::mysql) async fn abilities(probe: ServerProbe<'_>) -> Result<Abilities, DbError> {
    let ServerProbe { session, base, description, log } = probe;
    let setting = |name: &str| description.settings.get(name).map(String::as_str);
    let mut logins = column(
        session,
        "SELECT plugin_name FROM information_schema.plugins \
         WHERE plugin_type = 'AUTHENTICATION' AND plugin_status = 'ACTIVE'",
    )
    .await?;
    logins.sort();
    Ok(Abilities {
        engines: engines(session).await?,
        default_engine: description.engine.clone(),
        thread_pool: thread_pool(base, setting("thread_pool_size").is_some()),
        logins,
        default_login: default_login(session).await?,
        tls: tls(base.is_mariadb() && base.release.at_least(11, 4), setting("have_ssl"), setting("ssl_ca")),
        aio: aio(session, setting("innodb_use_native_aio"), setting("innodb_linux_aio"), log).await?,
        jit: false,
        vector: vector(session, setting("mhnsw_max_cache_size").is_some()).await,
    })
}

async fn engines(session: &mut AnySession) -> Result<Vec<String>, DbError> {
    let rows = session.rows("SHOW ENGINES").await?;
    let usable =
        |row: &Vec<Option<String>>| matches!(row.get(1).and_then(Option::as_deref), Some("YES" | "DEFAULT"));
    let mut engines: Vec<String> =
        rows.into_iter().filter(usable).filter_map(|row| row.into_iter().next().flatten()).collect();
    engines.sort();
    Ok(engines)
}

fn thread_pool(base: &Base, has_setting: bool) -> ThreadPool {
    match has_setting {
        true => ThreadPool::BuiltIn,
        false if base.has_plugin("thread_pool.so") => ThreadPool::Plugin,
        false => ThreadPool::None,
    }
}

/// Finds out the default authentication plugin, which shows when a user is created.
async fn default_login(session: &mut AnySession) -> Result<String, DbError> {
    session.query(format!("CREATE USER {NEW_USER} IDENTIFIED BY 'Of-No-Use-1'").as_bytes()).await?;
    let plugins = column(session, "SELECT plugin FROM mysql.user WHERE user = 'dbdyno'").await?;
    session.query(format!("DROP USER {NEW_USER}").as_bytes()).await?;
    // MySQL 5.5 and MariaDB 10.1 leave the column empty for their default plugin.
    Ok(plugins.into_iter().find(|plugin| !plugin.is_empty()).unwrap_or("mysql_native_password".to_owned()))
}

/// Returns the TLS ability. The probed MariaDB server runs with TLS off, because making its key may
/// take 20 s. Its version says whether it would make one.
fn tls(is_new_mariadb: bool, have_ssl: Option<&str>, ssl_ca: Option<&str>) -> TlsAbility {
    // MySQL makes its certificate at initialisation, and its settings then name the files.
    let makes_its_own = is_new_mariadb || ssl_ca.is_some_and(|file| !file.is_empty());
    match have_ssl {
        Some("NO") => TlsAbility::None,
        _ if makes_its_own => TlsAbility::OwnCertificate,
        _ => TlsAbility::WithCertificate,
    }
}

/// Returns the asynchronous I/O methods, the active one first. Servers that can choose have a
/// setting. The others write to their log when they do not use libaio.
async fn aio(
    session: &mut AnySession,
    native_aio: Option<&str>,
    linux_aio: Option<&str>,
    log: &str,
) -> Result<Vec<String>, DbError> {
    if native_aio != Some("ON") {
        return Ok(Vec::new());
    }
    let in_use = if log.contains("liburing") || log.contains("io_uring") { "io_uring" } else { "libaio" };
    let mut methods = vec![in_use.to_owned()];
    if linux_aio.is_some() {
        let choices = column(
            session,
            "SELECT enum_value_list FROM information_schema.system_variables \
             WHERE variable_name = 'INNODB_LINUX_AIO'",
        )
        .await?;
        let choices = choices.iter().flat_map(|list| list.split(',')).filter(|choice| *choice != "auto");
        let names = choices.map(|choice| if choice == "aio" { "libaio" } else { choice });
        methods.extend(names.filter(|name| *name != in_use).map(str::to_owned));
    }
    Ok(methods)
}

async fn vector(session: &mut AnySession, has_index: bool) -> Option<String> {
    if has_index {
        return Some("index".to_owned());
    }
    // An error means that the function does not exist, which is the answer.
    let has_type = session.rows("SELECT VECTOR_DIM(STRING_TO_VECTOR('[1,2]'))").await.is_ok();
    has_type.then(|| "type".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::program::write_program;

    fn parsed(line: &str) -> String {
        match parse_version(line) {
            Some((product, release, text)) => format!("{product} {release} [{text}]"),
            None => "not understood".to_owned(),
        }
    }

    #[test]
    fn product_and_version_are_read_from_what_real_servers_print() {
        let lines = [
            "/s/bin/mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)",
            "/s/sbin/mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
            "/s/bin/mysqld  Ver 5.6.24 for linux-glibc2.5 on x86_64 (MySQL Community Server (GPL))",
            "/s/bin/mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)",
            "/s/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))",
            "mysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL), Release 27, Revision 2f8eeab2)",
            "postgres (PostgreSQL) 15.2",
        ];
        insta::assert_snapshot!(lines.map(parsed).join("\n"), @r"
        MariaDB 10.1.23 [10.1.23-MariaDB]
        MariaDB 10.11.19 [10.11.19-MariaDB-0+deb12u1]
        MySQL 5.6.24 [5.6.24]
        MySQL 8.0.31 [8.0.31]
        MySQL 9.7.4 [9.7.4-2]
        Percona Server 8.0.35 [8.0.35-27]
        not understood
        ");
    }

    #[test]
    fn a_program_that_does_not_run_is_an_error_with_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo 'libaio.so.1: cannot open shared library' >&2\nexit 127";
        write_program(&folder.path().join("bin/mysqld"), script);
        let message = open(folder.path()).unwrap_err().to_string();
        assert!(message.contains("libaio.so.1: cannot open"), "{message}");
        assert!(message.contains("libaio1"), "{message}");
    }

    #[test]
    fn tls_depends_on_the_build_and_on_who_makes_the_certificate() {
        assert_eq!(tls(false, Some("NO"), None), TlsAbility::None);
        assert_eq!(tls(false, Some("DISABLED"), Some("")), TlsAbility::WithCertificate);
        assert_eq!(tls(false, Some("YES"), Some("ca.pem")), TlsAbility::OwnCertificate);
        assert_eq!(tls(false, None, Some("ca.pem")), TlsAbility::OwnCertificate);
        assert_eq!(tls(true, Some("DISABLED"), Some("")), TlsAbility::OwnCertificate);
    }
}
