//! Makes a data directory for MariaDB or MySQL in one of three ways, which depends on the product,
//! the version and the build's files. This module also chooses the options with which a server
//! starts on that directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use dbdyno_products::mysql::MARIADB;

use crate::server::certificates::CertificateFiles;
use crate::server::intents::{Rendered, plain_name};
use crate::server::launch::Installer;
use crate::server::{Base, Error, ServerSpec};

/// Scripts in the share folder that make the system tables, in the order in which they must run.
/// Every build has the first and the last.
const SYSTEM_TABLES: &[&str] =
    &["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"];

/// SQL that removes users without a name. Old installers make them, and the server would match
/// other users' logins to them.
const NO_ANONYMOUS_USERS: &str =
    "DELETE FROM mysql.user WHERE user='';\nDELETE FROM mysql.db WHERE user='';\n";

/// Settings that apply when a data directory is made. A later start cannot change them, except for
/// `innodb_use_native_aio`, which is here because initialising with native AIO may fail on this
/// machine.
const FIXED_AT_INITIALISATION: &[&str] = &[
    "aria_block_size",
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_log_block_size",
    "innodb_log_group_home_dir",
    "innodb_page_size",
    "innodb_undo_directory",
    "innodb_undo_tablespaces",
    "innodb_use_native_aio",
    "lower_case_table_names",
];

/// Redo settings with which MySQL 5.5 must initialise, because it refuses redo files with another
/// size. Later servers replace the files at start, so they initialise without these settings and
/// the template stays small.
const FIXED_IN_MYSQL_55: &[&str] = &["innodb_log_file_size", "innodb_log_files_in_group"];

/// How a data directory is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InitMethod {
    /// The server makes it with `mysqld --initialize-insecure`, which MySQL and Percona Server have
    /// from 5.7.
    Initialize,
    /// The build's script makes it: `mariadb-install-db` or `mysql_install_db`.
    Installer(PathBuf),
    /// `mysqld --bootstrap` runs SQL from these scripts in the share folder, for old builds without
    /// the installer script.
    Bootstrap(Vec<PathBuf>),
}

/// A data directory that is being made.
struct Making<'a> {
    base: &'a Base,
    /// Settings with which the data directory must be made, as command line options.
    settings: Vec<String>,
    data_dir: PathBuf,
    tmp_dir: PathBuf,
    log: PathBuf,
    cancel: &'a AtomicBool,
}

/// Returns the settings with which the data directory must be made, as command line options.
pub(super) fn initial_options(config: &Rendered, base: &Base) -> Vec<String> {
    let old = base.product != MARIADB && !base.release.at_least(5, 6);
    let wanted = |name: &str| {
        FIXED_AT_INITIALISATION.contains(&plain_name(name))
            || (old && FIXED_IN_MYSQL_55.contains(&plain_name(name)))
    };
    let option = |(name, value): (&str, Option<&str>)| match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    };
    config.all().filter(|(name, _)| wanted(name)).map(option).collect()
}

/// Makes the data directory `data` in the empty folder `work`, and a log next to it. The data
/// directory has no anonymous users, and root@localhost has no password. `settings` are those from
/// [`initial_options`].
pub(super) fn initialise(
    base: &Base,
    settings: Vec<String>,
    work: &Path,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    let making = Making {
        base,
        settings,
        data_dir: work.join("data"),
        tmp_dir: work.join("tmp"),
        log: work.join("initialise.log"),
        cancel,
    };
    for folder in [&making.data_dir, &making.tmp_dir] {
        make_folder(folder)?;
    }
    match method(base)? {
        InitMethod::Initialize => making.run_initialize()?,
        InitMethod::Installer(script) => making.run_installer(&script)?,
        InitMethod::Bootstrap(scripts) => {
            make_folder(&making.data_dir.join("mysql"))?;
            making.bootstrap(&bootstrap_sql(&scripts)?)?;
        }
    }
    // This file holds the server's UUID, and each copy of the data directory must make a new one.
    let identity = making.data_dir.join("auto.cnf");
    if identity.exists() {
        fs::remove_file(&identity).map_err(Error::io("cannot remove", identity.clone()))?;
    }
    fs::remove_dir_all(&making.tmp_dir).map_err(Error::io("cannot remove", making.tmp_dir.clone()))
}

