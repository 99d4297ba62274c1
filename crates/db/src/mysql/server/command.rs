//! Builds the command lines for MariaDB and MySQL servers, with the options for each product and
//! version.

use std::path::Path;

use crate::server::certificates::CertificateFiles;
use crate::server::intents::Rendered;
use crate::server::{Base, Error, ServerSpec};

/// Paths to one server's files, all absolute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) data_dir: &'a Path,
    pub(super) socket: &'a Path,
    /// The server's own folder for temporary files. At start the server removes everything there
    /// that looks like a temporary table, even another server's. InnoDB also sorts the rows for an
    /// index there.
    pub(super) tmp_dir: &'a Path,
    pub(super) log: &'a Path,
}

/// Options, and sentences about those that a reader should know.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StartOptions {
    pub(super) options: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Options for a measured server. The option file goes first, so that dbdyno's options after it
/// override its paths and nothing else.
pub(super) fn start_options(
    spec: &ServerSpec,
    places: Places<'_>,
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
    quiet_options(base, &mut start);
    Ok(start)
}

/// Options that say where the server's own parts are. A distribution's program has the
/// distribution's paths compiled in, so an unpacked build needs these.
pub(super) fn part_options(base: &Base, config: Option<&Rendered>) -> Vec<String> {
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

/// Sets dbdyno's own certificates, or switches TLS off where it would cost time and no one asked
/// for it.
pub(super) fn tls_options(
    base: &Base,
    config: &Rendered,
    certificates: Option<&CertificateFiles>,
    start: &mut StartOptions,
) {
    if let Some(files) = certificates {
        // The prefix `loose-` is for builds without TLS, which do not know these options. The
        // server asks for the client's certificate, so it must know who signed it.
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

/// Closes other entries that the server would open although no one asked for them.
fn quiet_options(base: &Base, start: &mut StartOptions) {
    if !base.is_mariadb() && base.release.at_least(8, 0) {
        start.options.push("--mysqlx=OFF".to_owned());
        start.notes.push("the X plugin is off (--mysqlx=OFF)".to_owned());
    }
}

/// The plugin file for an engine that is a plugin: `ha_rocksdb.so`.
pub(in crate::mysql) fn engine_plugin(engine: &str) -> String {
    format!("ha_{}.so", engine.to_lowercase())
}

/// The package that has the engine's plugin, where a distribution ships it separately.
const PACKAGED: &str = "MariaDB of Debian: package mariadb-plugin-rocksdb";

/// The option that loads MyRocks, a plugin, at start. MariaDB 10.11 and 11.8 abort when it is
/// loaded later.
fn engine_option(base: &Base, config: &Rendered) -> Result<Option<String>, Error> {
    let engine = &config.engine;
    if !engine.eq_ignore_ascii_case("rocksdb") || config.loads_plugin("rocksdb") {
        return Ok(None);
    }
    let plugin = engine_plugin(engine);
    if !base.has_plugin(&plugin) && !config.sets("plugin_dir") {
        let engine = engine.clone();
        return Err(Error::NoPlugin { engine, plugin, base: base.path.clone(), packaged: PACKAGED });
    }
    Ok(Some(format!("--plugin-load-add={plugin}")))
}

fn path_option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::server::intents::ConfigServer;
    use dbdyno_products::Product;
    use dbdyno_products::mysql::{MARIADB, MYSQL};

    fn options(product: &'static Product, version: (u32, u32, u32), my_cnf: Option<&Path>) -> String {
        let [data_dir, socket, tmp_dir, log] = ["/d", "/t/s", "/t/tmp", "/l/server.log"].map(Path::new);
        let places = Places { data_dir, socket, tmp_dir, log };
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
    fn mysql_8_opens_no_second_port_and_needs_no_folder_of_a_package() {
        let text = options(MYSQL, (8, 0, 31), None);
        assert!(text.contains("--mysqlx=OFF") && text.contains("--secure-file-priv=NULL"), "{text}");
        assert!(!text.contains("ssl"), "{text}");
    }

    #[test]
    fn certificates_of_the_run_take_the_place_of_no_tls() {
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
    fn mariadb_runs_without_tls_unless_the_option_file_speaks_of_it() {
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