impl Making<'_> {
    fn run_initialize(&self) -> Result<(), Error> {
        let mut options = part_options(self.base, None);
        options.push("--initialize-insecure".to_owned());
        self.run(&self.base.program, &options, "")
    }

    fn run_installer(&self, script: &Path) -> Result<(), Error> {
        let options: Vec<String> =
            installer_options(self.base).iter().map(|option| (*option).to_owned()).collect();
        without_new_my_cnf(self.base, || self.run(script, &options, ""))?;
        match (self.base.is_mariadb(), self.base.release) {
            // It has made no database `test`, and so no anonymous users either.
            (true, version) if version.at_least(10, 5) => Ok(()),
            // From 10.4 on `mysql.user` is a view of this table.
            (true, version) if version.at_least(10, 4) => {
                self.bootstrap(&NO_ANONYMOUS_USERS.replace("mysql.user", "mysql.global_priv"))
            }
            _ => self.bootstrap(NO_ANONYMOUS_USERS),
        }
    }

    fn bootstrap(&self, sql: &str) -> Result<(), Error> {
        self.run(&self.base.program, &["--bootstrap".to_owned()], sql)
    }

    /// Runs `program` with the options that all methods share, then `options`, then the settings.
    /// Its input is `sql`.
    fn run(&self, program: &Path, options: &[String], sql: &str) -> Result<(), Error> {
        let mut line = vec![
            program.display().to_string(),
            "--no-defaults".to_owned(),
            format!("--basedir={}", self.base.prefix.display()),
            format!("--datadir={}", self.data_dir.display()),
        ];
        if nix::unistd::geteuid().is_root() {
            line.push("--user=root".to_owned());
        }
        line.extend_from_slice(options);
        line.extend_from_slice(&self.settings);
        let installer = Installer {
            title: self.base.title.clone(),
            log: &self.log,
            // MySQL 5.6's script searches for its files relative to the current folder.
            folder: &self.base.prefix,
            tmp_dir: &self.tmp_dir,
            cancel: self.cancel,
        };
        installer.run(&line, sql)
    }
}

/// Chooses how to make a data directory for `base`.
pub(super) fn method(base: &Base) -> Result<InitMethod, Error> {
    if !base.is_mariadb() && base.release.at_least(5, 7) {
        return Ok(InitMethod::Initialize);
    }
    if let Some(script) = &base.installer {
        return Ok(InitMethod::Installer(script.clone()));
    }
    let share = base.share_dir.as_deref().map(Path::to_path_buf).unwrap_or_else(|| base.prefix.join("share"));
    let scripts: Vec<PathBuf> =
        SYSTEM_TABLES.iter().map(|name| share.join(name)).filter(|path| path.is_file()).collect();
    if scripts.first().is_some_and(|first| first.ends_with(SYSTEM_TABLES[0])) {
        return Ok(InitMethod::Bootstrap(scripts));
    }
    let looked_for = format!(
        "bin or scripts/mariadb-install-db, mysql_install_db, {}",
        share.join(SYSTEM_TABLES[0]).display()
    );
    Err(Error::NoInstaller { base: base.path.clone(), looked_for })
}

fn installer_options(base: &Base) -> &'static [&'static str] {
    match (base.is_mariadb(), base.release) {
        // From 10.4 on, without the option with `normal`, only the operating system's root could
        // log in as root.
        (true, version) if version.at_least(10, 5) => {
            &["--force", "--skip-name-resolve", "--auth-root-authentication-method=normal", "--skip-test-db"]
        }
        (true, version) if version.at_least(10, 4) => {
            &["--force", "--skip-name-resolve", "--auth-root-authentication-method=normal"]
        }
        (true, _) => &["--force", "--skip-name-resolve"],
        (false, version) if version.at_least(5, 6) => &["--force", "--skip-name-resolve"],
        (false, _) => &["--force"],
    }
}

fn bootstrap_sql(scripts: &[PathBuf]) -> Result<String, Error> {
    // These variables make the scripts from MariaDB 10.4 and later create root without a password,
    // and no other user.
    let mut sql = "SET @skip_auth_anonymous=1, @auth_root_socket=NULL;\nuse mysql;\n".to_owned();
    for script in scripts {
        let bytes = fs::read(script).map_err(Error::io("cannot read", script.clone()))?;
        sql.push_str(&String::from_utf8_lossy(&bytes));
        sql.push('\n');
    }
    sql.push_str(NO_ANONYMOUS_USERS);
    Ok(sql)
}

/// Does `run`, and then removes the `my.cnf` or `my-new.cnf` that MySQL 5.6's script has left in
/// the base directory. Files that were there before stay.
fn without_new_my_cnf(base: &Base, run: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let left = ["my.cnf", "my-new.cnf"].map(|name| base.prefix.join(name));
    let new: Vec<&PathBuf> = left.iter().filter(|path| !path.exists()).collect();
    let result = run();
    for path in new.into_iter().filter(|path| path.exists()) {
        fs::remove_file(path).map_err(Error::io("cannot remove", path.clone()))?;
    }
    result
}

fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir(path).map_err(Error::io("cannot make", path))
}

/// Paths to one server's files, all absolute.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerPaths<'a> {
    pub(super) data_dir: &'a Path,
    pub(super) socket: &'a Path,
    /// The folder for temporary files. It belongs to this server alone, because a starting server
    /// removes everything there that looks like a temporary table, even another server's. InnoDB
    /// also sorts the rows for an index there.
    pub(super) tmp_dir: &'a Path,
    pub(super) log: &'a Path,
}

/// Options for a server, and sentences about those options that a reader of the results should
/// know.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StartOptions {
    pub(super) options: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Returns the options for a measured server. The option file goes first, so that dbdyno's options
/// after it override its paths and network settings and nothing else.
pub(super) fn start_options(
    spec: &ServerSpec,
    places: ServerPaths<'_>,
    as_root: bool,
) -> Result<StartOptions, Error> {
    let (base, config) = (&spec.base, &spec.config);
    let mut start = StartOptions::default();
    start.options.push(match &config.file {
        Some(path) => format!("--defaults-file={}", path.display()),
        None => "--no-defaults".to_owned(),
    });
    start.options.extend([
        path_option("basedir", &base.prefix),
        path_option("datadir", places.data_dir),
        path_option("socket", places.socket),
        path_option("pid-file", &places.data_dir.join("dbdyno.pid")),
        path_option("log-error", places.log),
        "--skip-networking=1".to_owned(),
    ]);
    if !config.sets("tmpdir") {
        start.options.push(path_option("tmpdir", places.tmp_dir));
    }
    start.options.extend(part_options(base, Some(config)));
    if as_root {
        start.options.push("--user=root".to_owned());
    }
    start.options.extend(engine_option(base, config)?);
    switch_off_x_plugin(base, &mut start);
    Ok(start)
}

/// Returns options that say where the build's plugins, messages and character sets are. A
/// distribution's program has the distribution's paths compiled in, so an unpacked build needs
/// these options.
fn part_options(base: &Base, config: Option<&Rendered>) -> Vec<String> {
    let is_set = |name| config.is_some_and(|config| config.sets(name));
    let mut options = Vec::new();
    if let Some(plugin_dir) = base.plugin_dir.as_deref().filter(|_| !is_set("plugin_dir")) {
        options.push(path_option("plugin-dir", plugin_dir));
    }
    if let Some(share_dir) = base.share_dir.as_deref() {
        options.push(path_option("lc-messages-dir", share_dir));
        options.push(path_option("character-sets-dir", &share_dir.join("charsets")));
    }
    if !base.is_mariadb() && base.release.at_least(8, 0) && !is_set("secure_file_priv") {
        // Distributions compile in a folder that only the installed package makes. Without that
        // folder the server exits.
        options.push("--secure-file-priv=NULL".to_owned());
    }
    options
}

/// Adds options that set dbdyno's own certificates. Without certificates, it switches MariaDB's TLS
/// off unless the option file asks for it, because TLS would cost time.
pub(super) fn tls_options(
    base: &Base,
    config: &Rendered,
    certificates: Option<&CertificateFiles>,
    start: &mut StartOptions,
) {
    if let Some(files) = certificates {
        // With the prefix `loose-`, builds without TLS ignore these options, which they do not
        // know. The server asks for the client's certificate, so it must know who signed that.
        start.options.push(path_option("loose-ssl-ca", &files.authority));
        start.options.push(path_option("loose-ssl-cert", &files.certificate));
        start.options.push(path_option("loose-ssl-key", &files.key));
        start.notes.push("TLS with a certificate that dbdyno has made for this run".to_owned());
        return;
    }
    let asked_for = ["ssl", "tls", "require_secure_transport"].iter().any(|name| config.sets(name));
    if base.is_mariadb() && base.release.at_least(10, 5) && !asked_for {
        // From 11.4 on the server would make an RSA key at each start, which takes up to 19 s.
        start.options.push("--skip-ssl".to_owned());
        start.notes.push("TLS is off (--skip-ssl), as the option file does not ask for it".to_owned());
    }
}

/// Switches off the X plugin, with which MySQL 8.0 and later would listen on another port and
/// socket.
fn switch_off_x_plugin(base: &Base, start: &mut StartOptions) {
    if !base.is_mariadb() && base.release.at_least(8, 0) {
        start.options.push("--mysqlx=OFF".to_owned());
        start.notes.push("the X plugin is off (--mysqlx=OFF)".to_owned());
    }
}

/// Returns the name of the file with an engine that is a plugin, such as `ha_rocksdb.so`.
pub(in crate::mysql) fn engine_plugin(engine: &str) -> String {
    format!("ha_{}.so", engine.to_lowercase())
}

/// The package that has the RocksDB plugin, which Debian ships separately.
const ROCKSDB_PACKAGE: &str = "MariaDB of Debian: package mariadb-plugin-rocksdb";

/// Returns the option that loads the MyRocks plugin at start, if the engine is MyRocks. MariaDB
/// 10.11 and 11.8 abort when the plugin is loaded later.
fn engine_option(base: &Base, config: &Rendered) -> Result<Option<String>, Error> {
    let engine = &config.engine;
    if !engine.eq_ignore_ascii_case("rocksdb") || config.loads_plugin("rocksdb") {
        return Ok(None);
    }
    let plugin = engine_plugin(engine);
    if !base.has_plugin(&plugin) && !config.sets("plugin_dir") {
        let engine = engine.clone();
        return Err(Error::NoPlugin { engine, plugin, base: base.path.clone(), packaged: ROCKSDB_PACKAGE });
    }
    Ok(Some(format!("--plugin-load-add={plugin}")))
}

fn path_option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use dbdyno_products::Product;
    use dbdyno_products::mysql::{MARIADB, MYSQL, PERCONA};

    use super::*;
    use crate::server::intents::ConfigServer;

    #[test]
    fn only_settings_that_a_later_start_cannot_change_are_initial_options() {
        let text = "[client]\nuser=x\n[mysqld]\ninnodb-page-size=4k\ninnodb_buffer_pool_size=1G\n\
                    innodb_log_file_size=64M\ninnodb_undo_tablespaces=3\n[mysqld-5.5]\nlower_case_table_names=1\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.cnf");
        fs::write(&path, text).unwrap();
        let options = |version| {
            let base = Base::sample(MYSQL, version);
            let config = Rendered::of(&ConfigServer::of_base(&base, "innodb"));
            initial_options(&config.with_own_config(&base, &path).unwrap(), &base).join(" ")
        };
        assert_eq!(options((5, 6, 24)), "--innodb_page_size=4k --innodb_undo_tablespaces=3");
        assert_eq!(
            options((5, 5, 34)),
            "--innodb_page_size=4k --innodb_log_file_size=64M --innodb_undo_tablespaces=3 --lower_case_table_names=1"
        );
    }

    #[test]
    fn new_mysql_initialises_itself_and_a_build_without_installer_says_what_it_lacks() {
        assert_eq!(method(&Base::sample(MYSQL, (5, 7, 22))).unwrap(), InitMethod::Initialize);
        assert_eq!(method(&Base::sample(PERCONA, (8, 0, 35))).unwrap(), InitMethod::Initialize);
        let message = method(&Base::sample(MARIADB, (10, 1, 23))).unwrap_err().to_string();
        insta::assert_snapshot!(message, @"/s/base has no installer: looked for bin or scripts/mariadb-install-db, mysql_install_db, /s/base/share/mysql_system_tables.sql; use a base directory that was not stripped of its share folder");
    }

    #[test]
    fn installers_get_no_option_that_they_do_not_know() {
        let options = |product, version| installer_options(&Base::sample(product, version)).join(" ");
        assert_eq!(options(MYSQL, (5, 5, 34)), "--force");
        assert_eq!(options(MYSQL, (5, 6, 14)), "--force --skip-name-resolve");
        assert_eq!(options(MARIADB, (10, 1, 23)), "--force --skip-name-resolve");
        let new = "--force --skip-name-resolve --auth-root-authentication-method=normal --skip-test-db";
        assert_eq!(options(MARIADB, (10, 11, 5)), new);
    }

    fn options(product: &'static Product, version: (u32, u32, u32), my_cnf: Option<&Path>) -> String {
        let [data_dir, socket, tmp_dir, log] = ["/d", "/t/s", "/t/tmp", "/l/server.log"].map(Path::new);
        let places = ServerPaths { data_dir, socket, tmp_dir, log };
        let base = Base::sample(product, version);
        let spec = ServerSpec::new(&base, my_cnf, Path::new("/f"), PathBuf::new()).unwrap();
        let start = start_options(&spec, places, true).unwrap();
        with_tls(&base, &spec.config, None, start)
    }

    fn default(base: &Base) -> Rendered {
        Rendered::of(&ConfigServer::of_base(base, "innodb"))
    }

    fn with_tls(
        base: &Base,
        config: &Rendered,
        certificates: Option<&CertificateFiles>,
        mut start: StartOptions,
    ) -> String {
        tls_options(base, config, certificates, &mut start);
        let notes = start.notes.iter().map(|note| format!("# {note}"));
        start.options.into_iter().chain(notes).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn an_old_server_gets_no_option_that_it_does_not_know() {
        insta::assert_snapshot!(options(MYSQL, (5, 6, 24), None), @r"
        --no-defaults
        --basedir=/s/base
        --datadir=/d
        --socket=/t/s
        --pid-file=/d/dbdyno.pid
        --log-error=/l/server.log
        --skip-networking=1
        --tmpdir=/t/tmp
        --lc-messages-dir=/s/base/share
        --character-sets-dir=/s/base/share/charsets
        --user=root
        ");
    }

    #[test]
    fn mysql_8_opens_no_second_port_and_needs_no_folder_from_a_package() {
        let text = options(MYSQL, (8, 0, 31), None);
        assert!(text.contains("--mysqlx=OFF") && text.contains("--secure-file-priv=NULL"), "{text}");
        assert!(!text.contains("ssl"), "{text}");
    }

    #[test]
    fn a_runs_certificates_keep_tls_on() {
        let [authority, certificate, key] = ["/t/ca", "/t/c", "/t/k"].map(PathBuf::from);
        let files = CertificateFiles { authority, certificate, key };
        let base = Base::sample(MARIADB, (10, 11, 5));
        insta::assert_snapshot!(with_tls(&base, &default(&base), Some(&files), StartOptions::default()), @r"
        --loose-ssl-ca=/t/ca
        --loose-ssl-cert=/t/c
        --loose-ssl-key=/t/k
        # TLS with a certificate that dbdyno has made for this run
        ");
    }

    #[test]
    fn mariadb_runs_without_tls_unless_the_option_file_asks_for_it() {
        let text = options(MARIADB, (11, 8, 6), None);
        assert!(text.contains("--skip-ssl\n# TLS is off"), "{text}");
        assert!(!text.contains("mysqlx") && !text.contains("secure"), "{text}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.cnf");
        std::fs::write(&path, "[mariadb]\nssl_cert = c.pem\n").unwrap();
        let text = options(MARIADB, (11, 8, 6), Some(&path));
        assert!(text.starts_with("--defaults-file=/") && !text.contains("skip-ssl"), "{text}");
    }

    #[test]
    fn an_engine_that_the_build_lacks_is_named_before_anything_starts() {
        let base = Base::sample(MARIADB, (10, 11, 5));
        let config = Rendered::of(&ConfigServer::of_base(&base, "rocksdb"));
        let error = engine_option(&base, &config).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"engine rocksdb needs the plugin ha_rocksdb.so, which is not in /s/base; use a build that has it (MariaDB of Debian: package mariadb-plugin-rocksdb)");
    }
}
